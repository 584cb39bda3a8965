"""Engines, which run plans: the simulator, a laboratory, or a substitute in tests."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from sojourn import _core
from sojourn.engines import SIM, EngineError, chosen
from sojourn.plan.plan import Plan
from sojourn.scenario.errors import Problem, ScenarioError

RunProgress = Callable[[float, int], bool | None]
"""Function called with the fraction of the run that is done and the number of events so far.

If the function returns `False`, the run stops.
"""

Column = tuple[str, str, str, bytes | list[str]]
"""Name, unit, type (`f8`, `i8`, `?` or `text`) and values of a column."""

_STRUCT = {"f8": "d", "i8": "q", "?": "?"}
_SIZES = {dtype: struct.calcsize(f"<{code}") for dtype, code in _STRUCT.items()}

Stack = tuple[Sequence[int], Sequence[int], Sequence[Column]]
"""Table of several runs: the runs' numbers, the number of rows of each, and the columns."""


def values_of(column: Column) -> list[Any]:
    """Returns the values of a column as Python numbers, booleans or texts."""
    name, _, dtype, data = column
    if isinstance(data, list):
        return data
    if dtype not in _STRUCT:
        raise ValueError(f"column {name!r} has the unknown type {dtype!r}")
    return [value for (value,) in struct.iter_unpack(f"<{_STRUCT[dtype]}", data)]


def rows_of(table: Sequence[Column]) -> int:
    """Returns the number of rows of a table."""
    if not table:
        return 0
    _, _, dtype, data = table[0]
    return len(data) // (1 if isinstance(data, list) else _SIZES[dtype])


def of_runs(stacks: Iterable[Stack]) -> dict[int, list[Column]]:
    """Returns the table of each run, by the run's number."""
    found: dict[int, list[Column]] = {}
    for numbers, rows, table in stacks:
        begin = 0
        for number, count in zip(numbers, rows, strict=True):
            end = begin + count
            found[number] = [
                (name, unit, dtype, data[begin * size : end * size])
                for name, unit, dtype, data in table
                for size in [1 if isinstance(data, list) else _SIZES[dtype]]
            ]
            begin = end
    return found


SUMMARY = "summary"
"""Name of the table that has one row with the run's metrics."""

TABLES = (SUMMARY, "flows", "queues", "series", "distributions")
"""Names of the tables that every run's record has."""

SEEDS = 2**64
"""Number of possible seeds: 0 to `SEEDS` - 1."""

ASKED = ("flow_series",)
"""Names of tables that have rows only if the scenario requests them."""


class Record(Protocol):
    """Result of one run."""

    @property
    def trace_hash(self) -> str:
        """Hash of all packet events."""

    @property
    def events(self) -> int:
        """Number of events that the engine processed."""

    @property
    def complete(self) -> bool:
        """Returns whether the run reached its end."""

    @property
    def captures(self) -> Sequence[bytes]:
        """Packet captures in pcap format, one for each link that the scenario captures."""

    def table(self, name: str) -> Sequence[Column]:
        """Returns the table `name`, one of `TABLES` or `ASKED`."""


class Records(Protocol):
    """Results of several runs, up to the first run that failed or was stopped."""

    @property
    def seconds(self) -> Sequence[float]:
        """Wall-clock duration of each run, in seconds."""

    @property
    def fault(self) -> BaseException | None:
        """Error of the first run that failed; None if no run failed."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> Record: ...

    def tables(self, name: str, /) -> Sequence[Stack]:
        """Returns the table `name` of all runs: one stack for each distinct set of columns."""


class Engine(Protocol):
    """A program that runs plans.

    Optional attributes: `simulate_many(runs, progress)` makes many runs in one call and returns
    their `Records`; `call_seconds` is the intended duration of this call; `tables` receives the
    names of the required tables; `name`; `slots` is the number of concurrent runs that this machine
    supports; `limits` is a text on the limits of the results; `unmeasured` lists prefixes of the
    names of metrics that the engine does not measure; `tcp_words(plan)` returns the words that
    describe the kernel's TCP in runs of a plan; `check(plan, seed)` raises an error with all
    `problems` of a plan that the engine cannot run.
    """

    def fingerprint(self) -> str:
        """Returns a hash of everything in the engine that determines results."""

    def version(self) -> str:
        """Returns the engine's version as text."""

    def simulate(self, plan: Plan, seed: int, progress: RunProgress | None = None) -> Record:
        """Returns the record of one run of a plan with a seed."""


Choice: TypeAlias = Engine | str | Mapping[str, Engine] | None
"""Engines of a study: one, several by name, or names as text; None is the simulator."""


Stacked: TypeAlias = Callable[[Plan], Mapping[str, str]]
"""Function that returns the words of a kernel's TCP in runs of a plan, such as `hz`."""


