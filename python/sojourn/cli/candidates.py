"""Words that complete an argument or the value of an option in a shell."""

from __future__ import annotations

import json
from collections.abc import Iterable

from sojourn import engines as known_engines
from sojourn._core import describe
from sojourn.settings import Complete


def _named(kind: str) -> list[tuple[str, str]]:
    found = json.loads(describe())[kind]
    return [(one["name"], one.get("summary") or one.get("definition", "")) for one in found]


def starting(words: Iterable[tuple[str, str]], begin: str) -> list[tuple[str, str]]:
    """Returns the pairs of word and meaning whose word begins with `begin`."""
    return [(word, meaning) for word, meaning in words if word.startswith(begin)]


def queues(incomplete: str) -> list[tuple[str, str]]:
    """Returns the queue disciplines that begin with a prefix."""
    return starting(_named("queue"), incomplete)


def policies(incomplete: str) -> list[tuple[str, str]]:
    """Returns the balancing policies that begin with a prefix."""
    return starting(_named("balancer"), incomplete)


def metrics(incomplete: str) -> list[tuple[str, str]]:
    """Returns the metrics that begin with a prefix."""
    return starting(_named("metrics"), incomplete)


def engines(incomplete: str) -> list[str]:
    """Returns the completions of a list of engines whose last item is a prefix."""
    before, _, last = incomplete.rpartition(",")
    begin = f"{before}," if before else ""
    return [begin + name for name in known_engines.KINDS if name.startswith(last)]


BY_KIND: dict[str, Complete] = {
    "engines": engines,
    "metrics": metrics,
    "policies": policies,
    "queues": queues,
}
"""The functions that complete a kind of words, by the kind's name in an option."""
