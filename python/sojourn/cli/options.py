"""Options that several commands share, single and in groups."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from sojourn import engines
from sojourn.cli.exits import FINDINGS, fail
from sojourn.cli.output import complain, note
from sojourn.data import Object
from sojourn.plan import Plan
from sojourn.plan.queries import own_programs
from sojourn.settings import Option, settings
from sojourn.study.errors import ClusterError, StudyError

if TYPE_CHECKING:
    from distributed import Client

    from sojourn._core import TcReading
    from sojourn.scenario import Scenario
    from sojourn.scenario.engine import Engine
    from sojourn.study import Study
    from sojourn.study.cells import Level
    from sojourn.study.until import Until
    from sojourn.tc import Applied

    Factors: TypeAlias = dict[str, dict[Level, Mapping[str, object]]]
    """Keys that a comparison varies, with the changes of the scenario for each level."""

ScenarioFile = Annotated[
    Path, Option("FILE", positional=True, help="Scenario, a TOML file.", readable=False)
]
Engines = Annotated[
    str,
    Option(
        "NAME,...",
        help=f"Engine of the runs: {engines.help_text()}. Several, such as sim,linux, make the "
        "same runs, shown side by side.",
        complete="engines",
    ),
]
Privilege = Annotated[
    Literal["auto", "user", "root"],
    Option(
        help="Privileges of real runs: in a user namespace, as root, or (auto) as root only if "
        "a user namespace does not suffice."
    ),
]
Seed = Annotated[int, Option(help="Seed of the run's random draws.", min=0)]
Settings = Annotated[
    list[str] | None,
    Option(
        "KEY=VALUE",
        flag="--set",
        help="Change a key of the scenario, such as links.uplink.rate=10mbit. Repeat for more.",
    ),
]
Smallest = Annotated[
    str | None,
    Option(
        "AMOUNT",
        help="The smallest difference of interest: a share of the value (5%) or an amount "
        "(2ms). By default question.smallest for the scenario's metric question.by, otherwise "
        "the metric's own difference (`sojourn explain METRIC`).",
    ),
]
Warmup = Annotated[
    str | None,
    Option(
        "TIME",
        flag="--warmup",
        help="The first part of all runs, which is not measured, such as 5s; `auto`: until the "
        "bottleneck has settled with all choices, in pilot runs with other seeds. By default the "
        "scenario's warmup.",
    ),
]
AsJson = Annotated[bool, Option(flag="--json", help="Print JSON on standard output.")]
Workers = Annotated[
    int | None,
    Option(help="Number of parallel runs; by default the number of cores.", min=1),
]


def load(file: Path | str, settings: list[str] | None) -> Scenario:
    """Returns the scenario in `file` with the command line's changes."""
    from sojourn.scenario import Scenario

    return changed(Scenario.load(file), settings)


def warmed(study: Study, warmup: str | None, workers: int | None = None) -> Study:
    """Returns the study with the warm-up of `--warmup`, which pilot runs find if it is `auto`."""
    if warmup is None:
        return study
    if study.varies("warmup"):
        raise StudyError("--warmup: the study's levels determine the warm-up: set it in each level")
    if warmup == "auto":
        from sojourn.cli import bars

        with bars.study_progress("pilot runs") as report:
            seconds = study.warm_up(workers, report)
        warmup = f"{math.ceil(1e3 * seconds)}ms"
        note(f"warm-up {math.ceil(1e3 * seconds) / 1e3:g} s, from pilot runs with other seeds")
    return study.replace({"warmup": warmup})


def changed(scenario: Scenario, settings: list[str] | None) -> Scenario:
    """Returns the scenario with the command line's changes."""
    return scenario.replace(changes_of(settings)) if settings else scenario


@contextmanager
def blamed(option: str | None, keys: Iterable[str]) -> Iterator[None]:
    """Names an option in the place of these keys in problems; None leaves the keys."""
    from sojourn.scenario import ScenarioError

    try:
        yield
    except ScenarioError as error:
        if option is None:
            raise
        found = [replace(p, key=option) if p.key in keys else p for p in error.problems]
        raise ScenarioError(found) from None


def changes_of(settings: list[str] | None) -> Object:
    """Returns the keys and values of `--set`."""
    from sojourn.scenario import Problem, ScenarioError
    from sojourn.scenario.change import setting

    changes: Object = {}
    problems: list[Problem] = []
    for text in settings or []:
        try:
            key, value = setting(text)
        except ScenarioError as error:
            problems += error.problems
        else:
            changes[key] = value
    if problems:
        raise ScenarioError(problems)
    return changes


