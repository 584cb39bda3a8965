"""The paper's findings as claims, each under the readings of the paper's open details.

A *factor* of 10 means 5 to 20; *a tenth* means at most a fifth; *about 30 %* means 15 to 45 %;
*equal* means within 3 %; *higher* means by at least 5 %; *slightly* means by at most one message in
a hundred; *rapidly* means at least doubled. The paper prints no values of figures 2 to 8 on which
its claims could be judged.
"""

from __future__ import annotations

from dataclasses import replace

from sojourn.papers.paper import Withdrawn
from sojourn.papers.rrda.scenarios import (
    BEFORE_LOAD_FALLS,
    CLIENTS,
    CLIENTS_CPU,
    CPUS,
    KNEE,
    READINGS,
    USES,
)
from sojourn.stats.cells import Cell
from sojourn.stats.claims import (
    AllIn,
    Claim,
    Difference,
    Every,
    MeanIn,
    Monotone,
    PracticallyEqual,
    Ratio,
)
from sojourn.stats.estimate import Region
from sojourn.stats.verdict import Verdict

FROZEN = "2026-11-23"
"""Date when the claims were fixed, with all earlier results known.

Runs with seeds that were used before are no evidence for the claims.
"""
FIRST_SEED = 301
"""First seed of the runs that judge the claims; no earlier run had this seed or a greater one.

Earlier runs had up to five seeds: from 101 on for reading `steady`, memory and the average, and
from 201 on for reading `datagram` and the average.
"""

_EQUAL = 0.03
_HIGHER = Region(low=1.05)
_MAXIMUM = Region(low=0.97)


def _claims(
    reading: str, clients: tuple[int, ...], cpus: tuple[float, ...], sizes: bool
) -> dict[str, Claim]:
    """Returns the claims on the paper's experiments in one reading, by name.

    `clients` and `cpus` are the levels that are run, in ascending order. `sizes` states whether
    many sizes of static buffers are run.
    """
    few = tuple(n for n in clients if n <= KNEE)
    fewer = tuple(n for n in few if n < KNEE)
    many = tuple(n for n in clients if n > KNEE)
    little = tuple(cpu for cpu in cpus if cpu < 1)
    beyond = f"{many[0]} to {many[-1]} clients"

    def cell(study: str, **factors: str | float | tuple[int | float | str, ...]) -> Cell:
        return {"study": study, "reading": reading, **factors}

    def name(text: str) -> str:
        return f"{text}-{reading}"

    def words(text: str) -> str:
        return f"{text} ({reading})"

    def size(study: str, a: str, b: str, region: Region, **at: float) -> Ratio:
        return Ratio(
            id="", text="", metric="throughput",
            a=cell(study, buffer=a, **at), b=cell(study, buffer=b, **at), region=region,
        )  # fmt: skip

    def exhaustion(text: str, said: str, published: str, region: Region) -> Ratio:
        return Ratio(
            id=name(text),
            text=words(said),
            metric="exhaustion",
            published=published,
            a=cell("clients", policy="rrda", clients=many),
            b=cell("clients", policy="static", clients=many),
            region=region,
        )

    found: dict[str, Claim] = {
        "figure-6-few": AllIn(
            id=name("figure-6-few"),
            text=words("With up to 15 clients a static buffer discards at most 1 % of messages"),
            metric="exhaustion",
            published="when the number of clients exceeds 15, it increases rapidly",
            cells=tuple(cell("clients", policy="static", clients=n) for n in few),
            region=Region(high=0.01),
        ),
        "figure-6-rises": Every(
            id=name("figure-6-rises"),
            text=words(
                "Beyond 15 clients the share of messages that the static buffer discards rises "
                "rapidly, RRDA's share slightly"
            ),
            published="increases rapidly with the number of clients, whereas when RRDA is used, "
            "the probability is just slightly increased",
            claims=(
                Monotone(
                    id="",
                    text="",
                    metric="exhaustion",
                    over="clients",
                    direction="rises",
                    cell=cell("clients", policy="static", clients=many),
                    at_least=1.0,
                ),
                Difference(
                    id="",
                    text="",
                    metric="exhaustion",
                    a=cell("clients", policy="rrda", clients=many[-1]),
                    b=cell("clients", policy="rrda", clients=few[-1]),
                    region=Region(high=0.01),
                ),
            ),
        ),
        "figure-6-tenth": exhaustion(
            "figure-6-tenth",
            f"With {beyond} RRDA discards at most a fifth as many messages as the static buffer",
            "RRDA reduces the buffer exhaustion probability by a factor of 10",
            Region(high=0.2),
        ),
        "figure-6-factor": exhaustion(
            "figure-6-factor",
            f"With {beyond} RRDA discards fewer messages than the static buffer by a factor of 10 "
            "(5 to 20)",
            "by a factor of 10",
            Region(0.05, 0.2),
        ),
        "throughput-third": Ratio(
            id=name("throughput-third"),
            text=words(
                "At half and 3/4 of the CPU, RRDA's mean throughput is 15 to 45 % above the "
                "static buffer's"
            ),
            metric="throughput",
            published="30 % on average",
            a=cell("cpu", policy="rrda", cpu=little),
            b=cell("cpu", policy="static", cpu=little),
            region=Region(1.15, 1.45),
        ),
        "throughput-equal": PracticallyEqual(
            id=name("throughput-equal"),
            text=words(
                "With all the CPU, throughputs of RRDA and the static buffer are equal within 3 %"
            ),
            metric="throughput",
            published="equivalent to that of the static buffer scheme",
            among="policy",
            margin=_EQUAL,
            cell=cell("cpu", policy=("static", "rrda"), cpu=1.0),
        ),
        "figure-8-few": PracticallyEqual(
            id=name("figure-8-few"),
            text=words(
                "Below 15 clients, throughputs of RRDA and the static buffer are equal within 3 %"
            ),
            metric="throughput",
            published="approximately the same",
            among="policy",
            margin=_EQUAL,
            cell=cell("clients", policy=("static", "rrda"), clients=fewer),
            each="clients",
        ),
        "figure-8-many": Ratio(
            id=name("figure-8-many"),
            text=words(
                "Beyond 15 clients RRDA's mean throughput is at least 5 % above a static buffer's"
            ),
            metric="throughput",
            published="obviously higher",
            a=cell("clients", policy="rrda", clients=many),
            b=cell("clients", policy="static", clients=many),
            region=_HIGHER,
        ),
        "footprint": MeanIn(
            id=name("footprint"),
            text=words(
                f"With {beyond} RRDA's mean buffer size is at most twice its largest content"
            ),
            metric="headroom",
            published="while keep the memory footprint as small as possible",
            cell=cell("clients", policy="rrda", clients=many),
            region=Region(high=2.0),
        ),
    }
    if sizes:
        least, most = 10, CLIENTS[-1]
        found["static-cpu"] = Every(
            id=name("static-cpu"),
            text=words(
                "With less CPU maximum throughput needs a larger static buffer: 1, 10 and 100 MB "
                "with all, 3/4 and half of it"
            ),
            metric="throughput",
            published="1 MB at 4.26 GHz, 10 MB at 3.2 GHz, 100 MB at 2.13 GHz",
            claims=(
                size("sizes", "1 MB", "100 MB", _MAXIMUM, cpu=1.0),
                size("sizes", "10 MB", "100 MB", _MAXIMUM, cpu=0.75),
                size("sizes", "100 MB", "1 MB", _HIGHER, cpu=0.75),
                size("sizes", "100 MB", "10 MB", _HIGHER, cpu=0.5),
            ),
        )
        found["figure-3"] = Every(
            id=name("figure-3"),
            text=words(
                f"A static buffer of 100 KB gives maximum throughput with {least} clients, not "
                f"with {most}"
            ),
            metric="throughput",
            published="A small buffer of 100 KB can achieve maximum throughput when there are only "
            "10 clients, whereas [as] the number of clients increases, a larger buffer is needed",
            claims=(
                size("sizes of clients", "100 KB", "100 MB", _MAXIMUM, clients=least),
                size("sizes of clients", "100 MB", "100 KB", _HIGHER, clients=most),
            ),
        )
    return found


