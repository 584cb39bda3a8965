"""Variables of a script, and where their values come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

LENGTH = 1 << 20
"""Largest number of characters of a value or output."""
UNKNOWN = "?"
"""Placeholder for an unknown part of a text."""


class TooMuch(Exception):
    """Raised if a script has too many steps, too much text, or too deep nesting."""


class Exit(Exception):
    """Raised by `exit` to end the script."""


class Return(Exception):
    """Raised by `return` to end a function."""


class Leave(Exception):
    """Raised by `break` and `continue` to leave a number of loops."""

    def __init__(self, loops: int, *, goes_on: bool) -> None:
        super().__init__()
        self.loops, self.goes_on = loops, goes_on


@dataclass(frozen=True, slots=True)
class Value:
    """A text, with the variables and outputs of unknown value that it was made from."""

    text: str
    missing: frozenset[str] = frozenset()
    """Names of variables without a value."""
    unknown: frozenset[str] = frozenset()
    """Commands whose output is unknown."""


@dataclass(slots=True)
class Origins:
    """Collects the unknown origins of texts while they are made."""

    missing: dict[str, None] = field(default_factory=dict)
    unknown: dict[str, None] = field(default_factory=dict)

    def add(self, value: Value) -> str:
        """Adds a value's origins and returns its text."""
        self.missing |= dict.fromkeys(sorted(value.missing))
        self.unknown |= dict.fromkeys(sorted(value.unknown))
        return value.text

    def value(self, text: str) -> Value:
        """Returns a text with all collected origins; raises `TooMuch`."""
        if len(text) > LENGTH:
            raise TooMuch(f"a value is longer than {LENGTH} characters")
        return Value(text, frozenset(self.missing), frozenset(self.unknown))


class Variables:
    """Variables by name.

    A value that the user gives overrides the script's, as on `make`'s command line.
    """

    def __init__(self, given: Mapping[str, str], script: str) -> None:
        self.given = dict(given)
        self.script = script
        self._values: dict[str, Value] = {name: Value(text) for name, text in given.items()}
        numbered = sorted(int(n) for n in given if n.isdecimal() and 0 < int(n) < 1000)
        self.positional: list[Value] = [
            Value(given[str(n)]) if str(n) in given else Value("", frozenset({str(n)}))
            for n in range(1, (numbered or [0])[-1] + 1)
        ]
        self._scopes: list[dict[str, Value | None]] = []
        self.status = 0
        self.asked: dict[str, None] = {}
        """Names of used variables without a value, in the order of their first use."""

    def get(self, name: str) -> Value | None:
        """Returns the value of a variable or parameter; None if it has no value."""
        if name.isdecimal():
            number = int(name)
            if number == 0:
                return Value(self.script)
            found = self.positional[number - 1] if number <= len(self.positional) else None
            return None if found is None or found.missing == frozenset({name}) else found
        special = {
            "?": str(self.status),
            "#": str(len(self.positional)),
            "$": "1",
            "!": "1",
            "-": "",
        }
        if name in special:
            return Value(special[name])
        if name in ("@", "*"):
            origins = Origins()
            return origins.value(" ".join(origins.add(value) for value in self.positional))
        return self._values.get(name)

    def need(self, name: str, origins: Origins) -> str:
        """Returns the text of a variable.

        A variable without a value is recorded in `asked` and has an empty text.
        """
        value = self.get(name)
        if value is None:
            self.asked[name] = None
            value = Value("", frozenset({name}))
        return origins.add(value)

    def put(self, name: str, value: Value) -> None:
        """Sets a variable, unless the user gave its value."""
        if name not in self.given:
            self._values[name] = value

    def unset(self, name: str) -> None:
        """Unsets a variable, unless the user gave its value."""
        if name not in self.given:
            self._values.pop(name, None)

    def local(self, name: str) -> None:
        """Makes a variable local to the function that is called."""
        if self._scopes and name not in self.given:
            self._scopes[-1].setdefault(name, self._values.pop(name, None))

    @contextmanager
    def call(self, arguments: list[Value]) -> Iterator[None]:
        """Sets the parameters of a function during its call, and restores variables afterwards."""
        outer, self.positional = self.positional, arguments
        self._scopes.append({})
        try:
            yield
        finally:
            self.positional = outer
            for name, old in self._scopes.pop().items():
                if old is None:
                    self._values.pop(name, None)
                else:
                    self._values[name] = old

    @contextmanager
    def copy(self) -> Iterator[None]:
        """Restores all variables at the end, as after a subshell."""
        values, positional = dict(self._values), list(self.positional)
        try:
            yield
        finally:
            self._values, self.positional = values, positional