def stack_of(engines: Mapping[str, Engine]) -> Stacked | None:
    """Returns the words that simulated TCP has in runs of several engines.

    They are those of the first kernel in virtual time. None unless there are such a kernel and the
    simulator.
    """
    found = [getattr(engine, "tcp_words", None) for engine in engines.values()]
    return next(filter(None, found), None) if SIM in engines else None


class Simulator:
    """The simulator, the default engine."""

    name = SIM

    def fingerprint(self) -> str:
        """Returns a hash of everything in the simulator that determines results."""
        return _core.fingerprint()

    def version(self) -> str:
        """Returns the simulator's version."""
        return _core.version()

    def check(self, plan: Plan, seed: int) -> None:
        """Raises `PlanError` if the simulator cannot run the plan; the seed has no effect."""
        _core.check(plan.text, seed)

    def simulate(self, plan: Plan, seed: int, progress: RunProgress | None = None) -> Record:
        """Returns the record of one run."""
        return _core.simulate(plan.text, seed, progress)

    def simulate_many(
        self, runs: Sequence[tuple[Plan, int]], progress: RunProgress | None = None
    ) -> Records:
        """Makes runs in one call, up to the first that fails or is stopped."""
        return _core.simulate_many([(plan.text, seed) for plan, seed in runs], progress)


ENGINE = "engine"
"""Name of the column with the engine's name, in tables with runs of several engines."""


class Stopped(KeyboardInterrupt):
    """Raised if a progress function stopped a run that has no partial result."""


def core() -> Engine:
    """Returns the simulator, the default engine."""
    return Simulator()


def single(engine: Engine | str | None) -> Engine:
    """Returns one engine; None is the simulator. Raises `EngineError` for several names."""
    if not isinstance(engine, str):
        return engine or core()
    kinds = chosen(engine)
    if len(kinds) > 1:
        raise EngineError(f"one engine makes a run; found `{engine}`")
    made: Engine = kinds[0].make()
    return made


def name_of(engine: Engine) -> str:
    """Returns an engine's name; an engine without a name is the simulator."""
    return str(getattr(engine, "name", SIM))


def named(engine: Choice) -> dict[str, Engine]:
    """Returns engines by name; None is the simulator alone.

    A text such as `sim,linux` lists names of engines. Raises `EngineError` for an unknown name.
    """
    if isinstance(engine, Mapping):
        return dict(engine)
    if isinstance(engine, str):
        return {kind.name: kind.make() for kind in chosen(engine)}
    engine = engine or core()
    return {name_of(engine): engine}


def limits_of(engine: Engine) -> str:
    """Returns the text on the limits of an engine's results; empty if the engine has none."""
    return str(getattr(engine, "limits", ""))


def limit_sentences(limits: Mapping[str, str]) -> list[str]:
    """Returns a sentence for each distinct text on limits, with the engines that it concerns."""
    engines: dict[str, list[str]] = {}
    for name, text in limits.items():
        engines.setdefault(text, []).append(name)
    return [
        f"Limits of the engine{'s' * (len(names) > 1)} {', '.join(names)}: {text}."
        for text, names in engines.items()
    ]


def unmeasured_by(engine: Engine, metric: str) -> bool:
    """Returns whether an engine measures no metric of this name, at any link or group."""
    name = metric.rpartition(".")[2]
    prefixes = getattr(engine, "unmeasured", ())
    return any(name == prefix or name.startswith(f"{prefix}_") for prefix in prefixes)


def check_seed(seed: object) -> None:
    """Raises `ScenarioError` unless the value is a seed."""
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < SEEDS:
        raise ScenarioError(
            [Problem(f"a seed must be a whole number from 0 to 2^64 - 1; found {seed!r}")]
        )


def check(engines: Mapping[str, Engine], plans: Iterable[Plan], seed: int) -> None:
    """Raises an error for an invalid seed or plan, or if an engine cannot run all plans.

    An engine's error has the problems of all plans, but only of the first engine with problems.
    """
    check_seed(seed)
    distinct = list(dict.fromkeys(plans))
    for name, engine in engines.items():
        able = getattr(engine, "check", None)
        if able is None:
            continue
        problems: dict[object, None] = {}
        kind: type[RuntimeError] = RuntimeError
        for plan in distinct:
            try:
                able(plan, seed)
            except _core.PlanError as error:
                reported = getattr(error, "problems", [((), str(error))])
                where = [
                    (f"flows.{p[1]}.app" if p[::2] == ("groups", "app") else "", m)
                    for p, m in reported
                ]
                raise ScenarioError([Problem(message, key) for key, message in where]) from None
            except RuntimeError as error:
                found = getattr(error, "problems", ())
                if not found:
                    raise
                problems |= dict.fromkeys(found)
                kind = type(error)
        if problems:
            refused = kind(list(problems))
            refused.add_note(f"the engine `{name}` cannot run this scenario; no run was started")
            raise refused
