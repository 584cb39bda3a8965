"""The scenarios of a live page: their plans, texts and controls."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import TypedDict

from sojourn import _core
from sojourn.data import Object
from sojourn.metrics import CALL_QUALITY, direction, label, labelled, spelled, unit
from sojourn.own.sources import is_own
from sojourn.plan import Plan, decoding
from sojourn.plan.queries import own_programs, store_in
from sojourn.scenario import Scenario, ScenarioError, trace
from sojourn.scenario.question import candidates
from sojourn.scenario.source import dotted
from sojourn.scenario.topology import REVERSE, OneWay, links_of
from sojourn.suites.disciplines import every
from sojourn.templates import TEMPLATES

VERSION = 1
"""Version of the catalogue's format, which the page's scripts must support."""
FIRST = "home"
"""Name of the template that a page shows first."""
OWN = "own"
"""Name of a scenario that is not a template."""
VIEWS = ("live.link", "live.flow", "live.store")
"""Views of metrics that a page shows."""
LONGEST = 20 * 10**9
"""Default limit of a run's duration in ns, to which scenarios without a store are shortened."""
EVENTS = 500_000
"""Number of events to which they are shortened further: a browser simulates two such runs in about
a second."""
SAMPLES = 400
"""Largest number of samples of a time series."""
LEAST_INTERVAL = 1_000_000
"""Shortest interval between samples in ns."""
PACKETS = 1000
"""Packets that a queue without a default limit can hold."""
PLAIN = f"pfifo limit {PACKETS}p"
"""Queue of a plain device, shown for comparison."""
BETTER = "fq_codel"
"""Queue shown for comparison with a plain one; it is the default of many Linux distributions."""
APPS = {
    "bulk": "large transfers",
    "transfer": "repeated transfers",
    "cbr": "steady streams",
    "packets": "streams of packets",
    "replay": "recorded streams",
    "voip": "calls",
    "web": "people on the Web",
}
"""Labels of groups of flows by application, in everyday words."""


PROBE, PROBE_QUEUE = "1234567ns", "bfifo limit 1234567"
"""A delay and a queue that no scenario has; they show which links a key changes."""


class CatalogueError(ValueError):
    """A scenario that cannot be simulated in a browser."""


class Bottleneck(TypedDict):
    """The link whose queue is studied, or several such links."""

    name: str
    links: list[int]
    """Numbers of the links in the plan."""
    rate: int
    """Rate in bit/s; for a trace, its mean rate."""
    trace: bool
    """Whether the rate follows a trace and therefore cannot be changed."""


class Decides(TypedDict):
    """The metric that ranks the queues."""

    metric: str
    label: str
    unit: str
    better: str
    """Whether `lower` or `higher` values are better."""


class Reasons(TypedDict):
    """Sentences below the verdict on a template's own two queues."""

    why: str
    """Cause of the difference, or of equal results."""
    try_: str
    """A change that shows more."""


class Group(TypedDict):
    """A group of flows, which the scenario declares together."""

    name: str
    label: str
    app: str
    protocol: str
    count: int


class Affected(TypedDict):
    """The links that a control changes: the page and the command must change the same links."""

    rate: list[tuple[int, str]]
    """Number of each link, and its queue, whose defaults may depend on the rate."""
    queue: list[int]
    """Numbers of the links whose queue changes."""


class Keys(TypedDict):
    """Dotted keys of the scenario that each control changes, for commands."""

    rate: list[str]
    rtt: list[str]
    duration: list[str]
    queue: list[str]
    counts: list[list[str]]
    """For each group, the keys of its number of flows."""


