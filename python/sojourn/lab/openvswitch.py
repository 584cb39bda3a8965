"""Open vSwitch inside a sandbox, with its own database and run directory.

The default datapath is the kernel's (module `openvswitch`, `datapath_type=system`) if the kernel
has it. Otherwise it is the datapath in user space (`netdev`), which needs no module. The datapath
in user space reads and writes its ports through packet sockets. Hosts must therefore send complete
checksums and whole segments to this datapath: see `switch_off_offloads`.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from sojourn.lab.errors import LabError, Unavailable
from sojourn.lab.machine.needs import find_program, require_programs
from sojourn.lab.sandbox.host import Host
from sojourn.lab.sandbox.process import Process

PROGRAMS = ("ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl")
"""Required programs."""
SCHEMA = ("/usr/share/openvswitch/vswitch.ovsschema",)
"""Possible paths of the database schema."""
READY_SECONDS = 20.0
"""Time limit for each start of a program and for each command, in seconds."""
BRIDGE = "br0"
"""Name of the bridge."""
QUIET = ("-vconsole:warn", "-vsyslog:off", "-vfile:off")
"""Options that limit the daemons' logs to warnings on the standard error stream."""


Datapath = Literal["auto", "kernel", "user"]
KINDS = {"kernel": "system", "user": "netdev"}
"""`datapath_type` of Open vSwitch by datapath."""
FAMILY = "ovs_datapath"
"""Generic netlink family that the kernel module `openvswitch` registers."""


def require(datapath: Datapath = "auto") -> None:
    """Raises `Unavailable` unless Open vSwitch is installed with this datapath."""
    require_programs(PROGRAMS)
    schema()
    chosen(datapath)


def chosen(datapath: Datapath) -> Literal["kernel", "user"]:
    """Returns the datapath to use; raises `Unavailable` if the kernel's is required but missing."""
    if datapath == "user":
        return "user"
    if in_kernel():
        return "kernel"
    if datapath == "auto":
        return "user"
    raise Unavailable(
        "this kernel has no Open vSwitch datapath",
        "load the module (modprobe openvswitch), or use the datapath in user space",
    )


def in_kernel() -> bool:
    """Returns whether the kernel has Open vSwitch's datapath; loads its module if possible."""
    from pyroute2.netlink import genlmsg
    from pyroute2.netlink.exceptions import NetlinkError
    from pyroute2.netlink.generic import GenericNetlinkSocket

    try:
        with GenericNetlinkSocket() as netlink:
            netlink.bind(FAMILY, genlmsg)
    except (NetlinkError, OSError):
        return False
    return True


def schema() -> str:
    """Returns the path of the database schema; raises `Unavailable` if the file is missing."""
    for path in SCHEMA:
        if Path(path).is_file():
            return path
    raise Unavailable(f"Open vSwitch's schema is not at {SCHEMA[0]}", "install openvswitch-common")


def version(host: Host) -> str:
    """Returns the version of Open vSwitch, or `unknown`."""
    process = host.spawn(["ovs-vswitchd", "--version"])
    process.wait(READY_SECONDS)
    words = process.output().decode(errors="replace").split()
    return next((word for word in words if word[:1].isdigit()), "unknown")


def switch_off_offloads(host: Host, link: str) -> None:
    """Makes a host's device send segments of at most its MTU, with complete checksums.

    Packet sockets forward unfinished checksums and long segments unchanged. The receivers would
    drop such packets, and TCP would hang.
    """
    host.set_offloads(link, tx=False, tso=False, gso=False)
    wrong = [name for name in ("tso", "gso") if host.offloads(link).get(name)]
    if wrong:
        raise LabError(f"{host.name}, {link}: {', '.join(wrong)} cannot be switched off")


