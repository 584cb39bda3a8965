"""The variables of a script, and what is known of their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

LENGTH = 1 << 20
"""Characters of a value at most."""
UNKNOWN = "?"
"""What stands for a part of a text that is not known."""


class TooMuch(Exception):
    """A script that goes on too long, or makes too much."""


class Exit(Exception):
    """The script ends."""


class Return(Exception):
    """A function ends."""


class Leave(Exception):
    """A loop ends, or its round."""

    def __init__(self, loops: int, *, goes_on: bool) -> None:
        super().__init__()
        self.loops, self.goes_on = loops, goes_on


@dataclass(frozen=True, slots=True)
class Value:
    """A text, and what it was made of that has no value or is not known."""

    text: str
    missing: frozenset[str] = frozenset()
    """Variables without a value."""
    unknown: frozenset[str] = frozenset()
    """Commands whose output is not known."""


@dataclass(slots=True)
class Origins:
    """What texts were made of, while they are made."""

    missing: dict[str, None] = field(default_factory=dict)
    unknown: dict[str, None] = field(default_factory=dict)

    def add(self, value: Value) -> str:
        """Takes note of a value's origins; its text."""
        self.missing |= dict.fromkeys(sorted(value.missing))
        self.unknown |= dict.fromkeys(sorted(value.unknown))
        return value.text

    def value(self, text: str) -> Value:
        """A text made of all these."""
        if len(text) > LENGTH:
            raise TooMuch(f"a value is longer than {LENGTH} characters")
        return Value(text, frozenset(self.missing), frozenset(self.unknown))


class Variables:
    """Variables by name; those that a user gives hold, as on the command line of `make`."""

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
        """Names without a value that were needed, in their order."""

    def get(self, name: str) -> Value | None:
        """The value of a variable or parameter; None if it has none."""
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
        """The text of a variable, empty if it has no value; takes note of that."""
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
        """Takes a variable away, unless the user gave its value."""
        if name not in self.given:
            self._values.pop(name, None)

    def local(self, name: str) -> None:
        """Makes a variable one of the function that runs."""
        if self._scopes and name not in self.given:
            self._scopes[-1].setdefault(name, self._values.pop(name, None))

    @contextmanager
    def call(self, arguments: list[Value]) -> Iterator[None]:
        """A function's own parameters and variables, while it runs."""
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
        """Changes within are lost afterwards, as in a subshell."""
        values, positional = dict(self._values), list(self.positional)
        try:
            yield
        finally:
            self._values, self.positional = values, positional
