"""Options that several commands share, alone and in groups."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sojourn import engines
from sojourn.cli import completion
from sojourn.cli.exits import FINDINGS, fail
from sojourn.cli.output import complain, note
from sojourn.plans import own_programs
from sojourn.study.errors import ClusterError

if TYPE_CHECKING:
    from distributed import Client

    from sojourn.scenario import Scenario
    from sojourn.scenario.engine import Engine
    from sojourn.study.until import Until

ScenarioFile = Annotated[
    Path,
    # Whether it can be read is told by who reads it, as for everything else that is wrong with it.
    typer.Argument(metavar="FILE", help="Scenario, a TOML file.", readable=False),
]
Real = Annotated[
    bool,
    typer.Option(
        "--real",
        help="Short for `--engine wire`: real programs and real packets, which take as long as the "
        "scenario says, one run after the other.",
    ),
]
Engines = Annotated[
    str,
    typer.Option(
        "--engine",
        autocompletion=completion.engines,
        metavar="NAME,...",
        help=f"What makes the runs: {engines.told()}. Several, such as sim,linux, make the same "
        "runs and stand side by side.",
    ),
]
Privilege = Annotated[
    Literal["auto", "user", "root"],
    typer.Option(
        "--privilege",
        help="Real runs: in a user namespace, as root, or as root only where a user namespace "
        "does not suffice.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the run.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a key of the scenario, such as links.uplink.rate=10mbit. Repeat for more.",
    ),
]
Smallest = Annotated[
    str | None,
    typer.Option(
        "--smallest",
        metavar="AMOUNT",
        help="The smallest difference of interest: a share of the value (5%) or an amount (2ms). "
        "By default the scenario's question.smallest, else the metric's own (`sojourn explain`).",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Workers = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="Runs made at a time; by default as many as cores."),
]


def load(file: Path | str, settings: list[str] | None) -> Scenario:
    """The scenario in `file` with the command line's changes."""
    from sojourn.scenario import Scenario

    return changed(Scenario.load(file), settings)


def changed(scenario: Scenario, settings: list[str] | None) -> Scenario:
    """The scenario with the command line's changes."""
    from sojourn.scenario import Problem, ScenarioError
    from sojourn.scenario.change import setting

    if not settings:
        return scenario
    changes: dict[str, Any] = {}
    problems: list[Problem] = []
    for text in settings:
        try:
            key, value = setting(text)
        except ScenarioError as error:
            problems += error.problems
        else:
            changes[key] = value
    if problems:
        raise ScenarioError(problems)
    return scenario.replace(changes)


@dataclass(frozen=True)
class FromTc:
    """Queues that are read from files of `tc`."""

    tc: Annotated[
        list[Path] | None,
        typer.Option(
            "--tc",
            metavar="FILE",
            # Whether it can be read is told by who reads it.
            readable=False,
            allow_dash=True,
            help="Put the queues of `tc` on the scenario's bottleneck: what `tc [-s|-d] [-j] "
            "qdisc|class|filter show` printed, or a script, of which nothing is executed. Repeat "
            "for more; - is standard input.",
        ),
    ] = None
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            metavar="NAME[,NAME]",
            help="Of several devices in --tc the one for the bottleneck; a second one is for its "
            "other direction. NAME:2 is the second transmit queue.",
        ),
    ] = None
    var: Annotated[
        list[str] | None,
        typer.Option(
            "--var",
            metavar="NAME=VALUE",
            help="A variable of a script in --tc, such as UPLINK=20000; 1=start is its first "
            "argument, and a command's text gives its output. It holds whatever the script sets. "
            "Repeat for more.",
        ),
    ] = None
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="ADDRESS=NODE",
            help="The node that has an address in the filters of --tc. Repeat for more.",
        ),
    ] = None
    partial: Annotated[
        bool,
        typer.Option("--partial", help="Go on without what cannot be read of --tc, and list it."),
    ] = False

    def applied(self, scenario: Scenario) -> Scenario:
        """The scenario with these queues; says where each is, and what is worth knowing."""
        if not self.tc:
            if self.device or self.var or self.host or self.partial:
                fail("--device, --var, --host and --partial belong to files of --tc")
            return scenario
        from sojourn.tc import apply, read_files

        reading = read_files(self.tc, _pairs("--var", self.var), self.device)
        found = apply(
            scenario, reading, self.device, _pairs("--host", self.host), partial=self.partial
        )
        for notice in found.notices:
            note(notice)
        for placed in found.placed:
            note(str(placed))
        for selection in found.selections:
            if selection.flows or selection.answers:
                note(str(selection))
        return found.scenario

    def beside(self, scenario: Scenario, queues: list[str]) -> list[str]:
        """Queues to be compared, with the one that was read before them."""
        return list(dict.fromkeys([scenario.queue_name, *queues])) if self.tc and queues else queues


