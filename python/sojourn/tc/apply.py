"""Puts queues that were read from files of `tc` on the links of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address

from sojourn import _core
from sojourn.data import Json
from sojourn.encode import plain
from sojourn.scenario import Problem, Scenario, ScenarioError
from sojourn.scenario.installed import Installed
from sojourn.scenario.topology import links_of
from sojourn.tc.read import notice, problem

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
    text: str
    """The line of the filter in the file."""
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
        return f"{self.line}: `{self.text}` selects {flows or 'no flow'}"


@dataclass(frozen=True, slots=True)
class Applied:
    """A scenario with the queues that were read from files of `tc`."""

    scenario: Scenario
    placed: list[Placed]
    notices: list[str]
    selections: list[Selection]
    """The flows that each filter of the files selects."""
    changes: dict[str, str]
    """Keys of the scenario that the queues and impairments changed."""

    def as_dict(self) -> dict[str, list[Json]]:
        """Returns the result without the scenario, as plain data."""
        return {
            "placed": [plain(one) for one in self.placed],
            "notices": [*self.notices],
            "filters": [plain(one) for one in self.selections],
        }


@dataclass(slots=True)
class _Chosen:
    """Devices whose queues are used, each with the direction of a link that gets the queue."""

    pairs: list[tuple[str, str]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def apply(
    scenario: Scenario,
    reading: _core.TcReading,
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
    ways = {way.name: way for way in links_of(scenario.model)}
    messages = list(reading.problems)
    notices = [notice(one) for one in reading.notices] + chosen.notices
    notices += _of_firewall(reading, [device for device, _ in chosen.pairs])
    built: list[tuple[str, str, _core.TcBuilt]] = []
    for device, link in chosen.pairs:
        passed = not _is_before_firewall(reading, device)
        found = reading.build(device, numbers, passed, _rate(scenario, link))
        if found is not None:
            built.append((device, link, found))
            messages += found.problems
            notices += [notice(one) for one in found.notices]
    problems = [problem(one) for one in messages]
    problems.sort(key=lambda one: (one.file or "", one.line or 0))
    if problems and not partial:
        raise ScenarioError(problems)
    notices += [f"ignored: {one}" for one in problems]
    if not any(one.queue or one.netem for _, _, one in built):
        raise ScenarioError(problems or [Problem("no part of the files can be read")])
    changes: dict[str, str] = {}
    for _, link, one in built:
        way = ways[link]
        if one.queue is not None:
            changes[".".join(map(str, way.queue_at))] = one.queue
        if one.netem is not None:
            key = ".".join(map(str, _netem_key(way.queue_at)))
            changes[key] = joined_netem(link, way.netem, one.netem)
    redirects = {name: one.name for one in reading.devices for name in one.redirects}
    devices_of = {link: device for device, link in chosen.pairs}
    installed = {
        link: Installed(
            reading,
            device,
            numbers,
            not _is_before_firewall(reading, device),
            redirects.get(device) or _assumed(device, devices_of.get(_other(link))),
        )
        for device, link, one in built
        if one.queue is not None
    }
    changed = addressed(scenario.replace(changes).on_devices(installed), hosts or {})
    selections = [one for _, link, found in built for one in _selections(changed, link, found)]
    placed = [
        Placed(device, link, one.queue, one.netem, _relation(changed, link, one))
        for device, link, one in built
        if one.queue or one.netem
    ]
    notices += _unselected(selections)
    return Applied(changed, placed, list(dict.fromkeys(notices)), selections, changes)


def addressed(scenario: Scenario, hosts: Mapping[str, str]) -> Scenario:
    """Returns the scenario with real addresses of nodes, for commands; `hosts` is as in `apply`."""
    _hosts(scenario, hosts)
    return scenario.on_devices({}, {name: text for text, name in hosts.items()})


def _assumed(device: str, other: str | None) -> str | None:
    """Returns the device of the other direction if it seems to redirect packets to an `ifb`."""
    return other if device.rpartition(":")[2].startswith("ifb") else None


def _rate(scenario: Scenario, link: str) -> int | None:
    """Returns the rate of a link in bit/s; None if it varies."""
    line = next(one.params for one in scenario.plan.links if one.name == link)
    return line.rate if line.trace is None else None


def joined_netem(link: str, path: str | None, device: str) -> str:
    """Returns the impairments of a link behind which a device has impairments of its own.

    Both delay: the delays add. Raises `ScenarioError` if both have other impairments, which one
    description cannot express.
    """
    own, added = (path or "").split(), device.split()
    if not own:
        return device
    for kept, other in ((own, added), (added, own)):
        plain = [word for word in other if word not in ("limit", "1000")]
        if len(plain) == 2 and plain[0] == "delay":
            words = list(kept)
            if "delay" in words:
                at = words.index("delay") + 1
                both = (words[at], plain[1])
                total = sum(map(_nanoseconds, both))
                words[at] = _core.format_quantity("time", total)
            else:
                words = plain + words
            if "limit" in other and "limit" not in words:
                words += other[other.index("limit") :]
            return " ".join(words)
    message = (
        f"the link `{link}` has impairments (`{path}`), and the device has others (`{device}`): "
        "remove one of them, since one wire cannot express both"
    )
    raise ScenarioError([Problem(message)])


def _nanoseconds(text: str) -> int:
    """Returns a time of netem; a number without a unit is in nanoseconds."""
    return int(text) if text.isdecimal() else int(_core.parse_quantity("time", text))


def _is_before_firewall(reading: _core.TcReading, device: str) -> bool:
    """Returns whether a device gets incoming packets before they pass the firewall."""
    redirected = {name for one in reading.devices for name in one.redirects}
    return device in redirected or device.rpartition(":")[2].startswith("ifb")


def _of_firewall(reading: _core.TcReading, devices: list[str]) -> list[str]:
    """Returns notices on how the rules of the firewall were read."""
    steps, sets_dscp = reading.firewall
    if not steps:
        return []
    verb = "is" if len(steps) == 1 else "are"
    count = "a line" if len(steps) == 1 else f"{len(steps)} lines"
    lead = f"{steps[0].file}:{steps[0].line}: {count} of the firewall {verb}"
    if not all(_is_before_firewall(reading, device) for device in devices):
        sets = "it sets" if len(steps) == 1 else "they set"
        text = f"{lead} read: filters see the marks, classes and code points that {sets}"
        if sets_dscp:
            text += "; disciplines see the code point of the flow's key `dscp`"
        return [text]
    return [f"{lead} ignored: packets are shaped before they pass the firewall"]


def _selections(scenario: Scenario, link: str, built: _core.TcBuilt) -> list[Selection]:
    """Returns the flows that each filter of a link's queue selects, in the order of evaluation."""
    found: list[Selection] = []
    for handle in dict.fromkeys(one.handle for one in built.filters):
        filters = [one for one in built.filters if one.handle == handle]
        statements = " ; ".join(text for one in filters for text in one.statements)
        groups = iter(_core.selected_flows(scenario.plan_json, link, statements))
        for one in filters:
            flows: dict[str, None] = {}
            answers: dict[str, None] = {}
            for _ in one.statements:
                for name, is_answer in next(groups):
                    (answers if is_answer else flows)[name] = None
            texts = tuple(text.split(maxsplit=3)[-1] for text in one.statements)
            place = f"{one.file}:{one.line}"
            text = " ".join(one.source.split())
            found.append(Selection(link, place, text, texts, tuple(flows), tuple(answers)))
    return found