class Entry(TypedDict):
    """A scenario as the page needs it."""

    title: str
    reasons: Reasons | None
    question: str | None
    """The question of the scenario in everyday words; None without one."""
    description: str
    file: str
    """Name of the scenario's file in commands."""
    settings: list[str]
    """Changes of the file in the form of `--set`, which commands repeat."""
    template: str | None
    """Name of the template for `sojourn new`; None for other scenarios."""
    plan: Object
    duration_shortened: str | None
    """The scenario's own duration if the plan is shorter, otherwise None."""
    bottleneck: Bottleneck
    paths: list[tuple[int, int]]
    """Pairs of a link and its other direction whose delays `keys.rtt` sets, those of the bottleneck
    first."""
    netem: list[tuple[int, str]]
    """For each key in `keys.rtt`: a link, and the key's value with `{}` in place of the link's
    delay."""
    affected: Affected
    by: Decides
    """The metric that ranks the queues: of the question, otherwise the first default metric."""
    queues: list[str]
    """Queues in the scenario's question."""
    names: dict[str, str]
    """Names of queues in `[queues]`, by description."""
    queue: str
    """Queue that the page shows first."""
    against: str
    """Queue with which the page first compares `queue`."""
    usual: dict[str, str]
    """Initial description of each discipline on this link, by name."""
    groups: list[Group]
    keys: Keys
    store: str | None
    """Name of the store; None without one."""


class Step(TypedDict):
    """A step of "A queue in one minute"."""

    title: str
    text: str
    entry: Entry
    queues: list[str]
    """One or two queues, which are shown."""


class Catalogue(TypedDict):
    """All scenarios of a page by name, and what they have in common."""

    version: int
    first: str
    docs: str | None
    """Address of the documentation, relative to the page."""
    quality: list[tuple[float, str]]
    """Words for the quality of a call by least mean opinion score."""
    metrics: dict[str, list[tuple[str, str, str, str | None]]]
    """For each view: name, label, unit and better direction of its metrics."""
    minute: list[Step]
    """The steps of "A queue in one minute"."""
    scenarios: dict[str, Entry]


def catalogue(own: Entry | None = None, docs: str | None = None) -> Catalogue:
    """Returns the catalogue of all templates; `own` is another scenario, which comes first.

    `docs` is the address of the documentation, relative to the page.
    """
    scenarios = {} if own is None else {OWN: own}
    return {
        "version": VERSION,
        "first": FIRST if own is None else OWN,
        "docs": docs,
        "quality": list(CALL_QUALITY),
        "metrics": {
            view: [(name, text, unit(name), direction(name)) for name, text in labelled(view)]
            for view in VIEWS
        },
        "minute": minute(),
        "scenarios": scenarios | {name: of_template(name) for name in TEMPLATES},
    }


def of_template(name: str) -> Entry:
    """Returns the entry of a template."""
    found = entry(TEMPLATES[name].scenario())
    return {**found, "template": name, "reasons": _reasons()[name]}


@cache
def minute() -> list[Step]:
    """Returns the steps of "A queue in one minute"."""
    told = tomllib.loads(_text("minute.toml"))
    steps: list[Step] = []
    for step in told["step"]:
        keys = {key: step[key] for key in ("flows", "warmup") if key in step}
        scenario = Scenario.from_dict({"name": step["title"], **told["base"], **keys})
        queues = step.get("queues", [scenario.queue])
        own = entry(scenario, whole=True)
        steps.append({"title": step["title"], "text": step["text"], "entry": own, "queues": queues})
    return steps


