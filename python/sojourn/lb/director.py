"""Selects servers for new flows, with a policy, its inputs and the states of the servers.

The policy is `sojourn._core.Balancer`, as in simulations. This module reads the inputs of the
policy and reports to it which servers are up. While the backlogs for the policy are too old, it
assigns flows to these servers by round robin.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Literal, TypeVar

from sojourn import _core
from sojourn.lab.errors import LabError
from sojourn.lab.typed import of_json
from sojourn.lb.backlog import BacklogError, Reader
from sojourn.lb.flows import Key
from sojourn.lb.service import Service

KEPT = 64
"""Number of latest choices that are displayed."""
REMEMBERED_CLIENTS = 65_536
"""Largest number of clients whose server is remembered for affinity."""

T = TypeVar("T")


class PolicyRefused(LabError):
    """Raised if a policy cannot work with the available inputs."""


@dataclass(frozen=True)
class Choice:
    """A choice of a server for a flow, for the display."""

    at: int
    key: Key
    server: int
    reason: str
    age: float | None
    """Age of the policy's reading in seconds; None if the policy uses no reading."""
    took: float
    """Duration of the decision, in seconds."""


@dataclass
class Seen:
    """State of a server, as far as it is known."""

    up: bool = False
    why: str = "not probed yet"
    mac: str | None = None
    tx_bytes: int | None = None
    tx_packets: int | None = None
    dropped: int | None = None
    link: bool = True
    chosen: int = 0


def working_with(look: Callable[[str], bool]) -> list[str]:
    """Returns the names of the built-in policies whose input satisfies the condition `look`."""
    names = [table["name"] for table in json.loads(_core.describe())["balancer"]]
    return [name for name in names if look(_needs(name).look)]


@dataclass(frozen=True)
class Needs:
    """Needs of a policy, as `sojourn._core.Balancer.needs` reports them."""

    look: Literal["nothing", "connections", "latency", "counters", "backlog"]
    """Input of the policy."""
    period: int
    """Interval between readings in ns; 0 or less if the policy has no such interval."""
    limits: bool
    """Whether the policy compares backlogs with the capacities of queues."""
    rates: bool
    """Whether the policy divides backlogs by rates."""


def _needs(policy: str) -> Needs:
    return of_json(Needs, _core.Balancer(policy, ["one"]).needs)


