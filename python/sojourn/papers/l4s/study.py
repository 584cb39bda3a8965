"""Runs of the L4S study and their sizes, and the metrics that are derived from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pandas as pd

from sojourn import _core
from sojourn.papers.bench import Bench, runs_of
from sojourn.papers.l4s import claims, scenarios
from sojourn.papers.l4s.scenarios import CUBIC, ECN, PRAGUE
from sojourn.papers.outcome import Outcome
from sojourn.papers.part import Cells, Frames, Part, Size
from sojourn.study import Table

ABOVE, PACKETS = 0.025, 4
"""Limit of a spike: base RTT plus `ABOVE` s plus the transmission time of `PACKETS` packets."""
STEP = 30.0
"""Time in seconds at which the rate of scenario 2 falls."""
STEP_RTT, BURST_RTT = 80, 20
"""Base RTTs of scenario 2 in ms, without and with bursts, as in the source's figures."""
STEPS = ("25mbit", "1mbit")
CONTROLS = {"Prague": PRAGUE, "CUBIC": CUBIC + ECN}
S3_RTTS = (20, 80)


@dataclass(frozen=True, kw_only=True)
class L4sSize(Size):
    """Size of the study; lengths are in seconds."""

    rates: tuple[int, ...]
    """Rates of the part on RFC 9332, in Mbit/s."""
    rtts: tuple[int, ...]
    """Base RTTs of the part on RFC 9332, in ms."""
    mixed: tuple[float, float]
    """Length and warm-up of the part on RFC 9332."""
    fair: tuple[float, float]
    """Length and warm-up of scenario 1. The source ran three minutes and measured the last minute.
    """
    shared: tuple[float, float]
    """Length and warm-up of all other parts except scenarios 2 and 3."""
    after: float
    """Length of scenario 2 after the rate falls."""

    @property
    def grid(self) -> list[tuple[int, int]]:
        """Returns all pairs of rate in Mbit/s and base RTT in ms."""
        return [(rate, rtt) for rate in self.rates for rtt in self.rtts]


Results = Outcome[L4sSize]
"""Results of this study."""

QUICK = L4sSize(
    seeds=8, rates=(20, 100), rtts=(5, 100), mixed=(50, 20), fair=(120, 60), shared=(60, 15),
    after=60,
)  # fmt: skip
FULL = L4sSize(
    seeds=12, rates=(20, 50, 100, 200), rtts=(5, 25, 100), mixed=(100, 40), fair=(180, 120),
    shared=(60, 15), after=90,
)  # fmt: skip


def mixed(size: L4sSize) -> Cells:
    """Returns the cells of RFC 9332: every mix at every rate and base RTT."""
    return [
        (
            {"mix": mix, "rate": rate, "rtt": rtt},
            scenarios.mixed(mix, rate * 1_000_000, rtt, *size.mixed),
        )
        for mix in scenarios.MIXES
        for rate, rtt in size.grid
    ]


def _mixed(table: Table) -> Frames:
    """Derives the metrics of claims on RFC 9332.

    Shares compare one L4S flow with one Classic flow. Delays are queueing delays: the base delay is
    subtracted.
    """
    frame = table.frame
    counts = {
        mix: {name: count for name, _, count in groups} for mix, groups in scenarios.MIXES.items()
    }

    def each(name: str, metric: str) -> pd.Series[float]:
        number = frame["mix"].map(lambda mix: counts[mix].get(name, 0))
        return frame[f"{name}.{metric}"] / number.where(number > 0)

    floor = pd.Series(
        [
            scenarios.base(rate * 1_000_000, rtt)
            for rate, rtt in zip(frame["rate"], frame["rtt"], strict=True)
        ],
        index=frame.index,
    )
    ours, theirs = each("l4s", "goodput"), each("classic", "goodput")
    # `cwnd_mean` is the mean over flows, so it is not divided by the number of flows.
    window, other = frame["l4s.cwnd_mean"], frame["classic.cwnd_mean"]
    return {
        "": frame[["mix", "rate", "rtt", "seed"]].assign(
            rfc_share=ours / (ours + theirs),
            rfc_window=window / (window + other),
            rfc_delay=frame["l4s.delay_mean"] - floor,
            rfc_delay_p99=frame["l4s.delay_p99"] - floor,
            rfc_loss=frame["l4s.packet_loss"],
            rfc_classic_p99=frame["classic.delay_p99"] - floor,
            rfc_utilisation=frame["utilisation"],
        )
    }


