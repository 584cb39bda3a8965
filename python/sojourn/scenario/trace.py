"""Capacity traces of links: `trace FILE` in place of a rate, in Mahimahi's format.

A line of the file is a time in whole milliseconds at which a packet of 1500 bytes may be sent.
Times must not decrease. After its last time the trace restarts, as in Mahimahi's `mm-link`
(Netravali et al., USENIX ATC 2015).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sojourn.plan.queries import trace_rate
from sojourn.scenario import files, limits

Json = dict[str, Any]

WORD = "trace"
BYTES = 1500
"""Number of bytes that may be sent at each time of a trace."""
LAST_MS = 2**32 - 1

_FILE = re.compile(rf"(^\s*{WORD}\s+){files.FILE}(?=\s*$)")
_NUMBER = re.compile(rb"[0-9]{1,10}")


class TraceProblem(Exception):
    """Reason why a trace cannot be used."""


def is_trace(text: str) -> bool:
    """Returns whether a rate's text names a trace."""
    return text.split()[:1] == [WORD]


def file_of(text: str) -> str:
    """Returns the name of the file in the text of a trace; raises `TraceProblem`."""
    match = _FILE.match(text)
    if match is None or not match[2].strip('"'):
        raise TraceProblem('`trace` takes exactly one file, such as "trace lte.up"')
    return match[2].strip('"')


def loaded(text: str, read: files.Read) -> Json:
    """Returns a trace as in the plan, with the times that its file lists; raises `TraceProblem`."""
    name = file_of(text)
    try:
        data = read(name, limits.TRACE_BYTES)
        return {"opportunities": _times(data), "bytes": BYTES}
    except OSError as error:
        raise TraceProblem(f"`{name}` cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise TraceProblem(f"`{name}`: {error}") from None


def mean_rate(params: Json) -> int:
    """Returns the rate of a link in bit/s; for a link with a trace, the mean rate."""
    if "trace" not in params:
        return int(params["rate"])
    given = params["trace"]
    return trace_rate(given["opportunities"], given["bytes"])


def place(text: str) -> tuple[int, int]:
    """Returns the start and end of the file's name in the text of a trace."""
    return files.place(_FILE, text)


def renamed(text: str, rename: Callable[[str], str]) -> str:
    """Returns the text of a trace with its file renamed; returns other rates unchanged."""
    return files.renamed(_FILE, text, rename) if is_trace(text) else text


def _times(data: bytes) -> list[int]:
    times: list[int] = []
    before = 0
    for number, line in enumerate(data.splitlines(), 1):
        word = line.strip()
        if not word:
            continue
        if not _NUMBER.fullmatch(word) or int(word) > LAST_MS:
            found = word[:40].decode("utf-8", "replace")
            raise ValueError(
                f"line {number}: expected a time in whole milliseconds, at most {LAST_MS}; "
                f"found `{found}`"
            )
        time = int(word)
        if time < before:
            raise ValueError(
                f"line {number}: times must not decrease, but {time} ms comes after {before} ms"
            )
        times.append(time)
        before = time
        if len(times) > limits.OPPORTUNITIES:
            raise ValueError(f"more than {limits.OPPORTUNITIES} lines")
    if before == 0:
        raise ValueError("the file needs at least one time above 0 ms")
    return times
