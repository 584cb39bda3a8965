"""Flows of a scenario as groups of a plan: hosts become node numbers, texts become parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sojourn import _core
from sojourn.data import Object
from sojourn.own.sources import is_own
from sojourn.scenario import capture, commands, limits
from sojourn.scenario.context import Context
from sojourn.scenario.locate import Path
from sojourn.scenario.models import Flow
from sojourn.scenario.words import time_of

DEFAULT_TCP = "cubic"
"""Default congestion control, as in Linux."""

Ends = tuple[list[int], list[int]]


def groups_of(context: Context) -> list[Object]:
    """Returns the plan's groups of flows, one for each entry in `flows`."""
    flows = context.model.flows
    # The engine will reject too many flows; until then their pairs must not fill the memory.
    most = limits.FLOWS if sum(flow.count for flow in flows) <= limits.FLOWS else 1
    names = names_of(flows)
    return [_group(context, i, names[i], flow, most) for i, flow in enumerate(flows)]


def group_place(context: Context, index: int, rest: Path) -> Path | None:
    """Returns the scenario path for a path in a plan's group; None for the list of pairs."""
    at: Path = ("flows", index)
    match rest:
        case ("pairs",):
            return None
        case ("pairs" | "balancer", *_):
            return (*at, _server_key(context.model.flows[index]))
        case ("transport",):
            return (*at, "udp")
        case ("transport", *_):
            return (*at, "tcp")
        case (str(key), *_):
            return (*at, key)
        case _:
            return at


def names_of(flows: list[Flow]) -> list[str]:
    """Returns the names of the groups of flows: those given, otherwise names of their own."""
    given = {flow.name for flow in flows if flow.name}
    names: list[str] = []
    for flow in flows:
        name = flow.name
        if name is None:
            base = name = flow.app.split()[0]
            number = 2
            while name in names or name in given:
                name = f"{base}-{number}"
                number += 1
        names.append(name)
    return names


def _group(context: Context, index: int, name: str, flow: Flow, most: int) -> Object:
    at: Path = ("flows", index)
    balancer, (senders, receivers) = _ends(context, at, flow)
    pairs: list[tuple[int, int]] = []
    if senders and receivers:
        period = min(flow.count, most, math.lcm(len(senders), len(receivers)))
        pairs = [(senders[i % len(senders)], receivers[i % len(receivers)]) for i in range(period)]
    first, spread, every = _core.parse_starts(flow.start)
    # Keys without a value are omitted, so that they do not change the plan's hash.
    ports = {"source_port": flow.source_port, "destination_port": flow.destination_port}
    seen = {key: value for key, value in ports.items() if value is not None}
    if flow.mark:
        seen["mark"] = flow.mark
    balanced = {} if balancer is None else {"balancer": balancer}
    return {
        "name": name,
        "pairs": pairs,
        **balanced,
        "count": flow.count,
        "start": first,
        "start_spread": spread,
        "start_every": every,
        "stop": None if flow.stop is None else time_of(flow.stop),
        "dscp": flow.dscp,
        **seen,
        "transport": _transport(context, at, flow),
        "app": _application(context, at, flow),
    }


def _application(context: Context, at: Path, flow: Flow) -> Object:
    commands.check_keys(context, at, flow)
    if commands.is_command(flow.app):
        return commands.application(context, at, flow)
    app = context.policy("source", (*at, "app"), _core.parse_app, flow.app, instead="voip")
    match app:
        case {"name": "replay", "file": str(file)}:
            pass
        case _:
            return app
    try:
        return capture.loaded(app, file, context.source.read)
    except capture.CaptureProblem as problem:
        start, end = capture.place(flow.app)
        found = flow.app[start:end]
        context.complain((*at, "app"), str(problem), start=start, end=end, found=found)
        return context.words(at, _core.parse_app, "voip")


def _transport(context: Context, at: Path, flow: Flow) -> Object:
    if flow.tcp is not None and flow.udp:
        context.complain((*at, "udp"), "a flow cannot use both TCP and UDP: remove `tcp` or `udp`")
    udp = flow.udp
    if commands.is_command(flow.app):
        udp = False  # `check_keys` reports `udp` with a command
    if udp is None:
        udp = is_own(flow.app) or _core.app_carriers(flow.app)[0] == "udp"
    if udp and flow.tcp is None:
        return {"protocol": "udp"}
    text = flow.tcp or DEFAULT_TCP
    tcp = context.policy("congestion", (*at, "tcp"), _core.parse_tcp, text, instead=DEFAULT_TCP)
    return {"protocol": "tcp", **tcp}


def over_tcp(flows: list[Flow]) -> Iterator[tuple[str, str]]:
    """Yields notices about flows that `tcp` alone moves from UDP to TCP, each with its key."""
    for number, flow in enumerate(flows):
        if flow.tcp is None or flow.udp is not None or is_own(flow.app):
            continue
        if _core.app_carriers(flow.app)[0] == "udp":
            app = flow.app.split()[0]
            said = f"because of this key, `{app}` sends over TCP, and not over UDP as usual"
            yield f"flows.{number}.tcp", f"{said}: remove it, or confirm it with `udp = false`"


def _is_web(flow: Flow) -> bool:
    return flow.app.split()[0] == "web"


def _server_key(flow: Flow) -> str:
    """Returns the key that names a flow's servers: `from` for Web pages, otherwise `to`."""
    return "from" if _is_web(flow) else "to"


def _ends(context: Context, at: Path, flow: Flow) -> tuple[int | None, Ends]:
    """Returns the number of a flow's balancer (or None), and its senders and receivers.

    In the plan, a balanced group has only its first server: as sender for Web pages, otherwise as
    receiver.
    """
    known = list(context.model.balancers)
    ours = _server_key(flow)
    other = "to" if ours == "from" else "from"
    names = {"from": flow.from_, "to": flow.to}
    found: dict[str, list[int]] = {}
    if wrong := next((name for name in names[other] if name in known), None):
        context.complain(
            (*at, other),
            f"Web servers are senders: put `{wrong}` into `from` and the clients into `to`"
            if _is_web(flow)
            else f"`{wrong}` is a balancer, which can be in `from` only for `web`: put it into "
            "`to`",
        )
        found[other] = []
    named = next((name for name in names[ours] if name in known), None)
    if named is not None:
        if len(names[ours]) > 1:
            word = "receiver" if ours == "to" else "sender"
            text = f"`{named}` is a balancer and must be the only {word}: remove the other {word}s"
            context.complain((*at, ours), text)
        found[ours] = context.servers[named][:1]
    for key, listed in names.items():
        if key not in found:
            found[key] = context.hosts((*at, key), listed)
    return None if named is None else known.index(named), (found["from"], found["to"])
