"""A table of flows and their servers, of bounded size.

The table keeps a flow for longer than the switch keeps its rules, so that a packet after a long
silence reaches the server of the flow. When the table is full, the oldest flows without rules are
removed. An SQLite file stores the flows for the next process.
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
    """Fields of a client's packets that identify the flow."""

    protocol: int
    client: IPv4Address
    client_port: int
    port: int

    def packed(self, address: IPv4Address) -> bytes:
        """Returns addresses, protocol and ports as bytes, from which policies compute hashes."""
        ports = self.client_port.to_bytes(2) + self.port.to_bytes(2)
        return self.client.packed + address.packed + bytes([self.protocol]) + ports


@dataclass(slots=True)
class Flow:
    """A flow, its server and the state of its rules."""

    key: Key
    server: str
    """Name of the server, because its number may change between runs."""
    client_mac: str
    client_at: int
    """OpenFlow port at which the client's packets come in."""
    forward: bool = False
    reverse: bool = False
    """Whether the switch has the rule for the server's packets, or will have it; `forward` is the
    same for the client's packets."""
    pending: bool = False
    """Whether the switch has not yet confirmed the flow's rules."""
    proved: bool = False
    """Whether the flow has sent a second packet."""
    counted: bool = False
    """Whether the policy counts the flow as open at its server."""
    began: int | None = None
    """Time at which the server was chosen, in nanoseconds of the monotonic clock; None if the flow
    began before this process.
    """

    @property
    def installed(self) -> bool:
        """Whether the switch has a rule of the flow."""
        return self.forward or self.reverse


class FlowTable:
    """All known flows by key, with and without rules."""

    def __init__(self, most: int, notes: Notes | None = None) -> None:
        self.most = most
        self.notes = notes
        self.clients: Counter[IPv4Address] = Counter()
        """Number of flows with rules, by client address."""
        self.pending = 0
        self._live: dict[Key, Flow] = {}
        self._silent: OrderedDict[Key, Flow] = OrderedDict()

    def restore(self) -> dict[str, str]:
        """Adds the flows of an earlier process; returns the servers' MAC addresses by name."""
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
        """Stores the MAC address of a server in the notes."""
        if self.notes is not None:
            self.notes.put_mac(server, mac)

    def __len__(self) -> int:
        return len(self._live) + len(self._silent)

    def __iter__(self) -> Iterator[Flow]:
        yield from list(self._live.values())
        yield from list(self._silent.values())

    @property
    def installed(self) -> int:
        """Number of flows that have rules."""
        return len(self._live)

    def live(self) -> list[Flow]:
        """Returns the flows that have rules."""
        return list(self._live.values())

    def get(self, key: Key) -> Flow | None:
        """Returns the flow with this key; None if it is unknown."""
        return self._live.get(key) or self._silent.get(key)

    def add(self, flow: Flow) -> None:
        """Adds a flow; replaces an earlier flow with the same key."""
        self.forget(flow.key, noted=False)
        self._silent[flow.key] = flow
        while len(self) > self.most and self._silent:
            oldest = next(iter(self._silent))
            if oldest == flow.key:
                break
            self.forget(oldest)
        self._note(flow)

    def forget(self, key: Key, *, noted: bool = True) -> Flow | None:
        """Removes the flow with this key; returns it, or None if it was unknown."""
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
        """Records which rules a flow has now; None leaves the state of a rule unchanged."""
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
        """Records that a flow's rules wait for the switch's confirmation."""
        if not flow.pending:
            flow.pending = True
            self.pending += 1

    def confirm(self, flow: Flow) -> None:
        """Records that a flow's rules no longer wait for the switch's confirmation."""
        if flow.pending:
            flow.pending = False
            self.pending -= 1


class Notes:
    """Flows in an SQLite file, for the next process if the switch also loses its rules.

    The file must survive the end of a process. It need not survive a power failure, so writes do
    not wait for the disk.
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
            hint = "another balancer may be using the file" if "locked" in str(error) else ""
            raise LabError(f"{path}: {error}; {hint}".rstrip("; ")) from error

    def _prepare(self) -> None:
        # Exclusive: a second writer would overwrite the flows of the first one.
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
        """Stores the current state of a flow."""
        key = flow.key
        row = (key.protocol, str(key.client), key.client_port, key.port, flow.server)
        row += (flow.client_mac, flow.client_at, flow.installed)  # type: ignore[assignment]
        self._base.execute("INSERT OR REPLACE INTO flows VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def remove(self, key: Key) -> None:
        """Removes the flow with this key."""
        self._base.execute(
            "DELETE FROM flows WHERE protocol = ? AND client = ? AND client_port = ? AND port = ?",
            (key.protocol, str(key.client), key.client_port, key.port),
        )

    def read(self) -> Iterator[tuple[Flow, bool]]:
        """Yields all stored flows, and whether each had rules."""
        rows = self._base.execute("SELECT * FROM flows").fetchall()
        for protocol, client, client_port, port, server, mac, at, installed in rows:
            with suppress(ValueError):
                key = Key(protocol, IPv4Address(client), client_port, port)
                yield Flow(key, server, mac, at), bool(installed)

    def put_mac(self, server: str, mac: str) -> None:
        """Stores the MAC address of a server."""
        self._base.execute("INSERT OR REPLACE INTO macs VALUES (?, ?)", (server, mac))

    def macs(self) -> dict[str, str]:
        """Returns the stored MAC addresses by server name."""
        return dict(self._base.execute("SELECT server, mac FROM macs").fetchall())

    def close(self) -> None:
        """Closes the file."""
        self._base.close()