Interface: TypeAlias = Annotated[
    str | None,
    Option(
        flag="--interface -i",
        help="Interface of your machine to the link. By default the scenario's deploy.interface, "
        "otherwise the device of --tc, or eth0.",
    ),
]
Form: TypeAlias = Annotated[
    Literal["tc", "sqm", "networkd"] | None,
    Option(
        metavar="FORMAT",
        flag="--format",
        help="Output format of the commands: tc (commands), sqm (settings of OpenWrt's SQM) or "
        "networkd (files of systemd). By default the scenario's deploy.format, otherwise tc.",
    ),
]


@settings
class Printed:
    """Options of the commands that install the best queue."""

    interface: Interface = None
    form: Form = None


@settings
class FromTc:
    """Options that take queues from files of `tc`."""

    tc: Annotated[list[Path] | None, Option("FILE", readable=False, dash=True)] = None
    """Put the queues in FILE on the scenario's bottleneck. FILE is the output of `tc [-s|-d] [-j]
    qdisc|class|filter show`, or a script, which is read but not executed; - is standard input.
    Repeat for more.
    """
    device: Annotated[str | None, Option("NAME[,NAME]")] = None
    """Device in --tc whose queue is put on the bottleneck. By default the only device with a queue,
    or a device and the ifb of its incoming packets. A second device is for the bottleneck's other
    direction. NAME:2 is a device's second transmit queue.
    """
    var: Annotated[list[str] | None, Option("NAME=VALUE")] = None
    """Variable of a script in --tc, such as UPLINK=20000, which overrides the script's value.
    1=start sets the script's first argument. If NAME is the text of a command, VALUE is the output
    of the command. Repeat for more.
    """
    host: Annotated[list[str] | None, Option("ADDRESS=NODE")] = None
    """Node of the scenario that has an address in the filters of --tc, and in commands that are
    printed. Repeat for more.
    """
    partial: bool = False
    """Ignore parts of --tc that cannot be read, and list them."""

    def applied(self, scenario: Scenario, *, prints: bool = False) -> Scenario:
        """Returns the scenario with the queues of `--tc`; prints messages about these queues.

        `prints` states whether the caller prints commands, for which `--host` is of use alone.
        """
        if not self.tc:
            if self.device or self.var or self.partial or (self.host and not prints):
                fail("--device, --var, --host and --partial require --tc")
            if not self.host:
                return scenario
            from sojourn.tc import addressed

            return addressed(scenario, _pairs("--host", self.host))
        found = self.read(scenario)
        for notice in found.notices:
            note(notice)
        for placed in found.placed:
            note(str(placed))
        for selection in found.selections:
            if selection.flows or selection.answers:
                note(str(selection))
        return found.scenario

    def reading(self, files: list[Path], changes: Mapping[str, str] | None = None) -> TcReading:
        """Returns the contents of files; `changes` are further values of script variables."""
        from sojourn.tc import read_files

        given = {**_pairs("--var", self.var), **(changes or {})}
        return read_files(files, given, self.device)

    def read(
        self,
        scenario: Scenario,
        files: list[Path] | None = None,
        changes: Mapping[str, str] | None = None,
    ) -> Applied:
        """Returns the scenario with the queues in files, by default those of `--tc`."""
        from sojourn.tc import apply

        reading = self.reading(files or self.tc or [], changes)
        hosts = _pairs("--host", self.host)
        return apply(scenario, reading, self.device, hosts, partial=self.partial)

    def loaded(self, file: Path, settings: list[str] | None, *, prints: bool = False) -> Scenario:
        """Returns the scenario in `file` with the changes of the command line.

        Those of classes come last, because the queue of `--tc` may have these classes.
        `prints` is that of `applied`.
        """
        of_classes = [text for text in settings or [] if ".class[" in text.partition("=")[0]]
        others = [text for text in settings or [] if text not in of_classes]
        return changed(self.applied(load(file, others), prints=prints), of_classes)

    def varied(self, scenario: Scenario, factors: Factors) -> Factors:
        """Returns the factors; those that are variables of scripts change the queues."""
        if not self.tc or not factors:
            return factors
        from sojourn.tc.read import variables

        # Standard input has been read.
        texts = [path.read_text("latin-1") for path in self.tc if str(path) != "-"]
        known = variables(" ".join(texts))
        own = [key for key in factors if key in known]
        if len(own) > 1:
            fail(f"--vary: vary one variable of the script at a time; found {', '.join(own)}")
        return {
            key: {level: self.read(scenario, changes={key: str(level)}).changes for level in levels}
            if key in own
            else levels
            for key, levels in factors.items()
        }

    def queues(self, scenario: Scenario, texts: list[str]) -> list[str]:
        """Returns descriptions of queues; a text that names a file of `tc` means its queue."""
        found = []
        for text in texts:
            is_file = ("." in text or "/" in text) and os.path.isfile(text)  # noqa: PTH113 - long texts
            queue = self.read(scenario, [Path(text)]).placed[0] if is_file else None
            if queue and (queue.netem or queue.queue is None):
                fail(
                    f"--queues: {text} sets up netem, which is a part of the path and no queue. "
                    "All compared queues have the same path: give the file by --tc, which sets both"
                )
            found.append(queue.queue if queue and queue.queue else text)
        return found

    def beside(self, scenario: Scenario, queues: list[str]) -> list[str]:
        """Returns the queues to compare: with `--tc`, the queue that was read comes first."""
        return list(dict.fromkeys([scenario.queue_name, *queues])) if self.tc and queues else queues


