"""Packet sources and transfers by Sojourn's endpoints: one process per host for all its flows.

Endpoints send real packets over real sockets, with the code and random draws of the simulator
(`crates/endpoint`). The endpoints' logs are evaluated after the run.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from sojourn import _core
from sojourn.lab.programs.balanced import Balanced
from sojourn.lab.programs.plan import Run
from sojourn.lab.programs.program import Ended, Program, Ready
from sojourn.lab.programs.results import (
    BulkResult,
    Counts,
    EndpointResult,
    FlowResult,
    GroupStats,
    Sample,
    Summary,
    Transfer,
)
from sojourn.lab.programs.summaries import summarize
from sojourn.lab.sandbox.modules import environment, python
from sojourn.lab.typed import typed
from sojourn.plan.flows import Flow

INSIDE = "sojourn.lab.programs.inside"
"""Package of the programs of this project that run in hosts."""
PACKETS = ("cbr", "packets", "replay", "voip", "external")
"""Applications that send packets at times that do not depend on the network."""
APPS = (*PACKETS, "transfer")
"""Applications that endpoints execute."""
FAULT = 3
"""Exit status of an endpoint that ended because of an error in the user's own source."""


def programs(run: Run, flows: Iterable[Flow], balanced: Balanced | None = None) -> list[Program]:
    """Returns the endpoints of all hosts that send or receive one of these flows."""
    flows = list(flows)
    nodes = {flow.sender for flow in flows} | {
        node
        for flow in flows
        for node in ((flow.receiver,) if balanced is None else balanced.receivers(flow))
    }
    return [
        Program(
            name=f"endpoint-{run.plan.nodes[node].name}",
            node=node,
            argv=python(f"{INSIDE}.endpoint", str(run.seed), str(node)),
            ends=True,
            ready=Ready.SAYS_SO,
            inputs=((run.probed if balanced is None else balanced.plan_of(node)).text.encode(),),
            log=True,
            waits=True,
            environment=environment(),
        )
        for node in sorted(nodes)
    ]


def collect(
    run: Run, ended: Sequence[Ended], end: int
) -> tuple[dict[int, FlowResult], dict[int, GroupStats], list[str]]:
    """Returns results by number of the flow, statistics by number of the group, and errors.

    `end` is the end of the run in nanoseconds since its start. Raises `PolicyError` for an error in
    the user's own source.
    """
    for one in ended:
        if one.status == FAULT:
            raise _core.PolicyError(one.stderr.decode().strip())
    errors = [f"{one.program.name}: {one.trouble}" for one in ended if one.status != 0]
    logs = [one.log.read_bytes() for one in ended if one.log is not None]
    try:
        report = _core.endpoint_report(run.probed.text, run.seed, logs, end)
    except ValueError as error:
        return {}, {}, [*errors, f"the endpoints' logs cannot be evaluated: {error}"]
    flows, groups = read_report(run, report)
    # The report also has rows of flows that other programs execute, such as iperf3.
    ours = {flow.flow for flow in (*run.flows, *run.probes) if flow.app in APPS}
    return {number: flow for number, flow in flows.items() if number in ours}, groups, errors


@dataclass(frozen=True)
class Sent:
    """The state of a sending TCP connection at one moment."""

    at: int
    window: int
    """Congestion window in bytes."""
    smoothed_rtt: int
    retransmitted: int
    """Number of segments retransmitted so far."""
    timeouts: int | None
    """Number of expiries so far; `None` if the kernel does not report them."""


@dataclass(frozen=True)
class Sending:
    """One transfer, with the number of its error."""

    start: int
    end: int | None
    bytes: int
    error: int | None


@dataclass(frozen=True, kw_only=True)
class FlowReport(Counts):
    """The engine's report on a flow."""

    flow: int
    transfers: Sequence[Sending]
    errors: Sequence[tuple[int, int]]
    """Numbers of errors, and how often each occurred."""
    samples: Sequence[Sent]
    """Samples of a bulk transfer's sender."""
    deliveries: Sequence[tuple[int, int]]
    """Times, and bytes that a bulk transfer's receiver has read until then."""


@dataclass(frozen=True)
class GroupReport:
    """The engine's report on the flows of a group."""

    group: int
    delay: Summary
    fct: Summary


@dataclass(frozen=True)
class Report:
    """The report of `_core.endpoint_report`."""

    flows: Sequence[FlowReport]
    groups: Sequence[GroupReport]


def read_report(run: Run, text: str) -> tuple[dict[int, FlowResult], dict[int, GroupStats]]:
    """Converts a report of `_core.endpoint_report` into results of flows and groups, by number."""
    report = typed(Report, text)
    flows = {item.flow: _result(run, item) for item in report.flows}
    members: dict[int, set[int]] = {}
    for flow in (*run.flows, *run.probes):
        members.setdefault(flow.group, set()).add(flow.flow)
    groups = {
        item.group: GroupStats(
            delay=item.delay,
            fct=item.fct,
            page=summarize([]),
            unfinished=sum(
                one.unfinished for one in report.flows if one.flow in members[item.group]
            ),
        )
        for item in report.groups
    }
    return flows, groups


def _result(run: Run, item: FlowReport) -> FlowResult:
    flow = (*run.flows, *run.probes)[item.flow]
    return _bulk(flow, item) if flow.app == "bulk" else _flow(run, item)


def _bulk(flow: Flow, item: FlowReport) -> BulkResult:
    sent, before, retransmitted, timeouts = [], flow.start or 0, 0, 0
    for one in item.samples:
        again, expired = one.retransmitted - retransmitted, one.timeouts
        fired = None if expired is None else expired - timeouts
        sent.append(Sample(before, one.at, 0, again, one.window, one.smoothed_rtt, fired))
        before, retransmitted, timeouts = one.at, one.retransmitted, expired or 0
    received, before, delivered = [], flow.start or 0, 0
    for at, count in item.deliveries:
        received.append(Sample(before, at, count - delivered))
        before, delivered = at, count
    errors = [f"{os.strerror(number)} ({count} times)" for number, count in item.errors]
    return BulkResult(
        flow.flow, flow.name, flow.number, "; ".join(errors) or None, tuple(sent), tuple(received)
    )


def _flow(run: Run, item: FlowReport) -> EndpointResult:
    flow = (*run.flows, *run.probes)[item.flow]
    counted = {each.name: getattr(item, each.name) for each in fields(Counts)}
    errors = [f"{os.strerror(number)} ({count} times)" for number, count in item.errors]
    if item.overflowed:
        errors.append(f"the receiving socket buffer dropped {item.overflowed} datagrams")
    return EndpointResult(
        flow.flow,
        flow.name,
        flow.number,
        "; ".join(errors) or None,
        **counted,
        transfers=tuple(
            Transfer(one.start, one.end, one.bytes, _error(one.error)) for one in item.transfers
        ),
    )


def _error(number: int | None) -> str | None:
    """Returns the name and description of an error number; `None` without an error."""
    if number is None:
        return None
    return f"{errno.errorcode.get(number, number)}: {os.strerror(number)}"
