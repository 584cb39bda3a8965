"""Arithmetic of the shell: 64-bit integers, as in C."""

from __future__ import annotations

import re
from collections.abc import Callable

_TOKEN = re.compile(
    r"\s*(0[xX][0-9a-fA-F]+|\d+|[A-Za-z_]\w*|<<=|>>=|\*\*|[-+*/%&|^]=|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^<>=!~?:(),])"
)
_BINARY = [
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"),
    ("+", "-"), ("*", "/", "%"), ("**",),
]  # fmt: skip
_SETS = {"=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^="}
DEPTH = 60


class BadArithmetic(Exception):
    """Raised for an expression that has no value."""


def wrapped(value: int) -> int:
    """Returns a number wrapped around to a signed integer of 64 bits."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def evaluate(text: str, get: Callable[[str], str], put: Callable[[str, str], None]) -> int:
    """Returns the value of an expression; `get` returns and `put` sets the text of a variable."""
    tokens: list[str] = []
    at = 0
    text = text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise BadArithmetic(
                f"`{text[at : at + 20].strip()}` is not allowed here in an arithmetic expression"
            )
        tokens.append(match[1])
        at = match.end()
    if not tokens:
        return 0
    parser = _Parser(tokens, get, put)
    value = parser.comma()
    if parser.at < len(tokens):
        raise BadArithmetic(
            f"`{tokens[parser.at]}` is not allowed here in an arithmetic expression"
        )
    return value


def integer(text: str) -> int:
    """Returns a number as the shell reads it: decimal, hexadecimal after `0x`, octal after `0`."""
    text = text.strip()
    match = re.fullmatch(r"([-+]?)(0[xX][0-9a-fA-F]+|\d+)", text)
    if match is None:
        raise BadArithmetic(f"`{text[:30]}` is not a number")
    if len(text) > 30:
        raise BadArithmetic(f"`{text[:30]}…` has more than 30 characters")
    digits = match[2]
    is_octal = len(digits) > 1 and digits[0] == "0" and digits[1] not in "xX"
    try:
        value = int(digits, 8 if is_octal else 0)
    except ValueError:
        raise BadArithmetic(f"`{text}` is not a number") from None
    return wrapped(-value if match[1] == "-" else value)


class _Parser:
    def __init__(
        self, tokens: list[str], get: Callable[[str], str], put: Callable[[str, str], None]
    ) -> None:
        self.tokens, self.at = tokens, 0
        self.get, self.put = get, put
        self.depth = 0
        self.live = True

    def peek(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else ""

    def take(self) -> str:
        sign = self.peek()
        if not sign:
            raise BadArithmetic("an arithmetic expression ends too early")
        self.at += 1
        return sign

    def value_of(self, name: str) -> int:
        text = self.get(name)
        return integer(text) if text.strip() else 0

    def set(self, name: str, value: int) -> int:
        value = wrapped(value)
        if self.live:
            self.put(name, str(value))
        return value

    def comma(self) -> int:
        value = self.assignment()
        while self.peek() == ",":
            self.take()
            value = self.assignment()
        return value

    def assignment(self) -> int:
        self.depth += 1
        if self.depth > DEPTH:
            raise BadArithmetic("an arithmetic expression is nested too deeply")
        try:
            if re.match(r"[A-Za-z_]", self.peek()) and self.peek(1) in _SETS:
                name, op = self.take(), self.take()
                right = self.assignment()
                left = 0 if op == "=" else self.value_of(name)
                return self.set(
                    name, right if op == "=" else apply(op[:-1], left, right, self.live)
                )
            return self.conditional()
        finally:
            self.depth -= 1

    def conditional(self) -> int:
        test = self.binary(0)
        if self.peek() != "?":
            return test
        self.take()
        live = self.live
        self.live = live and bool(test)
        yes = self.assignment()
        if self.take() != ":":
            raise BadArithmetic("`:` is missing in an arithmetic expression")
        self.live = live and not test
        no = self.assignment()
        self.live = live
        return yes if test else no

    def binary(self, level: int) -> int:
        if level == len(_BINARY):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in _BINARY[level]:
            op = self.take()
            live = self.live
            # The right side has no effect if the left side decides the result.
            if op in ("&&", "||"):
                self.live = live and bool(left) == (op == "&&")
            right = self.binary(level + 1)
            left = apply(op, left, right, self.live)
            self.live = live
        return left

    def unary(self) -> int:
        self.depth += 1
        if self.depth > DEPTH:
            raise BadArithmetic("an arithmetic expression is nested too deeply")
        try:
            return self._unary()
        finally:
            self.depth -= 1

    def _unary(self) -> int:
        sign = self.take()
        if sign in ("++", "--") and re.match(r"[A-Za-z_]", self.peek()):
            name = self.take()
            return self.set(name, self.value_of(name) + (1 if sign == "++" else -1))
        if sign in ("-", "+", "!", "~"):
            value = self.unary()
            return {"-": wrapped(-value), "+": value, "!": int(not value), "~": ~value}[sign]
        if sign == "(":
            value = self.comma()
            if self.take() != ")":
                raise BadArithmetic("`)` is missing in an arithmetic expression")
            return value
        if re.match(r"[A-Za-z_]", sign):
            value = self.value_of(sign)
            if self.peek() in ("++", "--"):
                self.set(sign, value + (1 if self.take() == "++" else -1))
            return value
        return integer(sign)


def apply(op: str, left: int, right: int, live: bool = True) -> int:
    """Returns the value of a binary operation.

    `live` is false for an operation whose value is not used and that therefore must not fail.
    """
    match op:
        case "||" | "&&":
            return int(bool(left or right) if op == "||" else bool(left and right))
        case "/" | "%":
            if right == 0:
                if live:
                    raise BadArithmetic("division by 0")
                return 0
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            return wrapped(quotient if op == "/" else left - quotient * right)
        case "**":
            return wrapped(pow(left, right, 1 << 64)) if right >= 0 else 0
        case "<<" | ">>":
            count = right & 63
            return wrapped(left << count if op == "<<" else left >> count)
        case _:
            return wrapped(_SIMPLE[op](left, right))


_SIMPLE: dict[str, Callable[[int, int], int]] = {
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}
