"""Requirements of real runs: namespaces, devices, disciplines and congestion controls."""

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
from sojourn.lab.wire.start import run_first

IDLE = "end other work on this machine, then `sojourn wire selftest`"
CONTROLS = ("reno", "cubic", "bbr", "dctcp")
"""Congestion controls that scenarios name and that a released kernel may have."""
EXAMPLES = {
    "red": "red limit 400kb min 30kb max 90kb avpkt 1000 probability 0.02 bandwidth 10mbit",
    "choke": "choke limit 400p min 30p max 90p probability 0.02 bandwidth 10mbit",
    "tbf": "tbf rate 10mbit burst 32kb limit 100kb",
    "ets": "ets bands 3",
}
"""Examples in `tc`'s words of disciplines without defaults."""


def laboratory() -> list[Finding]:
    """Examines the sandbox of this machine and its abilities; creates one and removes it."""
    if platform.system() != "Linux":
        return [Finding("namespaces", "no", f"{platform.system()} has none", "use Linux")]
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
        return Finding(name, "yes", "/dev/net/tun can be opened: our own links")
    return Finding(name, "no", "/dev/net/tun: our own links", needs.ability_advice("tun"))


def _realtime(sandbox: Sandbox) -> Finding:
    name = "realtime priority"
    process = sandbox.spawn([sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"])
    try:
        if run_first(process.pid):
            return Finding(name, "yes", "packets leave in time", needed=False)
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
    """Finds the kernel's disciplines; tries none that would load a module."""
    name = "kernel's disciplines"
    try:
        needs.require_programs(["tc"])
    except Unavailable as error:
        return [Finding(name, "no", f"unknown: {error.message}", error.advice, needed=False)]
    wanted = {"htb": "htb", "netem": "netem delay 1ms", **_kinds()}
    places = {kind: modules.where(f"sch_{kind}") for kind in wanted}
    # First-in-first-out queues are not modules.
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
    if untold := [k for k in wanted if k not in tried and k not in there]:
        text = f"not tried, because that may load a module: {' '.join(untold)}"
        found.append(Finding(name, "unknown", text, needed=False))
    # `tc` itself names the discipline in its error, the kernel only its kind.
    strange = [k for k, said in refused.items() if f'nknown qdisc "{k}"' in said]
    if strange:
        text = f"this `tc` lacks: {' '.join(strange)}"
        found.append(Finding(name, "no", text, "a newer iproute2, or `--engine wire`", False))
    if missing := [k for k in refused if k not in strange]:
        text = f"this kernel lacks: {' '.join(missing)}"
        found.append(Finding(name, "no", text, _kernel_advice(), needed=False))
    return found


def _kinds() -> dict[str, str]:
    """Returns `tc` words by the kernel's kind, for all disciplines in both kernel and Sojourn."""
    kinds: dict[str, str] = {}
    for known in json.loads(_core.describe())["queue"]:
        text = EXAMPLES.get(known["name"], known["name"])
        with suppress(_core.NoKernelEquivalent):
            words = _core.queue_to_tc(_core.parse_queue(text))
            kinds.setdefault(words.split()[0], words)
    return kinds


def _kernel_advice() -> str:
    """Returns advice for disciplines that this kernel does not have even as modules on disk."""
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
    """Finds the kernel's congestion controls."""
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
    """Finds settings of the machine that killed laboratories have left changed."""
    try:
        names = Journal().left()
    except NoJournal:
        names = []
    if not names:
        return []
    text = f"changed by a killed run: {' '.join(names)}"
    return [Finding("settings", "no", text, "sojourn lab clean", needed=False)]


SECONDS = 2.0
"""Length of each real run of the rate's measurement, in seconds."""


def rate(tell: Callable[[str], object]) -> Finding:
    """Measures up to which rate real runs are valid here; takes a minute."""
    try:
        report = selftest(SECONDS, tell=tell)
    except LabError as error:
        return Finding("rate", "unknown", f"not measured: {error}", needed=False)
    state: State = "yes" if report.believed is not None else "no"
    return Finding("rate", state, report.words(), "" if report.believed else IDLE, needed=False)
