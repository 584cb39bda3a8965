"""Tests whether a port of a host is open, by /proc/net of the host's namespace."""

from __future__ import annotations

import os
from contextlib import suppress

from sojourn.lab import syscalls

STATES = {"tcp": 0x0A, "udp": 0x07}
"""State of an open socket by protocol: TCP_LISTEN, and for UDP TCP_CLOSE, which a bound socket has
(`include/net/tcp_states.h`).
"""


class Looker:
    """Reads the open ports of a protocol, or of `any`, in the namespace `netns`.

    `home` is the namespace of this process. An open file of /proc/net shows the namespace in which
    it was opened, so the process need not enter the namespace again.
    """

    def __init__(self, netns: int, home: int, protocol: str) -> None:
        self.fds: list[tuple[int, int]] = []
        """Open files of /proc/net, each with the state of an open socket."""
        syscalls.setns(netns, syscalls.CLONE_NEWNET)
        try:
            for each in STATES if protocol == "any" else (protocol,):
                for name in (each, f"{each}6"):
                    with suppress(FileNotFoundError):  # without IPv6
                        path = f"/proc/self/net/{name}"
                        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                        self.fds.append((fd, STATES[each]))
        finally:
            syscalls.setns(home, syscalls.CLONE_NEWNET)

    def __del__(self) -> None:
        for fd, _ in self.fds:
            os.close(fd)

    def open(self, port: int) -> bool:
        """Returns whether `port` is open now."""
        return any(port in self._ports(fd, state) for fd, state in self.fds)

    def _ports(self, fd: int, state: int) -> set[int]:
        os.lseek(fd, 0, os.SEEK_SET)
        text = bytearray()
        while chunk := os.read(fd, 65536):
            text += chunk
        found = set()
        for line in text.decode("ascii", "replace").splitlines()[1:]:
            fields = line.split()
            if len(fields) > 3 and int(fields[3], 16) == state:
                found.add(int(fields[1].rpartition(":")[2], 16))
        return found
