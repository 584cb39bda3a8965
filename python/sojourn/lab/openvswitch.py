"""Open vSwitch inside a sandbox, with its own database and run directory.

If the kernel has Open vSwitch's datapath (module `openvswitch`), it is used
(`datapath_type=system`); otherwise the datapath in user space (`netdev`), which needs no module.
The latter reads and writes its ports through packet sockets. Senders to it must therefore not leave
checksums or segmentation to hardware: see `switch_off_offloads`.
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
SCHEMA = ("/usr/share/openvswitch/vswitch.ovsschema",)
READY_SECONDS = 20.0
BRIDGE = "br0"
QUIET = ("-vconsole:warn", "-vsyslog:off", "-vfile:off")


Datapath = Literal["auto", "kernel", "user"]
KINDS = {"kernel": "system", "user": "netdev"}
"""Open vSwitch's names of the datapaths."""
FAMILY = "ovs_datapath"


def require(datapath: Datapath = "auto") -> None:
    """Raises `Unavailable` unless Open vSwitch is installed with this datapath."""
    require_programs(PROGRAMS)
    schema()
    chosen(datapath)


def chosen(datapath: Datapath) -> Literal["kernel", "user"]:
    """Returns the datapath to use; raises `Unavailable` if it is the kernel's and missing."""
    if datapath == "user":
        return "user"
    if in_kernel():
        return "kernel"
    if datapath == "auto":
        return "user"
    raise Unavailable(
        "this kernel has no Open vSwitch datapath",
        "load it (modprobe openvswitch), or leave the datapath to user space",
    )


def in_kernel() -> bool:
    """Whether the kernel has Open vSwitch's datapath, loaded or loadable on demand."""
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
    """Returns the path of the database's schema."""
    for path in SCHEMA:
        if Path(path).is_file():
            return path
    raise Unavailable(f"Open vSwitch's schema is not at {SCHEMA[0]}", "install openvswitch-common")


def version(host: Host) -> str:
    """Returns the version of the switch, for the record."""
    process = host.spawn(["ovs-vswitchd", "--version"])
    process.wait(READY_SECONDS)
    words = process.output().decode(errors="replace").split()
    return next((word for word in words if word[:1].isdigit()), "unknown")


def switch_off_offloads(host: Host, link: str) -> None:
    """Makes `link` send whole packets with complete checksums.

    Packets through packet sockets are not completed later, and TCP would hang.
    """
    host.set_offloads(link, tx=False, tso=False, gso=False)
    wrong = [name for name in ("tso", "gso") if host.offloads(link).get(name)]
    if wrong:
        raise LabError(f"{host.name}, {link}: {', '.join(wrong)} cannot be switched off")


class OpenVSwitch:
    """A switch in a host: `start` it, give it ports, `stop` it, `start` it again.

    Its database lasts as long as the sandbox, its rules as long as its process.
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
        """Process of the switch."""
        if self._switch is None:
            raise LabError("the switch has not been started")
        return self._switch

    def _environment(self) -> Mapping[str, str]:
        names = ("OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR")
        return dict.fromkeys(names, self.folder)

    def run(self, *argv: str) -> str:
        """Runs one of the switch's tools to its end; returns its output."""
        process = self.host.spawn(list(argv), env=self._environment())
        if process.wait(READY_SECONDS) != 0:
            raise LabError(f"{argv[0]} failed{process.complaint()}")
        return process.output().decode(errors="replace")

    def _daemon(self, socket: str, *argv: str) -> Process:
        """Starts a program and waits for its control socket."""
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
        """Starts the database, if necessary, and the switch."""
        if self._database is None:
            # A program's working directory is private to the sandbox.
            holder = self.host.spawn(["mkdir", "ovs"])
            if holder.wait(READY_SECONDS) != 0:
                raise LabError(f"no folder for Open vSwitch{holder.complaint()}")
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
        """Ends the switch and with it its rules."""
        if kill:
            self.process.signal(signal.SIGKILL)
            self.process.wait(READY_SECONDS)
        else:
            self.process.stop()
        self._switch = None

    def configure(self, *words: str) -> str:
        """Runs `ovs-vsctl`, which waits until the switch has applied the change."""
        return self.run("ovs-vsctl", f"--db=unix:{self.folder}/db.sock", *words)

    def bridge(self, ports: Sequence[str], controller: str | None) -> None:
        """Creates a bridge with these links of the host as ports 1, 2, ...

        The bridge forwards nothing without rules (fail-mode=secure). It connects to its controller
        outside its own ports (out-of-band); otherwise the controller's rules could cut the
        connection.
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
