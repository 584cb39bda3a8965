"""Something that runs plans: the simulator, a laboratory, or what tests put in their place."""

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
"""A table of several runs: their numbers, the rows of each, and the rows of all in columns."""


def values_of(column: Column) -> list[Any]:
    """Return the values of a column as Python's own numbers or texts."""
    name, _, dtype, data = column
    if isinstance(data, list):
        return data
    if dtype not in _STRUCT:
        raise ValueError(f"column {name!r} has the unknown type {dtype!r}")
    return [value for (value,) in struct.iter_unpack(f"<{_STRUCT[dtype]}", data)]


def rows_of(table: Sequence[Column]) -> int:
    """Return the number of a table's rows."""
    if not table:
        return 0
    _, _, dtype, data = table[0]
    return len(data) // (1 if isinstance(data, list) else _SIZES[dtype])


def of_runs(stacks: Iterable[Stack]) -> dict[int, list[Column]]:
    """Return the table of each run by its number."""
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
"""A seed is below it."""

ASKED = ("flow_series",)
"""Tables that a record has if its scenario asks for them; empty otherwise."""


class Record(Protocol):
    """What one run leaves behind."""

    @property
    def trace_hash(self) -> str:
        """Hash over every packet event."""

    @property
    def events(self) -> int:
        """Number of events."""

    @property
    def complete(self) -> bool:
        """Whether the run reached its end."""

    @property
    def captures(self) -> Sequence[bytes]:
        """Packet captures, one a link asked for."""

    def table(self, name: str) -> Sequence[Column]:
        """Return one of `TABLES` or `ASKED`."""


class Records(Protocol):
    """What several runs leave behind: those before one that failed or was stopped."""

    @property
    def seconds(self) -> Sequence[float]:
        """How long each took."""

    @property
    def fault(self) -> BaseException | None:
        """The error of the run after them."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> Record: ...

    def tables(self, name: str, /) -> Sequence[Stack]:
        """Return one of `TABLES` or `ASKED`: a stack for each set of columns."""


class Engine(Protocol):
    """Something that runs plans.

    It may have more: `simulate_many(runs, progress)`, which makes many in one call and returns
    their `Records`, `call_seconds`, the time that such a call is to take, and `tables`, which is
    set to the names of those that are wanted; `name`; `slots`, the runs at a time that this machine
    bears; `limits`, what its results cannot say, in a sentence; `untold`, the beginnings of the
    names of metrics that it does not measure; and `check(plan_json, seed)`, which raises an error
    with all `problems` of a plan that it cannot run.
    """

    def fingerprint(self) -> str:
        """Return the hash of everything that decides results."""

    def version(self) -> str:
        """Return the version, for people."""

    def simulate(self, plan_json: str, seed: int, progress: RunProgress | None = None) -> Record:
        """Run a plan with a seed."""


ENGINE = "engine"
"""The column that names the engine, where runs of several stand in one table."""


class Stopped(KeyboardInterrupt):
    """A run that its progress stopped, and that leaves nothing behind."""


def core() -> Engine:
    """Return the real engine."""
    return cast("Engine", _core)


def name_of(engine: Engine) -> str:
    """Return an engine's name; one without a name counts as the simulator."""
    return str(getattr(engine, "name", SIM))


def named(engine: Engine | Mapping[str, Engine] | None) -> dict[str, Engine]:
    """Return engines by name: several, one, or the simulator if none is given."""
    if isinstance(engine, Mapping):
        return dict(engine)
    engine = engine or core()
    return {name_of(engine): engine}


def limits_of(engine: Engine) -> str:
    """Return what an engine's results cannot say; nothing if there is nothing to know."""
    told = getattr(engine, "limits", "")
    return told if isinstance(told, str) else ""  # the simulator has a function of this name


def limits_told(limits: Mapping[str, str]) -> list[str]:
    """What engines' results cannot say, by their names, as sentences: each once."""
    engines: dict[str, list[str]] = {}
    for name, text in limits.items():
        engines.setdefault(text, []).append(name)
    return [
        f"Limits of the engine{'s' * (len(names) > 1)} {', '.join(names)}: {text}."
        for text, names in engines.items()
    ]


def untold_by(engine: Engine, metric: str) -> bool:
    """Return whether an engine does not measure a metric, of any link or group."""
    name = metric.rpartition(".")[2]
    return any(name == one or name.startswith(f"{one}_") for one in getattr(engine, "untold", ()))


def check_seed(seed: object) -> None:
    """Raise `ScenarioError` unless it is a seed."""
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < SEEDS:
        raise ScenarioError([Problem(f"a seed is a whole number below 2^64; found {seed!r}")])


def check(engines: Mapping[str, Engine], plans: Iterable[str], seed: int) -> None:
    """Raise all that keeps the first engine that cannot run the plans from running them."""
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
            refused.add_note(f"the engine `{name}` cannot run this; nothing was started")
            raise refused
