"""Puts queues that were read from files of `tc` on the links of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address
from typing import Any

from sojourn import _core
from sojourn.plan.link import Params
from sojourn.scenario import Problem, Scenario, ScenarioError
from sojourn.scenario.topology import links_of
from sojourn.tc.model import Device, Place, Reading
from sojourn.tc.mq import transmit_queue
from sojourn.tc.tree import Built, build, shaped_rate

SHOWN = 4
"""Largest number of filters that a notice lists."""
FIRST_HOST = int(IPv4Address("10.0.0.1"))
"""Address of a plan's first node in captures; each following node has the next address."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A device's queue that was put on one direction of a link."""

    device: str
    link: str
    queue: str | None
    netem: str | None
    relation: str
    """Sentence that compares the queue's rate with the line's rate."""

    def __str__(self) -> str:
        what = self.queue.split()[0] if self.queue else "netem"
        return f"{self.link}: {what} of {self.device}. {self.relation}"


@dataclass(frozen=True, slots=True)
class Selection:
    """A filter of `tc`, and the flows of the scenario whose packets it selects."""

    link: str
    line: str
    """File and line of the filter, as `FILE:LINE`."""
    filters: tuple[str, ...]
    """The filters of our queue that replace the filter of `tc`: conditions and class."""
    flows: tuple[str, ...]
    """Names of flows with packets that match the filter and no earlier filter."""
    answers: tuple[str, ...]
    """Names of flows whose packets from the receiver match the filter and no earlier filter."""

    def __str__(self) -> str:
        flows = ", ".join(
            [*self.flows, *(f"the packets from the receivers of {name}" for name in self.answers)]
        )
        more = f" and {len(self.filters) - 1} more" if len(self.filters) > 1 else ""
        return f"{self.line}: `{self.filters[0]}`{more} selects {flows or 'no flow'}"


@dataclass(frozen=True, slots=True)
class Applied:
    """A scenario with the queues that were read from files of `tc`."""

    scenario: Scenario
    placed: list[Placed]
    notices: list[str]
    selections: list[Selection]
    """The flows that each filter of the files selects."""

    def as_dict(self) -> dict[str, Any]:
        """Returns the result without the scenario, as plain data."""
        return {
            "placed": [
                {
                    "device": one.device,
                    "link": one.link,
                    "queue": one.queue,
                    "netem": one.netem,
                    "relation": one.relation,
                }
                for one in self.placed
            ],
            "notices": self.notices,
            "filters": [
                {
                    "link": one.link,
                    "line": one.line,
                    "filters": list(one.filters),
                    "flows": list(one.flows),
                    "answers": list(one.answers),
                }
                for one in self.selections
            ],
        }


@dataclass(slots=True)
class _Chosen:
    """Devices whose queues are used, each with the direction of a link that gets the queue."""

    pairs: list[tuple[Device, str]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def apply(
    scenario: Scenario,
    reading: Reading,
    devices: str | None = None,
    hosts: Mapping[str, str] | None = None,
    *,
    partial: bool = False,
) -> Applied:
    """Puts the queues that were read on the scenario's bottleneck, in one or both directions.

    `devices` names the device for the bottleneck, or two devices separated by a comma, of which the
    second is for the other direction. `hosts` maps addresses to nodes. Parts that could not be read
    raise `ScenarioError` with their lines; with `partial` they are ignored and listed as notices.
    """
    chosen = _choose(scenario, reading, devices)
    numbers = _hosts(scenario, hosts or {})
    problems = list(reading.problems)
    notices = [str(notice) for notice in reading.notices] + chosen.notices
    built = []
    for device, link in chosen.pairs:
        passed = None if _is_before_firewall(reading, device) else reading.firewall
        built.append((device, link, build(device, numbers, passed)))
    notices += _of_firewall(reading, [device for device, _ in chosen.pairs])
    for _, _, one in built:
        problems += one.problems
        notices += [str(notice) for notice in one.notices]
    problems.sort(key=lambda problem: (problem.file or "", problem.line or 0))
    if problems and not partial:
        raise ScenarioError(problems)
    if problems:
        notices += [f"ignored: {problem}" for problem in problems]
    if not any(one.queue or one.netem for _, _, one in built):
        raise ScenarioError(problems or [Problem("no part of the files can be read")])
    changes: dict[str, Any] = {}
    placed: list[Placed] = []
    for device, link, one in built:
        if one.queue or one.netem:
            placed.append(_place(scenario, device, link, one, changes))
    changed = scenario.replace(changes)
    selections = [one for _, link, found in built for one in _selections(changed, link, found)]
    notices += _unselected(selections)
    return Applied(changed, placed, list(dict.fromkeys(notices)), selections)


def _is_before_firewall(reading: Reading, device: Device) -> bool:
    """Returns whether a device gets incoming packets before they pass the firewall."""
    redirected = {name for one in reading.devices.values() for name in one.redirects}
    return device.name in redirected or device.name.startswith("ifb")


def _of_firewall(reading: Reading, devices: list[Device]) -> list[str]:
    """Returns notices on how the rules of the firewall were read."""
    steps = reading.firewall.changes
    if not steps:
        return []
    verb = "is" if len(steps) == 1 else "are"
    count = "a line" if len(steps) == 1 else f"{len(steps)} lines"
    lead = f"{steps[0].place.file}:{steps[0].place.line}: {count} of the firewall {verb}"
    if not all(_is_before_firewall(reading, device) for device in devices):
        notice = f"{lead} read: filters see the marks, classes and code points that {{}}"
        notice = notice.format("it sets" if len(steps) == 1 else "they set")
        if any(change.field == "dscp" for step in steps for change in step.changes):
            notice += "; disciplines see the code point of the flow's key `dscp`"
        return [notice]
    return [f"{lead} ignored: packets are shaped before they pass the firewall"]


def _selections(scenario: Scenario, link: str, built: Built) -> list[Selection]:
    """Returns the flows that each filter of a link's queue selects, in the order of evaluation."""
    by_place: dict[Place, tuple[list[str], dict[str, None], dict[str, None]]] = {}
    for handle in dict.fromkeys(part.asked_by for part in built.filters):
        parts = [part for part in built.filters if part.asked_by == handle]
        statements = " ; ".join(part.text for part in parts)
        found = _core.selected_flows(scenario.plan_json, link, statements)
        for part, groups in zip(parts, found, strict=True):
            texts, flows, answers = by_place.setdefault(part.place, ([], {}, {}))
            texts.append(part.text.split(maxsplit=3)[-1])
            flows |= {name: None for name, is_answer in groups if not is_answer}
            answers |= {name: None for name, is_answer in groups if is_answer}
    return [
        Selection(link, f"{place.file}:{place.line}", tuple(texts), tuple(flows), tuple(answers))
        for place, (texts, flows, answers) in by_place.items()
    ]