def _pairs(option: str, texts: list[str] | None) -> dict[str, str]:
    """Texts such as NAME=VALUE, by name."""
    found: dict[str, str] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            fail(f"{option} is written as NAME=VALUE; found `{text}`")
        found[" ".join(name.split())] = value
    return found


LONGEST_FOLDER = 80
"""Characters of a folder's name that we choose; systems allow 255 bytes."""


def folder_of(name: str, otherwise: str) -> Path:
    """Where results of what is called so are kept, if nothing else is said."""
    plain = re.sub(r"[^\w.-]+", "-", name)[:LONGEST_FOLDER].strip("-.")
    return Path("results") / (plain or otherwise)


@dataclass(frozen=True)
class Cluster:
    """The Dask cluster that makes the runs, if one does."""

    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="ADDRESS",
            help="Let the workers of a Dask cluster make the runs: its scheduler's address, such "
            "as tcp://host:8786.",
        ),
    ] = None
    tls_ca: Annotated[
        Path | None,
        typer.Option(
            "--tls-ca", metavar="FILE", help="Authority the cluster's certificates are from."
        ),
    ] = None
    tls_cert: Annotated[
        Path | None,
        typer.Option("--tls-cert", metavar="FILE", help="Certificate for the cluster."),
    ] = None
    tls_key: Annotated[
        Path | None, typer.Option("--tls-key", metavar="FILE", help="Key of the certificate.")
    ] = None

    @contextmanager
    def connected(self) -> Iterator[Client | None]:
        """The cluster as a study takes it; None is this machine."""
        if self.on is None:
            if self.tls_ca or self.tls_cert or self.tls_key:
                raise ClusterError(
                    "--tls-ca, --tls-cert and --tls-key belong to a cluster: see --on"
                )
            yield None
            return
        from sojourn.study.cluster import Tls, connected

        note(f"connecting to {self.on}")
        with connected(self.on, Tls(self.tls_ca, self.tls_cert, self.tls_key)) as client:
            yield client


@dataclass(frozen=True)
class Precise:
    """Runs until a precision."""

    until: Annotated[
        list[str] | None,
        typer.Option(
            "--until",
            metavar='"METRIC ± WIDTH"',
            help="Make the runs that it takes to know a metric so precisely, a share or an amount: "
            '"sojourn_p95 ± 2%", "call.delay_p99 +- 1ms"; p95 is sojourn_p95. Looks are at 40, '
            "60, 90, ... seeds, which the intervals allow for. Repeat for more.",
        ),
    ] = None
    max_seeds: Annotated[
        int | None,
        typer.Option("--max-seeds", min=1, help="Seeds at most with --until; 1000 by default."),
    ] = None

    def rule(self, seeds: int | None = None) -> Until | None:
        """The rule, if one is asked for; `seeds` is the number asked for instead."""
        if self.until is not None and seeds is not None:
            fail("--until says how many seeds: leave out --seeds")
        if self.until is None:
            if self.max_seeds is not None:
                fail("--max-seeds belongs to --until")
            return None
        from sojourn.study.until import parse

        return parse(self.until, self.max_seeds)

    def check_alone(self, chosen: Chosen) -> None:
        """Refuses several engines in a comparison, each of which would need its own seeds."""
        if self.until is not None and chosen.several:
            fail("--until takes one engine: its runs decide how many there are")


