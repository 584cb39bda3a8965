"""Differences between the three readings of the thesis, as sentences and tables."""

from __future__ import annotations

import pandas as pd
from scipy.stats import spearmanr

from sojourn.papers.daqm import published
from sojourn.papers.daqm.mechanisms import C1, COBALT, CONFIGURATIONS, EIGHT, RED
from sojourn.papers.daqm.parts import Results
from sojourn.papers.daqm.scenarios import HTTP
from sojourn.papers.daqm.terms import DELAY, DELIVERED, LOSS, QUEUE, SOJOURN

#: The runs' own metric for each published metric with the same meaning.
SAME = {
    "delay": DELAY,
    "plr": LOSS,
    "queue": QUEUE,
    "sojourn": SOJOURN,
    "throughput": DELIVERED,
}


def _http(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows of HTTP at a constant rate, with the default rate, payload and drop rate."""
    chosen = (frame["flow"] == "http") & (frame["model"] == "cbr")
    for column, value in (("rate", HTTP.rate), ("payload", HTTP.payload), ("drop_rate", 0.0)):
        if column in frame:
            chosen &= frame[column] == value
    return frame[chosen]


def _mean(frame: pd.DataFrame, mechanism: str, metric: str) -> float:
    return float(frame.loc[frame["mechanism"] == mechanism, metric].mean())


def readings(outcome: Results) -> pd.DataFrame:
    """Returns loss and sojourn time of HTTP at a constant rate by mechanism.

    Columns: the thesis' value, and the mean in each of the three readings. The thesis' value and
    the reading as published have the published averaging; the other readings count each packet
    once.
    """
    known = published.frame()
    known = known[known["source"] == "HTTP CBR"]
    bus = _http(outcome.frame("published", "estimates"))
    described = _http(outcome.frame("described"))
    meant = _http(outcome.frame("features", "all"))
    meant = meant[meant["load"] == meant["load"].max()]
    rows = []
    for mechanism in EIGHT:
        row: dict[str, str | float] = {"mechanism": mechanism}
        for metric, own in (("plr", LOSS), ("sojourn", SOJOURN)):
            scale = 1000 if metric == "sojourn" else 1
            unit = " (ms)" if metric == "sojourn" else ""
            name = {"plr": "loss", "sojourn": "sojourn"}[metric] + unit
            there = known[(known["mechanism"] == mechanism) & (known["metric"] == metric)]
            row[f"{name}, paper"] = float(there["published"].iloc[0])
            row[f"{name}, as published"] = _mean(bus, mechanism, metric)
            if mechanism in set(described["mechanism"]):
                row[f"{name}, as described"] = scale * _mean(described, mechanism, own)
            row[f"{name}, as meant"] = scale * _mean(meant, mechanism, own)
        rows.append(row)
    return pd.DataFrame(rows)


def appendix(compared: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Returns the thesis' tables 4 to 9 in its layout, with "published / ours" in each cell.

    `compared` has all published values and ours.
    """
    return [
        (
            f"Table {number}",
            pd.DataFrame(
                {"metric": f"{metric}, {unit}".removesuffix(", 1"), **_cells(rows, metric)}
                for metric, unit in published.METRICS.items()
                if metric in set(rows["metric"])
            ),
        )
        for number in range(4, 10)
        for rows in [compared[compared["source"] == f"table {number}"]]
        if not rows.empty
    ]


def _cells(rows: pd.DataFrame, metric: str) -> dict[str, str]:
    values = rows[rows["metric"] == metric].set_index("mechanism")
    pairs = ((float(values["published"][m]), float(values["here"][m])) for m in EIGHT)
    return {m: " / ".join(map(_short, pair)) for m, pair in zip(EIGHT, pairs, strict=True)}


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def order(outcome: Results) -> pd.DataFrame:
    """Returns Spearman's rank correlations between the thesis and our runs, by metric.

    The correlations compare the orders of the eight mechanisms in the thesis with those in our
    runs, as published and at each load as meant.
    """
    known = published.frame()
    known = known[known["source"] == "HTTP CBR"]
    bus, meant = (
        _http(outcome.frame("published", "estimates")),
        _http(outcome.frame("features", "all")),
    )
    rows = []
    for metric, own in SAME.items():
        paper = [
            float(
                known[(known["mechanism"] == m) & (known["metric"] == metric)]["published"].iloc[0]
            )
            for m in EIGHT
        ]
        here = [_mean(bus, m, metric) for m in EIGHT]
        row: dict[str, str | float] = {
            "metric": metric,
            "paper and as published": _alike(paper, here),
        }
        for load in sorted(set(meant["load"])):
            at = meant[meant["load"] == load]
            means = [_mean(at, m, own) for m in EIGHT]
            row[f"paper and as meant, load {load:g}"] = _alike(paper, means)
        rows.append(row)
    return pd.DataFrame(rows)


def _alike(a: list[float], b: list[float]) -> float:
    """Returns Spearman's rank correlation; NaN if all values of `a` or of `b` are equal."""
    if len(set(a)) < 2 or len(set(b)) < 2:
        return float("nan")
    return float(spearmanr(a, b).statistic)


def averaging(outcome: Results) -> pd.DataFrame:
    """Returns the effect of the published averaging by mechanism.

    The runs are the runs as published, with HTTP at a constant rate.
    """
    bus = _http(outcome.frame("published", "estimates"))
    columns = {
        "loss as published": "plr",
        "loss with zeros": "plr_with_zeros",
        "loss counted once": "loss",
        "discarded by measuring": "discarded",
        "queue as published": "queue",
        "queue with zeros": "queue_with_zeros",
        "sojourn (ms) as published": "sojourn",
        "sojourn (ms) with zeros": "sojourn_with_zeros",
    }
    return pd.DataFrame(
        {"mechanism": m, **{name: _mean(bus, m, column) for name, column in columns.items()}}
        for m in EIGHT
    )


def quirks(outcome: Results) -> pd.DataFrame:
    """Returns the effect of each quirk of the published code on dAQM.

    The runs are the runs on the bus, with HTTP at a constant rate.
    """
    columns = {
        "loss as published": "plr",
        "loss counted once": "loss",
        "discarded by measuring": "discarded",
        "queue as published": "queue",
        "sojourn (ms) as published": "sojourn",
        "delay (ms) as published": "delay",
    }
    frame = outcome.frame("quirks", "estimates")
    return pd.DataFrame(
        {
            "quirks": quirk,
            "mechanism": m,
            **{
                name: _mean(frame[frame["quirks"] == quirk], m, column)
                for name, column in columns.items()
            },
        }
        for quirk in dict.fromkeys(frame["quirks"])
        for m in CONFIGURATIONS
    )


def messages(outcome: Results) -> list[str]:
    """Returns sentences on the differences between the readings, with the study's own numbers."""
    bus, described = _http(outcome.frame("published", "estimates")), outcome.frame("described")
    meant = _http(outcome.frame("features", "all"))
    meant = meant[meant["load"] == meant["load"].max()]
    load = float(meant["load"].iloc[0])
    said = [
        (
            f"As published, the bus carries {bus['carried'].mean():.0f} frames a second for all "
            "stations together, because a frame occupies the bus for 1 ms of propagation. The bus "
            "is the bottleneck."
        ),
        (
            f"As published, measuring discards {_share(_mean(bus, C1, 'discarded'))} of the "
            "packets that clients send through dAQM_c1. The loss by the published definition, "
            f"{_share(_mean(bus, C1, 'plr'))}, hardly contains them; if each packet is counted "
            f"once, dAQM_c1 loses {_share(_mean(bus, C1, 'loss'))}. On the same bus without the "
            "quirks of the published code, dAQM_c1's simulated sojourn time is "
            f"{_quirk(outcome, C1, 'none', 'sojourn'):.0f} ms instead of "
            f"{_quirk(outcome, C1, 'all', 'sojourn'):.0f} ms."
        ),
        (
            "The published code samples queues by the clock of its host, whose speed relative to "
            "simulated time is unknown but decisive. If 10 ms of the host's clock are 1 s of "
            "simulated time, dAQM_c1's simulated sojourn time is "
            f"{_quirk(outcome, C1, 'all, wall-period 1s', 'sojourn'):.0f} ms and its queue "
            f"{_quirk(outcome, C1, 'all, wall-period 1s', 'queue'):.1f} packets (the thesis: 46 ms "
            "and 10.0 packets)."
        ),
        (
            f"As published, RED's mean sojourn time is {_mean(bus, RED, 'sojourn'):.0f} ms without "
            f"samples of zero, and {_mean(bus, RED, 'sojourn_with_zeros'):.0f} ms with them. Drops "
            f"count twice: COBALT's loss at the end is {_share(_mean(bus, COBALT, 'plr_final'))}, "
            f"although it dropped {_share(_mean(bus, COBALT, 'loss'))} of the clients' packets."
        ),
        (
            "As described, no port is congested. The highest utilisation of a run is "
            f"{_share(float(described['utilisation'].max()))}, "
            f"{int(described['drops'].sum())} packets are dropped in all, and the longest mean "
            f"sojourn time is {1e6 * float(described[SOJOURN].max()):.1f} us. So mechanisms cannot "
            "differ."
        ),
    ]
    shortest = min(EIGHT, key=lambda m: _mean(meant, m, SOJOURN))
    fewest = min(EIGHT, key=lambda m: _mean(meant, m, LOSS))
    said.append(
        f"As meant, with HTTP at a constant rate and load {load:g}, {shortest} has the shortest "
        f"sojourn time ({1000 * _mean(meant, shortest, SOJOURN):.1f} ms) and {fewest} the least "
        f"loss ({_share(_mean(meant, fewest, LOSS))}). The thesis names dAQM_c3 for sojourn time "
        f"({1000 * _mean(meant, 'dAQM_c3', SOJOURN):.1f} ms here) and dAQM_c1 for loss "
        f"({_share(_mean(meant, C1, LOSS))} here)."
    )
    most = max(_mean(meant, m, DELIVERED) for m in EIGHT)
    shares = ", ".join(f"{m} {_share(_mean(meant, m, DELIVERED) / most)}" for m in CONFIGURATIONS)
    said.append(
        f"As meant, with HTTP at a constant rate and load {load:g}, the throughput of each dAQM, "
        f"as a share of the best mechanism's, is: {shares}."
    )
    return said


def _share(value: float) -> str:
    """Returns a share in per cent: whole numbers from 10 % on, two digits below."""
    return f"{100 * value:.2g} %" if value < 0.1 else f"{100 * value:.0f} %"


def _quirk(outcome: Results, mechanism: str, quirk: str, metric: str) -> float:
    frame = outcome.frame("quirks", "estimates")
    return _mean(frame[frame["quirks"] == quirk], mechanism, metric)
