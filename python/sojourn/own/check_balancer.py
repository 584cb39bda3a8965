"""The trial of balancing policies: random schedules, and the engine's checks of each decision."""

from __future__ import annotations

import random

from sojourn import _core
from sojourn.own.check import Note, Play, Schedule, Step
from sojourn.own.text import Own, balancer_params, with_sources

SERVERS = 4
"""Maximum number of servers."""
RATE = 10_000_000
"""Rate of each server's port in bit/s."""


class BalancerTrial:
    """The trial of balancing policies.

    Flows begin and end, queues of ports are read, and servers fail and recover.
    """

    def __init__(self, own: Own) -> None:
        self.policy = with_sources(balancer_params(own), own.texts)

    def schedule(self, draws: random.Random) -> Schedule:
        """Returns a random schedule, whose first step is the number of servers."""
        servers = draws.randrange(1, SERVERS + 1)
        scale, faults = draws.choice((0, 10_000_000, 30_000_000_000)), draws.choice((0.0, 0.2))
        steps: Schedule = [("servers", 0, servers)]
        for _ in range(draws.choice((10, 50, 200))):
            gap, server = draws.randrange(scale + 1), draws.randrange(servers)
            if draws.random() < faults:
                steps.append(("up" if draws.random() < 0.6 else "down", gap, server))
                continue
            match draws.choice(("choose", "choose", "choose", "finish", "finish", "read")):
                case "choose":
                    steps.append(("choose", gap, draws.randrange(1000)))
                case "finish":
                    steps.append(("finish", gap, server, draws.choice((-1, 1, 20_000))))
                case _:
                    packets = [draws.choice((-1, 0, draws.randrange(200))) for _ in range(servers)]
                    steps.append(("read", gap, *packets))
        return steps

    def simpler(self, step: Step) -> list[Step]:
        """Returns simpler steps: no pause, flow 0, empty queues."""
        match step:
            case ("choose", _, _):
                return [("choose", 0, 0)]
            case ("read", _, *packets):
                return [("read", 0, *(0 for _ in packets))]
            case (str(what), _, *rest) if what != "servers":
                return [(what, 0, *rest)]
            case _:
                return []

    def play(self, note: Note) -> _Play:
        """Returns an execution that begins with all servers up."""
        return _Play(self, note)


class _Play(Play[_core.Balancer]):
    """The execution of a schedule on a balancer.

    Steps for servers that do not exist have no effect.
    """

    def __init__(self, trial: BalancerTrial, note: Note) -> None:
        self.trial, self.servers = trial, SERVERS
        super().__init__(self._bench, note)
        self.sent = [0] * SERVERS

    def _bench(self) -> _core.Balancer:
        names = [(f"server{i}", 1 + i % 3) for i in range(self.servers)]
        return _core.Balancer(self.trial.policy, names, seed=1)

    def step(self, step: Step) -> None:
        """Executes one step of a schedule."""
        what, gap, *rest = step
        self.now += int(gap)
        values = [int(value) for value in rest]
        bench, now = self.bench, self.now
        match what, values:
            case "servers", [count]:
                self.servers = count
                self.bench = self.call(f"{count} servers", self._bench, lambda _: "all are up")
                self.history.clear()
            case "choose", [flow]:
                head = f"choose for flow {flow}"
                self.call(head, lambda: bench.choose(now, b"%d" % flow), _result_text)
            case "finish", [server, latency] if server < self.servers and bench.open[server]:
                took = latency * 1_000_000 if latency >= 0 else None
                self.call(
                    f"a flow of server {server} ends"
                    + ("" if took is None else f" after {latency} ms"),
                    lambda: bench.finished(now, server, took),
                    lambda _: f"{bench.open[server]} left",
                )
            case (("up" | "down"), [server]) if server < self.servers:
                self.call(
                    f"server {server} goes {what}",
                    lambda: bench.set_up(server, what == "up"),
                    lambda _: f"{sum(bench.up)} up",
                )
            case "read", packets if bench.needs["look"] in ("counters", "backlog"):
                self._read(packets[: self.servers] + [-1] * (self.servers - len(packets)))

    def _read(self, packets: list[int]) -> None:
        """Gives the policy the packets in the queue of each port; -1 is an unreadable port."""
        for server, count in enumerate(packets):
            self.sent[server] += max(count, 0)
        queues = [None if n < 0 else (n, n * 1514) for n in packets]
        sent = [None if n < 0 else (s * 1514, s) for n, s in zip(packets, self.sent, strict=False)]
        counts = ", ".join("?" if n < 0 else f"{n}" for n in packets)
        self.call(
            f"queues are read: {counts} packets",
            lambda: self.bench.observe(
                self.now,
                backlog=queues,
                limit=[100] * self.servers,
                rate=[RATE] * self.servers,
                counters=sent,
            ),
            lambda _: "observed",
        )


def _result_text(server: int | None) -> str:
    return "refused" if server is None else f"server {server}"
