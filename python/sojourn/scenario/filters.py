"""Hosts by name in the filters of queues, for which the engine has numbers.

A number takes as many characters as the name, so that places in the text stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_STATEMENT = re.compile(r"\bfilter\b[^;\n]*")
_HOST = re.compile(r"(?<!\S)((?:src|dst|host)\s+)([A-Za-z_][\w.-]*)(?!\S)")


def numbered(queue: str, hosts: Mapping[str, int]) -> str:
    """Return a queue's description with the numbers of the hosts that its filters name."""
    return _replaced(queue, hosts.get)


def with_any_host(queue: str) -> str:
    """Return a queue's description with a number for every host that its filters name."""
    return _replaced(queue, lambda _name: 0)


def has_hosts(queue: str) -> bool:
    """Return whether filters name hosts."""
    return "filter" in queue and unknown_host(queue) is not None


def unknown_host(queue: str) -> str | None:
    """Return the first name of a host in filters that no number has replaced."""
    for statement in _STATEMENT.finditer(queue):
        if found := _HOST.search(statement[0]):
            return found[2]
    return None


def _replaced(queue: str, number_of: Callable[[str], int | None]) -> str:
    def of_host(found: re.Match[str]) -> str:
        number = number_of(found[2])
        return found[0] if number is None else f"{found[1]}{number:0{len(found[2])}}"

    return _STATEMENT.sub(lambda statement: _HOST.sub(of_host, statement[0]), queue)
