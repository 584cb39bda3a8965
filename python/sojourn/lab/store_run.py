"""A plan's store made real: Cassandra's nodes and clients in a network whose links are the wire's.

The store comes up over links that do nothing to packets; when every client knows every node, the
links become what the plan says, the clients ask, and afterwards they do nothing again, so that what
was acknowledged can be looked for.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sojourn import _core
from sojourn.lab.cassandra import VERSION, artefacts, java, node
from sojourn.lab.cassandra.cluster import Asker, Cluster, Node
from sojourn.lab.engine import END_SECONDS, LabRecord, packed
from sojourn.lab.errors import LabError, Unavailable
from sojourn.lab.programs.errors import NotPossible, Problem
from sojourn.lab.programs.plan import address
from sojourn.lab.stolen import ProcessorTime
from sojourn.lab.store_findings import keyspace, level, replication, summary_of
from sojourn.lab.validity import Doubt, doubts
from sojourn.lab.wire_process import WireProcess, devices_of, settle, start_wire

if TYPE_CHECKING:
    from sojourn.lab.engine import WireEngine
    from sojourn.lab.host import Host
    from sojourn.lab.process import Process
    from sojourn.lab.sandbox import Sandbox
    from sojourn.study.engine import RunProgress

LONGEST = 72 * 3600 * 10**9
"""Nanoseconds that the wire may run: it is stopped when all is done."""
MEMORY = 2 << 30
"""Bytes that a node's files may take; they are in memory."""
WARM_WRITES = 500
"""Writes that nobody measures: the first thousand of a cold Java are several times as slow."""
SCRIPT = 200_000
"""Requests of a client at most."""
TICK = 0.2
"""Seconds between two looks at everything."""
SHOWN = 20
"""Keys that are named of those that something is wrong with."""
MTU = 1500

Json = dict[str, Any]


def require(plan: Json, engine: str) -> None:
    """Say what keeps this machine, or Cassandra, from running a plan with a store."""
    problems = []
    if engine != "wire":
        problems.append(Problem("", f"--engine {engine}", "a store's links are the wire's"))
    if plan["groups"]:
        problems.append(Problem("", "flows", "not beside a real store yet"))
    if any(fault["what"]["kind"] == "partition" for fault in plan["store"]["faults"]):
        text = "partitions are for simulated stores; a link may have `loss 100%`"
        problems.append(Problem("", "faults", text))
    if any(link["changes"] for link in plan["links"]):
        problems.append(Problem("", "changes", "not beside a real store yet"))
    if problems:
        raise NotPossible(problems)
    java.find_java()
    artefacts.class_path()
    try:
        import cassandra  # noqa: F401
    except ImportError:
        raise Unavailable("cassandra-driver is missing", "pip install sojourn[lab]") from None


