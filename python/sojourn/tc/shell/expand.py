"""Expansion of words: parameters, substitutions, arithmetic, splitting into fields."""

from __future__ import annotations

from collections.abc import Callable

from sojourn.tc.shell import arithmetic, patterns
from sojourn.tc.shell.nodes import (
    LENGTH,
    Arithmetic,
    List,
    Literal,
    Parameter,
    Substitution,
    Word,
)
from sojourn.tc.shell.values import UNKNOWN, Origins, Value, Variables

Run = Callable[[List, Origins], str]
"""Function that runs a script, records the origins of its output, and returns the output."""
CUT = 1024
"""Largest number of characters of a value from which a pattern can be removed."""


class Expander:
    """Expands words with the values of variables; `run` runs command substitutions."""

    def __init__(self, variables: Variables, run: Run) -> None:
        self.variables = variables
        self._run = run

    def fields(self, words: list[Word], origins: Origins) -> list[Value]:
        """Returns the fields of a command's words, each with its origins.

        `origins` gets the origins of all fields.
        """
        found: list[Value] = []
        for word in words:
            own = Origins()
            found += [own.value(text) for text in self._fields(word, own)]
            origins.missing |= own.missing
            origins.unknown |= own.unknown
        return found

    def text(self, word: Word, origins: Origins) -> str:
        """Returns the text of a word that is not split into fields, as in an assignment."""
        return "".join(self._piece(piece, origins) for piece in word.pieces)

    def value(self, word: Word) -> Value:
        """Returns the text of a word that is not split into fields, with its origins."""
        origins = Origins()
        return origins.value(self.text(word, origins))

    def pattern(self, word: Word, origins: Origins) -> list[tuple[str, bool]]:
        """Returns a word as a pattern; its quoted parts are literal."""
        found: list[tuple[str, bool]] = []
        for piece in word.pieces:
            text = self._piece(piece, origins)
            found += patterns.quoted(text) if piece.quoted else patterns.unquoted(text)
        return found

    def number(self, word: Word, origins: Origins) -> int:
        """Returns the value of an arithmetic expression; 0 if it contains an unknown output."""
        text = self.text(word, origins)
        if origins.unknown:
            return 0

        def get(name: str) -> str:
            return self.variables.need(name, origins)

        def put(name: str, text: str) -> None:
            # In `n = n + 1`, an unset `n` counts as 0, and the assignment gives it a value.
            origins.missing.pop(name, None)
            self.variables.put(name, origins.value(text))

        return arithmetic.evaluate(text, get, put)

    def _fields(self, word: Word, origins: Origins) -> list[str]:
        found: list[str] = []
        current: str | None = None
        for piece in word.pieces:
            if isinstance(piece, Parameter) and piece.name == "@" and not piece.op:
                parts = [origins.add(value) for value in self.variables.positional]
                if not piece.quoted:
                    parts = [field for part in parts for field in part.split()]
                if parts:
                    found.append((current or "") + parts[0])
                    found += parts[1:]
                    current = found.pop()
                continue
            text = self._piece(piece, origins)
            if piece.quoted or isinstance(piece, Literal):
                current = (current or "") + text
                continue
            parts = text.split()
            if text[:1].isspace() and current is not None:
                found.append(current)
                current = None
            if parts:
                found += [(current or "") + parts[0], *parts[1:]]
                current = found.pop()
            if text[-1:].isspace() and current is not None:
                found.append(current)
                current = None
        return found if current is None else [*found, current]

    def _piece(
        self, piece: Literal | Parameter | Substitution | Arithmetic, origins: Origins
    ) -> str:
        match piece:
            case Literal():
                return piece.text
            case Parameter():
                return self._parameter(piece, origins)
            case Substitution():
                return self._substitution(piece, origins)
            case Arithmetic():
                return self._arithmetic(piece, origins)

    def _substitution(self, piece: Substitution, origins: Origins) -> str:
        text = " ".join(piece.text.split())
        if text in self.variables.given:
            return self.variables.given[text]
        inner = Origins()
        output = self._run(piece.script, inner)
        origins.missing |= inner.missing
        if inner.unknown:
            origins.unknown[f"$({text})"] = None
            return UNKNOWN
        return output.rstrip("\n")

    def _arithmetic(self, piece: Arithmetic, origins: Origins) -> str:
        inner = Origins()
        number = self.number(piece.word, inner)
        origins.missing |= inner.missing
        origins.unknown |= inner.unknown
        return UNKNOWN if inner.unknown else str(number)

    def _parameter(self, piece: Parameter, origins: Origins) -> str:
        name, op, variables = piece.name, piece.op, self.variables
        if not op:
            return variables.need(name, origins)
        if op == LENGTH:
            return str(len(variables.need(name, origins)))
        assert piece.word is not None
        value = variables.get(name)
        if op.lstrip(":") in ("-", "=", "?", "+"):
            is_there = value is not None and (op[0] != ":" or value.text != "")
            if op.endswith("+"):
                return self.text(piece.word, origins) if is_there else ""
            if value is not None and is_there:
                return origins.add(value)
            if op.endswith("?"):
                return variables.need(name, origins)
            text = self.text(piece.word, origins)
            if op.endswith("="):
                variables.put(name, origins.value(text))
            return text
        text = variables.need(name, origins)
        if op == ":":
            return self._slice(text, piece.word, origins)
        if op[0] in "^,":
            change = str.upper if op[0] == "^" else str.lower
            return change(text) if len(op) == 2 else change(text[:1]) + text[1:]
        if len(text) > CUT:
            raise arithmetic.BadArithmetic(
                f"a pattern can be removed only from values of at most {CUT} characters"
            )
        if op[0] == "/":
            return self._replaced(text, op, piece.word, origins)
        pattern = self.pattern(piece.word, origins)
        ends = range(len(text) + 1)
        if op[0] == "#":
            order = reversed(ends) if op == "##" else iter(ends)
            end = next((n for n in order if patterns.fits(pattern, text[:n])), 0)
            return text[end:]
        order = iter(ends) if op == "%%" else reversed(ends)
        begin = next((n for n in order if patterns.fits(pattern, text[n:])), len(text))
        return text[:begin]

    def _slice(self, text: str, word: Word, origins: Origins) -> str:
        first, _, count = self.text(word, origins).partition(":")
        begin = arithmetic.integer(first) if first.strip() else 0
        rest = text[begin:]
        return rest[: arithmetic.integer(count)] if count.strip() else rest

    def _replaced(self, text: str, op: str, word: Word, origins: Origins) -> str:
        old, _, new = self.text(word, origins).partition("/")
        if not old:
            return text
        return text.replace(old, new) if op == "//" else text.replace(old, new, 1)
