"""The paper's findings as claims, each under both readings of what the paper leaves open.

A *factor* of 10 is that or more, within a factor of two; *about 30 %* is 15 to 45 %; *equal* is
within 3 %; *higher* is by 5 % at least.
"""

from __future__ import annotations

from sojourn.papers.rrda.scenarios import CLIENTS, CPUS, KNEE, READINGS
from sojourn.stats.cells import Cell
from sojourn.stats.claims import AllIn, Claim, Every, Monotone, PracticallyEqual, Ratio
from sojourn.stats.estimate import Region

_EQUAL = 0.03
_HIGHER = Region(low=1.05)
_MAXIMUM = Region(low=0.97)


def _claims(
    reading: str, clients: tuple[int, ...], cpus: tuple[float, ...], sizes: bool
) -> tuple[Claim, ...]:
    few = tuple(n for n in clients if n <= KNEE)
    fewer = tuple(n for n in few if n < KNEE)
    many = tuple(n for n in clients if n > KNEE)
    little = tuple(cpu for cpu in cpus if cpu < 1)

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

    paper: tuple[Claim, ...] = (
        AllIn(
            id=name("exhaustion-few-clients"),
            text=words("With up to 15 clients the static buffer is hardly exhausted"),
            metric="exhaustion",
            published="increases rapidly when the number of clients exceeds 15",
            cells=tuple(cell("clients", policy="static", clients=n) for n in few),
            region=Region(high=0.01),
        ),
        Monotone(
            id=name("exhaustion-rises"),
            text=words("Beyond 15 clients its exhaustion rises rapidly"),
            metric="exhaustion",
            published="increases rapidly when the number of clients exceeds 15",
            over="clients",
            direction="rises",
            cell=cell("clients", policy="static", clients=many),
            at_least=1.0,
        ),
        Ratio(
            id=name("exhaustion-tenth"),
            text=words(f"RRDA is exhausted ten times less often, {many[0]} to {many[-1]} clients"),
            metric="exhaustion",
            published="reduces the probability by a factor of 10",
            a=cell("clients", policy="rrda", clients=many),
            b=cell("clients", policy="static", clients=many),
            region=Region(high=0.2),
        ),
        Ratio(
            id=name("throughput-third"),
            text=words("With little CPU RRDA's throughput is about 30 % higher"),
            metric="throughput",
            published="30 % on average",
            a=cell("cpu", policy="rrda", cpu=little),
            b=cell("cpu", policy="static", cpu=little),
            region=Region(1.15, 1.45),
        ),
        PracticallyEqual(
            id=name("throughput-equal"),
            text=words("With all the CPU (4.26 GHz) the throughputs are equal"),
            metric="throughput",
            published="equivalent to that of the static buffer scheme",
            among="policy",
            margin=_EQUAL,
            cell=cell("cpu", policy=("static", "rrda"), cpu=1.0),
        ),
        PracticallyEqual(
            id=name("throughput-few-clients"),
            text=words("With fewer than 15 clients the throughputs are the same"),
            metric="throughput",
            published="approximately the same",
            among="policy",
            margin=_EQUAL,
            cell=cell("clients", policy=("static", "rrda"), clients=fewer),
            each="clients",
        ),
        Ratio(
            id=name("throughput-many-clients"),
            text=words("With more than 15 RRDA's is higher"),
            metric="throughput",
            published="obviously higher",
            a=cell("clients", policy="rrda", clients=many),
            b=cell("clients", policy="static", clients=many),
            region=_HIGHER,
        ),
    )
    if not sizes:
        return paper
    return (
        *paper,
        Every(
            id=name("static-cpu"),
            text=words("The less CPU, the larger the static buffer must be: 1, 10, 100 MB"),
            metric="throughput",
            published="1 MB at 4.26 GHz, 10 MB at 3.2 GHz, 100 MB at 2.13 GHz",
            claims=(
                size("sizes", "1 MB", "100 MB", _MAXIMUM, cpu=1.0),
                size("sizes", "10 MB", "100 MB", _MAXIMUM, cpu=0.75),
                size("sizes", "100 MB", "1 MB", _HIGHER, cpu=0.75),
                size("sizes", "100 MB", "10 MB", _HIGHER, cpu=0.5),
            ),
        ),
        Every(
            id=name("static-clients"),
            text=words("100 KB suffice for 10 clients, not for 35"),
            metric="throughput",
            published="100 KB can achieve maximum throughput with only 10 clients",
            claims=(
                size("sizes of clients", "100 KB", "100 MB", _MAXIMUM, clients=10),
                size("sizes of clients", "100 MB", "100 KB", _HIGHER, clients=35),
            ),
        ),
    )


def made(
    readings: tuple[str, ...] = READINGS,
    clients: tuple[int, ...] = CLIENTS,
    cpus: tuple[float, ...] = CPUS,
    sizes: bool = True,
) -> tuple[Claim, ...]:
    """The claims that can be judged where these levels are run; `sizes`: and many buffers."""
    return tuple(c for reading in readings for c in _claims(reading, clients, cpus, sizes))


def overhead(readings: tuple[str, ...] = READINGS) -> tuple[Claim, ...]:
    """What RRDA costs, which only real runs can tell: about 3 % is 6 % at most."""
    return tuple(
        Ratio(
            id=f"cpu-overhead-{reading}",
            text=f"RRDA costs about 3 % of CPU for a Gbit/s, 6 % at most ({reading})",
            metric="cpu_per_gbit",
            published="66.1 % against 64.2 %",
            a={"study": "cpu", "reading": reading, "policy": "rrda", "cpu": 1.0},
            b={"study": "cpu", "reading": reading, "policy": "static", "cpu": 1.0},
            region=Region(high=1.06),
        )
        for reading in readings
    )


CLAIMS: tuple[Claim, ...] = made()
