"""The study for real: iperf3 and datagrams through Open vSwitch, beside the same runs simulated.

The switch, the controller, TCP and the sockets are real, the links are ours, so the queue whose
backlog the policies look at is the bottleneck's. What the paper leaves open is as in the simulated
study; rounds are fewer, since real seconds pass one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.papers.doubts import doubts_of, told
from sojourn.papers.queue_lb import scenarios
from sojourn.papers.queue_lb.claims import CLAIMS
from sojourn.papers.queue_lb.scenarios import NETWORKS, PAPER, TRANSPORTS
from sojourn.papers.queue_lb.study import FACTORS, METRICS, NAME, TITLE, pooled_of
from sojourn.papers.queue_lb.study import PAPER as REFERENCE
from sojourn.papers.stage import Stage

if TYPE_CHECKING:
    import pandas as pd

    from sojourn.scenario import Scenario
    from sojourn.stats import Judgement
    from sojourn.stats.claims import Claim
    from sojourn.study import Table
    from sojourn.study.engine import Engine

COLUMNS = ["network", "transport", "clients", "policy", "simulated", "real", "real / simulated"]
BETWEEN = 11.0
"""Seconds that a real run takes beyond its own length: hosts, switch and controller come and go."""


@dataclass(frozen=True)
class Size:
    """What is run."""

    networks: tuple[str, ...]
    clients: tuple[int, ...]
    seeds: int
    seconds: float
    """Of a round."""
    rounds: int | None = None
    """Of a run; `None`: the paper's."""
    transports: tuple[str, ...] = TRANSPORTS
    policies: tuple[str, ...] = tuple(PAPER)

    @property
    def cells(self) -> list[tuple[str, str, int]]:
        """Networks, transports and numbers of clients."""
        return [(n, t, c) for n in self.networks for t in self.transports for c in self.clients]

    @property
    def runs(self) -> int:
        """Number of real runs."""
        return len(self.cells) * len(self.policies) * self.seeds

    @property
    def length(self) -> float:
        """About how long they take, in seconds."""
        one = sum(
            (self.rounds or scenarios.ROUNDS[clients, transport]) * (self.seconds + scenarios.GAP)
            + BETWEEN
            for _, transport, clients in self.cells
        )
        return float(one * len(self.policies) * self.seeds)


FULL = Size(tuple(network.name for network in NETWORKS), scenarios.CLIENTS, 8, 10)
#: Some minutes.
QUICK = Size(("unequal",), (4,), 2, 4, 2)


def size_of(quick: bool) -> Size:
    """The size that is meant."""
    return QUICK if quick else FULL


def estimate(size: Size) -> str:
    """How long the real runs will take, for people."""
    minutes = size.length / 60
    time = f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"
    return f"{size.runs} real runs, one after the other: about {time}"


@dataclass(frozen=True)
class Outcome:
    """What was found in both worlds."""

    size: Size
    quick: bool
    folder: Path
    real: Table
    simulated: Table
    pooled: Mapping[str, pd.DataFrame]
    """Throughputs of clients, `real` and `simulated`."""
    judgements: tuple[Judgement, ...]
    """On the real runs."""
    in_simulation: tuple[Judgement, ...]
    open: tuple[Claim, ...]
    """Claims that speak of what was not run."""
    doubts: Mapping[str, tuple[str, ...]]
    """Real runs that are not valid, and why."""

    @property
    def units(self) -> Mapping[str, str]:
        """Units of the metrics that claims speak about."""
        return {**self.real.units, "throughput": "bit/s"}

    @property
    def notes(self) -> list[str]:
        """What the reader has to know besides the verdicts."""
        lines = [
            f"{mine.claim.id}: {mine.verdict} for real, {other.verdict} simulated"
            for mine, other in zip(self.judgements, self.in_simulation, strict=True)
            if mine.verdict != other.verdict
        ]
        lacking = [str(n) for n in scenarios.CLIENTS if n not in self.size.clients]
        if lacking:
            lines.append(f"not run, so verdicts are without them: {', '.join(lacking)} clients")
        if self.open:
            lines.append(
                f"not judged, for want of what they name: {', '.join(c.id for c in self.open)}"
            )
        return [*lines, *told(self.doubts, len(self.real))]

    def as_dict(self) -> dict[str, Any]:
        """Every claim with its verdicts and figures, and what they rest on."""
        assert self.real.results is not None
        about = self.real.results.runs()[0].about["real"]
        return {
            "paper": NAME,
            "part": "for real",
            "title": TITLE,
            "reference": REFERENCE,
            "quick": self.quick,
            "folder": str(self.folder),
            "seeds": self.size.seeds,
            "real": {k: about[k] for k in ("engine", "kernel", "programs", "privilege")},
            "switch": {k: about["switch"][k] for k in ("name", "version")},
            "claims": [
                {**mine.to_dict(), "simulated": other.to_dict()}
                for mine, other in zip(self.judgements, self.in_simulation, strict=True)
            ],
            "not_judged": [claim.id for claim in self.open],
            "beside": rows(self),
            "doubts": {run: list(why) for run, why in self.doubts.items()},
        }


def means(pooled: pd.DataFrame) -> pd.DataFrame:
    """A row a run: the mean throughput of its clients."""
    keys = [*FACTORS, "seed"]
    return pooled.groupby(keys, sort=False)["throughput"].mean().reset_index()


