"""Functions that find the columns of metrics in a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from sojourn.metrics import base, find, nearest, view
from sojourn.study.errors import StudyError

OF_CLASS = re.compile(r"\bclass\[([^\[\]]+)\](?=\.)")
"""The class of a queue in the name of a metric, written as in `--set`: `class[1:40].loss`."""


def is_of_links(column: str) -> bool:
    """Returns whether a column is a metric of links, and not of flows or of the whole run."""
    metric = find(column)
    return metric is not None and metric.of == "link"


def store_of(column: str, columns: Iterable[str]) -> str | None:
    """Returns the name of the store that a metric concerns; `None` if it concerns no store.

    `columns` are the columns of the table.
    """
    owner = column.partition(".")[0]
    return owner if f"{owner}.acknowledged" in set(columns) else None


def headline(columns: Iterable[str]) -> list[str]:
    """Returns the metrics that matter for most questions; for a store, the store's metrics."""
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
    """Returns the column of the metric `name`.

    The result is the column with this name, otherwise the column of the link `bottleneck`,
    otherwise the only column with this ending for which `measured` is true. Raises `StudyError` if
    there is no such column, or several.
    """
    there = list(columns)
    name = OF_CLASS.sub(r"\1", name)
    if name in there:
        return name
    if bottleneck is not None and f"{bottleneck}.{name}" in there:
        return f"{bottleneck}.{name}"
    alone = name.removeprefix(f"{bottleneck}.")
    if bottleneck is not None and alone in there and is_of_links(alone):
        return alone  # columns of the bottleneck have no prefix
    ending = [c for c in there if c.endswith(f".{name}") and ".state." not in c]
    ending = [c for c in ending if measured(c)] or ending
    if len(ending) == 1:
        return ending[0]
    if ending:
        raise StudyError(f"several columns are named {name}; choose one: {', '.join(ending[:6])}")
    close = nearest(name, there)
    hint = f": did you mean `{close}`?" if close else ""
    if not close:
        plain = sorted({base(c) for c in there})
        hint = f"; available: {', '.join(plain[:12])}" + (", ..." if len(plain) > 12 else "")
    raise StudyError(f"no metric `{name}`{hint}")
