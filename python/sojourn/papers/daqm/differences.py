"""Differences between the three readings: the study's main message, as sentences and tables."""

from __future__ import annotations

import pandas as pd
from scipy.stats import spearmanr

from sojourn.papers.daqm import published
from sojourn.papers.daqm.mechanisms import C1, COBALT, CONFIGURATIONS, EIGHT, RED
from sojourn.papers.daqm.scenarios import HTTP
from sojourn.papers.daqm.terms import DELAY, DELIVERED, LOSS, QUEUE, SOJOURN
from sojourn.papers.outcome import Outcome

#: Published metrics and the runs' own metrics with the same meaning.
SAME = {
    "delay": DELAY,
    "plr": LOSS,
    "queue": QUEUE,
    "sojourn": SOJOURN,
    "throughput": DELIVERED,
}


def _http(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns HTTP at a constant rate, with the flow's own rate and the preset's drop rates."""
    chosen = (frame["flow"] == "http") & (frame["model"] == "cbr")
    for column, value in (("rate", HTTP.rate), ("payload", HTTP.payload), ("drop_rate", 0.0)):
        if column in frame:
            chosen &= frame[column] == value
    return frame[chosen]


def _mean(frame: pd.DataFrame, mechanism: str, metric: str) -> float:
    return float(frame.loc[frame["mechanism"] == mechanism, metric].mean())


def readings(outcome: Outcome) -> pd.DataFrame:
    """Returns HTTP at a constant rate by mechanism: as published, and in the three readings.

    Loss is that of the published averaging in the first two, and counted once in the others.
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


def order(outcome: Outcome) -> pd.DataFrame:
    """Returns Spearman's rank correlations of the orders of the eight mechanisms."""
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
    """Returns Spearman's rank correlation; NaN if all values are equal."""
    if len(set(a)) < 2 or len(set(b)) < 2:
        return float("nan")
    return float(spearmanr(a, b).statistic)


def averaging(outcome: Outcome) -> pd.DataFrame:
    """Returns the effect of the averaging by mechanism: runs as published, HTTP, constant rate."""
    bus = _http(outcome.frame("published", "estimates"))
    columns = {
        "loss as published": "plr",
        "with zeros": "plr_with_zeros",
        "counted once": "loss",
        "of it discarded by measuring": "discarded",
        "queue as published": "queue",
        "queue with zeros": "queue_with_zeros",
        "sojourn (ms) as published": "sojourn",
        "sojourn (ms) with zeros": "sojourn_with_zeros",
    }
    return pd.DataFrame(
        {"mechanism": m, **{name: _mean(bus, m, column) for name, column in columns.items()}}
        for m in EIGHT
    )


def quirks(outcome: Outcome) -> pd.DataFrame:
    """Returns the effect of each quirk of the published code on dAQM: HTTP, constant rate, bus."""
    columns = {
        "loss as published": "plr",
        "loss counted once": "loss",
        "of it discarded": "discarded",
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


def messages(outcome: Outcome) -> list[str]:
    """Returns sentences on the differences between the readings, with this run's figures."""
    bus, described = _http(outcome.frame("published", "estimates")), outcome.frame("described")
    meant = _http(outcome.frame("features", "all"))
    meant = meant[meant["load"] == meant["load"].max()]
    load = float(meant["load"].iloc[0])
    said = [
        (
            f"As published, the bus carries {bus['carried'].mean():.0f} frames a second of all "
            "stations together, for a frame occupies it for its 1 ms of propagation: the bus is "
            "the bottleneck, not a switch."
        ),
        (
            f"As published, measuring discards {_share(_mean(bus, C1, 'discarded'))} of what "
            "clients send through dAQM_c1, and the published loss of "
            f"{_share(_mean(bus, C1, 'plr'))} leaves them out; counted once, it loses "
            f"{_share(_mean(bus, C1, 'loss'))}. With "
            f"correct measuring on the same bus its sojourn time is "
            f"{_quirk(outcome, C1, 'none', 'sojourn'):.0f} ms instead of "
            f"{_quirk(outcome, C1, 'all', 'sojourn'):.0f} ms."
        ),
        (
            "What the published code's host clock showed cannot be known, and it decides: if 10 ms "
            f"of it were 1 s of the simulation, dAQM_c1's sojourn time is "
            f"{_quirk(outcome, C1, 'all, wall-period 1s', 'sojourn'):.0f} ms and its queue "
            f"{_quirk(outcome, C1, 'all, wall-period 1s', 'queue'):.1f} packets (the thesis: 46 ms "
            "and 10.0)."
        ),
        (
            f"Leaving zeros out makes RED's sojourn time {_mean(bus, RED, 'sojourn'):.0f} ms of "
            f"{_mean(bus, RED, 'sojourn_with_zeros'):.0f} ms, and counting drops twice "
            f"makes COBALT's final loss {_share(_mean(bus, COBALT, 'plr_final'))}, though "
            f"{_share(_mean(bus, COBALT, 'loss'))} of what clients sent was dropped."
        ),
        (
            "As described, nothing is ever congested: the busiest of all runs keeps its ports "
            f"{_share(float(described['utilisation'].max()))} busy, "
            f"{int(described['drops'].sum())} packets are dropped, and the longest mean sojourn "
            f"time is {1e6 * float(described[SOJOURN].max()):.1f} us. Mechanisms cannot differ."
        ),
    ]
    shortest = min(EIGHT, key=lambda m: _mean(meant, m, SOJOURN))
    fewest = min(EIGHT, key=lambda m: _mean(meant, m, LOSS))
    said.append(
        f"As meant, at load {load:g} of HTTP at a constant rate, {shortest} has the shortest "
        f"sojourn time ({1000 * _mean(meant, shortest, SOJOURN):.1f} ms) and {fewest} the least "
        f"loss ({_share(_mean(meant, fewest, LOSS))}); the thesis names dAQM_c3 and dAQM_c1, which "
        f"have {1000 * _mean(meant, 'dAQM_c3', SOJOURN):.1f} ms and "
        f"{_share(_mean(meant, C1, LOSS))} here."
    )
    most = max(_mean(meant, m, DELIVERED) for m in EIGHT)
    told = ", ".join(f"{m} {_share(_mean(meant, m, DELIVERED) / most)}" for m in CONFIGURATIONS)
    said.append(
        "Short queues and sojourn times are bought with throughput: of what the best mechanism "
        f"delivers there, {told}."
    )
    return said


def _share(value: float) -> str:
    """Returns a share in per cent, with more digits for small ones."""
    return f"{100 * value:.2g} %" if value < 0.1 else f"{100 * value:.0f} %"


def _quirk(outcome: Outcome, mechanism: str, quirk: str, metric: str) -> float:
    frame = outcome.frame("quirks", "estimates")
    return _mean(frame[frame["quirks"] == quirk], mechanism, metric)