def rows(outcome: Outcome) -> list[dict[str, str]]:
    """Mean throughput of a client in both worlds, for people."""
    by = {
        world: pooled.groupby(list(FACTORS), sort=False)["throughput"].mean()
        for world, pooled in outcome.pooled.items()
    }
    found = []
    for cell, real in by["real"].items():
        assert isinstance(cell, tuple)
        simulated = float(by["simulated"].loc[cell])
        found.append(
            {
                **{factor: str(level) for factor, level in zip(FACTORS, cell, strict=True)},
                "simulated": f"{simulated / 1e6:.2f} Mbit/s",
                "real": f"{real / 1e6:.2f} Mbit/s",
                "real / simulated": f"{real / simulated:.2f}",
            }
        )
    return found


def suffices(claim: Claim, size: Size) -> bool:
    """Say whether all that a claim names is run."""
    from sojourn.papers.bench import named

    there: dict[str, set[Any]] = {
        "network": set(size.networks),
        "transport": set(size.transports),
        "clients": set(size.clients),
        "policy": set(size.policies),
    }
    return not any(named(claim, factor) - there[factor] for factor in there)


def run(
    out: Path,
    engine: Engine,
    size: Size = QUICK,
    quick: bool = True,
    workers: int | None = None,
    stage: Stage = lambda _: None,
) -> Outcome:
    """Runs with a real engine and with the simulator, and judges the paper's findings.

    What is in `out` already is not run again.
    """
    from sojourn.stats import judge
    from sojourn.study import Study

    networks = {network.name: network for network in NETWORKS}
    cells: list[tuple[Mapping[str, str | int], Scenario]] = [
        (
            {"network": name, "transport": transport, "clients": clients, "policy": policy},
            scenarios.iperf(
                networks[name],
                transport,
                clients,
                PAPER[policy],
                size.seconds,
                rounds=size.rounds,
            ),
        )
        for name, transport, clients in size.cells
        for policy in size.policies
    ]
    check = getattr(engine, "check", None)
    if check is not None:  # what this machine cannot do is said before anything is simulated
        for _, scenario in cells:
            check(scenario.plan_json, 1)

    def study(name: str) -> Study:
        made = Study.of_cells(name, cells, kind="paper", question={"paper": NAME})
        return made.seeds(size.seeds)

    narrow = study("queue-lb simulated").keep(metrics=METRICS, tables=["flows"])
    simulated = narrow.run(out=out / "simulated", workers=workers, progress=stage("simulated"))
    real = study("queue-lb for real").run(
        out=out / "real", progress=stage("for real"), engine=engine
    )
    pooled = {
        "real": pooled_of(real, size.seconds),
        "simulated": pooled_of(simulated, size.seconds),
    }
    fit = [claim for claim in CLAIMS if suffices(claim, size)]
    return Outcome(
        size=size,
        quick=quick,
        folder=out,
        real=real,
        simulated=simulated,
        pooled=pooled,
        judgements=tuple(judge(fit, means(pooled["real"]))),
        in_simulation=tuple(judge(fit, means(pooled["simulated"]))),
        open=tuple(claim for claim in CLAIMS if claim not in fit),
        doubts=doubts_of(real, FACTORS),
    )


def remarks(outcome: Outcome) -> list[str]:
    """What a reader has to know before the verdicts."""
    assert outcome.real.results is not None
    about = outcome.real.results.runs()[0].about["real"]
    switch, size = about["switch"], outcome.size
    programs = ", ".join(f"{name} {version}" for name, version in about["programs"].items())
    return [
        (
            f"Open vSwitch {switch['version']} and the controller of `sojourn lb serve` between "
            f"real hosts ({programs or 'our own programs'}) on Linux {about['kernel']}; links are "
            "the wire's, and the backlogs that policies see are those of its queues, which are "
            "the bottlenecks."
        ),
        (
            f"{len(outcome.real)} runs, {size.seeds} seeds, rounds of {size.seconds:g} s; the same "
            "runs were simulated. Verdicts are on the real ones. TCP is today's CUBIC in both "
            "worlds."
        ),
        *outcome.notes,
    ]


def show(outcome: Outcome) -> list[Path]:
    """Writes the figures and the report; gives their paths, the report first."""
    import pandas as pd

    from sojourn.papers.queue_lb.figures import real_figures
    from sojourn.show import paper_page, paper_report

    drawn = real_figures(outcome)
    verdicts = pd.DataFrame(
        {"claim": mine.claim.id, "real": mine.verdict, "simulated": other.verdict}
        for mine, other in zip(outcome.judgements, outcome.in_simulation, strict=True)
    )
    results = {
        world: table.results
        for world, table in (("real", outcome.real), ("simulated", outcome.simulated))
        if table.results is not None
    }
    page = paper_page(
        title=f"{TITLE}, for real",
        reference=REFERENCE,
        judgements=outcome.judgements,
        results=results,
        figures=list(drawn.values()),
        tables=[
            ("Verdicts in both worlds", verdicts),
            ("A client's throughput in both worlds", pd.DataFrame(rows(outcome), columns=COLUMNS)),
        ],
        remarks=remarks(outcome),
        commands=[f"sojourn paper {NAME} --real{' --quick' if outcome.quick else ''}"],
        units=outcome.units,
    )
    return paper_report(outcome.folder, page, {name: one[0] for name, one in drawn.items()})
