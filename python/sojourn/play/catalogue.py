"""The scenarios of a live page: their plans, and the texts and controls of each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, TypedDict

from sojourn import _core
from sojourn.metrics import direction, label, labelled, spelled, unit
from sojourn.own.sources import is_own
from sojourn.plans import own_programs, store_in
from sojourn.scenario import Scenario, ScenarioError, trace
from sojourn.scenario.question import candidates
from sojourn.scenario.source import dotted
from sojourn.scenario.topology import REVERSE, OneWay, links_of
from sojourn.suites.disciplines import every
from sojourn.templates import TEMPLATES

Json = dict[str, Any]

VERSION = 1
"""Version of the catalogue's format, which the page's scripts must match."""
FIRST = "home"
"""The template that a page shows first."""
OWN = "own"
"""The name of a scenario that is not a template."""
VIEWS = ("live.link", "live.flow", "live.store")
LONGEST = 20 * 10**9
"""Length of a run in ns; a longer scenario without a store is shortened."""
SAMPLES = 400
"""Samples of each time series: more than a chart has pixels."""
LEAST_INTERVAL = 1_000_000
"""Shortest interval of samples in ns."""
PACKETS = 1000
"""Capacity of queues that have no default."""
PLAIN = f"pfifo limit {PACKETS}p"
"""The queue of a plain device."""
BETTER = "fq_codel"
"""The best-known good queue: Linux distributions have it."""
APPS = {
    "bulk": "large transfers",
    "transfer": "repeated transfers",
    "cbr": "steady streams",
    "packets": "streams of packets",
    "replay": "recorded streams",
    "voip": "calls",
    "web": "people on the Web",
}
"""Kinds of flows by application, in everyday words."""


PROBE, PROBE_QUEUE = "1234567ns", "bfifo limit 1234567"
"""A delay and a queue that no scenario has; they are used to test keys."""


class CatalogueError(ValueError):
    """A scenario that a browser cannot run."""


class Bottleneck(TypedDict):
    """The link whose queue is studied, or several links."""

    name: str
    links: list[int]
    rate: int
    """Rate in bit/s; for a trace its mean."""
    trace: bool
    """Whether the rate follows a trace and cannot be changed."""


class Decides(TypedDict):
    """The metric that decides a scenario's question."""

    metric: str
    label: str
    unit: str
    better: str
    """`lower` or `higher`."""


class Group(TypedDict):
    """Flows that the scenario declares together."""

    name: str
    label: str
    app: str
    protocol: str
    count: int


class Affected(TypedDict):
    """The links that a key changes, so that the page and the command make the same change."""

    rate: list[tuple[int, str]]
    """Link and queue for each: a queue's defaults may depend on the rate."""
    queue: list[int]


class Keys(TypedDict):
    """Dotted keys of the scenario behind the controls, for commands."""

    rate: list[str]
    rtt: list[str]
    duration: list[str]
    queue: list[str]
    counts: list[list[str]]
    """Keys of each group's number of flows."""


class Entry(TypedDict):
    """A scenario of a page."""

    title: str
    question: str | None
    """The question in everyday words."""
    description: str
    file: str
    """The file's name in commands."""
    settings: list[str]
    """Changes to the file, in the form of `--set`, which commands repeat."""
    template: str | None
    """The template's name for `sojourn new`."""
    plan: Json
    duration_shortened: str | None
    """The scenario's own duration, if the plan is shorter."""
    bottleneck: Bottleneck
    paths: list[tuple[int, int]]
    """Links, with their other directions, whose delays `keys.rtt` sets; the bottleneck's first."""
    netem: list[tuple[int, str]]
    """A link for each of `keys.rtt`, and the key's text with `{}` for that link's delay."""
    affected: Affected
    by: Decides
    """The deciding metric; by default the first that `compare` considers."""
    queues: list[str]
    names: dict[str, str]
    """Names of queues in the scenario, by description."""
    queue: str
    against: str
    usual: dict[str, str]
    """The initial text of each discipline on this link."""
    groups: list[Group]
    keys: Keys
    store: str | None


class Catalogue(TypedDict):
    """All scenarios of a page, by name."""

    version: int
    first: str
    docs: str | None
    """Address of the documentation, relative to the page."""
    metrics: dict[str, list[tuple[str, str, str, str | None]]]
    """Name, label, unit and better direction of the metrics of each view."""
    scenarios: dict[str, Entry]


def catalogue(own: Entry | None = None, docs: str | None = None) -> Catalogue:
    """Returns all templates, after a scenario that is not a template.

    `docs` is the address of the documentation, relative to the page.
    """
    scenarios = {} if own is None else {OWN: own}
    return {
        "version": VERSION,
        "first": FIRST if own is None else OWN,
        "docs": docs,
        "metrics": {
            view: [(name, text, unit(name), direction(name)) for name, text in labelled(view)]
            for view in VIEWS
        },
        "scenarios": scenarios | {name: of_template(name) for name in TEMPLATES},
    }


def of_template(name: str) -> Entry:
    """Returns the entry of a template."""
    return {**entry(TEMPLATES[name].scenario()), "template": name}