class StoreRun:
    """One run being made, for an engine whose settings it takes."""

    def __init__(
        self, engine: WireEngine, plan_json: str, seed: int, raw: Path, stack: ExitStack
    ) -> None:
        self.engine = engine
        self.plan: Json = json.loads(plan_json)
        self.seed = seed
        self.raw = raw
        self.stack = stack
        self.store: Json = self.plan["store"]
        self.parts = _core.StoreParts(plan_json, seed)
        self.keyspace = keyspace()
        self.hosts: dict[int, Host] = {}
        self.tell: IO[bytes]
        self.stolen = 0.0

    def make(self, progress: RunProgress | None) -> LabRecord:
        """Make it; the summary is that of a simulated run."""
        from sojourn.lab.sandbox import Sandbox

        nodes = len(self.store["nodes"])
        sandbox = self.stack.enter_context(
            Sandbox(self.engine.privilege, needs=("tun",), memory=nodes * MEMORY)
        )
        ends = [host["node"] for host in (*self.store["nodes"], *self.store["clients"])]
        for end in ends:
            self.hosts[end] = sandbox.host(self.plan["nodes"][end]["name"])
        read, write = os.pipe()
        self.tell = self.stack.enter_context(os.fdopen(write, "wb", buffering=0))
        wire = start_wire(
            sandbox, self.stack, self.forming(), self.seed, devices_of(self.hosts),
            mtu=MTU, stdin=read, control=self.engine.control,
        )  # fmt: skip
        os.close(read)
        settle(self.hosts, MTU)
        self.tell.write(b"%d\n" % time.monotonic_ns())
        cluster = self.stack.enter_context(Cluster(self.members(), self.settings()))
        cluster.start()
        clients = [self.client(number, cluster) for number in range(len(self.store["clients"]))]
        agreed = cluster.agree(clients)
        before = ProcessorTime.now()
        found = self.measure(cluster, clients, wire.process, progress)
        self.stolen = ProcessorTime.now().stolen_since(before)
        cpu = {each.member.name: each.running.cpu() for each in cluster.nodes}
        self.write(clients, cluster)
        self.tell.close()
        if wire.process.wait(END_SECONDS) != 0:
            raise LabError(f"the wire failed{wire.process.complaint()}")
        about = {
            "name": "cassandra",
            "version": VERSION,
            "agreed_seconds": agreed,
            "warm_writes": WARM_WRITES,
            "processor_seconds": cpu,
            "nodes": {each.member.name: each.member.address for each in cluster.nodes},
            **found["about"],
        }
        return self.record(sandbox, wire, found["rows"], about)

    def forming(self) -> Json:
        """The plan of the wire while the store comes up: no traffic of ours, and clean links."""
        clean = json.loads(_core.parse_netem(""))
        links = [
            {**link, "params": {**link["params"], **clean}, "changes": []}
            for link in self.plan["links"]
        ]
        observe = {**self.plan["observe"], "series_interval": 0, "capture": []}
        made = {**self.plan, "links": links, "duration": LONGEST, "warmup": 0, "observe": observe}
        del made["store"]
        return made

    def impair(self, *, clean: bool = False) -> None:
        """Lets the links be what the plan says, or nothing at all again."""
        for link in self.plan["links"]:
            params = link["params"]
            wire = {"delay": 0} if clean else {k: params[k] for k in ("delay", "impairments")}
            change = {"link": link["name"], "wire": wire}
            self.tell.write(json.dumps(change).encode() + b"\n")

    def members(self) -> list[Node]:
        """The nodes, with the tokens of the plan's ring."""
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
        """What the plan says of all nodes."""
        patience = self.store["patience"]
        return node.Settings(
            seeds=[address(host["node"]) for host in self.store["nodes"]],
            write_ms=max(10, patience["write"] // 1_000_000),
            read_ms=max(10, patience["read"] // 1_000_000),
            hints=patience["hints"],
            # What a node that crashes has acknowledged must be on its disk.
            commit_log="batch" if self.store["faults"] else "periodic",
        )

    def client(self, number: int, cluster: Cluster) -> Asker:
        """A client that is connected."""
        own = self.store["clients"][number]
        made = Asker(self.hosts[own["node"]], self.stack)
        made.ask(
            "connect",
            contact_points=[each.member.address for each in cluster.nodes],
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
        )
        return made

    def measure(
        self,
        cluster: Cluster,
        clients: Sequence[Asker],
        wire: Process,
        progress: RunProgress | None,
    ) -> Json:
        """Prepares, asks, and looks for what was acknowledged."""
        first, workload = clients[0], self.store["workload"]
        first.ask("schema", replication=replication(self.store), seconds=120)
        first.ask("ready", level="ALL", seconds=120)
        for other in clients[1:]:
            other.ask("prepare")
        first.ask("load", first=0, count=workload["records"], seconds=3600)
        # Far from the keys that are measured.
        warm = [["insert", -1 - i, 1, 0] for i in range(WARM_WRITES)]
        for other in clients:
            other.ask("run", script=warm, start=0, end=LONGEST, warm=True, seconds=600)
        self.impair()
        begin = time.monotonic_ns()
        start = begin + self.store["load"]["start"]
        end = begin + self.plan["duration"]
        of = len(clients)
        total = self.store["load"]["requests"]
        for number, each in enumerate(clients):
            share = SCRIPT if total is None else (total - number + of - 1) // of
            script = self.parts.script(number, min(share, SCRIPT))
            each.tell("run", script=script, start=start, end=end, warm=False)
        faults = self.faults(begin)
        for each in clients:
            while not each.answered(TICK):
                self.tick(cluster, wire, faults, progress, begin)
        answers = [each.answer() for each in clients]
        measured = time.monotonic_ns() - begin
        self.impair(clean=True)
        cluster.restore()
        cluster.agree(clients)
        first.ask("ready", level="ALL", seconds=120)
        need = self.parts.write_need
        checks = [each.ask("verify", most=SHOWN, need=need, replicas=True, seconds=3600)
                  for each in clients]  # fmt: skip
        coordinated: Counter[str] = Counter()
        for answer in answers:
            coordinated.update(answer["coordinated"])
        about = {
            "coordinated": dict(coordinated),
            "checked": checks,
            "measured_nanoseconds": measured,
        }
        if lost := sum(check["lost"] for check in checks):
            named = [key for check in checks for key in check["some"].get("lost", ())]
            raise LabError(f"{lost} acknowledged writes are lost: keys {named[:SHOWN]}")
        rows = [row for each in clients for row in each.outcomes()]
        return {"rows": rows, "about": about}

    def faults(self, start: int) -> list[tuple[int, bool, int]]:
        """When (monotonic ns) which node dies or comes back, in order: time, whether up, number."""
        found = []
        for fault in self.store["faults"]:
            number = fault["what"]["node"]
            found.append((start + fault["at"], False, number))
            if fault["until"] is not None:
                found.append((start + fault["until"], True, number))
        return sorted(found)

    def tick(
        self,
        cluster: Cluster,
        wire: Process,
        faults: list[tuple[int, bool, int]],
        progress: RunProgress | None,
        start: int,
    ) -> None:
        """Looks after all parts, and lets happen what is due."""
        if not wire.running:
            raise LabError(f"the wire ended too early{wire.complaint()}")
        now = time.monotonic_ns()
        while faults and faults[0][0] <= now:
            _, up, number = faults.pop(0)
            if up:
                cluster.restart(number)
            else:
                cluster.nodes[number].kill()
        cluster.check()
        share = min(1.0, max(0, now - start) / self.plan["duration"])
        if progress is not None and progress(share, 0) is False:
            raise KeyboardInterrupt

    def write(self, clients: Sequence[Asker], cluster: Cluster) -> None:
        """Keeps what programs wrote."""
        for each in clients:
            rows = "\n".join(json.dumps(row) for row in each.outcomes())
            (self.raw / f"{each.host.name}.jsonl").write_text(rows, "utf-8")
        for member in cluster.nodes:
            said = member.running.output() + member.running.errors()
            (self.raw / f"{member.member.name}.log").write_bytes(said)

    def record(
        self, sandbox: Sandbox, wire: WireProcess, rows: Sequence[Sequence[Any]], about: Json
    ) -> LabRecord:
        """The record of it all."""
        from sojourn.lab.programs.lineup import Collected
        from sojourn.lab.wiring import read_outcome

        wire.output.seek(0)
        outcome = read_outcome(wire.output)
        # The wire was told to stop when all was done.
        outcome = replace(outcome, complete=True, reached=about["measured_nanoseconds"])
        health = {**outcome.health, "stolen_share": self.stolen}
        against = doubts(self.plan, health, {}, Collected((), {}, (), (), ()))
        if violations := sum(check["violations"] for check in about["checked"]):
            against.append(
                Doubt(
                    "acknowledged writes on fewer replicas than their level says",
                    str(violations), "none may", "the store does not keep what it promises",
                )
            )  # fmt: skip
        real = {
            "engine": self.engine.name,
            "valid": not against,
            "doubts": [doubt.as_dict() for doubt in against],
            "privilege": sandbox.privilege,
            "privilege_reason": sandbox.reason,
            "realtime": wire.realtime,
            "kernel": platform.release(),
            "programs": {"cassandra": VERSION},
            "store": about,
            "health": health,
            "agreements": [],
            "captures": [],
        }
        tables = {**outcome.tables, **summary_of(self.plan, rows, about)}
        return LabRecord(outcome, real, tables, {"programs.zip": packed(self.raw)})