def _pairs(option: str, texts: list[str] | None) -> dict[str, str]:
    """Returns an option's texts of the form NAME=VALUE as a mapping."""
    found: dict[str, str] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            fail(f"{option} must be NAME=VALUE; found `{text}`")
        found[" ".join(name.split())] = value
    return found


LONGEST_FOLDER = 80
"""Maximum length of a folder's name chosen here, in characters; systems allow 255 bytes."""


def folder_of(name: str, otherwise: str) -> Path:
    """Returns the default folder for the results of `name`; `otherwise` replaces an empty name."""
    plain = re.sub(r"[^\w.-]+", "-", name)[:LONGEST_FOLDER].strip("-.")
    return Path("results") / (plain or otherwise)


@dataclass(frozen=True)
class Cluster:
    """Options of the Dask cluster that executes the runs, if any."""

    on: Annotated[str | None, Option("ADDRESS")] = None
    """Run on the workers of a Dask cluster: its scheduler's address, such as tcp://host:8786."""
    tls_ca: Annotated[Path | None, Option("FILE")] = None
    """Certificate of the authority that signs the cluster's certificates (PEM)."""
    tls_cert: Annotated[Path | None, Option("FILE")] = None
    """Client certificate for the cluster (PEM)."""
    tls_key: Annotated[Path | None, Option("FILE")] = None
    """Private key of the client certificate (PEM)."""

    @contextmanager
    def connected(self) -> Iterator[Client | None]:
        """Yields a client of the cluster; None without `--on`, for runs on this machine."""
        if self.on is None:
            if self.tls_ca or self.tls_cert or self.tls_key:
                raise ClusterError("--tls-ca, --tls-cert and --tls-key require --on")
            yield None
            return
        from sojourn.study.cluster import Tls, connected

        note(f"connecting to {self.on}")
        with connected(self.on, Tls(self.tls_ca, self.tls_cert, self.tls_key)) as client:
            yield client


@settings
class Precise:
    """Options for runs until a precision is reached."""

    until: Annotated[list[str] | None, Option('"METRIC ± WIDTH"')] = None
    """Add seeds until the confidence interval of a metric is within ± WIDTH, a share or an amount:
    "sojourn_p95 ± 2%", "call.delay_p99 +- 1ms"; p95 means sojourn_p95. The interval is checked
    after 40, 60, 90, ... seeds, and allows for repeated checks. Repeat for more metrics.
    """
    max_seeds: Annotated[int | None, Option(min=1)] = None
    """Largest number of seeds with --until; 1000 by default."""

    def rule(self, seeds: int | None = None) -> Until | None:
        """Returns the stopping rule of `--until`; None without it.

        `seeds` is a fixed number of seeds, which excludes `--until`; None if the user gave none.
        """
        if self.until is not None and seeds is not None:
            fail("--until determines the number of seeds: omit --seeds")
        if self.until is None:
            if self.max_seeds is not None:
                fail("--max-seeds requires --until")
            return None
        from sojourn.study.until import parse

        return parse(self.until, self.max_seeds)

    def check_alone(self, names: str) -> None:
        """Rejects `--until` with several engines: each engine needs its own number of seeds."""
        if self.until is not None and len(engines.chosen(names)) > 1:
            fail("--until requires a single engine, whose runs determine the number of seeds")


