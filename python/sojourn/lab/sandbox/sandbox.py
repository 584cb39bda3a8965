"""The sandbox: namespaces with hosts and programs, which the process *init* holds.

Namespaces, links and files in the sandbox have no names outside, and no clean-up is necessary. When
init or the process that started it ends, even by `kill -9`, the kernel kills every program and
removes every namespace, link, mount and file. The keeper (`keeper.py`) sends requests to init over
a socket.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import IO, Literal, Self

from sojourn.lab import syscalls
from sojourn.lab.errors import LabError, Unavailable
from sojourn.lab.machine.needs import (
    ability_advice,
    require_package,
    user_namespace_advice,
)
from sojourn.lab.machine.settings import Outcome, recover
from sojourn.lab.sandbox.host import Host
from sojourn.lab.sandbox.keeper import CannotStart, Keeper
from sojourn.lab.sandbox.namespace import Namespace
from sojourn.lab.sandbox.process import Process

Privilege = Literal["auto", "user", "root"]
Ability = Literal["tun", "realtime", "force-buffers"]

DEFAULT_MEMORY = 1 << 30
"""Default limit of the files in a sandbox, in bytes."""


class Sandbox(Namespace):
    """A sandbox as a context manager, with methods that create hosts, links and programs.

    `privilege` selects the permissions of the sandbox:

    - `user`: a user namespace, which does not require root, and in which root has no rights over
      the machine.
    - `root`: no user namespace; programs have all rights of root.
    - `auto`: a user namespace; root only if user namespaces are not available or lack an ability in
      `needs`.

    `needs` lists required abilities that user namespaces do not always have: `tun` (open
    /dev/net/tun), `realtime` (SCHED_FIFO), `force-buffers` (SO_RCVBUFFORCE above
    net.core.rmem_max). After the start, `privilege` is the selected privilege, `reason` the reason
    of the selection, and `can` the available abilities.

    `memory` limits the files in the programs' working directories, in bytes. Before the start, the
    sandbox restores the machine's settings after killed runs, unless `put_back` is false. Raises
    `Unavailable`, with nothing changed, if this user cannot start a sandbox on this machine.
    """

    def __init__(
        self,
        privilege: Privilege = "auto",
        needs: Iterable[Ability] = (),
        memory: int = DEFAULT_MEMORY,
        *,
        put_back: bool = True,
    ) -> None:
        if privilege not in ("auto", "user", "root"):
            raise ValueError(f"privilege must be auto, user or root; found {privilege!r}")
        self.asked = privilege
        self.needs = frozenset(needs)
        self.memory = memory
        self.put_back = put_back
        self.privilege: Literal["user", "root"] = "user"
        self.reason = ""
        self.can: frozenset[str] = frozenset()
        self.recovered: list[Outcome] = []
        """Results for settings of the machine that killed runs did not restore."""
        self.hosts: dict[str, Host] = {}
        self._keeper: Keeper | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Starts init; called by `with`."""
        if self._keeper is not None:
            raise LabError("the sandbox has been started already")
        require_package("pyroute2", "pyroute2", "lab")
        if self.put_back:
            self.recovered = recover()
        root = syscalls.capable(syscalls.CAP_SYS_ADMIN)
        if self.asked != "root":
            trouble = self._try("user")
            if trouble is None:
                return
            if self.asked == "user" or not root:
                raise trouble
            self.reason = trouble.message
        elif not root:
            raise Unavailable("a sandbox without a user namespace needs root", "use sudo")
        trouble = self._try("root")
        if trouble is not None:
            raise trouble

    def _try(self, privilege: Literal["user", "root"]) -> Unavailable | None:
        """Starts init with a privilege; returns `None`, or the error if the start fails."""
        try:
            keeper = Keeper(privilege == "user", self.memory)
        except CannotStart as failure:
            if privilege == "user":
                return user_namespace_advice(failure.step, failure.errno, str(failure))
            return Unavailable(f"the sandbox cannot be created: {failure}")
        lacking = sorted(self.needs - keeper.can)
        if lacking:
            keeper.end()
            where = "a user namespace" if privilege == "user" else "root"
            return Unavailable(
                f"{where} does not have {', '.join(lacking)} here", ability_advice(lacking[0])
            )
        self._keeper = keeper
        self.privilege = privilege
        self.can = keeper.can
        if not self.reason:
            self.reason = "requested" if self.asked == privilege else "sufficient for this run"
        return None

    def close(self) -> None:
        """Ends init and all programs in the sandbox; has no effect on an ended sandbox."""
        if self._keeper is not None:
            self._keeper.end()
            for host in self.hosts.values():
                host.close()

    @property
    def pid(self) -> int:
        """Process number of *outer*, init's parent. Outer ends with this process."""
        return self.keeper.popen_pid

    @property
    def alive(self) -> bool:
        """Whether init is running."""
        return self._keeper is not None and self._keeper.ended is None

    def host(self, name: str) -> Host:
        """Creates a host: a network namespace whose only device is `lo`, which is up."""
        if name in self.hosts:
            raise LabError(f"the sandbox already has a host {name!r}")
        answer, fds = self.keeper.request("host")
        host = Host(
            self.keeper, name, answer["host"], answer["inode"], f"/proc/1/fd/{answer['fd']}", fds[0]
        )
        self.hosts[name] = host
        host.set_link("lo", up=True)
        return host

    def veth(
        self,
        first: Host,
        first_name: str,
        second: Host,
        second_name: str,
        mtu: int | None = None,
    ) -> None:
        """Creates a veth pair between two hosts or in one host; both devices are down."""
        self.keeper.request(
            "network",
            host=first.number,
            call="link_add",
            arguments={"name": first_name, "kind": "veth", "peer": second_name, "mtu": mtu},
            hosts={"peer_netns": second.number},
        )

    def wait_any(self, processes: Collection[Process], timeout: float) -> list[Process]:
        """Waits at most `timeout` seconds until a process has ended; returns all ended ones."""
        return self.keeper.wait_any(processes, timeout)

    def open(self, path: str, mode: Literal["r", "w", "a"] = "r") -> IO[bytes]:
        """Opens a file by its path inside the sandbox, for reading, writing or appending."""
        _, fds = self.keeper.request("open", path=path, mode=mode)
        return os.fdopen(fds[0], mode + "b")

    @property
    def keeper(self) -> Keeper:
        """The keeper of the sandbox; raises `LabError` before the start."""
        if self._keeper is None:
            raise LabError("the sandbox has not been started")
        return self._keeper
