"""Replaces names of hosts in the filters of queues by the numbers that the engine uses.

A number is padded with zeros to the length of the name, so that positions in the text do not
change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_STATEMENT = re.compile(r"\bfilter\b[^;\n]*")
_HOST = re.compile(r"(?<!\S)((?:src|dst|host)\s+)([A-Za-z_][\w.-]*)(?!\S)")


def numbered(queue: str, hosts: Mapping[str, int]) -> str:
    """Returns a queue's description with the names of hosts in its filters replaced by numbers."""
    return _replaced(queue, hosts.get)


def with_any_host(queue: str) -> str:
    """Returns a queue's description with every name of a host in its filters replaced by 0."""
    return _replaced(queue, lambda _name: 0)


def has_hosts(queue: str) -> bool:
    """Returns whether the filters of a queue contain names of hosts."""
    return "filter" in queue and unknown_host(queue) is not None


def unknown_host(queue: str) -> str | None:
    """Returns the first name of a host in a queue's filters; None if all hosts are numbers."""
    for statement in _STATEMENT.finditer(queue):
        if found := _HOST.search(statement[0]):
            return found[2]
    return None


def _replaced(queue: str, number_of: Callable[[str], int | None]) -> str:
    def of_host(found: re.Match[str]) -> str:
        number = number_of(found[2])
        return found[0] if number is None else f"{found[1]}{number:0{len(found[2])}}"

    return _STATEMENT.sub(lambda statement: _HOST.sub(of_host, statement[0]), queue)