def made(
    readings: tuple[str, ...] = tuple(READINGS),
    clients: tuple[int, ...] = CLIENTS,
    cpus: tuple[float, ...] = CPUS,
    sizes: bool = True,
) -> tuple[Claim, ...]:
    """Returns the claims that can be judged on runs with these levels.

    `sizes` states whether many sizes of static buffers are run. A reading is not judged by claims
    that determined its numbers.
    """
    return tuple(
        replace(claim, reading=reading)
        for reading in readings
        for name, claim in _claims(reading, clients, cpus, sizes).items()
        if name not in READINGS[reading].calibrated
    )


def swept() -> tuple[Claim, ...]:
    """Returns the claims that are judged for each retransmission time, in reading `datagram`."""
    names = ("figure-6-rises", "figure-6-tenth", "figure-6-factor", "throughput-third",
             "figure-8-many")  # fmt: skip
    found = _claims("datagram", CLIENTS, CPUS, sizes=False)
    return tuple(replace(found[name], reading="datagram") for name in names)


def memory() -> tuple[Claim, ...]:
    """Returns the claims on memory that is released when the load falls.

    The paper does not state how much memory is in use, so `USES` has several shares.
    """
    return tuple(
        MeanIn(
            id=f"freed-{reading}",
            reading=reading,
            text=f"RRDA releases at least a tenth of the buffer when the load falls ({reading})",
            metric="kept",
            published="can free unnecessary memory when the load is low",
            cell={"reading": reading, "used": USES},
            region=Region(high=0.9),
            each="used",
        )
        for reading in BEFORE_LOAD_FALLS
    )


