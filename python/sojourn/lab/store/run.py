"""A real run of a plan's store: Cassandra's nodes and clients on hosts that the wire connects.

The store starts over links without impairments. When all nodes and clients know each other, the
wire switches to the plan's links, the clients send requests, and the plan's other flows run. After
the run, the wire switches back to links without impairments, over which acknowledged writes are
checked.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sojourn import _core
from sojourn.lab.cassandra import VERSION, artefacts, java, node
from sojourn.lab.cassandra.cluster import Asker, Cluster, Node
from sojourn.lab.errors import LabError, Unavailable
from sojourn.lab.findings import with_findings
from sojourn.lab.machine.stolen import ProcessorTime
from sojourn.lab.programs import Execution
from sojourn.lab.programs.errors import NotPossible, Problem
from sojourn.lab.programs.plan import SECOND, address
from sojourn.lab.run import END_SECONDS, LabRecord, about_run, ends_of, lost_before, packed
from sojourn.lab.sandbox.sandbox import Sandbox
from sojourn.lab.store.findings import keyspace, level, replication, table_options, with_store
from sojourn.lab.validity import violations
from sojourn.lab.violation import Violation
from sojourn.lab.wire.start import DEVICE, WireProcess, devices_of, settle, start_wire
from sojourn.lab.wire.wiring import read_outcome
from sojourn.plans import the_store

if TYPE_CHECKING:
    from sojourn.lab.engine import WireEngine
    from sojourn.lab.programs import Collected, RunSetup
    from sojourn.lab.sandbox.host import Host
    from sojourn.scenario.engine import RunProgress

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
TICK = 0.1
"""Interval between checks of the wire, the nodes and due faults, in seconds."""
SHOWN = 20
"""Maximum number of lost keys that are named."""

Json = dict[str, Any]


def require(plan: Json, engine: str) -> None:
    """Raises an error if this machine or engine cannot run a plan with a store."""
    problems = []
    if engine != "wire":
        has = "a store needs the wire's links: use `--engine wire`"
        problems.append(Problem("", f"--engine {engine}", has))
    if plan.get("balancers"):
        problems.append(Problem("", "balancers", "not possible in real runs with a store"))
    if problems:
        raise NotPossible(problems)
    java.find_java()
    artefacts.class_path()
    try:
        import cassandra  # noqa: F401
    except ImportError:
        raise Unavailable("cassandra-driver is missing", "pip install 'sojourn[lab]'") from None


class StoreRun:
    """One run of a plan with a store, from its preparation to its record.

    `setup` contains the programs of the plan's flows. Most plans with a store have no flows.
    """

    def __init__(
        self,
        engine: WireEngine,
        plan_json: str,
        seed: int,
        setup: RunSetup,
        raw: Path,
        stack: ExitStack,
    ) -> None:
        self.engine = engine
        self.plan: Json = json.loads(plan_json)
        self.seed = seed
        self.setup = setup
        self.raw = raw
        self.stack = stack
        self.store: Json = the_store(self.plan)
        self.parts = _core.StoreParts(plan_json, seed)
        self.keyspace = keyspace()
        self.hosts: dict[int, Host] = {}
        self.wire: WireProcess
        self.execution: Execution
        self.cluster: Cluster
        self.stolen = 0.0
        self._tell: IO[bytes]
        self._progress: RunProgress | None = None

    def make(self, progress: RunProgress | None) -> LabRecord:
        """Makes the run and returns its record."""
        nodes = len(self.store["nodes"])
        sandbox = self.stack.enter_context(
            Sandbox(self.engine.privilege, needs=("tun",), memory=nodes * MEMORY)
        )
        self._progress = progress
        ends = {host["node"] for host in (*self.store["nodes"], *self.store["clients"])}
        for end in sorted(ends | ends_of(self.setup)):
            self.hosts[end] = sandbox.host(self.plan["nodes"][end]["name"])
        read, write = os.pipe()
        self._tell = self.stack.enter_context(os.fdopen(write, "wb", buffering=0))
        links = self.plan["observe"]["bottleneck"]["links"] if self.engine.journals else []
        self.wire = start_wire(
            sandbox, self.stack, self.plan, self.seed, devices_of(self.hosts),
            mtu=self.setup.mtu, stdin=read, journals=links, control=self.engine.control,
            around=self.around(),
        )  # fmt: skip
        os.close(read)
        settle(self.hosts, self.setup.mtu)
        self.execution = self.stack.enter_context(Execution(self.setup, self.hosts, self.raw))
        self.execution.configure(DEVICE)
        self.turn(time.monotonic_ns())
        cluster = Cluster(self.members(), self.settings())
        self.cluster = self.stack.enter_context(cluster)
        cluster.start()
        self.look(0)
        clients = [self.client(number) for number in range(len(self.store["clients"]))]
        agreed = cluster.agree(clients)
        self.look(0)
        self.prepare(clients)
        self.execution.ready()
        before = ProcessorTime.now()
        answers = self.measure(clients)
        self.stolen = ProcessorTime.now().stolen_since(before)
        collected = self.execution.collect()
        self.turn(time.monotonic_ns())
        checked = self.check(clients)
        lost = {host.name: n for host in self.hosts.values() if (n := lost_before(host)) > 0}
        cpu = {each.member.name: each.running.cpu() for each in cluster.nodes}
        self.write(clients)
        self._tell.close()
        if self.wire.process.wait(END_SECONDS) != 0:
            raise self.wire.failure("the wire failed")
        coordinated: Counter[str] = Counter()
        for answer in answers:
            coordinated.update(answer["coordinated"])
        about = {
            "name": "cassandra",
            "version": VERSION,
            "agreed_seconds": agreed,
            "warm_writes": WARM_WRITES,
            "processor_seconds": cpu,
            "nodes": {each.member.name: each.member.address for each in cluster.nodes},
            "coordinated": dict(coordinated),
            "checked": checked,
        }
        rows = [row for each in clients for row in each.outcomes()]
        return self.record(sandbox, collected, rows, about, lost)

    def turn(self, start: int) -> None:
        """Switches the wire to its next links at the time `start` (`CLOCK_MONOTONIC`)."""
        self._tell.write(b"%d\n" % start)

    def around(self) -> Json:
        """Returns the plan for the time before and after the run: no impairments, no flows."""
        clean = json.loads(_core.parse_netem(""))
        links = [
            {**link, "params": {**link["params"], **clean}, "changes": []}
            for link in self.plan["links"]
        ]
        observe = {**self.plan["observe"], "series_interval": 0, "capture": []}
        return {
            **self.plan, "links": links, "groups": [], "apps": [], "duration": LONGEST, "warmup": 0,
            "observe": observe,
        }  # fmt: skip

    def members(self) -> list[Node]:
        """Returns the store's nodes, with the tokens of the plan's ring."""
        return [
            Node(
                self.hosts[host["node"]],
                node.Member(
                    self.plan["nodes"][host["node"]]["name"],
                    address(host["node"]),
                    own,
                    self.store["data_centres"][host["data_centre"]],
                    f"rack{host['rack']}",
                ),
            )
            for host, own in zip(self.store["nodes"], self.parts.tokens, strict=True)
        ]

    def settings(self) -> node.Settings:
        """Returns the settings that all nodes share, from the plan."""
        patience = self.store["patience"]
        return node.Settings(
            seeds=[address(host["node"]) for host in self.store["nodes"]],
            write_ms=max(10, patience["write"] // 1_000_000),
            read_ms=max(10, patience["read"] // 1_000_000),
            hints=patience["hints"],
            # If a node crashes, its acknowledged writes must be on disk.
            commit_log="batch" if self.faults(0) else "periodic",
        )

    def client(self, number: int) -> Asker:
        """Starts a client and returns it when it is connected to the store."""
        own = self.store["clients"][number]
        made = Asker(self.hosts[own["node"]], self.stack)
        made.ask(
            "connect",
            contact_points=[each.member.address for each in self.cluster.nodes],
            port=node.NATIVE_PORT,
            patience_seconds=self.store["patience"]["client"] / 1e9,
            connect_seconds=30,
            coordinator=self.store["coordinator"],
            data_centre=self.store["data_centres"][own["data_centre"]],
            keyspace=self.keyspace,
            write_level=level(self.store["write_level"]),
            read_level=level(self.store["read_level"]),
            value_bytes=self.store["workload"]["value"],
            load=self.store["load"],
            first_key=self.parts.first_key,
            sees_all=True,
        )
        return made

    def prepare(self, clients: Sequence[Asker]) -> None:
        """Creates the table and its records, warms up, and sends each client its requests."""
        first = clients[0]
        options = table_options(self.store)
        first.ask("schema", replication=replication(self.store), options=options, seconds=120)
        first.ask("ready", level="ALL", seconds=120)
        for other in clients[1:]:
            other.ask("prepare")
        first.ask("load", first=0, count=self.store["workload"]["records"], seconds=3600)
        # The warm-up uses negative keys, which the measurement does not use.
        warm = [["insert", -1 - i, 1, 0] for i in range(WARM_WRITES)]
        total, of = self.store["load"]["requests"], len(clients)
        for number, each in enumerate(clients):
            self.look(0)
            each.ask("script", script=warm)
            each.ask("run", start=0, end=LONGEST, warm=True, seconds=600)
            share = SCRIPT if total is None else (total - number + of - 1) // of
            each.ask("script", script=self.parts.script(number, min(share, SCRIPT)))

    def measure(self, clients: Sequence[Asker]) -> list[Json]:
        """Switches to the plan's links, runs clients and flows; returns the clients' answers."""
        begin = self.execution.begin()
        self.turn(begin)
        start = begin + self.store["load"]["start"]
        end = begin + self.plan["duration"]
        for each in clients:
            each.tell("run", start=start, end=end, warm=False)
        faults = deque(self.faults(begin))

        def tick(now: int) -> bool:
            self.tick(faults, now)
            return True

        if self.setup.programs:
            self.execution.play(tick, TICK)
        for each in clients:
            while not each.answered(self.pause(faults)):
                tick(time.monotonic_ns() - begin)
        return [each.answer() for each in clients]

    def check(self, clients: Sequence[Asker]) -> list[Json]:
        """Restarts crashed nodes and checks acknowledged writes.

        Returns the checks. Raises `LabError` if an acknowledged write is lost.
        """
        self.cluster.restore()
        self.cluster.agree(clients)
        clients[0].ask("ready", level="ALL", seconds=120)
        order = {"most": SHOWN, "need": self.parts.write_need, "replicas": True, "seconds": 3600}
        checks = [each.ask("verify", **order) for each in clients]
        if lost := sum(check["lost"] for check in checks):
            named = [key for check in checks for key in check["some"].get("lost", ())]
            raise LabError(f"{lost} acknowledged writes are lost: keys {named[:SHOWN]}")
        return checks

    def faults(self, start: int) -> list[tuple[int, bool, int]]:
        """Returns crashes and restarts in order of time.

        Each event has its time (`CLOCK_MONOTONIC` in nanoseconds), `True` for a restart, and the
        number of the node. The wire executes partitions.
        """
        found = []
        for fault in self.store["faults"]:
            if fault["what"]["kind"] != "crash":
                continue
            number = fault["what"]["node"]
            found.append((start + fault["at"], False, number))
            if fault["until"] is not None:
                found.append((start + fault["until"], True, number))
        return sorted(found)

    @staticmethod
    def pause(faults: deque[tuple[int, bool, int]]) -> float:
        """Returns the seconds until the next check."""
        if not faults:
            return TICK
        return min(TICK, max(0.001, (faults[0][0] - time.monotonic_ns()) / SECOND))

    def tick(self, faults: deque[tuple[int, bool, int]], now: int) -> None:
        """Checks the wire and the nodes, and executes due faults.

        `now` is in nanoseconds since the start of the run.
        """
        if not self.wire.process.running:
            raise self.wire.failure("the wire ended too early")
        while faults and faults[0][0] <= time.monotonic_ns():
            _, up, number = faults.popleft()
            if up:
                self.cluster.restart(number)
            else:
                self.cluster.nodes[number].kill()
        self.cluster.check()
        self.look(min(1.0, max(0, now) / self.plan["duration"]))

    def look(self, share: float) -> None:
        """Reports the progress; raises `KeyboardInterrupt` if `progress` ends the run."""
        if self._progress is not None and self._progress(share, 0) is False:
            raise KeyboardInterrupt

    def write(self, clients: Sequence[Asker]) -> None:
        """Saves the logs of clients and nodes."""
        for each in clients:
            rows = "\n".join(json.dumps(row) for row in each.outcomes())
            (self.raw / f"{each.host.name}.jsonl").write_text(rows, "utf-8")
        for member in self.cluster.nodes:
            said = member.running.output() + member.running.errors()
            (self.raw / f"{member.member.name}.log").write_bytes(said)

    def record(
        self,
        sandbox: Sandbox,
        collected: Collected,
        rows: Sequence[Sequence[Any]],
        about: Json,
        lost: dict[str, int],
    ) -> LabRecord:
        """Returns the record of the run."""
        self.wire.output.seek(0)
        # The wire ends early if all requests are answered early. Such a run is complete, too.
        outcome = replace(read_outcome(self.wire.output), complete=True)
        health = {**outcome.health, "stolen_share": self.stolen}
        against = [
            *violations(self.plan, health, lost, collected, preferred=self.wire.realtime),
            *violations_of(about),
        ]
        real = {
            **about_run(self.engine, self.setup, self.hosts, sandbox, against),
            "realtime": self.wire.realtime,
            "programs": {"cassandra": VERSION, **self.setup.versions},
            "store": about,
            "health": health,
            "agreements": outcome.agreements,
            "captures": outcome.captures,
        }
        tables = with_findings(outcome.tables, self.plan, collected.flows, collected.groups)
        files = {"programs.zip": packed(self.raw)}
        return LabRecord(
            outcome, real, with_store(tables, self.plan, rows, about), files,
            captures=[file.read() for file in self.wire.captures],
        )  # fmt: skip


def violations_of(about: Json) -> list[Violation]:
    """Returns the violations that the check of acknowledged writes found."""
    return [
        Violation(what, str(number), "none allowed", "see programs.zip")
        for key, what in (
            ("violations", "acknowledged writes on fewer replicas than their level requires"),
            ("unread", "acknowledged writes that could not be read after the run"),
        )
        if (number := sum(check[key] for check in about["checked"]))
    ]