@dataclass(frozen=True)
class Simulated:
    """Where runs are simulated."""

    workers: Workers = None
    cluster: Cluster = Cluster()


@dataclass(frozen=True)
class Made:
    """What makes runs, and where."""

    workers: Workers = None
    engine: Engines = engines.SIM
    real: Real = False
    cluster: Cluster = Cluster()

    def engines(self, as_json: bool) -> Chosen:
        """The engines of a study."""
        name, option = self.engine, f"--engine {self.engine}"
        if self.real:
            if name not in (engines.SIM, engines.WIRE):
                fail("`--real` is `--engine wire`: give one of them", as_json=as_json)
            name, option = engines.WIRE, "--real"
        kinds = engines.chosen(name)
        if self.cluster.on is not None and [kind.name for kind in kinds] != [engines.SIM]:
            what = "real runs are" if self.real else "runs of other engines than sim are"
            fail(
                f"`{option}` and `--on` exclude each other: {what} made on this machine alone",
                as_json=as_json,
            )
        return Chosen({kind.name: kind.make() for kind in kinds})


@dataclass(frozen=True)
class Chosen:
    """The engines that a command was given."""

    by_name: Mapping[str, Engine]

    @property
    def several(self) -> bool:
        """Whether results stand side by side."""
        return len(self.by_name) > 1

    @property
    def one(self) -> Engine | None:
        """The first engine; none is the simulator."""
        name, engine = next(iter(self.by_name.items()))
        return None if name == engines.SIM else engine

    @property
    def of_study(self) -> Engine | Mapping[str, Engine] | None:
        """The engines as a study takes them."""
        return self.by_name if self.several else self.one

    @property
    def limits(self) -> dict[str, str]:
        """What results cannot say, by the engines of which there is something to say."""
        from sojourn.scenario.engine import limits_of

        found = {name: limits_of(engine) for name, engine in self.by_name.items()}
        return {name: text for name, text in found.items() if text}

    def tell_limits(self) -> None:
        """Says what results cannot say, each once."""
        from sojourn.scenario.engine import limits_told

        for line in limits_told(self.limits):
            typer.echo(line)

    def tell_doubts(self) -> None:
        """Says which of the runs just made are not to be believed, and why."""
        for name, engine in self.by_name.items():
            doubtful: list[list[str]] = getattr(engine, "doubtful", [])
            if not doubtful:
                continue
            made = getattr(engine, "made", len(doubtful))
            kind = "real" if engines.find(name).real_time else name
            complain(f"{len(doubtful)} of {made} {kind} runs are NOT VALID:")
            for doubt in dict.fromkeys(doubt for doubts in doubtful for doubt in doubts):
                complain(f"  {doubt}")

    def exit_if_doubtful(self) -> None:
        """Ends the command with status 1 if a run just made is not to be believed."""
        if any(getattr(engine, "doubtful", []) for engine in self.by_name.values()):
            raise typer.Exit(FINDINGS)

    @contextmanager
    def refusals(self, plans: Iterable[str]) -> Iterator[None]:
        """Names the engines that can run the plans, where a chosen one refuses them.

        Says first which programs of the scenario's own will run: they are its author's code.
        """
        from sojourn.lab.programs.errors import NotPossible

        listed = list(plans)
        if any(name != engines.SIM for name in self.by_name):
            tell_programs(listed)
        try:
            yield
        except NotPossible as error:
            if others := engines.able(listed):
                options = " or ".join(f"`--engine {name}`" for name in others)
                error.add_note(f"{options} can run it")
            raise


def tell_programs(plans: Iterable[str]) -> None:
    """Says which programs of the scenario's own these plans run."""
    of_command = [json.loads(plan) for plan in plans if '"command"' in plan]
    told = {str(program): None for plan in of_command for program in own_programs(plan)}
    if told:
        note("the scenario runs programs of its own:")
    for line in told:
        note(f"  {line}")