def fair(size: L4sSize) -> Cells:
    """Returns the cells of scenario 1."""
    return [
        (
            {"queue": queue, "pair": pair, "rtts": rtts},
            scenarios.fair(queue, pair, rtts, *size.fair),
        )
        for queue in scenarios.S1_QUEUES
        for pair in scenarios.S1_PAIRS
        for rtts in scenarios.S1_RTTS
    ]


def share(a: str, b: str, name: str, *more: str, rivals: str = "") -> Callable[[Table], Frames]:
    """Returns a function that derives the share of group `a` in the goodput of `a` and `b`.

    The metrics are `name`_share and `name`_both, the goodput of both groups in Mbit/s, and further
    names of the share. `rivals` is the factor with the number of flows of `b`, if there are
    several: the share is then that of two single flows.
    """

    def frames(table: Table) -> Frames:
        mine, theirs = table.frame[f"{a}.goodput"], table.frame[f"{b}.goodput"]
        single = theirs / table.frame[rivals].astype(int) if rivals else theirs
        shares = dict.fromkeys((f"{name}_share", *more), mine / (mine + single))
        kept = table.frame[[*table.factors, "seed"]]
        return {"": kept.assign(**shares, **{f"{name}_both": (mine + theirs) / 1e6})}

    return frames


def steps(size: L4sSize) -> Cells:
    """Returns the cells of scenario 2 without bursts, with fq_codel at the bottleneck."""
    return [
        (
            {"control": name, "to": to},
            scenarios.step(tcp, "fq_codel", to, STEP_RTT, False, size.after),
        )
        for name, tcp in CONTROLS.items()
        for to in STEPS
    ]


def spiking(to: str) -> float:
    """Returns the limit in seconds above which a round-trip time counts as a spike at rate `to`."""
    rate = _core.parse_quantity("rate", to)
    return STEP_RTT / 1e3 + ABOVE + 8 * scenarios.FRAME * PACKETS / rate


def _steps(table: Table) -> Frames:
    rows, drawn = [], []
    for levels, run in runs_of(table):
        series = run.table("series")[["time", "flow.0.srtt"]].rename(
            columns={"flow.0.srtt": "srtt"}
        )
        later = series[series["time"] > STEP]
        grain = later["time"].diff().median()
        labels = {**levels, "seed": run.seed}
        rows.append({
            **labels,
            "s2_spike": grain * int((later["srtt"] > spiking(str(levels["to"]))).sum()),
            "s2_greatest": later["srtt"].max(),
        })  # fmt: skip
        drawn.append(series.assign(**labels))
    return {"": pd.DataFrame(rows), "series": pd.concat(drawn, ignore_index=True)}


def bursts(size: L4sSize) -> Cells:
    """Returns the cells of scenario 2 with a link that sends in bursts before the bottleneck."""
    return [
        (
            {"sender": f"{name}, {queue}"},
            scenarios.step(CONTROLS[name], queue, "25mbit", BURST_RTT, True, size.after),
        )
        for name, queue in (
            ("Prague", "dualpi2"),
            ("CUBIC", "fq_codel"),
            ("Prague", "fq_codel"),
            ("CUBIC", "dualpi2"),
        )
    ]


def varying() -> Cells:
    """Returns the cells of scenario 3: fq_codel marks Prague's packets and drops CUBIC's."""
    return [
        ({"control": name, "rtt": rtt}, scenarios.varying(tcp, queue, rtt))
        for name, tcp, queue in (
            ("Prague", PRAGUE, "fq_codel"),
            ("CUBIC", CUBIC, "fq_codel noecn"),
        )
        for rtt in S3_RTTS
    ]


def _varying(table: Table) -> Frames:
    frame = table.frame
    return {"": frame.assign(s3_excess=frame["flow.rtt_p99"] - frame["rtt"] / 1e3)}


