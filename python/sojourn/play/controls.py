"""What a page can change of its state, and what becomes of it."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from sojourn import _core
from sojourn.play import queues
from sojourn.play.state import Seed, State, Text
from sojourn.scenario import Problem, Scenario, ScenarioError, trace
from sojourn.scenario.source import dotted
from sojourn.scenario.topology import OneWay, links_of

Json = dict[str, Any]

Quantity = Annotated[str, Field(max_length=64)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]

GROUPS = 8
"""Groups of flows whose number has a slider."""


class Changes(BaseModel):
    """Changes to a state; what is not there stays as it is."""

    model_config = ConfigDict(extra="forbid", strict=True)

    rate: Quantity | None = None
    rtt: Quantity | None = None
    duration: Quantity | None = None
    seed: Seed | None = None
    counts: dict[Annotated[str, Field(pattern=r"^[0-9]{1,4}$")], Count] = Field(
        {}, max_length=GROUPS
    )
    discipline: Quantity | None = None
    """A discipline by name, as it usually is on such a link."""
    queue: Text | None = None
    words: dict[Quantity, Quantity | bool | None] = Field({}, max_length=64)
    """Words of the queue."""
    pinned: Text | None = None
    unpin: bool = False


def apply(state: State, changes: Changes) -> State:
    """The state with the changes made; raises `ScenarioError`."""
    scenario = state.scenario
    keys: dict[str, Any] = {}
    if changes.duration is not None:
        keys |= _lasting(scenario, changes.duration)
    keys |= {f"flows.{group}.count": count for group, count in changes.counts.items()}
    if changes.rate is not None:
        if not _rated(scenario):
            raise _refuse("rate", "the bottleneck's rate follows a trace")
        keys |= dict.fromkeys(_keys(scenario, "rate_at"), changes.rate)
    if changes.rtt is not None:
        keys |= _delayed(scenario, changes.rtt)
    if keys:
        scenario = scenario.replace(keys)
    queue = _queue(scenario, changes)
    if queue is not None:
        scenario = scenario.with_queue(queue)
    pinned = state.pinned if changes.pinned is None else changes.pinned
    if changes.unpin:
        pinned = None
    seed = state.seed if changes.seed is None else changes.seed
    changed = State(scenario, pinned, seed)
    _ = changed.compared
    return changed


def shown(state: State) -> Json:
    """All controls with the values that they stand at."""
    scenario = state.scenario
    plan = scenario.plan()
    rate = scenario.bottleneck_rate
    sliders = []
    if _rated(scenario):
        sliders.append(_slider("rate", "rate", "Rate", "of the bottleneck", rate, 100e3, 10e9))
    delays = _delays(scenario)
    if delays is not None:
        text = "of its link, unloaded"
        sliders.append(_slider("rtt", "time", "RTT", text, sum(delays), 1e6, 1e9))
    for number, group in enumerate(plan["groups"][:GROUPS]):
        app = group["app"]["name"]
        text = f"{app} flows" if app != "web" else "Web sessions"
        count = group["count"]
        sliders.append(_slider(f"counts.{number}", "integer", group["name"], text, count, 1, 200))
    duration = plan["duration"]
    sliders.append(_slider("duration", "time", "Length", "of the run", duration, 2e9, 120e9))
    return {
        "sliders": sliders,
        "seed": state.seed,
        "queue": queues.card(scenario.queue, rate),
        "pinned": None if state.pinned is None else queues.card(state.pinned, rate),
        "disciplines": {name: table["summary"] for name, table in queues.tables().items()},
    }


def _slider(
    key: str, kind: str, label: str, text: str, value: float, low: float, high: float
) -> Json:
    return {
        "key": key,
        "label": label,
        "text": text,
        "kind": kind,
        "low": min(low, value) if value > 0 else low,
        "high": max(high, value),
        "value": value,
        "log": True,
    }


def _queue(scenario: Scenario, changes: Changes) -> str | None:
    """The queue that is asked for, if one is."""
    queue = changes.queue
    if changes.discipline is not None:
        if changes.discipline not in queues.tables():
            raise _refuse("queue", f"there is no discipline `{changes.discipline}`")
        queue = queues.usual(changes.discipline, scenario.bottleneck_rate)
    if not changes.words:
        return queue
    # What words are set in must be a queue itself.
    base = scenario if queue is None else scenario.with_queue(queue)
    try:
        return queues.changed(base.queue, changes.words)
    except ValueError as error:
        raise _refuse("queue", str(error)) from None


def _subjects(scenario: Scenario) -> list[tuple[OneWay, OneWay | None]]:
    """The bottleneck's links, each with its other direction if it has one of its own."""
    links = {link.name: link for link in links_of(scenario.model)}

    def other(name: str) -> str:
        return name.removesuffix(".reverse") if name.endswith(".reverse") else f"{name}.reverse"

    return [(links[name], links.get(other(name))) for name in scenario.bottlenecks]


def _rated(scenario: Scenario) -> bool:
    return not any(trace.is_trace(link.rate) for link, _ in _subjects(scenario))


def _keys(scenario: Scenario, attribute: str) -> list[str]:
    paths = [getattr(link, attribute) for link, _ in _subjects(scenario)]
    return [dotted(path) for path in dict.fromkeys(paths)]


def _delay(link: OneWay) -> int:
    return int(_netem(link).get("delay") or 0)


def _netem(link: OneWay) -> Json:
    found: Json = json.loads(_core.parse_netem(link.netem)) if link.netem else {}
    return found


def _delays(scenario: Scenario) -> tuple[int, int] | None:
    """Delay of the bottleneck's first link and of its other direction, in ns."""
    link, back = _subjects(scenario)[0]
    return None if back is None else (_delay(link), _delay(back))


def _delayed(scenario: Scenario, rtt: str) -> Json:
    """Keys that give the bottleneck's links such delays, each direction in its share of before."""
    total = int(_quantity("rtt", "time", rtt))
    keys: Json = {}
    for link, back in _subjects(scenario):
        if back is None:
            raise _refuse("rtt", "the bottleneck has no other direction of its own")
        there, other = _core.shared_delays(total, _delay(link), _delay(back))
        if link.netem_at == back.netem_at:
            keys[dotted(link.netem_at)] = _with_delay(link.netem, total // 2)
        else:
            keys[dotted(link.netem_at)] = _with_delay(link.netem, there)
            keys[dotted(back.netem_at)] = _with_delay(back.netem, other)
    return keys


def _with_delay(netem: str | None, delay: int) -> str:
    """The impairments with another delay."""
    tokens = (netem or "").split()
    text = _core.format_quantity("time", delay)
    word = next((word for word in ("delay", "latency") if word in tokens), None)
    if word is not None:
        tokens[tokens.index(word) + 1] = text
    else:
        tokens = ["delay", text, *tokens]
    return " ".join(tokens)


def _lasting(scenario: Scenario, duration: str) -> Json:
    """Keys that give a run this length, and a warm-up in the share of before."""
    length = int(_quantity("duration", "time", duration))
    plan = scenario.plan()
    keys: Json = {"duration": duration}
    if plan["warmup"]:
        warmup = _core.scaled_warmup(plan["warmup"], plan["duration"], length)
        keys["warmup"] = _core.format_quantity("time", warmup)
    return keys


def _quantity(key: str, kind: Any, text: str) -> float:
    try:
        return float(_core.parse_quantity(kind, text))
    except _core.WordError as error:
        raise _refuse(key, str(error)) from None


def _refuse(key: str, message: str) -> ScenarioError:
    return ScenarioError([Problem(message, key)])
