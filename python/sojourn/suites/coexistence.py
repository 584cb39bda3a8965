"""The coexistence matrix: each congestion control with CUBIC, at eight queues.

Two long flows share a bottleneck of 40 Mbit/s: an *incumbent*, which is CUBIC unless all pairs are
run, and a *rival*. A run without a rival measures the goodput of the incumbent alone. This goodput
is the reference for harm (Ware, Mukerjee, Seshan and Sherry, HotNets 2019).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn import study
from sojourn.arguments import hint
from sojourn.scenario import Scenario
from sojourn.study.coexistence import ALONE, KIND, METRICS, Coexistence
from sojourn.suites.disciplines import FULL_FRAME, adaptive_red, buffered

if TYPE_CHECKING:
    from sojourn.study.cluster import Place
    from sojourn.study.progress import Report

RATE = 40_000_000
"""Rate of the bottleneck in bit/s."""
BUFFER = 330
"""Limit in packets of queues whose default limit depends on the device: 100 ms at `RATE`."""
WARMUP, MEASURED = 30, 60
"""Warm-up and measured time in seconds. At an RTT of 80 ms, rates are steady only after several
cycles of CUBIC's window.
"""
NAME = "coexistence"
"""Name of the study."""

CONTROLS = {
    "cubic": "cubic",
    "reno": "reno",
    "bbr": "bbr",
    "bbr3": "bbr3 ecn l4s ecn_max_rtt 0",
    "dctcp": "dctcp",
    "prague": "prague ecn accecn",
}
"""Congestion controls with the usual settings of hosts. CUBIC, Reno and BBR do not request ECN; the
other controls do. BBR version 3 responds to marks at any round-trip time here, as L4S
requires. By default it ignores marks if the round-trip time is above 5 ms.
"""
QUEUES = {
    "pfifo": f"pfifo limit {BUFFER}p",
    "red": f"{adaptive_red(RATE, BUFFER * FULL_FRAME)} ecn",
    "pie": "pie ecn",
    "codel": "codel ecn",
    "fq_codel": "fq_codel",
    "cake": "cake unlimited",
    "fq_codel L4S": "fq_codel ce_threshold 1ms ce_threshold_selector 0x01/0x01",
    "dualpi2": "dualpi2",
}
"""Queues by name: a FIFO; three AQMs with marks as in RFC 3168; two disciplines with a queue for
each flow; and two disciplines for L4S. Of the last two, `fq_codel L4S` marks L4S packets at a
threshold of delay, and `dualpi2` has a second queue for them, which is coupled to the first.
"""
ROUND_TRIPS = {
    "10 ms": (10, 10),
    "20 ms": (20, 20),
    "40 ms": (40, 40),
    "80 ms": (80, 80),
    "20/80 ms": (20, 80),
}
"""Base RTTs of the rival and of the incumbent in milliseconds, by name."""

_BASE = {
    "name": "coexistence",
    "warmup": f"{WARMUP}s",
    "duration": f"{WARMUP + MEASURED}s",
}
_BOTTLENECK = {"from": "west", "to": "east", "rate": f"{RATE}bit"}


def scenario(
    queue: str, incumbent: str, rival: str | None, round_trips: tuple[float, float]
) -> Scenario:
    """Returns the scenario with two flows, or with the incumbent only if `rival` is `None`.

    `incumbent` and `rival` are texts as for `tcp`.
    """
    links = {"bottleneck": {**_BOTTLENECK, "queue": queue}}
    flows = []
    for name, tcp, rtt in (
        ("rival", rival, round_trips[0]),
        ("incumbent", incumbent, round_trips[1]),
    ):
        if tcp is None:
            continue
        links[f"access-{name}"] = {
            "from": f"host-{name}",
            "to": "west",
            "rate": "1gbit",
            "netem": f"delay {rtt / 2:g}ms",
        }
        flows.append({
            "name": name, "from": f"host-{name}", "to": "east", "app": "bulk", "tcp": tcp,
            "start": "uniform 0s 1s",
        })  # fmt: skip
    return Scenario.from_dict({**_BASE, "links": links, "flows": flows})


def pairs(full: bool = False, rivals: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Returns pairs of incumbent and rival: CUBIC with all controls; with `full`, all pairs.

    `rivals` limits the pairs to CUBIC and these controls. Raises `StudyError` for an unknown name.
    """
    for name in rivals:
        if name not in CONTROLS:
            rest = hint(name, CONTROLS, "existing")
            raise study.StudyError(f"the matrix has no control `{name}`{rest}")
    every = combinations_with_replacement(CONTROLS, 2) if full else (("cubic", x) for x in CONTROLS)
    wanted = {"cubic", *rivals} if rivals else set(CONTROLS)
    return [(a, b) for a, b in every if {a, b} <= wanted]


def cells(
    met: Sequence[tuple[str, str]], queues: Sequence[str] | None = None
) -> Iterator[tuple[dict[str, str], Scenario]]:
    """Yields the factors and scenario of each pair at each queue and round-trip time.

    Each incumbent is also run alone and with itself, as references. `queues` are names of `QUEUES`
    or texts; the default is all queues.
    """
    incumbents = dict.fromkeys(a for a, _ in met)
    wanted = dict.fromkeys([*((a, x) for a in incumbents for x in (ALONE, a)), *met])
    chosen = list(QUEUES) if queues is None else queues
    for queue in chosen:
        text = QUEUES.get(queue) or buffered(queue, RATE, BUFFER)
        for rtt, both in ROUND_TRIPS.items():
            for incumbent, rival in wanted:
                levels = {"incumbent": incumbent, "rival": rival, "queue": queue, "rtt": rtt}
                other = None if rival == ALONE else CONTROLS[rival]
                yield levels, scenario(text, CONTROLS[incumbent], other, both)


def run(
    seeds: int = 10,
    out: Path | None = None,
    full: bool = False,
    rivals: Sequence[str] = (),
    queues: Sequence[str] | None = None,
    workers: int | None = None,
    progress: Report | None = None,
    on: Place | None = None,
) -> Coexistence:
    """Makes the runs that the folder `out` does not have yet, and returns the matrix."""
    met = pairs(full, rivals)
    made = study.Study.of_cells(NAME, cells(met, queues), kind=KIND).keep(METRICS, ())
    table = made.seeds(seeds).run(out=out, workers=workers, progress=progress, on=on)
    return Coexistence(table)