def _unselected(selections: list[Selection]) -> list[str]:
    """Returns a notice on the filters that select no flow; an empty list without such a filter."""
    idle = [one for one in selections if not one.flows and not one.answers]
    if not idle:
        return []
    listed = "; ".join(f"{one.line} ({one.filters[0]})" for one in idle[:SHOWN])
    more = f" and {len(idle) - SHOWN} more" if len(idle) > SHOWN else ""
    message = f"no flow of the scenario is selected by these filters: {listed}{more}. "
    return [message + "Set `source_port`, `destination_port` and `mark` of flows to match them"]


def _place(
    scenario: Scenario, device: Device, link: str, built: Built, changes: dict[str, Any]
) -> Placed:
    """Adds the changes that put a device's queue on a link's direction; returns the placement."""
    one = next(way for way in links_of(scenario.model) if way.name == link)
    if built.queue is not None:
        changes[".".join(map(str, one.queue_at))] = built.queue
    if built.netem is not None:
        changes[".".join(map(str, _netem_key(one.queue_at)))] = built.netem
    line = next(one.params for one in scenario.plan.links if one.name == link)
    return Placed(device.name, link, built.queue, built.netem, _relation(built.queue, line))


def _netem_key(queue_at: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Returns the key `netem` for the direction of a link whose queue has the key `queue_at`."""
    *table, _ = queue_at
    way = () if table and table[-1] in ("forward", "reverse") else ("forward",)
    return (*table, *way, "netem")


def _relation(queue: str | None, line: Params) -> str:
    """Returns a sentence that compares the rate of a queue with the rate of its link."""
    rate = line.rate if line.trace is None else None
    line_rate = "the line's rate" if rate is None else f"the line's {_text(rate)}"
    if queue is None:
        return f"It has no queue: the scenario's own queue remains, and sends at {line_rate}."
    shaped = shaped_rate(queue)
    if shaped is None:
        return f"It does not limit the total rate: it sends at {line_rate}."
    if rate is None:
        return f"It shapes to {_text(shaped)}; the line's rate varies."
    if shaped < rate:
        share = f"{shaped * 100 / rate:.3g} % of {line_rate}"
        return (
            f"It shapes to {_text(shaped)}, {share}: packets wait in this queue and not in a "
            "device behind it."
        )
    return (
        f"It shapes to {_text(shaped)}, which is not below {line_rate}: the line limits the rate, "
        "and packets wait in this queue for the line."
    )


def _text(rate: int) -> str:
    return str(_core.format_quantity("rate", rate))


# Devices


def _choose(scenario: Scenario, reading: Reading, names: str | None) -> _Chosen:
    main = scenario.bottlenecks
    if len(main) != 1:
        raise ScenarioError(
            [
                Problem(
                    f"the bottleneck consists of {len(main)} links: choose one by --set "
                    "bottleneck=NAME"
                )
            ]
        )
    bottleneck = main[0]
    holding = [device for device in reading.devices.values() if device.holds]
    if names is not None:
        return _named(scenario, reading, bottleneck, names.split(","))
    configured = [device for device in holding if device.is_configured] or holding
    if not configured:
        raise ScenarioError(_nothing(reading))
    if len(configured) == 1:
        return _Chosen([(configured[0], bottleneck)])
    pair = _pair(configured)
    if pair is None:
        listed = ", ".join(f"{device.name} ({_kind(device)})" for device in configured)
        raise ScenarioError(
            [
                Problem(
                    f"{len(configured)} devices have queues: {listed}; choose one for "
                    f"{bottleneck} by --device {configured[0].name}, or two, of which the second "
                    "is for the other direction: --device "
                    f"{configured[0].name},{configured[1].name}"
                )
            ]
        )
    out, incoming, notices = pair
    away = _outgoing(scenario, bottleneck)
    back = _other(away)
    _check(scenario, back)
    notice = (
        f"{out.name} sends on {away}, and {incoming.name} has the packets that {out.name} "
        f"receives, on {back}; --device chooses other devices"
    )
    return _Chosen([(out, away), (incoming, back)], [*notices, notice])


def _kind(device: Device) -> str:
    return device.root.kind if device.root is not None else "no discipline"


def _nothing(reading: Reading) -> list[Problem]:
    """Returns problems that explain why the files set up no queue."""
    if reading.problems:
        return reading.problems
    message = "the files set up no queue"
    if reading.absent:
        message += f"; they read {', '.join(reading.absent)}, which --tc must also name"
    if reading.asked:
        message += (
            f"; these variables have no value: {', '.join(reading.asked)}; set them by --var "
            "NAME=VALUE"
        )
    return [Problem(message)]


def _named(scenario: Scenario, reading: Reading, bottleneck: str, names: list[str]) -> _Chosen:
    if len(names) > 2:
        raise ScenarioError([Problem("--device takes one device, or two separated by a comma")])
    found = _Chosen()
    for name, link in zip(names, (bottleneck, _other(bottleneck)), strict=False):
        device = reading.devices.get(name)
        if device is None:
            base, _, number = name.rpartition(":")
            whole = reading.devices.get(base)
            if whole is not None and number.isdecimal():
                device = transmit_queue(whole, int(number))
        if device is None or not device.holds:
            known = [d.name for d in reading.devices.values() if d.holds]
            listed = f"; devices with a queue: {', '.join(known)}" if known else ""
            raise ScenarioError(
                [
                    Problem(
                        f"the files set up no queue of the device `{name}`{listed}",
                        found=name,
                        allowed=tuple(known),
                        nearest=_core.nearest(name, known),
                    )
                ]
                + ([] if known else reading.problems)
            )
        _check(scenario, link)
        found.pairs.append((device, link))
    return found


def _pair(configured: list[Device]) -> tuple[Device, Device, list[str]] | None:
    """Returns a device and the device to which its incoming packets are, or seem to be, redirected.

    The third value has notices. Returns None unless there are exactly these two devices.
    """
    if len(configured) != 2:
        return None
    for out, incoming in (configured, configured[::-1]):
        if incoming.name in out.redirects:
            return out, incoming, []
    for out, incoming in (configured, configured[::-1]):
        by_name = incoming.name.startswith("ifb") and not out.name.startswith("ifb")
        alone = out.ingress is not None and incoming.ingress is None and not out.redirects
        if by_name or alone:
            return (
                out,
                incoming,
                [f"{incoming.name} is assumed to get the packets that {out.name} receives"],
            )
    return None


def _outgoing(scenario: Scenario, bottleneck: str) -> str:
    """Returns the direction of the bottleneck's link in which the user's machine sends."""
    ways = {way.name: way for way in links_of(scenario.model)}
    forward = bottleneck.removesuffix(".reverse")
    machine = scenario.model.deploy.machine
    if machine is not None and machine == ways[forward].target:
        return f"{forward}.reverse"
    return forward


def _other(link: str) -> str:
    return link.removesuffix(".reverse") if link.endswith(".reverse") else f"{link}.reverse"


def _check(scenario: Scenario, link: str) -> None:
    if link not in {way.name for way in links_of(scenario.model)}:
        raise ScenarioError(
            [Problem(f"the scenario has no link `{link}`: choose a single device by --device")]
        )


def _hosts(scenario: Scenario, given: Mapping[str, str]) -> dict[IPv4Address, int]:
    """Returns the number of the scenario's node with each address.

    `given` maps addresses to names of nodes; other nodes have the addresses from `FIRST_HOST` on.
    """
    names = [node.name for node in scenario.plan.nodes]
    found = {IPv4Address(FIRST_HOST + number): number for number in range(len(names))}
    for text, name in given.items():
        try:
            address = IPv4Address(text)
        except AddressValueError:
            raise ScenarioError([Problem(f"--host: `{text}` is not an IPv4 address")]) from None
        if name not in names:
            raise ScenarioError(
                [
                    Problem(
                        f"--host: the scenario has no node `{name}`",
                        allowed=tuple(names),
                        nearest=_core.nearest(name, names),
                    )
                ]
            )
        number = names.index(name)
        found = {a: n for a, n in found.items() if n != number} | {address: number}
    return found
