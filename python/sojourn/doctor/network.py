"""Findings on real runs: namespaces, devices, queue disciplines and congestion controls."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from sojourn import _core
from sojourn.doctor import modules
from sojourn.doctor.finding import Finding, State
from sojourn.lab import syscalls
from sojourn.lab.errors import LabError, Unavailable
from sojourn.lab.kernel import qdiscs
from sojourn.lab.machine import needs, packages
from sojourn.lab.machine.journal import Journal, NoJournal
from sojourn.lab.sandbox.sandbox import Sandbox
from sojourn.lab.wire.selftest import selftest

IDLE = "stop other programs on this machine, then repeat by `sojourn wire selftest`"
"""Advice if no rate is valid."""
CONTROLS = ("reno", "cubic", "bbr", "dctcp")
"""Congestion controls of Sojourn that released kernels also have, possibly as modules."""
EXAMPLES = {
    "red": "red limit 400kb min 30kb max 90kb avpkt 1000 probability 0.02 bandwidth 10mbit",
    "choke": "choke limit 400p min 30p max 90p probability 0.02 bandwidth 10mbit",
    "tbf": "tbf rate 10mbit burst 32kb limit 100kb",
    "ets": "ets bands 3",
}
"""Valid parameters, in words of `tc`, for disciplines that have no defaults."""


def laboratory() -> list[Finding]:
    """Starts a sandbox, examines its abilities, and ends it."""
    if platform.system() != "Linux":
        return [Finding("namespaces", "no", f"{platform.system()} has no namespaces", "use Linux")]
    try:
        with closing(_sandbox()) as sandbox:
            whose = "in a user namespace" if sandbox.privilege == "user" else "as root"
            found = [Finding("namespaces", "yes", whose), _tun(sandbox)]
            found += [_realtime(sandbox), _buffers(sandbox), *_disciplines(sandbox)]
    except Unavailable as error:
        return [Finding("namespaces", "no", error.message, error.advice)]
    except LabError as error:
        return [Finding("namespaces", "no", str(error))]
    return found


def _sandbox() -> Sandbox:
    """Returns a started sandbox, with a TUN device if possible."""
    try:
        sandbox = Sandbox(needs=("tun",), put_back=False)
        sandbox.start()
    except Unavailable:
        sandbox = Sandbox(put_back=False)
        sandbox.start()
    return sandbox


def _tun(sandbox: Sandbox) -> Finding:
    name = "TUN device"
    if "tun" in sandbox.can:
        return Finding(name, "yes", "/dev/net/tun can be opened, for the wire's links")
    return Finding(
        name, "no", "cannot open /dev/net/tun, for the wire's links", needs.ability_advice("tun")
    )


def _realtime(sandbox: Sandbox) -> Finding:
    name = "realtime priority"
    process = sandbox.spawn([sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"])
    try:
        if process.run_first():
            return Finding(name, "yes", "permitted", needed=False)
    finally:
        process.stop()
    found = "denied: on a busy machine packets leave late, and runs are not valid"
    return Finding(name, "no", found, needs.ability_advice("realtime"), needed=False)


def _buffers(sandbox: Sandbox) -> Finding:
    name = "large socket buffers"
    if "force-buffers" in sandbox.can or syscalls.capable(syscalls.CAP_NET_ADMIN):
        return Finding(name, "yes", "beyond net.core.rmem_max", needed=False)
    found = "only up to net.core.rmem_max"
    return Finding(name, "no", found, needs.ability_advice("force-buffers"), needed=False)


def _disciplines(sandbox: Sandbox) -> list[Finding]:
    """Examines the kernel's queue disciplines, without a trial that would load a module."""
    name = "kernel's disciplines"
    try:
        needs.require_programs(["tc"])
    except Unavailable as error:
        return [Finding(name, "no", f"unknown: {error.message}", error.advice, needed=False)]
    wanted = {"htb": "htb", "netem": "netem delay 1ms", **_kinds()}
    places = {kind: modules.where(f"sch_{kind}") for kind in wanted}
    # `pfifo` and `bfifo` are always built in.
    tried = {
        kind: words
        for kind, words in wanted.items()
        if places[kind] in ("here", "nowhere") or kind in ("pfifo", "bfifo")
    }
    refused = qdiscs.refusals(sandbox, tried)
    there = [k for k in wanted if k in tried.keys() - refused.keys() or places[k] == "on disk"]
    found = []
    if there:
        found.append(Finding(name, "yes", " ".join(there), needed=False))
    if untried := [k for k in wanted if k not in tried and k not in there]:
        text = f"not tried, because that may load a module: {' '.join(untried)}"
        found.append(Finding(name, "unknown", text, needed=False))
    # The error of `tc` contains the name of an unknown discipline; the kernel's error does not.
    strange = [k for k, said in refused.items() if f'nknown qdisc "{k}"' in said]
    if strange:
        text = f"this `tc` lacks: {' '.join(strange)}"
        found.append(Finding(name, "no", text, "a newer iproute2, or `--engine wire`", False))
    if missing := [k for k in refused if k not in strange]:
        text = f"this kernel lacks: {' '.join(missing)}"
        found.append(Finding(name, "no", text, _kernel_advice(), needed=False))
    return found


