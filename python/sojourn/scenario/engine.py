"""Engines, which run plans: the simulator, a laboratory, or a substitute in tests."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, cast

from sojourn import _core
from sojourn.engines import SIM
from sojourn.scenario.errors import Problem, ScenarioError

RunProgress = Callable[[float, int], bool | None]
"""Called with the fraction done and the events so far; `False` stops the run."""

Column = tuple[str, str, str, bytes | list[str]]
"""Name, unit, dtype (`f8`, `i8`, `?`, `text`), data."""

_STRUCT = {"f8": "d", "i8": "q", "?": "?"}
_SIZES = {dtype: struct.calcsize(f"<{code}") for dtype, code in _STRUCT.items()}

Stack = tuple[Sequence[int], Sequence[int], Sequence[Column]]
"""A table of several runs: the numbers of the runs, rows of each, and columns of all rows."""


def values_of(column: Column) -> list[Any]:
    """Returns the values of a column as Python numbers or texts."""
    name, _, dtype, data = column
    if isinstance(data, list):
        return data
    if dtype not in _STRUCT:
        raise ValueError(f"column {name!r} has the unknown type {dtype!r}")
    return [value for (value,) in struct.iter_unpack(f"<{_STRUCT[dtype]}", data)]


def rows_of(table: Sequence[Column]) -> int:
    """Returns the number of a table's rows."""
    if not table:
        return 0
    _, _, dtype, data = table[0]
    return len(data) // (1 if isinstance(data, list) else _SIZES[dtype])


def of_runs(stacks: Iterable[Stack]) -> dict[int, list[Column]]:
    """Returns the table of each run by its number."""
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
"""The table of one row, with the run's metrics."""

TABLES = (SUMMARY, "flows", "queues", "series", "distributions")
"""The tables of every run's record."""

SEEDS = 2**64
"""Upper bound of seeds; a seed is smaller."""

ASKED = ("flow_series",)
"""Tables that a record has if its scenario asks for them; empty otherwise."""


class Record(Protocol):
    """Result of one run."""

    @property
    def trace_hash(self) -> str:
        """Hash of every packet event."""

    @property
    def events(self) -> int:
        """Number of events."""

    @property
    def complete(self) -> bool:
        """Returns whether the run reached its end."""

    @property
    def captures(self) -> Sequence[bytes]:
        """Packet captures, one for each requested link."""

    def table(self, name: str) -> Sequence[Column]:
        """Returns one of `TABLES` or `ASKED`."""


class Records(Protocol):
    """Results of several runs: those before the first that failed or was stopped."""

    @property
    def seconds(self) -> Sequence[float]:
        """Wall-clock time of each run, in seconds."""

    @property
    def fault(self) -> BaseException | None:
        """Returns the error of the first run that failed."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> Record: ...

    def tables(self, name: str, /) -> Sequence[Stack]:
        """Returns one of `TABLES` or `ASKED`: a stack for each set of columns."""


class Engine(Protocol):
    """A program that runs plans.

    Optional attributes: `simulate_many(runs, progress)` makes many runs in one call and returns
    their `Records`; `call_seconds` is the intended duration of such a call; `tables` receives the
    names of the required tables; `name`; `slots` is the number of concurrent runs that this machine
    supports; `limits` is a sentence on the limits of the results; `unmeasured` lists prefixes of
    the names of metrics that the engine does not measure; `check(plan_json, seed)` raises an error
    with all `problems` of a plan that the engine cannot run.
    """

    def fingerprint(self) -> str:
        """Returns the hash of everything that determines results."""

    def version(self) -> str:
        """Returns the version as readable text."""

    def simulate(self, plan_json: str, seed: int, progress: RunProgress | None = None) -> Record:
        """Runs a plan with a seed."""


ENGINE = "engine"
"""The column that names the engine in tables with runs of several engines."""


class Stopped(KeyboardInterrupt):
    """A run that its progress function stopped and that has no result."""


def core() -> Engine:
    """Returns the real engine."""
    return cast("Engine", _core)


def name_of(engine: Engine) -> str:
    """Returns an engine's name; one without a name counts as the simulator."""
    return str(getattr(engine, "name", SIM))


def named(engine: Engine | Mapping[str, Engine] | None) -> dict[str, Engine]:
    """Returns engines by name: the given ones, or the simulator by default."""
    if isinstance(engine, Mapping):
        return dict(engine)
    engine = engine or core()
    return {name_of(engine): engine}


def limits_of(engine: Engine) -> str:
    """Returns the limits of an engine's results; empty if it states none."""
    limits = getattr(engine, "limits", "")
    return limits if isinstance(limits, str) else ""  # the simulator has a function with this name


def limit_sentences(limits: Mapping[str, str]) -> list[str]:
    """Returns sentences on the limits of engines' results, each sentence once."""
    engines: dict[str, list[str]] = {}
    for name, text in limits.items():
        engines.setdefault(text, []).append(name)
    return [
        f"Limits of the engine{'s' * (len(names) > 1)} {', '.join(names)}: {text}."
        for text, names in engines.items()
    ]


def unmeasured_by(engine: Engine, metric: str) -> bool:
    """Returns whether an engine does not measure a metric, for any link or group."""
    name = metric.rpartition(".")[2]
    prefixes = getattr(engine, "unmeasured", ())
    return any(name == prefix or name.startswith(f"{prefix}_") for prefix in prefixes)


def check_seed(seed: object) -> None:
    """Raises `ScenarioError` unless the value is a seed."""
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < SEEDS:
        raise ScenarioError(
            [Problem(f"a seed must be a whole number from 0 to 2^64 - 1; found {seed!r}")]
        )


def check(engines: Mapping[str, Engine], plans: Iterable[str], seed: int) -> None:
    """Raises an error with all problems of the first engine that cannot run the plans."""
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
                told = getattr(error, "problems", [((), str(error))])
                where = [
                    (f"flows.{p[1]}.app" if p[::2] == ("groups", "app") else "", m) for p, m in told
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