@dataclass(frozen=True)
class Simulated:
    """Options for runs of the simulator: number of parallel runs and cluster."""

    workers: Workers = None
    cluster: Cluster = Cluster()


@dataclass(frozen=True)
class Made:
    """Options for runs of any engine: engine, number of parallel runs and cluster."""

    workers: Workers = None
    engine: Engines = engines.SIM
    real: bool = False
    """Short for `--engine wire`: use real programs and real packets. Runs are made one after
    another, and each takes the scenario's duration.
    """
    cluster: Cluster = Cluster()

    def engines(self) -> Chosen:
        """Returns the engines that the options select."""
        name, option = self.engine, f"--engine {self.engine}"
        if self.real:
            if name not in (engines.SIM, engines.WIRE):
                fail("`--real` means `--engine wire`: omit `--real` or `--engine`")
            name, option = engines.WIRE, "--real"
        kinds = engines.chosen(name)
        if self.cluster.on is not None and [kind.name for kind in kinds] != [engines.SIM]:
            what = "real runs are" if self.real else "runs of engines other than sim are"
            fail(f"`{option}` and `--on` exclude each other: {what} made only on this machine")
        made = Chosen({kind.name: kind.make() for kind in kinds})
        if made.several:
            from sojourn.scenario.engine import stack_of

            if stack_of(made.by_name):
                note("simulated TCP has the kernel's timers and memory (`hz`, `frame_memory`)")
        return made


@dataclass(frozen=True)
class Chosen:
    """The engines of a command, by name; at least one."""

    by_name: Mapping[str, Engine]

    @property
    def several(self) -> bool:
        """Returns whether there is more than one engine, so that results are shown side by side."""
        return len(self.by_name) > 1

    @property
    def one(self) -> Engine | None:
        """Returns the first engine; None if it is the simulator."""
        name, engine = next(iter(self.by_name.items()))
        return None if name == engines.SIM else engine

    def check_simulated(self, *, required: bool) -> None:
        """Ends the command unless the engine is the simulator alone, if `--confirm` requires it."""
        if required and (self.several or self.one is not None):
            fail("--confirm repeats simulated runs on Linux: omit --engine")

    @property
    def of_study(self) -> Engine | Mapping[str, Engine] | None:
        """Returns the engines in the form that a study takes: None is the simulator."""
        return self.by_name if self.several else self.one

    @property
    def limits(self) -> dict[str, str]:
        """Returns the limits of the results by engine; engines without limits are omitted."""
        from sojourn.scenario.engine import limits_of

        found = {name: limits_of(engine) for name, engine in self.by_name.items()}
        return {name: text for name, text in found.items() if text}

    def tell_limits(self) -> None:
        """Prints the limits of the results; equal texts are printed once."""
        from sojourn.scenario.engine import limit_sentences

        for line in limit_sentences(self.limits):
            typer.echo(line)

    def report_violations(self) -> None:
        """Reports how many new runs of each engine are not valid, and each reason once."""
        for name, engine in self.by_name.items():
            invalid: list[list[str]] = getattr(engine, "violations", [])
            if not invalid:
                continue
            made = getattr(engine, "made", len(invalid))
            kind = "real" if engines.find(name).real_time else name
            complain(f"{len(invalid)} of {made} {kind} runs are NOT VALID:")
            for violation in dict.fromkeys(chain.from_iterable(invalid)):
                complain(f"  {violation}")

    def exit_if_invalid(self) -> None:
        """Ends the command with status 1 if a new run is not valid."""
        if any(getattr(engine, "violations", []) for engine in self.by_name.values()):
            raise typer.Exit(FINDINGS)

    @contextmanager
    def refusals(self, plans: Iterable[Plan]) -> Iterator[None]:
        """Adds a note with suitable engines to the error that an engine cannot run the plans.

        If an engine is not the simulator, the scenario's programs are printed first, because they
        are code of the scenario's author.
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
                error.add_note(f"{options} can run this scenario")
            raise


def tell_programs(plans: Iterable[Plan]) -> None:
    """Prints the commands of the scenario's own programs in these plans."""
    of_command = [plan for plan in plans if '"command"' in plan.text]
    programs = {str(program): None for plan in of_command for program in own_programs(plan)}
    if programs:
        note("the scenario runs its own programs:")
    for line in programs:
        note(f"  {line}")
