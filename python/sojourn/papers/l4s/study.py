"""The runs and their sizes, and the results of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from sojourn import _core
from sojourn.papers.bench import Bench, runs_of
from sojourn.papers.l4s import claims, scenarios
from sojourn.papers.l4s.scenarios import CUBIC, ECN, PRAGUE
from sojourn.papers.paper import Cells, Frames, Part
from sojourn.stats import Claim
from sojourn.study import Table

ABOVE, PACKETS = 0.025, 4
"""A round-trip time this far above the path's is a spike: seconds, and packets at the new rate."""
STEP = 30.0
"""Time of the rate's step down, in seconds."""
STEP_RTT, BURST_RTT = 80, 20
"""Round-trip times of scenario 2 in ms, as in the figures that the sentences concern."""
STEPS = ("25mbit", "1mbit")
CONTROLS = {"Prague": PRAGUE, "CUBIC": CUBIC + ECN}
S3_RTTS = (20, 80)


@dataclass(frozen=True, kw_only=True)
class Size:
    """Lengths in seconds and numbers of runs."""

    seeds: int
    rates: tuple[int, ...]
    """Rates of RFC 9332's part, in Mbit/s."""
    rtts: tuple[int, ...]
    """Round-trip times of RFC 9332's part, in ms."""
    mixed: tuple[float, float]
    """Length and warm-up of that part."""
    fair: tuple[float, float]
    """Length and warm-up of scenario 1; the source measured the last of three minutes."""
    shared: tuple[float, float]
    """Length and warm-up of scenario 6 and of the two papers' testbed, which ran for one minute."""
    after: float
    """Length of scenario 2 after its step."""

    @property
    def grid(self) -> list[tuple[int, int]]:
        """Returns rates and round-trip times."""
        return [(rate, rtt) for rate in self.rates for rtt in self.rtts]

    @property
    def seed_list(self) -> range:
        """Returns the runs' seeds."""
        return range(claims.FIRST_SEED, claims.FIRST_SEED + self.seeds)


QUICK = Size(
    seeds=8, rates=(20, 100), rtts=(10, 100), mixed=(50, 20), fair=(120, 60), shared=(60, 15),
    after=60,
)  # fmt: skip
FULL = Size(
    seeds=20, rates=(20, 50, 100, 200), rtts=(5, 10, 25, 50, 100), mixed=(100, 40),
    fair=(180, 120), shared=(60, 15), after=90,
)  # fmt: skip


def mixed(size: Size, mixes: Sequence[str] = tuple(scenarios.MIXES)) -> Cells:
    """Returns RFC 9332's cells: every mix at every rate and round-trip time."""
    return [
        (
            {"mix": mix, "rate": rate, "rtt": rtt},
            scenarios.mixed(mix, rate * 1_000_000, rtt, *size.mixed),
        )
        for mix in mixes
        for rate, rtt in size.grid
    ]


def _mixed(table: Table) -> Frames:
    """Returns the shares of one flow relative to one flow of each kind."""
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
    # The mean window is already that of one flow.
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


def fair(size: Size) -> Cells:
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


def share(a: str, b: str, *names: str) -> Callable[[Table], Frames]:
    """Returns a function that derives the share of a group's goodput, under these names."""

    def frames(table: Table) -> Frames:
        mine, theirs = table.frame[f"{a}.goodput"], table.frame[f"{b}.goodput"]
        found = mine / (mine + theirs)
        kept = table.frame[[*table.factors, "seed"]]
        return {"": kept.assign(**dict.fromkeys(names, found))}

    return frames


def steps(size: Size) -> Cells:
    """Returns the cells of scenario 2 through fq_codel, without bursts."""
    return [
        (
            {"control": name, "to": to},
            scenarios.step(tcp, "fq_codel", to, STEP_RTT, False, size.after),
        )
        for name, tcp in CONTROLS.items()
        for to in STEPS
    ]


def spiking(to: str) -> float:
    """Returns the round-trip time in seconds from which there is a spike, at this rate."""
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
        told = {**levels, "seed": run.seed}
        rows.append({
            **told,
            "s2_spike": grain * int((later["srtt"] > spiking(levels["to"])).sum()),
            "s2_greatest": later["srtt"].max(),
        })  # fmt: skip
        drawn.append(series.assign(**told))
    return {"": pd.DataFrame(rows), "series": pd.concat(drawn, ignore_index=True)}


def bursts(size: Size) -> Cells:
    """Returns the cells of scenario 2 after bursts, as in the two compared figures."""
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
    """Returns the cells of scenario 3 through fq_codel, which marks Prague and drops CUBIC."""
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


def shared(size: Size) -> Cells:
    """Returns the cells of scenario 6."""
    return [
        ({"queue": queue, "rival": rival}, scenarios.shared(queue, rival, *size.shared))
        for queue in scenarios.S6_QUEUES
        for rival in scenarios.S6_RIVALS
    ]


def partial(size: Size) -> Cells:
    """Returns the cells of the two papers' testbed."""
    return [
        ({"queue": queue, "rival": rival}, scenarios.partial(queue, rival, *size.shared))
        for queue in scenarios.PARTIAL_QUEUES
        for rival in scenarios.PARTIAL_RIVALS
    ]


def multiple(size: Size) -> Cells:
    """Returns the same with several CUBIC flows in CoDel."""
    return [
        ({"rivals": rivals}, scenarios.partial("CoDel", "CUBIC, ECN", *size.shared, rivals=rivals))
        for rivals in (1, 10)
    ]


def environments(size: Size) -> Cells:
    """Returns DualPI2 on a link, and on Mahimahi, where packets leave at milliseconds."""
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


def measure(bench: Bench) -> dict[str, Any]:
    """Makes all parts."""
    size: Size = bench.size

    def make(
        name: str, title: str, cells: Cells, judged: Sequence[Claim],
        frames: Callable[[Table], Frames], tables: Sequence[str] = (), reading: str = "",
    ) -> None:  # fmt: skip
        seeds: Any = size.seed_list
        bench.make(
            Part(
                name=name, title=title, cells=cells, seeds=seeds, claims=judged, frames=frames,
                tables=tables, reading=reading,
            )
        )  # fmt: skip

    make("rfc9332", "RFC 9332", mixed(size), claims.rfc(size.grid), _mixed)
    make("few", "RFC 9332, few flows", mixed(size, claims.FEW_MIXES), claims.few(size.grid), _mixed,
         reading=claims.FEW)  # fmt: skip
    make("rtt", "scenario 1, RTT fairness", fair(size), claims.S1,
         share("first", "second", "s1_share"))  # fmt: skip
    make("step", "scenario 2, rate step", steps(size), claims.S2, _steps, ("series",))
    make("bursts", "scenario 2, bursts", bursts(size), claims.S2_BURSTS,
         lambda t: {"": t.frame.assign(s2_utilisation=t.frame["flow.goodput"])})  # fmt: skip
    make("rates", "scenario 3, variable rate", varying(), claims.S3,
         _varying)  # fmt: skip
    make("shared", "scenarios 5 and 6, RFC 3168", shared(size), claims.S6,
         share("prague", "rival", "s6_share", "s5_share"))  # fmt: skip
    make("partial", "partial deployment", partial(size), claims.PARTIAL,
         share("prague", "rival", "partial_share"))  # fmt: skip
    make("multiple", "several classic flows", multiple(size), claims.MULTIPLE,
         share("prague", "rival", "multiple_share"))  # fmt: skip
    make("environments", "two environments", environments(size), claims.ENVIRONMENTS, _environments)
    return {}
