"""The programs of a run with their hosts and times, and the collection of their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sojourn.lab.programs import (
    command,
    endpoint,
    installed,
    iperf3,
    ping,
    probe,
    stack,
    store,
    web,
)
from sojourn.lab.programs.balanced import Balanced, find
from sojourn.lab.programs.errors import MissingProgram, NotPossible, Problem
from sojourn.lab.programs.ping import Ping
from sojourn.lab.programs.plan import Run, drawn, mtu
from sojourn.lab.programs.probe import Probe
from sojourn.lab.programs.program import Ended, Program
from sojourn.lab.programs.results import FlowResult, GroupStats, PingResult
from sojourn.plan import Plan
from sojourn.plan.flows import Flow


@dataclass(frozen=True)
class Options:
    """Settings of programs that are not part of a plan."""

    interval: float = 0.5
    """Interval between iperf3's reports, in seconds."""
    pings: tuple[Ping, ...] = ()
    """Pings that measure round-trip times during the flows."""
    probes: tuple[Probe, ...] = ()
    """Probes that measure one-way delays during the flows."""
    briefly: bool = False
    """Whether the run ends with the clients of the user's own programs, even if it has other flows.
    """

    def __post_init__(self) -> None:
        if not iperf3.LEAST_INTERVAL <= self.interval <= iperf3.MOST_INTERVAL:
            low, high = iperf3.LEAST_INTERVAL, iperf3.MOST_INTERVAL
            raise ValueError(f"interval must be {low:g} to {high:g} s; found {self.interval:g} s")


@dataclass(frozen=True)
class Collected:
    """Results of all programs of a run."""

    flows: tuple[FlowResult, ...]
    """Results of the plan's flows, in order."""
    groups: Mapping[int, GroupStats]
    """Statistics of groups whose flows are executed by endpoints or browsers, by number."""
    pings: tuple[PingResult, ...]
    probes: tuple[FlowResult, ...]
    """Results of `Options.probes`, in order."""
    errors: tuple[str, ...]
    """Error messages of all programs."""
    waits: Mapping[str, float] = field(default_factory=dict)
    """Share of the time for which a program waited for a processor, by the name of the program."""