def _unselected(selections: list[Selection]) -> list[str]:
    """Returns a notice on the filters that select no flow; an empty list without such a filter."""
    idle = [one for one in selections if not one.flows and not one.answers]
    if not idle:
        return []
    listed = "; ".join(f"{one.line} ({one.filters[0]})" for one in idle[:SHOWN])
    more = f" and {len(idle) - SHOWN} more" if len(idle) > SHOWN else ""
    message = f"no flow of the scenario is selected by these filters: {listed}{more}. "
    return [message + "Set `source_port`, `destination_port` and `mark` of flows to match them"]


def _netem_key(queue_at: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Returns the key `netem` for the direction of a link whose queue has the key `queue_at`."""
    *table, _ = queue_at
    way = () if table and table[-1] in ("forward", "reverse") else ("forward",)
    return (*table, *way, "netem")


def _relation(scenario: Scenario, link: str, built: _core.TcBuilt) -> str:
    """Returns a sentence that compares the rate of a queue with the rate of its link."""
    rate = _rate(scenario, link)
    line_rate = "the line's rate" if rate is None else f"the line's {_text(rate)}"
    if built.queue is None:
        return f"It has no queue: the scenario's own queue remains, and sends at {line_rate}."
    if built.lacks_classes:
        return (
            "Its classes are not in these files, so its rate is unknown: it sends at "
            f"{line_rate} here."
        )
    shaped, passing = built.rate, ""
    if shaped is None and built.classes_rate and built.filters:
        limited, others = _by_filters(scenario, link, built)
        if not limited:
            return f"Its filters select no flow: all packets pass at {line_rate}."
        shaped = built.classes_rate
        passing = f" {', '.join(others)} passes all classes at {line_rate}." if others else ""
    if shaped is None:
        return f"It does not limit the total rate: it sends at {line_rate}."
    if passing:
        return f"It shapes {', '.join(limited)} to {_text(shaped)};{passing}"
    if rate is None:
        return f"It shapes to {_text(shaped)}; the line's rate varies."
    if shaped < rate:
        share = f"{shaped * 100 / rate:.3g} % of {line_rate}"
        return (
            f"It shapes to {_text(shaped)}, {share}: packets wait in this queue and not in a "
            "device behind it."
        )
    where = "the line limits the rate, and packets wait in this queue for the line."
    if scenario.model.deploy.modem and link in scenario.bottlenecks:
        where = (
            "simulated as if the device itself sent to the line. In front of a modem (`modem = "
            "true`) packets would wait in the modem: set a rate below the line's."
        )
    return f"It shapes to {_text(shaped)}, which is not below {line_rate}: {where}"


def _by_filters(scenario: Scenario, link: str, built: _core.TcBuilt) -> tuple[list[str], list[str]]:
    """Returns the flows that the root's filters select, and those that no filter selects."""
    root = built.filters[0].handle
    statements = [text for one in built.filters if one.handle == root for text in one.statements]
    everything = f"filter parent {root:x}: all to {root:x}:1"
    *selected, others = _core.selected_flows(
        scenario.plan_json, link, " ; ".join([*statements, everything])
    )
    names = dict.fromkeys(name for group in selected for name, is_answer in group if not is_answer)
    return list(names), [name for name, is_answer in others if not is_answer]


def _text(rate: int) -> str:
    return str(_core.format_quantity("rate", rate))


# Devices


def _choose(scenario: Scenario, reading: _core.TcReading, names: str | None) -> _Chosen:
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
    holding = [device for device in reading.devices if device.holds]
    if names is not None:
        return _named(scenario, reading, bottleneck, names.split(","))
    configured = [device for device in holding if device.is_configured] or holding
    if not configured:
        raise ScenarioError(_nothing(reading))
    if len(configured) == 1:
        return _Chosen([(configured[0].name, bottleneck)])
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
    message = (
        f"{out.name} sends on {away}, and {incoming.name} has the packets that {out.name} "
        f"receives, on {back}; --device chooses other devices"
    )
    return _Chosen([(out.name, away), (incoming.name, back)], [*notices, message])


def _kind(device: _core.TcDevice) -> str:
    return device.root or "no discipline"


def _nothing(reading: _core.TcReading) -> list[Problem]:
    """Returns problems that explain why the files set up no queue."""
    if reading.problems:
        return [problem(one) for one in reading.problems]
    message = reading.unmodelled or "the files set up no queue"
    if reading.absent:
        message += f"; they read {', '.join(reading.absent)}, which --tc must also name"
    if reading.asked:
        message += (
            f"; these variables have no value: {', '.join(reading.asked)}; set them by --var "
            "NAME=VALUE"
        )
    return [Problem(message)]


def _named(
    scenario: Scenario, reading: _core.TcReading, bottleneck: str, names: list[str]
) -> _Chosen:
    if len(names) > 2:
        raise ScenarioError([Problem("--device takes one device, or two separated by a comma")])
    found = _Chosen()
    known = [device.name for device in reading.devices if device.holds]
    for name, link in zip(names, (bottleneck, _other(bottleneck)), strict=False):
        of_queue = name.rpartition(":")[0] in known and reading.build(name, {}, False) is not None
        if name not in known and not of_queue:
            listed = f"; devices with a queue: {', '.join(known)}" if known else ""
            message = f"the files set up no queue of the device `{name}`{listed}"
            nearest = _core.nearest(name, known)
            missing = Problem(message, found=name, allowed=tuple(known), nearest=nearest)
            others = [] if known else [problem(one) for one in reading.problems]
            raise ScenarioError([missing, *others])
        _check(scenario, link)
        found.pairs.append((name, link))
    return found


def _pair(
    configured: list[_core.TcDevice],
) -> tuple[_core.TcDevice, _core.TcDevice, list[str]] | None:
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
        alone = out.has_ingress and not incoming.has_ingress and not out.redirects
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


def _hosts(scenario: Scenario, given: Mapping[str, str]) -> dict[int, int]:
    """Returns the number of the scenario's node with each address.

    `given` maps addresses to names of nodes; other nodes have the addresses from `FIRST_HOST` on.
    """
    names = [node.name for node in scenario.plan.nodes]
    found = {FIRST_HOST + number: number for number in range(len(names))}
    for text, name in given.items():
        try:
            address = int(IPv4Address(text))
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
