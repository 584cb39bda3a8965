"""Columns by the names that people give them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sojourn.metrics import base, find, nearest, view
from sojourn.study.errors import StudyError


def is_of_links(column: str) -> bool:
    """Return whether a metric is one of links, not of flows or of the run."""
    metric = find(column)
    return metric is not None and metric.of == "link"


def store_of(column: str, columns: Iterable[str]) -> str | None:
    """Return the store that a metric is of, itself or one kind of its requests."""
    owner = column.partition(".")[0]
    return owner if f"{owner}.acknowledged" in set(columns) else None


def headline(columns: Iterable[str]) -> list[str]:
    """Return the metrics that answer what a study most likely asks, among those measured."""
    there = list(columns)
    stores = [c.removesuffix(".acknowledged") for c in there if c.endswith(".acknowledged")]
    named = next((s for s in stores if "." not in s), None)
    if named is None:
        return list(view("headline"))
    return [f"{named}.{metric}" for metric in view("headline.store")]


def resolve(
    name: str,
    columns: Iterable[str],
    bottleneck: str | None = None,
    measured: Callable[[str], bool] = lambda _: True,
) -> str:
    """Return the column meant by a metric's name.

    The name itself; else the bottleneck link's; else the one column that ends so and has values.
    """
    there = list(columns)
    if name in there:
        return name
    if bottleneck is not None and f"{bottleneck}.{name}" in there:
        return f"{bottleneck}.{name}"
    alone = name.removeprefix(f"{bottleneck}.")
    if bottleneck is not None and alone in there and is_of_links(alone):
        return alone  # the bottleneck's columns stand without its name
    ending = [c for c in there if c.endswith(f".{name}") and ".state." not in c]
    ending = [c for c in ending if measured(c)] or ending
    if len(ending) == 1:
        return ending[0]
    if ending:
        raise StudyError(f"which {name}? There are {', '.join(ending[:6])}")
    close = nearest(name, there)
    hint = f": did you mean `{close}`?" if close else ""
    if not close:
        plain = sorted({base(c) for c in there})
        hint = f"; there are {', '.join(plain[:12])}" + (", ..." if len(plain) > 12 else "")
    raise StudyError(f"no metric `{name}`{hint}")