@dataclass(frozen=True)
class RunSetup:
    """The programs of a run, ready to be started; see `execution.Execution`."""

    run: Run
    options: Options
    settings: Mapping[int, stack.HostSettings]
    """Settings of each host by its number, applied before the run."""
    mtu: int
    """MTU of every host's device in bytes, so that no packet is fragmented."""
    programs: tuple[Program, ...]
    """Programs in the order in which they are started."""
    paths: Mapping[str, str]
    """Paths of installed programs, by name."""
    versions: Mapping[str, str]
    """Versions of programs, by name."""
    balanced: Balanced | None = None
    """The plan's balancer; `None` if the plan has none."""
    _endpoints: tuple[str, ...] = field(repr=False, default=())
    _browsers: tuple[str, ...] = field(repr=False, default=())
    _pings: tuple[str, ...] = field(repr=False, default=())

    @property
    def decisive(self) -> tuple[str, ...]:
        """Returns the programs with whose end the run ends; none if it lasts for its duration."""
        own = [one for one in command.commands(self.run) if one.role == "client"]
        alone = all(flow.app == command.APP for flow in self.run.flows)
        return tuple(one.name for one in own) if alone or self.options.briefly else ()

    def collect(self, ended: Mapping[str, Ended], wall: int, end: int) -> Collected:
        """Returns the results from the programs' output.

        `ended` has each program by name. `wall` is the start of the run by `CLOCK_REALTIME` in
        nanoseconds. `end` is the end of the run in nanoseconds after its start. If the output of a
        program is invalid, the result of its flow has an `error`. Raises `PolicyError` for an error
        in the user's own source.
        """
        played = [ended[name] for name in self._endpoints]
        made, groups, errors = endpoint.collect(self.run, played, end) if played else ({}, {}, [])
        if self.balanced is not None:
            # A balanced server cannot know the flow of a connection that it accepts. The wire
            # observes both ends of the connection, and its measurements are used.
            away = {flow.flow for flow in self.run.flows if self.balanced.measured_outside(flow)}
            made = {n: result for n, result in made.items() if n not in away}
            apart = {flow.group for flow in self.run.flows if flow.flow in away}
            groups = {n: stats for n, stats in groups.items() if n not in apart}
        sessions = [flow for flow in self.run.flows if flow.app == "web"]
        browsers = [ended[name] for name in self._browsers]
        browsed, more, web_errors = web.collect(self.run, sessions, browsers)
        groups |= more
        own_programs = command.collect(self.run, ended)
        planned = {flow.group for flow in self.run.flows}
        found = {**made, **browsed, **own_programs}
        flows = tuple(self._collect(flow, ended, found) for flow in self.run.flows)
        pings = tuple(
            ping.collect(asked, ended[name], wall)
            for asked, name in zip(self.options.pings, self._pings, strict=True)
        )
        probes = tuple(self._collect(flow, ended, made) for flow in self.run.probes)
        errors += web_errors
        errors += [
            f"{flow.name}.{flow.number}: {flow.error}" for flow in (*flows, *probes) if flow.error
        ]
        errors += [f"ping: {result.error}" for result in pings if result.error]
        own = {number: stats for number, stats in groups.items() if number in planned}
        return Collected(flows, own, pings, probes, tuple(errors))

    def _collect(
        self, flow: Flow, ended: Mapping[str, Ended], made: Mapping[int, FlowResult]
    ) -> FlowResult:
        if flow.flow in made:
            return made[flow.flow]
        outside = self.balanced is not None and self.balanced.measured_outside(flow)
        if flow.start is None or outside:
            return FlowResult(flow.flow, flow.name, flow.number)
        if flow.app == "bulk":
            name, server_name = iperf3.names(flow)
            client, server = ended.get(name), ended.get(server_name)
            if self.balanced is not None and flow.group in self.balanced.groups:
                # The selected server ended with its client; the other servers were stopped.
                nodes = self.balanced.servers
                server = max(
                    (ended[f"{server_name}-{node}"] for node in nodes),
                    key=lambda one: (one.signalled is None, len(one.stdout)),
                )
            if client is not None and server is not None:
                return iperf3.collect(flow, client, server)
        return FlowResult(flow.flow, flow.name, flow.number, "the flow's programs were not started")


NEEDED: dict[str, tuple[str, ...]] = {
    "bulk": ("iperf3",),
    "web": ("nginx",),
    command.APP: (),
    **dict.fromkeys(endpoint.APPS, ()),
}
"""Programs that must be installed, by application."""


