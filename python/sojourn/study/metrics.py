"""What is known about metrics: unit, definition, and which direction is better."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Literal

from sojourn.study.errors import StudyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Direction = Literal["lower", "higher"]

_LOWER = frozenset(
    {
        *("sojourn", "last_sojourn", "delay", "rtt", "srtt", "fct", "page", "jitter"),
        *("queue", "backlog"),
        *("loss", "udp_loss", "tcp_loss", "packet_loss", "line_losses", "loss_events"),
        *("consecutive_loss", "drops", "drops_early", "drops_forced", "drops_overflow"),
        *("marks", "mark_share", "retransmissions", "timeouts", "recoveries", "unfinished"),
    }
)
_HIGHER = frozenset(
    {
        *("goodput", "udp_goodput", "throughput", "utilisation", "bytes"),
        *("jain", "mos", "mos_min", "finished", "pages", "objects"),
    }
)
_STATISTICS = ("mean", "sd", "p50", "p95", "p99", "p999", "max")


def base(column: str) -> str:
    """Return the metric that a column shows: what follows the last point of its name."""
    return column.rpartition(".")[2]


def direction(column: str) -> Direction | None:
    """Return whether less or more of a metric is better; None where neither can be said."""
    if ".state." in column:
        return None
    name = base(column)
    stem, _, last = name.rpartition("_")
    for candidate in (name, stem if last in _STATISTICS else name):
        if candidate in _LOWER:
            return "lower"
        if candidate in _HIGHER:
            return "higher"
    return None


@cache
def _registry() -> Mapping[str, tuple[str, str]]:
    from sojourn import _core

    return {
        m["name"]: (m["unit"], m["definition"]) for m in json.loads(_core.describe())["metrics"]
    }


def definition(column: str) -> str | None:
    """Return what the metric means, in a sentence."""
    entry = _registry().get(base(column))
    return entry[1] if entry else None


def unit(column: str) -> str:
    """Return the metric's unit as the registry has it."""
    entry = _registry().get(base(column))
    return entry[0] if entry else ""


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate most like the word, if any is like it at all."""
    from sojourn import _core

    # A metric of a link may be meant by its last part alone.
    by_word = {base(c): c for c in candidates}
    by_word |= {c: c for c in by_word.values()}
    close = _core.nearest(word, list(by_word))
    return by_word[close] if close is not None else None


def resolve(name: str, columns: Iterable[str], bottleneck: str | None = None) -> str:
    """Return the column meant by a metric's name.

    The name itself; else the bottleneck link's; else the one column that ends so.
    """
    there = list(columns)
    if name in there:
        return name
    if bottleneck is not None and f"{bottleneck}.{name}" in there:
        return f"{bottleneck}.{name}"
    ending = [c for c in there if c.endswith(f".{name}") and ".state." not in c]
    if len(ending) == 1:
        return ending[0]
    if ending:
        raise StudyError(f"which {name}? There are {', '.join(ending[:6])}")
    close = nearest(name, there)
    hint = f": did you mean {close!r}?" if close else ""
    if not close:
        plain = sorted({base(c) for c in there})
        hint = f"; there are {', '.join(plain[:12])}" + (", ..." if len(plain) > 12 else "")
    raise StudyError(f"no metric {name!r}{hint}")


def known() -> tuple[str, ...]:
    """Return the names of all metrics."""
    return tuple(_registry())