class Director:
    """Selects servers for flows, and has the states of the servers."""

    def __init__(self, service: Service, reader: Reader | None = None) -> None:
        self.service = service
        self.needs = _needs(service.policy)
        self.look = self.needs.look
        self.period = max(self.needs.period, 0) / 1e9
        """Interval between readings for the policy, in seconds; 0 if the policy needs a reading for
        each choice, or no readings."""
        self.stale = service.session.stale + self.period
        """Age in seconds above which a reading is not used: the service's limit plus one
        `period`."""
        self.reader = self._reader(reader)
        servers = [(server.name, server.weight) for server in service.servers]
        self.policy = _core.Balancer(service.policy, servers, seed=service.session.seed)
        self.seen = [Seen() for _ in service.servers]
        for number in range(len(self.seen)):
            self.policy.set_up(number, False)
        self.numbers = {server.name: n for n, server in enumerate(service.servers)}
        self.choices: deque[Choice] = deque(maxlen=KEPT)
        self.decided = 0
        self.followed = 0
        """Number of flows that went to the server of the client's other flows (affinity)."""
        self.fallen_back = 0
        """Number of choices by round robin because the policy's reading was too old."""
        self.times: deque[float] = deque(maxlen=4096)
        self.fault: _core.PolicyError | None = None
        """First error of a user's policy, which ends the program; None without an error."""
        self._turn = 0
        self._observed = 0
        self._clients: OrderedDict[tuple[IPv4Address, int], tuple[int, float]] = OrderedDict()

    def _reader(self, reader: Reader | None) -> Reader | None:
        texts = [server.backlog for server in self.service.servers]
        if reader is None and all(text is not None for text in texts):
            reader = Reader([text for text in texts if text is not None])
        if self.look != "backlog":
            return reader
        name = _core.Balancer(self.service.policy, ["one"]).text.split()[0]
        others = ", ".join(working_with(lambda look: look != "backlog"))
        if reader is None:
            raise PolicyRefused(
                f"{name} needs the backlogs of the ports' queues, which OpenFlow does not "
                "report: name their sources with --backlog netlink:IF,... or "
                f"wire:SOCKET:LINK,...; policies that need no backlogs: {others}"
            )
        try:
            reader.check()
            reader.read()
        except BacklogError as error:
            raise PolicyRefused(f"{error}; policies that need no backlogs: {others}") from error
        if reader.trouble is not None or reader.oldest() > self.stale:
            why = reader.trouble or f"the reading is {reader.oldest():.1f} s old"
            raise PolicyRefused(
                f"the backlog is out of date: {why}; policies that need no backlogs: {others}"
            )
        if self.needs.limits and any(
            s.limit_packets is None and s.limit_bytes is None for s in self.service.servers
        ):
            raise PolicyRefused(
                f"{name} compares backlogs with the capacities of queues: set the limit of each "
                "server, such as --server s1=10.0.0.11@2,limit=100p"
            )
        if self.needs.rates:
            for server, found in zip(self.service.servers, reader.latest, strict=True):
                if server.rate is None and (found is None or found.rate is None):
                    raise PolicyRefused(
                        f"{name} divides backlogs by rates: set the rate of {server.name}, such "
                        f"as --server {server.name}=...,rate=20mbit"
                    )
        return reader

    # Known state

    def set_up(self, number: int, up: bool, why: str) -> bool:
        """Sets whether a server is up, and why; returns whether the state changed."""
        seen = self.seen[number]
        news = seen.up != up
        seen.up, seen.why = up, why
        if news:
            self._tell(lambda: self.policy.set_up(number, up))
        return news

    def counted(self, number: int, size: int, packets: int, dropped: int) -> None:
        """Records the counters of a server's port: sent bytes and packets, and dropped packets."""
        seen = self.seen[number]
        seen.tx_bytes, seen.tx_packets, seen.dropped = size, packets, dropped

    def observe(self, now: int) -> None:
        """Passes the current readings to the policy; backlogs that are too old are omitted."""
        servers = self.service.servers
        backlog: list[tuple[int, int] | None] = [None] * len(servers)
        rates: list[int | None] = [server.rate for server in servers]
        at = now
        if self.reader is not None:
            for number, one in enumerate(self.reader.read()):
                if one is None or one.age(now) > self.stale:
                    continue
                backlog[number] = (one.packets, one.bytes)
                rates[number] = rates[number] or one.rate
                at = min(at, one.at)
        # The time of the observation is that of its oldest reading, and must not decrease.
        self._observed = max(self._observed, at)
        counters = [
            None
            if seen.tx_bytes is None or seen.tx_packets is None
            else (seen.tx_bytes, seen.tx_packets)
            for seen in self.seen
        ]
        self._tell(
            lambda: self.policy.observe(
                self._observed,
                backlog=backlog,
                limit=[server.limit_packets for server in servers],
                limit_bytes=[server.limit_bytes for server in servers],
                rate=rates,
                counters=counters,
            )
        )

    def _tell(self, call: Callable[[], T]) -> T | None:
        """Calls the policy; returns None if it raises an error, and records the first error."""
        try:
            return call()
        except _core.PolicyError as error:
            self.fault = self.fault or error
            return None

    @property
    def blind(self) -> str | None:
        """Reason why the policy cannot be used now, so that round robin is used; None if it can."""
        if self.look != "backlog" or self.reader is None:
            return None
        age = self.reader.oldest()
        if age <= self.stale:
            return None
        return self.reader.trouble or f"the backlog is {age:.1f} s old"

    # Choosing

    def choose(self, key: Key) -> int | None:
        """Returns the number of the server for a new flow; None if none was chosen."""
        begun = time.monotonic_ns()
        server, reason, age = self._choose(key, begun)
        if server is None:
            return None
        took = (time.monotonic_ns() - begun) / 1e9
        if reason == "affinity":
            self.followed += 1
        else:
            self.decided += 1
            self.times.append(took)
            self.seen[server].chosen += 1
        self.choices.append(Choice(begun, key, server, reason, age, took))
        return server

    def _choose(self, key: Key, now: int) -> tuple[int | None, str, float | None]:
        bound = self._bound(key)
        if bound is not None:
            self.policy.adopt(bound)
            return bound, "affinity", None
        if self.look == "backlog" and self.period == 0:
            self.observe(now)
        if self.blind is not None:
            server = self._by_turns()
            if server is not None:
                self.fallen_back += 1
                self.policy.adopt(server)
                self._bind(key, server)
            return server, "blind", None
        # Reading the inputs took time, and their ages refer to the current time.
        now = time.monotonic_ns()
        flow = key.packed(self.service.address)
        server = self._tell(lambda: self.policy.choose(now, flow))
        if server is None:
            return None, "", None
        self._bind(key, server)
        age = self.policy.age
        return server, self.policy.reason or "", None if age is None else age / 1e9

    def _by_turns(self) -> int | None:
        for step in range(1, len(self.seen) + 1):
            number = (self._turn + step) % len(self.seen)
            if self.seen[number].up:
                self._turn = number
                return number
        return None

    def _who(self, key: Key) -> tuple[IPv4Address, int] | None:
        match self.service.affinity.kind:
            case "client":
                return (key.client, 0)
            case "client-port":
                return (key.client, key.port)
            case _:
                return None

    def _bound(self, key: Key) -> int | None:
        """Returns the number of the server of a client's other flows, if this server is up."""
        who = self._who(key)
        if who is None or who not in self._clients:
            return None
        server, until = self._clients[who]
        if until < time.monotonic() or not self.seen[server].up:
            del self._clients[who]
            return None
        self._bind(key, server)
        return server

    def _bind(self, key: Key, server: int) -> None:
        who = self._who(key)
        if who is None:
            return
        self._clients[who] = (server, time.monotonic() + self.service.affinity.time)
        self._clients.move_to_end(who)
        while len(self._clients) > REMEMBERED_CLIENTS:
            self._clients.popitem(last=False)

    def adopt(self, key: Key, server: int) -> None:
        """Reports to the policy a flow at `server` that an earlier process assigned."""
        self.policy.adopt(server)
        self._bind(key, server)

    def finished(self, server: int, took: int | None) -> None:
        """Reports a flow's end to the policy; `took` is its duration in ns, None if unknown."""
        latency = None if took is None else max(took, 0)
        self._tell(lambda: self.policy.finished(time.monotonic_ns(), server, latency))