def _kinds() -> dict[str, str]:
    """Returns words of `tc` by name, for all disciplines of Sojourn that Linux also has."""
    kinds: dict[str, str] = {}
    for known in json.loads(_core.describe())["queue"]:
        text = EXAMPLES.get(known["name"], known["name"])
        with suppress(_core.NoKernelEquivalent):
            words = _core.queue_to_tc(_core.parse_queue(text))
            kinds.setdefault(words.split()[0], words)
    return kinds


def _kernel_advice() -> str:
    """Returns advice for disciplines that this kernel does not have, not even as modules."""
    release, distribution = platform.release(), packages.release().get("ID", "")
    if not modules.modular():
        add = "another kernel (this one loads no modules)"
    elif distribution == "debian" and "cloud" in release:
        add = f"sudo apt-get install linux-image-{release.rpartition('-')[2]}"
    elif distribution == "ubuntu":
        add = f"sudo apt-get install linux-modules-extra-{release}"
    elif (of := packages.family()) is not None and of.name == "fedora":
        add = f"sudo dnf install kernel-modules-extra-{release}"
    else:
        add = "another kernel"
    return f"{add}, or `--engine wire`"


def controls(
    path: Path = Path("/proc/sys/net/ipv4/tcp_available_congestion_control"),
) -> list[Finding]:
    """Examines which congestion controls are available."""
    name = "congestion controls"
    try:
        there = path.read_text(encoding="ascii").split()
    except OSError as error:
        return [Finding(name, "unknown", str(error.strerror), needed=False)]
    lacking = [c for c in CONTROLS if c not in there]
    found = [Finding(name, "yes", " ".join(there), needed=False)]
    if lacking:
        text = f"missing or not loaded: {' '.join(lacking)}"
        words = " ".join(f"tcp_{control}" for control in lacking)
        remedy = f"sudo modprobe -a {words}" if modules.modular() else "another kernel"
        found.append(Finding(name, "no", text, remedy, needed=False))
    return found


def left() -> list[Finding]:
    """Reports settings of the machine that killed laboratories did not restore."""
    try:
        names = Journal().left()
    except NoJournal:
        names = []
    if not names:
        return []
    text = f"changed by a killed run and not restored: {' '.join(names)}"
    return [Finding("settings", "no", text, "sojourn lab clean", needed=False)]


SECONDS = 2.0
"""Measured time of each real run, in seconds."""


def rate(tell: Callable[[str], object]) -> Finding:
    """Measures the highest rate at which real runs are valid, which takes a minute."""
    try:
        report = selftest(SECONDS, tell=tell)
    except LabError as error:
        return Finding("rate", "unknown", f"not measured: {error}", needed=False)
    state: State = "yes" if report.believed is not None else "no"
    return Finding("rate", state, report.words(), "" if report.believed else IDLE, needed=False)