class OpenVSwitch:
    """A switch in a host. It can be stopped and started again.

    The database of bridges and ports exists until the sandbox ends. The rules exist until the
    switch stops.
    """

    def __init__(self, host: Host, datapath: Datapath = "auto") -> None:
        require(datapath)
        self.host = host
        self.datapath = chosen(datapath)
        self.folder = ""
        self._database: Process | None = None
        self._switch: Process | None = None

    @property
    def process(self) -> Process:
        """The process `ovs-vswitchd`; raises `LabError` before `start`."""
        if self._switch is None:
            raise LabError("the switch has not been started")
        return self._switch

    def _environment(self) -> Mapping[str, str]:
        names = ("OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR")
        return dict.fromkeys(names, self.folder)

    def run(self, *argv: str) -> str:
        """Runs a tool of Open vSwitch to its end; returns its output.

        Raises `LabError` if the tool fails.
        """
        process = self.host.spawn(list(argv), env=self._environment())
        if process.wait(READY_SECONDS) != 0:
            raise LabError(f"{argv[0]} failed{process.complaint()}")
        return process.output().decode(errors="replace")

    def _daemon(self, socket: str, *argv: str) -> Process:
        """Starts a daemon and waits until its control socket exists."""
        process = self.host.spawn([*argv, *QUIET], env=self._environment())
        deadline = time.monotonic() + READY_SECONDS
        while True:
            probe = self.host.spawn(["test", "-S", socket])
            if probe.wait(READY_SECONDS) == 0:
                return process
            if not process.running:
                raise LabError(f"{argv[0]} ended at once{process.complaint()}")
            if time.monotonic() > deadline:
                raise LabError(f"{argv[0]} is not ready after {READY_SECONDS:g} s")
            time.sleep(0.02)

    def start(self) -> None:
        """Starts the switch, and before that its database if it does not run yet."""
        if self._database is None:
            # The working directory of a program in the sandbox is private to the sandbox.
            holder = self.host.spawn(["mkdir", "ovs"])
            if holder.wait(READY_SECONDS) != 0:
                raise LabError(f"the folder of Open vSwitch cannot be created{holder.complaint()}")
            self.folder = f"{holder.directory}/ovs"
            self.run("ovsdb-tool", "create", f"{self.folder}/conf.db", schema())
            self._database = self._daemon(
                f"{self.folder}/db.sock",
                "ovsdb-server",
                f"{self.folder}/conf.db",
                f"--remote=punix:{self.folder}/db.sock",
                f"--unixctl={self.folder}/db.ctl",
            )
            self.configure("--no-wait", "init")
        self.run("rm", "-f", f"{self.folder}/switch.ctl")
        self._switch = self._daemon(
            f"{self.folder}/switch.ctl",
            "ovs-vswitchd",
            f"unix:{self.folder}/db.sock",
            f"--unixctl={self.folder}/switch.ctl",
        )

    def stop(self, *, kill: bool = False) -> None:
        """Ends the switch, which loses its rules; `kill` ends it by SIGKILL."""
        if kill:
            self.process.signal(signal.SIGKILL)
            self.process.wait(READY_SECONDS)
        else:
            self.process.stop()
        self._switch = None

    def configure(self, *words: str) -> str:
        """Runs `ovs-vsctl`, which waits until the switch applied the change; returns its output."""
        return self.run("ovs-vsctl", f"--db=unix:{self.folder}/db.sock", *words)

    def bridge(self, ports: Sequence[str], controller: str | None) -> None:
        """Creates the bridge with these devices of the host as ports 1, 2, ...

        The bridge forwards nothing without rules (fail-mode=secure). The bridge's connection to the
        `controller` does not use the ports (out-of-band), so rules cannot interrupt the connection.
        Without a controller, rules come only from `flows`.
        """
        words = ["add-br", BRIDGE, "--", "set", "bridge", BRIDGE]
        words += [f"datapath_type={KINDS[self.datapath]}"]
        words += ["protocols=OpenFlow13", "fail-mode=secure", "other_config:disable-in-band=true"]
        for number, port in enumerate(ports, 1):
            words += ["--", "add-port", BRIDGE, port]
            words += ["--", "set", "interface", port, f"ofport_request={number}"]
        self.configure(*words)
        if controller is not None:
            self.control(controller)

    def control(self, controller: str) -> None:
        """Sets the controller, such as `tcp:127.0.0.1:6653`; the bridge retries every second."""
        words = ["set-controller", BRIDGE, controller]
        words += ["--", "set", "controller", BRIDGE, "connection-mode=out-of-band"]
        self.configure(*words, "max_backoff=1000", "inactivity_probe=5000")

    def flows(self, *words: str) -> str:
        """Runs `ovs-ofctl` with OpenFlow 1.3: `flows("dump-flows")`, `flows("add-flow", "...")`."""
        command, *rest = words
        where = f"unix:{self.folder}/{BRIDGE}.mgmt"
        return self.run(find_program("ovs-ofctl"), "-O", "OpenFlow13", command, where, *rest)
