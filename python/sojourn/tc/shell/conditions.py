"""The conditions of `test`, `[` and `[[`."""

from __future__ import annotations

from sojourn.tc.shell import patterns
from sojourn.tc.shell.arithmetic import BadArithmetic, integer

OF_FILES = set("abcdefghkprstuwxGLNOS")
"""Letters of tests on files, which are assumed to be true."""
_NUMBERS = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}
DEPTH = 50


class BadTest(Exception):
    """Raised for a condition that cannot be read."""


def holds(words: list[str], is_pattern: list[list[tuple[str, bool]]] | None = None) -> bool:
    """Returns whether a condition is true.

    `is_pattern` has each word as a pattern, for `[[`; None for `test` and `[`.
    """
    test = _Test(words, is_pattern)
    found = test.either() if words else False
    if test.at < len(words):
        raise BadTest(f"`{words[test.at]}` is not allowed here in a test")
    return found


class _Test:
    def __init__(self, words: list[str], as_patterns: list[list[tuple[str, bool]]] | None) -> None:
        self.words, self.patterns = words, as_patterns
        self.at = 0
        self.depth = 0

    def peek(self, ahead: int = 0) -> str | None:
        place = self.at + ahead
        return self.words[place] if place < len(self.words) else None

    def either(self) -> bool:
        found = self.both()
        while self.peek() in ("-o", "||"):
            self.at += 1
            found = self.both() or found
        return found

    def both(self) -> bool:
        found = self.one()
        while self.peek() in ("-a", "&&"):
            self.at += 1
            found = self.one() and found
        return found

    def one(self) -> bool:
        self.depth += 1
        if self.depth > DEPTH:
            raise BadTest("a test is nested too deeply")
        try:
            return self._one()
        finally:
            self.depth -= 1

    def _one(self) -> bool:
        word, op, right = self.peek(), self.peek(1), self.peek(2)
        if word is None:
            raise BadTest("a test ends too early")
        if right is not None and (op in ("=", "==", "!=", "<", ">", "=~") or op in _NUMBERS):
            self.at += 3
            return self._compared(word, op or "", right)
        if word == "!" and op is not None:
            self.at += 1
            return not self.one()
        if word == "(" and op is not None:
            self.at += 1
            found = self.either()
            if self.peek() != ")":
                raise BadTest("`)` is missing in a test")
            self.at += 1
            return found
        if (
            op is not None
            and len(word) == 2
            and word[0] == "-"
            and op not in ("-a", "-o", "&&", "||", ")")
        ):
            self.at += 2
            if word in ("-z", "-n"):
                return (op == "") == (word == "-z")
            if word[1] in OF_FILES or word == "-v":
                return True
            raise BadTest(f"`{word}` is not an operator of a test")
        self.at += 1
        return word != ""

    def _compared(self, left: str, op: str, right: str) -> bool:
        if op in _NUMBERS:
            try:
                a, b = integer(left), integer(right)
            except BadArithmetic:
                return False
            return {
                "-eq": a == b, "-ne": a != b, "-lt": a < b, "-le": a <= b, "-gt": a > b,
                "-ge": a >= b,
            }[op]  # fmt: skip
        if op == "=~":
            raise BadTest("`=~` is not supported")
        if op in ("<", ">"):
            return left < right if op == "<" else left > right
        is_same = (
            left == right
            if self.patterns is None
            else patterns.fits(self.patterns[self.at - 1], left)
        )
        return is_same == (op != "!=")