def shared(size: L4sSize) -> Cells:
    """Returns the cells of scenario 6."""
    return [
        ({"queue": queue, "rival": rival}, scenarios.shared(queue, rival, *size.shared))
        for queue in scenarios.S6_QUEUES
        for rival in scenarios.S6_RIVALS
    ]


def partial(size: L4sSize) -> Cells:
    """Returns the cells of the two papers' testbed."""
    return [
        ({"queue": queue, "rival": rival}, scenarios.partial(queue, rival, *size.shared))
        for queue in scenarios.PARTIAL_QUEUES
        for rival in scenarios.PARTIAL_RIVALS
    ]


def multiple(size: L4sSize) -> Cells:
    """Returns the cells with one Prague flow and one or ten CUBIC flows in CoDel."""
    return [
        ({"rivals": rivals}, scenarios.partial("CoDel", "CUBIC, ECN", *size.shared, rivals=rivals))
        for rivals in (1, 10)
    ]


def environments(size: L4sSize) -> Cells:
    """Returns the cells that compare DualPI2 on a link with DualPI2 on a link like Mahimahi's."""
    return [
        (
            {"where": where, "product": product},
            scenarios.environment(where, product, *size.shared),
        )
        for where in ("link", "Mahimahi")
        for product in scenarios.PRODUCTS
    ]


def _environments(table: Table) -> Frames:
    frame = table.frame
    floor = frame["product"].map(
        lambda name: scenarios.base(
            12_000_000 * scenarios.PRODUCTS[name][0], scenarios.PRODUCTS[name][1]
        )
    )
    kept = frame[["where", "product", "seed"]]
    return {"": kept.assign(environment_delay=frame["l4s.delay_mean"] - floor)}


def _bursts(table: Table) -> Frames:
    return {"": table.frame.assign(s2_utilisation=table.frame["flow.goodput"])}


def parts(size: L4sSize) -> Iterator[Part]:
    """Yields all parts of the study."""
    rfc, both = claims.rfc(size.grid), environments(size)
    shares = {
        "rtt": share("first", "second", "s1"),
        "shared": share("prague", "rival", "s6", "s5_share"),
        "partial": share("prague", "rival", "partial"),
        "multiple": share("prague", "rival", "multiple", rivals="rivals"),
    }
    for name, title, cells, judged, frames in (
        ("rfc9332", "RFC 9332", mixed(size), rfc, _mixed),
        ("rtt", "scenario 1, RTT fairness", fair(size), claims.S1, shares["rtt"]),
        ("step", "scenario 2, rate step", steps(size), claims.S2, _steps),
        ("bursts", "scenario 2, bursts", bursts(size), claims.S2_BURSTS, _bursts),
        ("rates", "scenario 3, variable rate", varying(), claims.S3, _varying),
        ("shared", "scenarios 5 and 6, RFC 3168", shared(size), claims.S6, shares["shared"]),
        ("partial", "partial deployment", partial(size), claims.PARTIAL, shares["partial"]),
        ("multiple", "several classic flows", multiple(size), claims.MULTIPLE, shares["multiple"]),
        ("environments", "two environments", both, claims.ENVIRONMENTS, _environments),
    ):
        yield Part(
            name=name, title=title, cells=cells, claims=judged, frames=frames,
            tables=("series",) if name == "step" else (),
        )  # fmt: skip


def measure(bench: Bench[L4sSize]) -> None:
    """Makes all parts; the runs of RFC 9332 also judge the reading with few flows."""
    for part in parts(bench.size):
        bench.make(part)
        if part.name == "rfc9332":
            bench.judge(replace(part, reading=claims.FEW), claims.few(bench.size.grid))


def work(size: L4sSize) -> float:
    """Returns the bits that all links of a size's runs can carry, in 100 Mbit/s times seconds."""
    grid = size.mixed[0] * sum(rate / 100 for rate, _ in size.grid) * len(scenarios.MIXES)
    pairs = size.fair[0] * 0.5 * len(fair(size)) + size.shared[0] * 0.5 * len(shared(size))
    return size.seeds * (grid + pairs + size.shared[0] * len(partial(size)))
