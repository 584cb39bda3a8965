"""Metrics by the names that people give them, and those that a scenario's runs have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from sojourn import _core
from sojourn.metrics import base, find, registry, view
from sojourn.study.errors import StudyError

_STATISTICS = ("mean", "sd", "p50", "p95", "p99", "p999", "max")
STATISTIC = "|".join(_STATISTICS)
"""Pattern of a statistic's name."""


def spelled(text: str) -> str:
    """Return a metric's name from the way people say it: `p95 sojourn` is `sojourn_p95`."""
    words = text.split()
    if len(words) == 2 and words[0] in _STATISTICS:
        return f"{words[1]}_{words[0]}"
    return text


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


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate most like the word, if any is like it at all."""
    # A metric of a link may be meant by its last part alone.
    by_word = {base(c): c for c in candidates}
    by_word |= {c: c for c in by_word.values()}
    close = _core.nearest(word, list(by_word))
    return by_word[close] if close is not None else None


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


def _expect_store(metric: str, stores: Sequence[str]) -> None:
    owner, _, name = metric.rpartition(".")
    if owner not in stores:
        which = f"write {stores[0]}.{name}" if stores else "and there is none"
        raise StudyError(f"{metric}: {name} is measured at stores, {which}")


def _expect_balancer(metric: str, balancers: Sequence[str]) -> None:
    owner, _, name = metric.rpartition(".")
    if owner not in balancers and (owner or len(balancers) != 1):
        which = f"such as {balancers[0]}.{name}" if balancers else "and there is none"
        raise StudyError(f"{metric}: {name} is measured at balancers, {which}")


def expect(
    metric: str,
    links: Sequence[str],
    groups: Mapping[str, str],
    media: Sequence[str] = (),
    stores: Sequence[str] = (),
    balancers: Sequence[str] = (),
) -> None:
    """Refuse a metric that no run has with these links, groups (and their applications), media.

    `stores` are a store, its kinds of requests and its nodes, as metrics have them in front.
    """
    owner, _, name = metric.rpartition(".")
    entry = registry().get(name)
    if entry is None:
        close = nearest(name, registry())
        meant = f"{owner}.{close}" if owner else close
        hint = f": did you mean `{meant}`?" if close else "; `sojourn list metric` shows all"
        raise StudyError(f"no metric `{metric}`{hint}")
    parts = [p for s in _STATISTICS if (p := f"{name}_{s}") in registry()]
    if parts:
        raise StudyError(f"{metric} is not one number: choose {', '.join(parts)}")
    if entry.of in ("series", "text", "monitor", "server") or entry.form != "number":
        raise StudyError(f"{metric} is no metric of a whole run")
    having = [g for g, app in groups.items() if not entry.apps or app in entry.apps]
    if entry.of == "store" or (owner in stores[:1] and "store" in entry.also_of):
        _expect_store(metric, stores)
        return
    if entry.of == "balancer":
        _expect_balancer(metric, balancers)
        return
    if owner and owner not in [*links, *groups, *media]:
        owners = [*links, *groups, *media]
        close = nearest(owner, owners)
        hint = f": did you mean {close}.{name}?" if close else f"; there are {', '.join(owners)}"
        raise StudyError(f"{metric}: no link or group of flows `{owner}`{hint}")
    if entry.of == "run" and owner:
        raise StudyError(f"{metric}: {name} is of the whole run; write {name}")
    if entry.of == "link" and owner and owner not in links:
        raise StudyError(f"{metric}: {name} is measured at links, such as {links[0]}.{name}")
    if entry.of == "medium" and (owner not in media if owner else len(media) != 1):
        which = f"such as {media[0]}.{name}" if media else "and there is none"
        raise StudyError(f"{metric}: {name} is measured at shared media, {which}")
    if entry.of == "flow" and (owner or "run" not in entry.also_of):
        which = ", ".join(f"{g}.{name}" for g in having[:6])
        if not having:
            apps = " and ".join(entry.apps)
            raise StudyError(f"{metric}: only {apps} flows have that, and there are none")
        if owner and owner not in having:
            raise StudyError(f"{metric}: `{owner}` has no {name}; there is {which}")
        if not owner and len(having) > 1:
            raise StudyError(f"which {name}? There are {which}")
