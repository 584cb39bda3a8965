"""The store of a real run: Cassandra's nodes and clients on hosts that the wire connects.

The store starts over links without impairments. When all nodes and clients know each other, the
wire switches to the plan's links, the clients send requests, and the plan's other flows run. After
the run, the wire switches back to links without impairments, over which acknowledged writes are
checked.
"""

from __future__ import annotations

import json
import signal
import time
from collections import Counter, deque
from dataclasses import asdict, replace

from sojourn import _core
from sojourn.data import Object
from sojourn.lab.cassandra import VERSION, artefacts, java, node
from sojourn.lab.cassandra.client import Check, Requests
from sojourn.lab.cassandra.cluster import Asker, Cluster, Node
from sojourn.lab.errors import LabError
from sojourn.lab.machine.needs import require_package
from sojourn.lab.programs import RunSetup
from sojourn.lab.programs.errors import NotPossible, Problem
from sojourn.lab.programs.plan import SECOND, address
from sojourn.lab.run import Part, RunContext
from sojourn.lab.store.findings import (
    Answers,
    Row,
    keyspace,
    replication,
    session_of,
    table_options,
    with_store,
)
from sojourn.lab.tables import Tables
from sojourn.lab.violation import Violation
from sojourn.lab.wire.links import WireLinks
from sojourn.plan import Plan, decoding
from sojourn.plan.store import Crash
from sojourn.scenario.engine import Stopped

LONGEST = 72 * 3600 * 10**9
"""Longest time before or after the run, in nanoseconds."""
MEMORY = 2 << 30
"""Memory for the files of a node, in bytes."""
WARM_WRITES = 500
"""Number of writes by each client before the measurement. The first thousand writes of a new JVM
take several times as long as later writes.
"""
SCRIPT = 200_000
"""Maximum number of requests of a client."""
SHOWN = 20
"""Maximum number of lost keys that are named."""


def require(plan: Plan, engine: str) -> None:
    """Raises an error if this machine or engine cannot run a plan with a store."""
    problems = []
    if engine != "wire":
        has = "a store needs the wire's links: use `--engine wire`"
        problems.append(Problem("", f"--engine {engine}", has))
    if plan.balancers:
        problems.append(Problem("", "balancers", "not possible in real runs with a store"))
    if problems:
        raise NotPossible(problems)
    java.find_java()
    artefacts.class_path()
    require_package("cassandra-driver", "cassandra", "lab")


