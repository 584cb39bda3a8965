"""Numbers that the user's own programs print.

A number is found by a regular expression with one group, such as `goodput=([0-9.]+)Mbit/s`, whose
last match counts, or by the path of a key in the last line of JSON, such as `end.rate`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable

from sojourn.metrics import Metric, nearest, registry

UNITS = {
    "bit/s": {"bit/s": 1, "bits/s": 1, "bits/sec": 1, "bit": 1, "B/s": 8, "Bytes/sec": 8},
    "B": {"B": 1, "byte": 1, "bytes": 1, "Byte": 1, "Bytes": 1},
    "s": {"s": 1, "sec": 1, "second": 1, "seconds": 1, "min": 60},
}
"""Units that a program may print, with their factors, by the unit of the metric."""
PREFIXES = {
    "": 1,
    "n": 1e-9,
    "u": 1e-6,
    "\u00b5": 1e-6,
    "\u03bc": 1e-6,
    "m": 1e-3,
    "k": 1e3,
    "K": 1e3,
    "M": 1e6,
}
PREFIXES |= {"G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
"""Prefixes of units, with their factors."""
IPERF = ("Bytes", "Bytes/sec")
"""Names that iperf prints, whose prefixes are powers of 1024."""


class NotReported(ValueError):
    """A program did not print a number."""


def allowed() -> dict[str, Metric]:
    """Returns the metrics that a program can report, by name: all numbers about flows."""
    return {n: m for n, m in registry().items() if m.of == "flow" and m.form == "number"}


def problem(name: str, source: str) -> str:
    """Returns why a metric or the source of its number is not possible; empty if both are."""
    known = allowed()
    if name not in known:
        close = nearest(name, known)
        hint = f"did you mean `{close}`?" if close else "`sojourn list metric` has all names"
        return (
            f"`{name}` is no metric of flows: {hint}; for another number use `score` (more is "
            "better) or `cost` (less is better)"
        )
    return wrong(source)


def wrong(source: str) -> str:
    """Returns why the source of a number is not possible; empty if it is."""
    if "(" not in source:
        return "" if source.strip() else "is empty: give a key of JSON, or a pattern with one group"
    try:
        groups = re.compile(source).groups
    except re.error as error:
        return f"is no regular expression: {error}"
    return "" if groups == 1 else f"must have one group `(...)` around the number, and has {groups}"


def number(source: str, texts: Iterable[str], unit: str = "") -> float:
    """Returns the number in the first of the outputs that has it, in the unit of a metric.

    The unit that a pattern has behind its group is converted; without one, and in JSON, the number
    is in `unit`. If `unit` is none of `UNITS`, the number stays as printed, unless the pattern also
    matches other units: then it is in bit/s, bytes or seconds. Raises `NotReported` with a reason.
    """
    why = ""
    for text in texts:
        try:
            return _matched(source, text, unit) if "(" in source else _of_json(source, text)
        except NotReported as error:
            why = why or str(error)
    raise NotReported(why or "no output")


def _matched(pattern: str, text: str, unit: str) -> float:
    matches = [one for one in re.finditer(pattern, text) if one[1] is not None]
    if not matches:
        raise NotReported(f"no match of `{pattern}`")
    found = matches[-1]
    value = _finite(found[1])
    behind = re.match(r"\s*([A-Za-z\u00b5\u03bc/%]*)", found.string[found.end(1) : found.end()])
    word = behind[1] if behind else ""
    if not word:
        return value
    if unit not in UNITS:
        if word == "%" and unit:
            return value / 100
        begin = found.end(1) + behind.start(1) if behind else found.end(1)
        factors = [f for one in UNITS if word != "min" and (f := _factor(word, one)) is not None]
        return value * factors[0] if factors and _varies(found, begin, word) else value
    factor = _factor(word, unit)
    if factor is None:
        raise NotReported(f"`{word}` in `{pattern}` is no unit of a number in {unit}")
    return value * factor


def _factor(word: str, unit: str) -> float | None:
    """Returns the factor of a printed unit; `None` if it does not measure what `unit` does."""
    for name, factor in UNITS[unit].items():
        prefix = word.removesuffix(name)
        if prefix != word and prefix in PREFIXES:
            binary = prefix + "i" if name in IPERF else prefix
            return factor * PREFIXES.get(binary, PREFIXES[prefix])
    return None


def _varies(found: re.Match[str], begin: int, word: str) -> bool:
    """Returns whether the pattern would also match with another unit in the place of the word."""
    before, after = found.string[:begin], found.string[begin + len(word) :]
    others = {p + name for names in UNITS.values() for name in names for p in PREFIXES} - {word}
    ends = found.end() - len(word)
    matches = ((o, found.re.match(before + o + after, found.start())) for o in sorted(others))
    return any(m and m[1] == found[1] and m.end() == ends + len(o) for o, m in matches)


def _of_json(path: str, text: str) -> float:
    last = next((line for line in reversed(text.splitlines()) if line.strip()), "")
    try:
        value = json.loads(last)
    except (ValueError, RecursionError):
        raise NotReported(f"the last line is no JSON with `{path}`: {last[:100]!r}") from None
    for part in path.split("."):
        if not isinstance(value, dict) or part not in value:
            raise NotReported(f"the last line of JSON has no key `{path}`")
        value = value[part]
    return _finite(value)


def _finite(value: object) -> float:
    if not isinstance(value, bool) and isinstance(value, str | int | float):
        try:
            if math.isfinite(found := float(value)):
                return found
        except (ValueError, OverflowError):
            pass
    raise NotReported(f"{value!r:.100} is no finite number")