def _text(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


@cache
def _reasons() -> dict[str, Reasons]:
    found = tomllib.loads(_text("reasons.toml"))
    return {name: {"why": one["why"], "try_": one["try"]} for name, one in found.items()}


def entry(scenario: Scenario, settings: Sequence[str] = (), *, whole: bool = False) -> Entry:
    """Returns the entry of a scenario that was changed by `settings`.

    A long run is shortened unless `whole`. Raises `CatalogueError`.
    """
    plan = scenario.plan
    _check(plan)
    plan = _observed(plan)
    duration = plan.duration if whole or store_in(plan) is not None else _affordable(plan)
    if shortened := duration < plan.duration:
        warmup = _core.scaled_warmup(plan.warmup, plan.duration, duration)
        plan = _observed(replace(plan, warmup=warmup, duration=duration))
    links = links_of(scenario.model)
    subjects = plan.observe.bottleneck.links
    traced = any(trace.is_trace(links[i].rate) for i in subjects)
    rate = scenario.bottleneck_rate
    rate_keys = () if traced else tuple(dict.fromkeys(dotted(links[i].rate_at) for i in subjects))
    netem = _netem(links, subjects)
    delayed = _changed(scenario, "delay", {k: text.format(PROBE) for k, (_, text) in netem.items()})
    queue, against = _shown(scenario)
    store = store_in(plan)
    return {
        "title": scenario.name,
        "reasons": None,
        "question": scenario.question.text,
        "description": scenario.model.description,
        "file": Path(scenario.file).name if scenario.file else f"{OWN}.toml",
        "settings": list(settings),
        "template": None,
        "plan": decoding.data_of(plan.text),
        "duration_shortened": scenario.model.duration if shortened else None,
        "bottleneck": {
            "name": scenario.bottleneck,
            "links": list(subjects),
            "rate": rate,
            "trace": traced,
        },
        "paths": [
            pair
            for pair in sorted(_pairs(links), key=lambda pair: set(pair).isdisjoint(subjects))
            if set(pair) <= set(delayed)
        ],
        "netem": list(netem.values()),
        "affected": {
            "rate": [
                (i, links[i].queue)
                for i in _changed(scenario, "rate", dict.fromkeys(rate_keys, f"{rate + 1}bit"))
            ],
            "queue": _changed(scenario, "queue", dict.fromkeys(scenario.queue_keys, PROBE_QUEUE)),
        },
        "by": _by(scenario, plan),
        "queues": _asked(scenario),
        "names": {scenario.with_queue(name).queue: name for name in scenario.model.queues},
        "queue": queue,
        "against": against,
        "usual": _usual(scenario),
        "groups": [
            {
                "name": group.name,
                "label": APPS.get(group.app.TAG, "flows"),
                "app": group.app.TAG,
                "protocol": group.transport.TAG,
                "count": group.count,
            }
            for group in plan.groups
        ],
        "keys": {
            "rate": list(rate_keys),
            "rtt": list(netem),
            "duration": ["duration"],
            "queue": list(scenario.queue_keys),
            "counts": _count_keys(scenario, plan),
        },
        "store": store.name if store else None,
    }


def _check(plan: Plan) -> None:
    """Raises `CatalogueError` for scenarios that need Python or real programs."""
    found = [*chain.from_iterable(plan.sources.values()), *map(str, own_programs(plan))]
    if found:
        raise CatalogueError(
            f"{', '.join(found)}: a browser cannot run policies or programs of the user; use "
            "`sojourn compare` or `sojourn run` for this scenario"
        )


def _affordable(plan: Plan) -> int:
    """Returns the duration in ns for at most `LONGEST` and about `EVENTS`.

    The flows start in its first half.
    """
    longest = min(plan.duration, LONGEST)
    first = replace(plan, warmup=0, duration=longest // 10)
    try:
        events = 10 * _core.simulate(first.text, 1).events
    except _core.PlanError:  # some flows start later
        events = _core.simulate(replace(first, duration=longest).text, 1).events
    started = max(
        (g.start + g.start_spread + g.count * g.start_every for g in plan.groups), default=0
    )
    exact = max(2 * started, longest * EVENTS // max(1, events))
    return min(longest, round(exact, 2 - len(str(exact))))


def _observed(plan: Plan) -> Plan:
    """Returns a plan that records only the results that a page shows."""
    interval = min(max(LEAST_INTERVAL, -(-plan.duration // SAMPLES)), plan.duration)
    observe = replace(
        plan.observe,
        series_interval=interval,
        capture=(),
        monitor=False,
        per_flow_histograms=False,
    )
    return replace(plan, observe=observe)


def _changed(scenario: Scenario, parameter: str, keys: Mapping[str, str]) -> list[int]:
    """Returns the numbers of the links whose parameter changes if these keys are set.

    A key of a template may change links that the scenario does not list.
    """
    before, after = (s.plan.links for s in (scenario, scenario.replace(keys)))
    pairs = enumerate(zip(before, after, strict=True))
    return [
        i for i, (a, b) in pairs if getattr(a.params, parameter) != getattr(b.params, parameter)
    ]


def _pairs(links: Sequence[OneWay]) -> list[tuple[int, int]]:
    """Returns pairs of a link and its other direction, for all links that have one."""
    numbers = {link.name: i for i, link in enumerate(links)}
    backs = [numbers.get(f"{link.name}.{REVERSE}") for link in links]
    return [(i, back) for i, back in enumerate(backs) if back is not None]


def _netem(links: Sequence[OneWay], subjects: Sequence[int]) -> dict[str, tuple[int, str]]:
    """Returns the keys of the bottleneck's delays, each with a link and the key's value.

    The value has `{}` in place of the delay. The result is empty if a link of the bottleneck has no
    other direction.
    """
    ours = [pair for pair in _pairs(links) if not set(pair).isdisjoint(subjects)]
    if not set(subjects) <= set(chain(*ours)):
        return {}
    found: dict[str, tuple[int, str]] = {}
    for i in chain(*ours):
        found.setdefault(dotted(links[i].netem_at), (i, _with_delay(links[i].netem)))
    return found


def _with_delay(netem: str | None) -> str:
    """Returns a text of impairments with `{}` in place of its delay."""
    tokens = (netem or "").split()
    word = next((word for word in ("delay", "latency") if word in tokens), None)
    if word is None:
        return " ".join(["delay", "{}", *tokens])
    tokens[tokens.index(word) + 1] = "{}"
    return " ".join(tokens)


def _count_keys(scenario: Scenario, plan: Plan) -> list[list[str]]:
    """Returns the keys of each group's number of flows.

    A group's number replaces a name that has a dot or that the scenario does not contain.
    """
    known = [flow.name or flow.app.split()[0] for flow in scenario.model.flows]
    names = [group.name for group in plan.groups]
    found = [
        name if name in known and "." not in name else number for number, name in enumerate(names)
    ]
    return [[f"flows.{flow}.count"] for flow in found]


def _by(scenario: Scenario, plan: Plan) -> Decides:
    stated = scenario.question.by
    metric = candidates(plan)[0] if stated is None else spelled(stated)
    return {
        "metric": metric,
        "label": label(metric),
        "unit": unit(metric),
        "better": direction(metric) or "lower",
    }


def _asked(scenario: Scenario) -> list[str]:
    asked = [scenario.with_queue(queue).queue for queue in scenario.asked_queues]
    return [queue for queue in asked if not is_own(queue)]


def _is_fifo(queue: str) -> bool:
    return queue.split(maxsplit=1)[0] in ("pfifo", "bfifo")


def _shown(scenario: Scenario) -> tuple[str, str]:
    """Returns the two queues that the page compares first: usually a good one and a plain one."""
    own = scenario.queue
    others = [queue for queue in _asked(scenario) if queue != own]
    if not _is_fifo(own):
        plain = next(filter(_is_fifo, others), PLAIN if not others else None)
        if plain is not None:
            return own, plain
        return (others[-1], own) if scenario.model.queues else (own, others[0])
    return BETTER if BETTER in others or not others else others[-1], own


@cache
def _disciplines() -> tuple[str, ...]:
    return tuple(table["name"] for table in json.loads(_core.describe())["queue"])


def _usual(scenario: Scenario) -> dict[str, str]:
    """Returns the initial description of each discipline at the bottleneck, by name.

    The description is the name alone, or the name with required parameters. If the scenario's own
    queue has classes, its discipline has the description of this queue.
    """
    rate = scenario.bottleneck_rate
    found = {}
    for name in _disciplines():
        try:
            _core.parse_queue(name, 1514, 1000, rate)
            found[name] = name
        except _core.WordError:
            text = every(rate, PACKETS)[name]
            with suppress(ScenarioError):  # for example, RED cannot be set for this rate
                found[name] = scenario.with_queue(text).queue
    own = scenario.queue.split()[0]
    return found | ({own: scenario.queue} if scenario.has_classes else {})