class Store(Part):
    """The nodes and clients of a plan's store, whose links are the wire's."""

    interval = 0.1

    def __init__(self, links: WireLinks, setup: RunSetup) -> None:
        run = setup.run
        self.links = links
        self.plan = run.plan
        (self.store,) = run.plan.apps
        self.parts = _core.StoreParts(run.plan.text, run.seed)
        self.keyspace = keyspace()
        self.memory = len(self.store.nodes) * MEMORY
        self.versions = {"cassandra": VERSION}
        self.cluster: Cluster
        self.clients: list[Asker] = []
        self.rows: list[Row] = []
        """Rows of the clients' logs."""
        self.answers: Answers
        self._agreed = 0.0
        """Time in seconds until all nodes and clients knew each other."""
        self._processor: dict[str, float] = {}
        """Processor time of the nodes in seconds, by name."""
        self._due: deque[tuple[int, bool, int]] = deque()
        links.around = self.around()

    def nodes(self) -> set[int]:
        """Returns the hosts of the store's nodes and clients."""
        return {host.node for host in (*self.store.nodes, *self.store.clients)}

    def start(self, context: RunContext) -> None:
        """Starts nodes and clients over links without impairments, and creates the records.

        Raises `Stopped` if the run is ended meanwhile.
        """
        self.links.turn(time.monotonic_ns())
        cluster = Cluster(self.members(context), self.settings())
        self.cluster = context.stack.enter_context(cluster)
        cluster.start()
        go_on(context)
        for number in range(len(self.store.clients)):
            self.clients.append(self.client(context, number))
        self._agreed = cluster.agree(self.clients)
        self.load(context)

    def around(self) -> Plan:
        """Returns the plan for the time before and after the run: no impairments, no flows."""
        clean = json.loads(_core.parse_netem(""))
        impairments = decoding.decoded("link.Impairments", clean["impairments"])
        links = tuple(
            replace(
                link,
                params=replace(link.params, delay=clean["delay"], impairments=impairments),
                changes=(),
            )
            for link in self.plan.links
        )
        observe = replace(self.plan.observe, series_interval=0, capture=())
        none = replace(self.plan, groups=(), apps=(), duration=LONGEST, warmup=0)
        return replace(none, links=links, observe=observe)

    def members(self, context: RunContext) -> list[Node]:
        """Returns the store's nodes, with the tokens of the plan's ring."""
        return [
            Node(
                context.hosts[host.node],
                node.Member(
                    self.plan.nodes[host.node].name,
                    address(host.node),
                    own,
                    self.store.data_centres[host.data_centre],
                    f"rack{host.rack}",
                ),
            )
            for host, own in zip(self.store.nodes, self.parts.tokens, strict=True)
        ]

    def settings(self) -> node.Settings:
        """Returns the settings that all nodes share, from the plan."""
        patience = self.store.patience
        return node.Settings(
            seeds=[address(host.node) for host in self.store.nodes],
            write_ms=max(10, patience.write // 1_000_000),
            read_ms=max(10, patience.read // 1_000_000),
            hints=patience.hints,
            # If a node crashes, its acknowledged writes must be on disk.
            commit_log="batch" if self.faults(0) else "periodic",
        )

    def client(self, context: RunContext, number: int) -> Asker:
        """Starts a client and returns it when it is connected to the store."""
        made = Asker(context.hosts[self.store.clients[number].node], context.stack)
        session = session_of(self.store, number, self.keyspace, self.parts.first_key)
        places = [each.member.address for each in self.cluster.nodes]
        made.order("connect", **asdict(replace(session, contact_points=places, sees_all=True)))
        return made

    def load(self, context: RunContext) -> None:
        """Creates the table and its records, warms up, and sends each client its requests."""
        first, *others = self.clients
        options = table_options(self.store)
        made = replication(self.store)
        first.order("schema", 120, replication=made, options=options, seconds=120)
        first.order("ready", 120, level="ALL", seconds=120)
        for other in others:
            other.order("prepare")
        first.order("load", 3600, first=0, count=self.store.workload.records)
        # The warm-up uses negative keys, which the measurement does not use.
        warm = [["insert", -1 - i, 1, 0] for i in range(WARM_WRITES)]
        total, of = self.store.load.requests, len(self.clients)
        for number, each in enumerate(self.clients):
            go_on(context)
            each.order("script", script=warm)
            each.ask("run", Requests, 600, start=0, end=LONGEST, warm=True)
            share = SCRIPT if total is None else (total - number + of - 1) // of
            each.order("script", script=self.parts.script(number, min(share, SCRIPT)))

    def begin(self, context: RunContext) -> None:
        """Starts the clients' requests."""
        begin = context.execution.start
        start, end = begin + self.store.load.start, begin + self.plan.duration
        for each in self.clients:
            each.tell("run", start=start, end=end, warm=False)
        self._due.extend(self.faults(begin))

    def check(self) -> None:
        """Executes due crashes and restarts; raises an error if a node has ended too early."""
        while self._due and self._due[0][0] <= time.monotonic_ns():
            _, up, number = self._due.popleft()
            if up:
                self.cluster.restart(number)
            else:
                self.cluster.nodes[number].kill()
        self.cluster.check()

    def work(self) -> float:
        """Returns the share of the requests that have ended; 0 if their number is not limited."""
        total = self.store.load.requests
        return sum(each.ended() for each in self.clients) / total if total else 0.0

    def finished(self) -> bool:
        """Returns whether all requests have ended; waits until the next check is due."""
        wait = self.interval
        if self._due:
            wait = min(wait, max(0.001, (self._due[0][0] - time.monotonic_ns()) / SECOND))
        return all(each.answered(wait) for each in self.clients)

    def stop(self) -> None:
        """Makes the clients send no further requests."""
        for each in self.clients:
            each.process.signal(signal.SIGTERM, group=False)

    def end(self, context: RunContext) -> None:
        """Checks acknowledged writes over links without impairments, and saves all logs."""
        answers = [each.answer(Requests) for each in self.clients]
        self.links.turn(time.monotonic_ns())
        checked = self.verify()
        coordinated: Counter[str] = Counter()
        for answer in answers:
            coordinated.update(answer.coordinated)
        members = [(each.member, each.running) for each in self.cluster.nodes]
        self._processor = {member.name: running.cpu() for member, running in members}
        nodes = {member.name: member.address for member, _ in members}
        self.answers = Answers(nodes, coordinated, checked)
        for each in self.clients:
            lines = each.rows()
            (context.raw / f"{each.host.name}.jsonl").write_text("\n".join(lines), "utf-8")
            self.rows += [Row(*json.loads(line)) for line in lines]
        for member, running in members:
            said = running.output() + running.errors()
            (context.raw / f"{member.name}.log").write_bytes(said)

    def verify(self) -> list[Check]:
        """Restarts crashed nodes and checks acknowledged writes.

        Returns the checks. Raises `LabError` if an acknowledged write is lost.
        """
        self.cluster.restore()
        self.cluster.agree(self.clients)
        self.clients[0].order("ready", 120, level="ALL", seconds=120)
        need = self.parts.write_need
        checks = [
            each.ask("verify", Check, 3600, need=need, most=SHOWN, replicas=True)
            for each in self.clients
        ]
        if lost := sum(check.lost for check in checks):
            named = [key for check in checks for key in check.some.get("lost", ())]
            raise LabError(f"{lost} acknowledged writes are lost: keys {named[:SHOWN]}")
        return checks

    def faults(self, start: int) -> list[tuple[int, bool, int]]:
        """Returns crashes and restarts in order of time.

        Each event has its time (`CLOCK_MONOTONIC` in nanoseconds), `True` for a restart, and the
        number of the node. The wire executes partitions.
        """
        found = []
        for fault in self.store.faults:
            if isinstance(fault.what, Crash):
                found.append((start + fault.at, False, fault.what.node))
                if fault.until is not None:
                    found.append((start + fault.until, True, fault.what.node))
        return sorted(found)

    def violations(self) -> list[Violation]:
        """Returns the violations that the check of acknowledged writes found."""
        return [
            Violation(what, str(number), "none allowed", "see programs.zip")
            for key, what in (
                ("violations", "acknowledged writes on fewer replicas than their level requires"),
                ("unread", "acknowledged writes that could not be read after the run"),
            )
            if (number := sum(getattr(check, key) for check in self.answers.checked))
        ]

    def about(self) -> Object:
        """Returns the description of the store."""
        return {
            "store": {
                "name": "cassandra",
                "version": VERSION,
                "agreed_seconds": self._agreed,
                "warm_writes": WARM_WRITES,
                "processor_seconds": self._processor,
                **asdict(self.answers),
            }
        }

    def tables(self, tables: Tables) -> Tables:
        """Returns a record's tables with the store's metrics and distributions."""
        return with_store(tables, self.plan, self.rows, self.answers)


def go_on(context: RunContext) -> None:
    """Reports that the run has not begun; raises `Stopped` if it is ended."""
    if not context.wanted():
        raise Stopped("the run was stopped before its start")
