"""The question of a scenario: metric, conditions, queues and smallest difference of interest."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.metrics import (
    STATISTICS,
    Interest,
    Metric,
    base,
    direction,
    find,
    nearest,
    registry,
    spelled,
    unit,
    views,
)
from sojourn.plan.queries import crosses, store_in
from sojourn.scenario.condition import Condition, parse, smallest
from sojourn.scenario.errors import Problem, QuestionError, ScenarioError
from sojourn.scenario.models import Question
from sojourn.scenario.source import Source

if TYPE_CHECKING:
    from sojourn.plan.parts import Bottleneck
    from sojourn.plan.plan import Plan

BY = "sojourn_p95"
"""Default metric of a scenario without a store or an interactive group at the bottleneck."""
SUBJECT_TO = "goodput >= 95% of best"
UDP_SUBJECT_TO = "udp_goodput >= 95% of best"
"""Usual condition of a plan without TCP, whose `goodput` is always 0."""


def check(question: Question, plan: Plan, source: Source) -> None:
    """Raises `ScenarioError` with all mistakes of a question that does not fit the plan."""
    problems: list[Problem] = []

    def attempt(key: str, ask: Callable[[], object]) -> bool:
        try:
            ask()
        except QuestionError as error:
            problems.append(source.problem(("question", key), str(error)))
            return False
        return True

    by = question.by
    asked = by is not None and attempt("by", lambda: decides(plan, by))
    if question.subject_to is not None:
        attempt("subject_to", lambda: sensible(plan, question.subject_to or ""))
    if question.smallest is not None:
        if asked and by is not None:
            attempt("smallest", lambda: interest(by, question.smallest))
        elif by is None:
            problems.append(
                source.problem(
                    ("question", "smallest"),
                    "is the smallest difference of the metric `by`: set `by` too",
                )
            )
    if len(set(question.queues)) < len(question.queues):
        problems.append(source.problem(("question", "queues"), "lists a queue twice: remove one"))
    if problems:
        raise ScenarioError(problems)


def interest(by: str, text: str | None) -> Interest:
    """Returns a metric's smallest difference of interest: from `text` if given, or the registry."""
    metric = find(by)
    if metric is None:
        raise QuestionError(f"{by}: this metric has no smallest difference of interest")
    return metric.interest if text is None else smallest(text, metric)


def candidates(plan: Plan) -> list[str]:
    """Returns the metrics among which the default metric of the question is selected.

    The metrics belong to the groups of one kind whose packets cross the bottleneck. The kind is the
    first of these that the plan has: calls (MOS), the Web (95th percentile of page load times),
    transfers (95th percentile of completion times), responsiveness tests (responsiveness), other
    packet sources (99th percentile of the delay). Without such a group, the metric is the 95th
    percentile of the queueing delay of all packets. For a store, it is the 99th percentile of the
    latency.
    """
    store = store_in(plan)
    if store is not None:
        return [f"{store.name}.latency_p99"]
    groups = [group for group in plan.groups if crosses(plan, group)]
    for sign, felt in views("felt").items():
        apps = registry()[sign].apps
        found = [f"{group.name}.{felt[0]}" for group in groups if group.app.TAG in apps]
        if found:
            return found
    return [BY]


def usual_condition(plan: Plan) -> str:
    """Returns the conditions of a question that states none.

    For a store, the condition is on acknowledged requests. Other requests have no latency, so a
    choice that fails more requests would look faster.
    """
    store = store_in(plan)
    udp = all(group.transport.TAG == "udp" for group in plan.groups) and bool(plan.groups)
    return condition_of(None if store is None else store.name, udp=udp)


def condition_of(store: str | None, *, udp: bool) -> str:
    """Returns the usual conditions with a store of this name, and with UDP alone."""
    if store is not None:
        return f"{store}.acknowledged >= 99% of best"
    return UDP_SUBJECT_TO if udp else SUBJECT_TO


@dataclass(frozen=True, slots=True)
class _Places:
    """Names that can precede a metric in a plan: links, groups, media, stores, balancers."""

    links: Sequence[str]
    groups: Mapping[str, str]
    media: Sequence[str]
    stores: Sequence[str]
    balancers: Sequence[str]

    @classmethod
    def of(cls, plan: Plan) -> _Places:
        subject = plan.observe.bottleneck.name
        store = store_in(plan)
        stores: list[str] = []
        if store is not None:
            name = store.name
            hosts = [plan.nodes[node.node].name for node in store.nodes]
            stores = [name, f"{name}.writes", f"{name}.reads", *(f"{name}.{h}" for h in hosts)]
        return cls(
            links=list(dict.fromkeys([*(link.name for link in plan.links), subject])),
            groups={group.name: group.app.TAG for group in plan.groups},
            media=[medium.name for medium in plan.media],
            stores=stores,
            balancers=[balancer.name for balancer in plan.balancers],
        )


def known(plan: Plan, metric: str) -> None:
    """Raises `QuestionError` for a metric that no run of a plan has."""
    p = _Places.of(plan)
    expect(metric, p.links, p.groups, p.media, p.stores, p.balancers)
    if base(metric) == "utilisation_jain":
        _several(metric, plan.observe.bottleneck)


def decides(plan: Plan, by: str) -> None:
    """Raises `QuestionError` for a metric that cannot rank choices in a plan."""
    known(plan, spelled(by))
    if direction(spelled(by)) is None:
        raise QuestionError(
            f"{by}: neither high nor low values of this metric are better, so it "
            "cannot rank choices"
        )


