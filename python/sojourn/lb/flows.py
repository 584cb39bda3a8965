"""Who is where: the server of each flow, in a table that does not grow beyond its bounds.

A flow is remembered longer than its rules stand, so that a packet after a long silence finds the
server that knows it. The oldest without rules go first. What must survive this process is noted in
an SQLite file.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import NamedTuple

from sojourn.lab.errors import LabError


class Key(NamedTuple):
    """What all packets of a flow to the virtual address have in common."""

    protocol: int
    client: IPv4Address
    client_port: int
    port: int

    def packed(self, address: IPv4Address) -> bytes:
        """Addresses, protocol and ports as bytes, to be hashed."""
        ports = self.client_port.to_bytes(2) + self.port.to_bytes(2)
        return self.client.packed + address.packed + bytes([self.protocol]) + ports


@dataclass(slots=True)
class Flow:
    """A flow and its server."""

    key: Key
    server: str
    """The server's name: indices may change from run to run."""
    client_mac: str
    client_at: int
    """The port that its client is behind."""
    forward: bool = False
    reverse: bool = False
    """Whether the switch has, or will have, the rule."""
    pending: bool = False
    """Whether the switch has not confirmed its rules yet."""
    proved: bool = False
    """Whether there was more than one packet."""
    counted: bool = False
    """Whether the policy counts it as open."""
    began: int | None = None
    """When it was given its server, monotonic nanoseconds; `None` if that was before us."""

    @property
    def installed(self) -> bool:
        """Whether any rule stands."""
        return self.forward or self.reverse


class FlowTable:
    """All flows that are known."""

    def __init__(self, most: int, notes: Notes | None = None) -> None:
        self.most = most
        self.notes = notes
        self.clients: Counter[IPv4Address] = Counter()
        """Flows with rules of each client."""
        self.pending = 0
        self._live: dict[Key, Flow] = {}
        self._silent: OrderedDict[Key, Flow] = OrderedDict()

    def restore(self) -> dict[str, str]:
        """Takes over what was noted before us; returns the servers' MACs."""
        if self.notes is None:
            return {}
        notes, self.notes = self.notes, None
        for flow, installed in notes.read():
            self.add(flow)
            if installed:
                flow.proved = True
                self.rules(flow, forward=True, reverse=True)
        self.notes = notes
        return notes.macs()

    def learned(self, server: str, mac: str) -> None:
        """A server has this MAC."""
        if self.notes is not None:
            self.notes.put_mac(server, mac)

    def __len__(self) -> int:
        return len(self._live) + len(self._silent)

    def __iter__(self) -> Iterator[Flow]:
        yield from list(self._live.values())
        yield from list(self._silent.values())

    @property
    def installed(self) -> int:
        """How many have rules."""
        return len(self._live)

    def live(self) -> list[Flow]:
        """Those that have rules."""
        return list(self._live.values())

    def get(self, key: Key) -> Flow | None:
        """The flow, if it is known."""
        return self._live.get(key) or self._silent.get(key)

    def add(self, flow: Flow) -> None:
        """A flow has a server now; the one before it with the same key is forgotten."""
        self.forget(flow.key, noted=False)
        self._silent[flow.key] = flow
        while len(self) > self.most and self._silent:
            oldest = next(iter(self._silent))
            if oldest == flow.key:
                break
            self.forget(oldest)
        self._note(flow)

    def forget(self, key: Key, *, noted: bool = True) -> Flow | None:
        """A flow is over."""
        flow = self._live.pop(key, None)
        if flow is not None:
            self._uncount(flow)
        else:
            flow = self._silent.pop(key, None)
        if flow is not None:
            self.confirm(flow)
            if noted and self.notes is not None:
                self.notes.remove(key)
        return flow

    def _uncount(self, flow: Flow) -> None:
        self.clients[flow.key.client] -= 1
        if self.clients[flow.key.client] <= 0:
            del self.clients[flow.key.client]

    def _note(self, flow: Flow) -> None:
        if self.notes is not None:
            self.notes.put(flow)

    def rules(
        self, flow: Flow, *, forward: bool | None = None, reverse: bool | None = None
    ) -> None:
        """Notes which rules a flow has from now on."""
        flow.forward = flow.forward if forward is None else forward
        flow.reverse = flow.reverse if reverse is None else reverse
        if flow.installed and flow.key in self._silent:
            self._live[flow.key] = self._silent.pop(flow.key)
            self.clients[flow.key.client] += 1
        elif not flow.installed and flow.key in self._live:
            self._silent[flow.key] = self._live.pop(flow.key)
            self._uncount(flow)
            self.confirm(flow)
        else:
            return
        self._note(flow)

    def wait(self, flow: Flow) -> None:
        """The switch is to confirm a flow's rules."""
        if not flow.pending:
            flow.pending = True
            self.pending += 1

    def confirm(self, flow: Flow) -> None:
        """It has, or will not."""
        if flow.pending:
            flow.pending = False
            self.pending -= 1


