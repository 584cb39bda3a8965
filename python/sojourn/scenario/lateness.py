"""Measured lateness of hosts: `measured(FILE)`, in the histogram format of `cyclictest`.

A line of the file is a time in whole microseconds and its count. Without a count, the time counts
once; several counts, one for each processor, are added. Lines that begin with `#` are comments.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from sojourn.data import Json, Object
from sojourn.scenario import files, limits

WORD = "host"
SPANS = ("late", "stall", "every")
"""Keys of the lateness whose values may be `measured(FILE)`."""
LONGEST_US = 60_000_000
MOST = 100_000
"""Largest number of distinct times in a file, as in the engine."""
LARGEST_COUNT = 10**12

_FILE = re.compile(r'(?P<quote>"?)measured\((?P<file>[^()"]+)\)(?P=quote)')
_NUMBER = re.compile(rb"[0-9]{1,13}")


class LatenessProblem(Exception):
    """Reason why a file of measured lateness cannot be used."""


def loaded(parsed: Object, read: files.Read) -> Object:
    """Returns the lateness of a host with the contents of its files; raises `LatenessProblem`."""
    return {key: _span(value, read) if key in SPANS else value for key, value in parsed.items()}


def _span(value: Json, read: files.Read) -> Json:
    if not isinstance(value, dict) or "file" not in value:
        return value
    name = value["file"]
    try:
        return {"measured": _counts(read(name, limits.MEASURED_BYTES))}
    except OSError as error:
        raise LatenessProblem(f"`{name}` cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise LatenessProblem(f"`{name}`: {error}") from None


def place(text: str) -> tuple[int, int]:
    """Returns the start and end of the first file name in the text of a host's lateness."""
    match = _FILE.search(text)
    return match.span("file") if match else (0, len(text))


def renamed(text: str, rename: Callable[[str], str]) -> str:
    """Returns the text of a host's lateness with its files renamed."""

    def other(match: re.Match[str]) -> str:
        span = f"measured({rename(match['file'])})"
        return f'"{span}"' if re.search(r"\s", span) else span

    return _FILE.sub(other, text)


def _counts(data: bytes) -> list[list[int]]:
    """Returns pairs of a time in ns and its count, sorted by time."""
    found: Counter[int] = Counter()
    for number, line in enumerate(data.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith(b"#"):
            continue
        if not all(_NUMBER.fullmatch(word) for word in words):
            text = line[:40].decode("utf-8", "replace")
            raise ValueError(
                f"line {number}: expected a time in whole microseconds, and optional counts; "
                f"found `{text}`"
            )
        time, *counts = map(int, words)
        if time > LONGEST_US:
            raise ValueError(f"line {number}: {time} us exceeds the maximum of one minute")
        found[time * 1000] += sum(counts) if counts else 1
        if found[time * 1000] > LARGEST_COUNT:
            raise ValueError(f"line {number}: {time} us occurs more than {LARGEST_COUNT} times")
    kept = sorted((time, count) for time, count in found.items() if count)
    if not kept:
        raise ValueError("the file needs at least one time with a count above 0")
    if len(kept) > MOST:
        raise ValueError(f"the file has more than {MOST} distinct times")
    return [list(pair) for pair in kept]
