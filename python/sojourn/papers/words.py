"""The margins of all studies: what the papers' words mean, and how near a stated number is met.

`words.toml` has the meanings. A region of a claim is written as one of these:

- a word, such as `"higher"`, for a ratio;
- `{ about = x }`, a number, or `{ about = [x, y] }`, numbers from x to y;
- `{ percent = p }`, a ratio that is p per cent above 1 (below 1 if p is negative);
- `{ times = f }`, a factor, such as 0.5 for *half as much*;
- `{ proportional = [x, y] }`, the ratio of the values at y and at x, if they are proportional;
- `{ share = "equal" }`, the share a / (a + b) for a region of the ratio a / b;
- two limits that the paper states, as numbers or fractions such as `"1/3"`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path

from sojourn.stats import ClaimError

FILE = Path(__file__).with_name("words.toml")
"""The file with the meanings."""
PLAIN = 1.5
"""Smallest factor that is stated as a factor; a smaller one is stated in per cent."""


@cache
def meanings(table: str) -> Mapping[str, object]:
    """Returns a table of `words.toml`."""
    found: dict[str, Mapping[str, object]] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return found[table]


def region(value: object) -> tuple[float, float]:
    """Returns the limits of a region; raises `ClaimError` if it is none."""
    numbers = meanings("numbers")
    match value:
        case str():
            return region(_meaning("regions", value))
        case [low, high]:
            return number(low), number(high)
        case {"about": x}:
            ends = [number(one) for one in (x if isinstance(x, tuple | list) else (x, x))]
            reach = number(numbers["about"])
            return ends[0] - abs(ends[0]) * reach, ends[-1] + abs(ends[-1]) * reach
        case {"percent": x}:
            match numbers["percent"]:
                case {"share": share, "least": least, "most": most}:
                    reach = min(max(abs(number(x)) * number(share), number(least)), number(most))
                    return 1 + (number(x) - reach) / 100, 1 + (number(x) + reach) / 100
        case {"times": x} if max(number(x), 1 / number(x)) >= PLAIN:
            return _within(number(x), number(numbers["times"]))
        case {"proportional": [x, y]}:
            return _within(number(y) / number(x), number(numbers["proportional"]))
        case {"share": x}:
            low, high = region(x)
            return max(low, 0) / (1 + max(low, 0)), 1 - 1 / (1 + high)
    raise ClaimError(f"{value!r} is no region")


def margin(value: object) -> object:
    """Returns the number of a margin that is given as a word."""
    return _meaning("margins", value) if isinstance(value, str) else value


def number(limit: object) -> float:
    """Returns a number that is given as a number or a fraction."""
    match limit:
        case int() | float():
            return limit
        case str():
            over, _, under = limit.partition("/")
            return float(Fraction(over) / Fraction(under or 1))
    raise ClaimError(f"a limit is a number or a fraction, not {limit!r}")


def _within(x: float, factor: float) -> tuple[float, float]:
    return x / factor, x * factor


def _meaning(table: str, word: str) -> object:
    known = meanings(table)
    if word not in known:
        raise ClaimError(f"no word {word!r} in {FILE.name}; existing: {', '.join(known)}")
    return known[word]