class Notes:
    """Flows on disk: for whoever takes over when this process and the switch's rules are gone.

    They need to survive a process, not a power cut, so nothing waits for the disk.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600)
            self._base = sqlite3.connect(
                path, timeout=1.0, check_same_thread=False, isolation_level=None
            )
            self._prepare()
        except (sqlite3.Error, OSError) as error:
            hint = "is another balancer using it?" if "locked" in str(error) else ""
            raise LabError(f"{path}: {error}; {hint}".rstrip("; ")) from error

    def _prepare(self) -> None:
        # Its own process alone: two that note into one file would undo each other.
        self._base.execute("PRAGMA locking_mode=EXCLUSIVE")
        self._base.execute("PRAGMA journal_mode=WAL")
        self._base.execute("PRAGMA synchronous=OFF")
        self._base.execute(
            "CREATE TABLE IF NOT EXISTS macs (server TEXT PRIMARY KEY, mac TEXT) WITHOUT ROWID"
        )
        self._base.execute(
            "CREATE TABLE IF NOT EXISTS flows (protocol INTEGER, client TEXT, client_port INTEGER, "
            "port INTEGER, server TEXT, mac TEXT, at INTEGER, installed INTEGER, "
            "PRIMARY KEY (protocol, client, client_port, port)) WITHOUT ROWID"
        )

    def put(self, flow: Flow) -> None:
        """A flow as it is now."""
        key = flow.key
        row = (key.protocol, str(key.client), key.client_port, key.port, flow.server)
        row += (flow.client_mac, flow.client_at, flow.installed)  # type: ignore[assignment]
        self._base.execute("INSERT OR REPLACE INTO flows VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def remove(self, key: Key) -> None:
        """A flow is over."""
        self._base.execute(
            "DELETE FROM flows WHERE protocol = ? AND client = ? AND client_port = ? AND port = ?",
            (key.protocol, str(key.client), key.client_port, key.port),
        )

    def read(self) -> Iterator[tuple[Flow, bool]]:
        """All flows, and whether they had rules."""
        rows = self._base.execute("SELECT * FROM flows").fetchall()
        for protocol, client, client_port, port, server, mac, at, installed in rows:
            with suppress(ValueError):
                key = Key(protocol, IPv4Address(client), client_port, port)
                yield Flow(key, server, mac, at), bool(installed)

    def put_mac(self, server: str, mac: str) -> None:
        """A server's MAC."""
        self._base.execute("INSERT OR REPLACE INTO macs VALUES (?, ?)", (server, mac))

    def macs(self) -> dict[str, str]:
        """Servers' MACs, by name."""
        return dict(self._base.execute("SELECT server, mac FROM macs").fetchall())

    def close(self) -> None:
        """Nothing more is noted."""
        self._base.close()