def entry(scenario: Scenario, settings: Sequence[str] = (), *, whole: bool = False) -> Entry:
    """Returns the entry of a scenario with these settings; a long run is shortened unless `whole`.

    Raises `CatalogueError`.
    """
    plan = scenario.plan()
    _check(plan)
    shortened = not whole and plan["duration"] > LONGEST and store_in(plan) is None
    if shortened:
        plan["warmup"] = _core.scaled_warmup(plan["warmup"], plan["duration"], LONGEST)
        plan["duration"] = LONGEST
    _observe(plan)
    links = links_of(scenario.model)
    subjects = plan["observe"]["bottleneck"]["links"]
    traced = any(trace.is_trace(links[i].rate) for i in subjects)
    rate = scenario.bottleneck_rate
    rate_keys = () if traced else tuple(dict.fromkeys(dotted(links[i].rate_at) for i in subjects))
    netem = _netem(links, subjects)
    delayed = _changed(scenario, "delay", {k: text.format(PROBE) for k, (_, text) in netem.items()})
    queue, against = _shown(scenario)
    store = store_in(plan)
    return {
        "title": scenario.name,
        "question": scenario.question.text,
        "description": scenario.model.description,
        "file": Path(scenario.file).name if scenario.file else f"{OWN}.toml",
        "settings": list(settings),
        "template": None,
        "plan": plan,
        "duration_shortened": scenario.model.duration if shortened else None,
        "bottleneck": {
            "name": scenario.bottleneck,
            "links": subjects,
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
                "name": group["name"],
                "label": APPS.get(group["app"]["name"], "flows"),
                "app": group["app"]["name"],
                "protocol": group["transport"]["protocol"],
                "count": group["count"],
            }
            for group in plan["groups"]
        ],
        "keys": {
            "rate": list(rate_keys),
            "rtt": list(netem),
            "duration": ["duration"],
            "queue": list(scenario.queue_keys),
            "counts": _count_keys(scenario, plan),
        },
        "store": store["name"] if store else None,
    }


def _check(plan: Mapping[str, Any]) -> None:
    """Rejects scenarios that need Python or a real network."""
    found = [*chain.from_iterable(plan.get("sources", {}).values()), *map(str, own_programs(plan))]
    if found:
        raise CatalogueError(
            f"{', '.join(found)}: a browser cannot run policies or programs of the user; compare "
            "it with `sojourn compare`, or run it with `sojourn run`"
        )


def _observe(plan: Json) -> None:
    """Restricts the records of a run to what a page shows."""
    interval = max(LEAST_INTERVAL, -(-plan["duration"] // SAMPLES))
    plan["observe"] |= {
        "series_interval": min(interval, plan["duration"]),
        "capture": [],
        "monitor": False,
        "per_flow_histograms": False,
    }


def _changed(scenario: Scenario, parameter: str, keys: Mapping[str, str]) -> list[int]:
    """Returns the links of which these keys change a parameter.

    A template's key may affect links that the scenario does not name.
    """
    before, after = (s.plan()["links"] for s in (scenario, scenario.replace(keys)))
    pairs = zip(before, after, strict=True)
    return [i for i, (a, b) in enumerate(pairs) if a["params"][parameter] != b["params"][parameter]]


def _pairs(links: Sequence[OneWay]) -> list[tuple[int, int]]:
    """Returns each link that has another direction, with that direction."""
    numbers = {link.name: i for i, link in enumerate(links)}
    backs = [numbers.get(f"{link.name}.{REVERSE}") for link in links]
    return [(i, back) for i, back in enumerate(backs) if back is not None]


def _netem(links: Sequence[OneWay], subjects: Sequence[int]) -> dict[str, tuple[int, str]]:
    """Returns the keys that delay the bottleneck, each with a link and the key's text.

    Empty if a link of the bottleneck has no other direction.
    """
    ours = [pair for pair in _pairs(links) if not set(pair).isdisjoint(subjects)]
    if not set(subjects) <= set(chain(*ours)):
        return {}
    found: dict[str, tuple[int, str]] = {}
    for i in chain(*ours):
        found.setdefault(dotted(links[i].netem_at), (i, _with_delay(links[i].netem)))
    return found


def _with_delay(netem: str | None) -> str:
    """Returns impairments with `{}` in place of the delay."""
    tokens = (netem or "").split()
    word = next((word for word in ("delay", "latency") if word in tokens), None)
    if word is None:
        return " ".join(["delay", "{}", *tokens])
    tokens[tokens.index(word) + 1] = "{}"
    return " ".join(tokens)


def _count_keys(scenario: Scenario, plan: Mapping[str, Any]) -> list[list[str]]:
    """Returns the keys of each group's number of flows: by name if that is unambiguous."""
    known = [flow.name or flow.app.split()[0] for flow in scenario.model.flows]
    names = [group["name"] for group in plan["groups"]]
    found = [
        name if name in known and "." not in name else number for number, name in enumerate(names)
    ]
    return [[f"flows.{flow}.count"] for flow in found]


def _by(scenario: Scenario, plan: Mapping[str, Any]) -> Decides:
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
    """Returns a good queue and a plain one, which are compared first."""
    own = scenario.queue
    others = [queue for queue in _asked(scenario) if queue != own]
    if not _is_fifo(own):
        return own, next(filter(_is_fifo, others), next(iter(others), PLAIN))
    return BETTER if BETTER in others or not others else others[-1], own


@cache
def _disciplines() -> tuple[str, ...]:
    return tuple(table["name"] for table in json.loads(_core.describe())["queue"])


def _usual(scenario: Scenario) -> dict[str, str]:
    """Returns the initial text of each discipline at the bottleneck.

    It is the scenario's own queue if it has classes, otherwise the name alone, unless the
    discipline requires parameters.
    """
    rate = scenario.bottleneck_rate
    found = {}
    for name in _disciplines():
        try:
            _core.parse_queue(name, 1514, 1000, rate)
            found[name] = name
        except _core.WordError:
            text = every(rate, PACKETS)[name]
            with suppress(ScenarioError):  # such as RED on a link that is too fast for it
                found[name] = scenario.with_queue(text).queue
    own = scenario.queue.split()[0]
    return found | ({own: scenario.queue} if scenario.has_classes else {})