def prepare(
    plan: Plan,
    seed: int,
    options: Options | None = None,
    kernel: stack.Kernel | None = None,
) -> RunSetup:
    """Returns the programs of a plan. No program is started, and no setting is changed.

    `kernel` has the features of the kernel; `None` reads those of the running kernel. Raises
    `MissingProgram` if programs are not installed, `NotPossible` with all requirements of the plan
    that this machine does not satisfy, and `_core.PlanError` if the plan is invalid.
    """
    options = options or Options()
    nodes = len(plan.nodes)
    wrong = [problem for asked in options.probes for problem in probe.problems(asked, nodes)]
    if wrong:
        raise NotPossible(wrong)
    run = drawn(plan, seed, probe.with_probes(plan, options.probes))
    balanced = find(plan)
    problems = _possible(run, options)
    if balanced is not None and (options.pings or options.probes):
        problems.append(Problem("", "pings and probes", "not possible with a balancer"))
    names = [node.name for node in plan.nodes]
    if balanced is not None:
        names.append(balanced.name)
    settings = stack.Settings(names, kernel or stack.Kernel.here())
    for flow in run.flows:
        _demand(flow, settings, balanced)
    spoken = [*run.flows, *run.probes]
    spoken += [store.ask(settings, asked) for asked in plan.apps]
    problems += settings.problems
    if problems:
        raise NotPossible(problems)
    if missing := command.problems(run, command.here):
        raise MissingProgram(missing)
    needed = {name for flow in run.flows for name in NEEDED[flow.app]}
    if options.pings:
        needed.add("ping")
    paths = installed.require(needed)

    servers: list[Program] = []
    clients: list[Program] = []
    for flow in run.flows:
        tcp = flow.tcp
        if flow.app == "bulk" and tcp is not None and flow.start is not None:
            socket = stack.socket(tcp)
            sent = flow
            if balanced is None or flow.group not in balanced.groups:
                servers.append(iperf3.server(paths["iperf3"], flow, options.interval))
            else:
                sent = balanced.sent(flow)
                servers += [
                    iperf3.server(
                        paths["iperf3"], replace(flow, receiver=node), options.interval, str(node)
                    )
                    for node in balanced.servers
                ]
            clients.append(iperf3.client(paths["iperf3"], sent, socket, options.interval))
    ours = [flow for flow in run.flows if flow.app in endpoint.APPS and flow.start is not None]
    endpoints = endpoint.programs(run, [*ours, *run.probes], balanced)
    sessions = [flow for flow in run.flows if flow.app == "web" and flow.start is not None]
    sites = web.programs(paths["nginx"], run, sessions, balanced) if sessions else []
    pings = [
        ping.program(paths["ping"], asked, number, run.duration)
        for number, asked in enumerate(options.pings)
    ]
    for program in command.programs(run):
        (servers if program.start_at is None else clients).append(program)
    clients = sorted([*clients, *pings], key=lambda program: program.start_at or 0)
    return RunSetup(
        run=run,
        options=options,
        settings={n: asked for n, asked in settings.hosts.items() if n < nodes},
        mtu=mtu(spoken),
        programs=(*servers, *sites, *endpoints, *clients),
        paths=paths,
        versions=installed.versions(paths) | (web.version() if sessions else {}),
        balanced=balanced,
        _endpoints=tuple(program.name for program in endpoints),
        _browsers=tuple(program.name for program in sites if program.log),
        _pings=tuple(program.name for program in pings),
    )


def _demand(flow: Flow, settings: stack.Settings, balanced: Balanced | None) -> None:
    """Adds a flow's requirements on TCP to the settings of its hosts."""
    if flow.app == command.APP:
        command.demand(flow, settings)
    elif flow.app == "web":
        ways = [(node, flow.receiver) for node in flow.servers]
        settings.add(flow, flow.receiver, ways if balanced is None else balanced.ways(flow))
    else:
        ways = [(flow.sender, flow.receiver)] if balanced is None else balanced.ways(flow)
        settings.add(flow, flow.sender, ways)


def _possible(run: Run, options: Options) -> list[Problem]:
    problems: list[Problem] = []
    seen: set[int] = set()
    for flow in run.flows:
        if flow.app not in NEEDED and flow.group not in seen:
            has = f"real runs support {', '.join(sorted(NEEDED))}"
            problems.append(Problem(flow.label, flow.app, has))
            seen.add(flow.group)
    if any(flow.app == "web" for flow in run.flows) and not web.available():
        problems.append(Problem("", "web", "not installed: pycurl; pip install 'sojourn[lab]'"))
    nodes = len(run.plan.nodes)
    for asked in options.pings:
        problems += _ping(asked, nodes)
    return problems


def _ping(asked: Ping, nodes: int) -> Sequence[Problem]:
    if not (0 <= asked.sender < nodes and 0 <= asked.receiver < nodes):
        return [Problem("ping", f"{asked.sender} to {asked.receiver}", f"there are {nodes} nodes")]
    if not 0.002 <= asked.interval <= 3600:
        return [Problem("ping", f"interval {asked.interval:g} s", "must be 0.002 to 3600 s")]
    if not 16 <= asked.payload <= 1472:
        return [Problem("ping", f"payload {asked.payload}", "must be 16 to 1472 bytes")]
    return []