def sensible(
    plan: Plan, subject_to: str, compared: Sequence[str] | None = None
) -> tuple[Condition, ...]:
    """Returns the parsed conditions; raises `QuestionError` for mistakes visible before any run.

    `compared` lists the choices that conditions may name; None if they are not known yet.
    """
    conditions = parse(subject_to)
    for condition in conditions:
        known(plan, condition.metric)
        if condition.of is None:
            condition.absolute(unit(condition.metric))
        elif condition.of == "best":
            if direction(condition.metric) is None:
                raise QuestionError(
                    f"`{condition}`: neither high nor low values of {condition.metric} are "
                    "better, so `best` is undefined"
                )
        elif compared is not None and condition.of not in compared:
            close = nearest(condition.of, compared)
            hint = f": did you mean `{close}`?" if close else f"; compared: {', '.join(compared)}"
            raise QuestionError(
                f"`{condition}`: `{condition.of}` is not among the compared choices{hint}"
            )
    return conditions


def _several(metric: str, bottleneck: Bottleneck) -> None:
    """Raises `QuestionError` unless the bottleneck has several links, which the metric compares."""
    here, count = bottleneck.name, len(bottleneck.links)
    if count < 2 or metric not in (base(metric), f"{here}.{base(metric)}"):
        raise QuestionError(
            f"{metric}: {base(metric)} compares the links of a bottleneck that has several; the "
            f"bottleneck of this scenario is `{here}`, with {count} link{'s' if count > 1 else ''}"
        )


OF_CLASS = re.compile(r"(?:(?P<link>.+)\.)?(?:class\[[^\[\]]+\]|\w+:\w+(?:/\w+:\w+)*)")
"""A class of a queue, with its link or without it, as the owner of a metric."""


def _owner(metric: str, links: Sequence[str]) -> tuple[str, str]:
    """Returns what a metric belongs to, for a class its link, and the name after it."""
    owner, _, name = metric.rpartition(".")
    of_class = OF_CLASS.fullmatch(owner)
    return (of_class["link"] or links[0] if of_class else owner), name


def _expect_number(metric: str, entry: Metric) -> None:
    parts = [p for s in STATISTICS if (p := f"{entry.name}_{s}") in registry()]
    if parts:
        raise QuestionError(f"{metric} is not a single number: choose {', '.join(parts)}")
    if entry.of in ("series", "text", "monitor", "server") or entry.form != "number":
        raise QuestionError(
            f"{metric} is not a number for a whole run: choose one of `sojourn list metric`"
        )


def _expect_store(metric: str, stores: Sequence[str]) -> None:
    owner, _, name = metric.rpartition(".")
    if owner not in stores:
        which = f"write {stores[0]}.{name}" if stores else "but the scenario has none"
        others = "" if stores else "; the delays of packets are delay_p95, sojourn_p95 and others"
        others = others if "latency" in name else ""
        raise QuestionError(f"{metric}: {name} is a metric of stores, {which}{others}")


def _expect_balancer(metric: str, balancers: Sequence[str]) -> None:
    owner, _, name = metric.rpartition(".")
    if owner not in balancers and (owner or len(balancers) != 1):
        which = f"such as {balancers[0]}.{name}" if balancers else "but the scenario has none"
        raise QuestionError(f"{metric}: {name} is a metric of balancers, {which}")


def expect(
    metric: str,
    links: Sequence[str],
    groups: Mapping[str, str],
    media: Sequence[str] = (),
    stores: Sequence[str] = (),
    balancers: Sequence[str] = (),
) -> None:
    """Raises `QuestionError` for a metric that no run with these links, groups and media has.

    `groups` maps names to applications. `stores` are the prefixes of a store's metrics: the store,
    its kinds of requests and its nodes. The metric of a class is expected of its link, because
    each compared queue has its own classes.
    """
    owner, name = _owner(metric, links)
    entry = registry().get(name)
    if entry is None:
        close = nearest(name, registry())
        meant = f"{owner}.{close}" if owner else close
        hint = f": did you mean `{meant}`?" if close else "; `sojourn list metric` shows all"
        raise QuestionError(f"no metric `{metric}`{hint}")
    if entry.of == "store" and not stores:
        _expect_store(metric, stores)
    _expect_number(metric, entry)
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
        hint = f": did you mean {close}.{name}?" if close else f"; existing: {', '.join(owners)}"
        raise QuestionError(f"{metric}: no link, medium or group of flows `{owner}`{hint}")
    if entry.of == "run" and owner:
        raise QuestionError(f"{metric}: {name} is a metric of the whole run: write {name}")
    if entry.of == "link" and owner and owner not in links:
        raise QuestionError(f"{metric}: {name} is a metric of links, such as {links[0]}.{name}")
    if entry.of == "medium" and (owner not in media if owner else len(media) != 1):
        which = f"such as {media[0]}.{name}" if media else "but the scenario has none"
        raise QuestionError(f"{metric}: {name} is a metric of shared media, {which}")
    if entry.of == "flow" and (owner or "run" not in entry.also_of):
        which = ", ".join(f"{g}.{name}" for g in having[:6])
        if not having:
            apps = " and ".join(entry.apps)
            raise QuestionError(
                f"{metric}: only {apps} flows have this metric, but the scenario has none: add "
                f'[[flows]] with app = "{entry.apps[0]}"'
            )
        if owner and owner not in having:
            raise QuestionError(
                f"{metric}: `{owner}` does not have this metric; available: {which}"
            )
        if not owner and len(having) > 1:
            raise QuestionError(f"{name} exists for several groups: choose one of {which}")
