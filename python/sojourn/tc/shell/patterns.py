"""Patterns of the shell: `*`, `?`, `[...]`."""

from __future__ import annotations

from collections.abc import Sequence

Pattern = Sequence[tuple[str, bool]]
"""Characters of a pattern, each with true if the character is literal."""


def quoted(text: str) -> list[tuple[str, bool]]:
    """Returns a text as a pattern in which all characters are literal."""
    return [(char, True) for char in text]


def unquoted(text: str) -> list[tuple[str, bool]]:
    """Returns a text as a pattern; a character after a backslash is literal."""
    found: list[tuple[str, bool]] = []
    chars = iter(text)
    for char in chars:
        if char == "\\":
            found.append((next(chars, "\\"), True))
        else:
            found.append((char, char not in "*?["))
    return found


def fits(pattern: Pattern, text: str) -> bool:
    """Returns whether a pattern matches the whole text.

    The time is at most proportional to the product of both lengths.
    """
    parts = _parts(pattern)
    at = place = 0
    star, mark = -1, 0
    while place < len(text):
        if at < len(parts) and parts[at] is not None and _one(parts[at], text[place]):
            at, place = at + 1, place + 1
        elif at < len(parts) and parts[at] is None:
            star, mark = at, place
            at += 1
        elif star >= 0:
            mark += 1
            at, place = star + 1, mark
        else:
            return False
    return all(part is None for part in parts[at:])


def _one(part: str | tuple[bool, str] | None, char: str) -> bool:
    if isinstance(part, tuple):
        return (char in part[1]) != part[0]
    return part in ("", char)


def _parts(pattern: Pattern) -> list[str | tuple[bool, str] | None]:
    """Returns the parts of a pattern.

    None is `*`, an empty text is `?`, another text is a character, and a pair is a class: whether
    it is negated, and its characters.
    """
    parts: list[str | tuple[bool, str] | None] = []
    at = 0
    while at < len(pattern):
        char, literal = pattern[at]
        at += 1
        if literal:
            parts.append(char)
        elif char == "*":
            parts.append(None)
        elif char == "?":
            parts.append("")
        else:
            end = _end(pattern, at)
            if end < 0:
                parts.append(char)
                continue
            inner = "".join(c for c, _ in pattern[at:end])
            parts.append((inner[:1] in ("!", "^"), _members(inner.lstrip("!^"))))
            at = end + 1
    return parts


def _end(pattern: Pattern, at: int) -> int:
    """Returns the position of the `]` that ends the members which begin at `at`; -1 without one."""
    n = at + 1
    inner = pattern[at][0] == "[" if at < len(pattern) else False
    while n < len(pattern):
        if pattern[n][0] == "]":
            if not inner or pattern[n - 1][0] != ":":
                return n
            inner = False
        elif pattern[n][0] == "[":
            inner = True
        n += 1
    return -1


_CLASSES = {
    "[:digit:]": "0-9",
    "[:alpha:]": "a-zA-Z",
    "[:alnum:]": "a-zA-Z0-9",
    "[:space:]": " \t\n",
    "[:upper:]": "A-Z",
    "[:lower:]": "a-z",
}


def _members(text: str) -> str:
    """Returns all characters of a class such as `0-9a`."""
    for name, members in _CLASSES.items():
        text = text.replace(name, members)
    found = ""
    at = 0
    while at < len(text):
        if text[at + 1 : at + 2] == "-" and at + 2 < len(text):
            first, last = ord(text[at]), min(ord(text[at + 2]), ord(text[at]) + 255)
            found += "".join(map(chr, range(first, last + 1)))
            at += 3
        else:
            found += text[at]
            at += 1
    return found