def average() -> tuple[Claim, ...]:
    """Returns the claims on the moving average in the scenarios of figure 4.

    Scenario 3 is run with two sizes of spikes. A run is in scenario 2 if equation 2 decides for the
    same direction in at least 90 % of the epochs, and not in scenario 2 if equation 2 does so in at
    most 75 %. A run is in scenario 1 if equation 2 decides in at most 25 % of the epochs.
    """

    def share(metric: str, scenario: str, values: str, region: Region) -> MeanIn:
        cell = {"scenario": scenario, "values": values}
        return MeanIn(id="", text="", metric=metric, cell=cell, region=region)

    constantly, not_constantly, seldom = Region(low=0.9), Region(high=0.75), Region(high=0.25)

    def scenarios(spikes: str) -> Every:
        return Every(
            id=f"average-{spikes.replace(' ', '-')}",
            text="The moving average leaves scenarios 1 and 2 unchanged and turns scenario 3 into "
            f"scenario 2 ({spikes})",
            published="5a and 4a, 5b and 4b still belong to the same scenarios, while 5c shows "
            "that 4c is transformed from scenario 3 to scenario 2",
            claims=(
                share("decides", "constant 10 Mbit/s", "differences", seldom),
                share("decides", "constant 10 Mbit/s", "averages", seldom),
                share("increases", "10 to 100 Mbit/s", "differences", constantly),
                share("increases", "10 to 100 Mbit/s", "averages", constantly),
                share("decreases", spikes, "differences", not_constantly),
                share("decreases", spikes, "averages", constantly),
            ),
        )

    return (scenarios("low spikes"), scenarios("high spikes"))


def overhead(readings: tuple[str, ...]) -> tuple[Claim, ...]:
    """Returns the claims on RRDA's cost of CPU, which only real runs show.

    *About 3 %* means at most 6 %.
    """
    return tuple(
        Ratio(
            id=f"cpu-overhead-{reading}",
            reading=reading,
            text="RRDA needs about 3 % (at most 6 %) more CPU per Gbit/s than the static buffer "
            f"({reading})",
            metric="cpu_per_gbit",
            published="RRDA 66.1 %, static buffer 64.2 %",
            a={"study": "cpu", "reading": reading, "policy": "rrda", "cpu": 1.0},
            b={"study": "cpu", "reading": reading, "policy": "static", "cpu": 1.0},
            region=Region(high=1.06),
        )
        for reading in readings
    )


CLAIMS: tuple[Claim, ...] = (*made(), *memory(), *average())


_CPU = (
    "judged with all the CPU, with which figures 7 and 8 contradict each other at 35 clients "
    "(equal throughputs in figure 7, a higher throughput with RRDA in figure 8); now judged with "
    f"{CLIENTS_CPU:.0%} of the CPU"
)
_SET = (
    "a number of this reading was chosen to give this finding, or a finding that implies this one"
)
_FEW = "With up to 15 clients the static buffer discards hardly any messages"
_RISES = "Beyond 15 clients the share of messages that the static buffer discards rises rapidly"
_TENTH = "With 20 to 35 clients RRDA discards messages ten times less often than the static buffer"
_THIRD = "With half or 3/4 of the CPU RRDA's throughput is about 30 % higher"
_SAME = "With fewer than 15 clients the throughputs of RRDA and the static buffer are equal"
_MORE = "With more than 15 clients RRDA's throughput is higher than the static buffer's"
_SMALL = "A static buffer of 100 KB gives maximum throughput with 10 clients, not with 35"
_HOLDS: Verdict = "holds"
_NOT: Verdict = "does not hold"
_HUNDRED = f"{_CPU}; in addition, this claim counted a measured factor of 115 as a factor of 10"
_ONE = "impossible in this reading, because 100 KB hold only one message of 64 KiB"

#: The verdicts of withdrawn claims are from quick runs: 60 s, seeds 1 to 5.
WITHDRAWN = tuple(
    Withdrawn(
        id=name,
        text=f"{text} ({name.rpartition('-')[2]})",
        date=FROZEN,
        verdict=verdict,
        reason=reason,
    )
    for name, text, verdict, reason in (
        ("exhaustion-few-clients-processed", _FEW, _HOLDS, _SET),
        ("exhaustion-rises-processed", _RISES, _HOLDS, _CPU),
        ("exhaustion-tenth-processed", _TENTH, _HOLDS, _HUNDRED),
        ("throughput-few-clients-processed", _SAME, _HOLDS, _SET),
        ("throughput-many-clients-processed", _MORE, _NOT, _CPU),
        ("static-clients-processed", _SMALL, _NOT, _ONE),
        ("exhaustion-few-clients-enqueued", _FEW, _NOT, _CPU),
        ("exhaustion-rises-enqueued", _RISES, _NOT, _CPU),
        ("exhaustion-tenth-enqueued", _TENTH, _NOT, _CPU),
        ("throughput-third-enqueued", _THIRD, _HOLDS, _SET),
        ("throughput-few-clients-enqueued", _SAME, _NOT, _CPU),
        ("throughput-many-clients-enqueued", _MORE, _HOLDS, f"{_CPU}; {_SET}"),
        ("static-clients-enqueued", _SMALL, _NOT, _CPU),
    )
)
