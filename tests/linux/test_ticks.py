"""Linux without high-resolution timers: a shaper is woken at ticks, as a late host's grain says."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sojourn.linux.kernels import Kernel
from tests.conftest import ROOT

# A shell in a guest whose timers have the grain of 1/HZ.
SHELL = f"""
from sojourn.linux import guest
guest.COMMAND_LINE = (*guest.COMMAND_LINE, "highres=off")
from sojourn.linux.engine import LinuxEngine
from sojourn.linux.shell import shell
from sojourn.scenario import Scenario
shell(LinuxEngine(), Scenario.load({str(ROOT / "examples" / "home.toml")!r}).plan, 1)
"""
# A sender whose socket is always full, over a veth device whose far end counts.
FLOOD = r"""
import socket, subprocess, threading, time
def run(text):
    subprocess.run(text.split(), check=True)
def count():
    line = next(l for l in open("/proc/net/dev") if l.strip().startswith("vb:"))
    return int(line.split(":")[1].split()[1])
run("ip link add va numtxqueues 1 type veth peer vb")
run("ip addr add 10.9.0.1/24 dev va")
run("ip link set va up")
run("ip link set vb up")
run("ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:01 dev va")
stopped = False
def flood():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.SOL_SOCKET, 32, 16_000_000)
        while not stopped:
            sender.sendto(bytes(1472), ("10.9.0.2", 9))
for kind in ("tbf", "htb"):
    for burst in (5000, 112500):
        if kind == "tbf":
            run(f"tc qdisc add dev va root tbf rate 900mbit burst {burst} limit 32mb")
        else:
            words = f"htb rate 900mbit burst {burst} cburst {burst}"
            run("tc qdisc add dev va root handle 1: htb default 1")
            run(f"tc class add dev va parent 1: classid 1:1 {words}")
            run("tc qdisc add dev va parent 1:1 pfifo limit 100000")
        stopped = False
        thread = threading.Thread(target=flood)
        thread.start()
        time.sleep(0.5)
        before = count()
        time.sleep(1)
        print("PER", "TICK", kind, burst, (count() - before) / TICKS, flush=True)
        stopped = True
        run("tc qdisc del dev va root")
        thread.join()
"""


def test_a_tick_brings_what_the_bucket_holds(kernel: Kernel) -> None:
    """The numbers that `a_tick_brings_as_many_packets_as_in_linux` of `crates/link` expects."""
    flood = FLOOD.replace("TICKS", str(kernel.hz))
    typed = f"python3 - <<'END'\n{flood}END\nexit\n"
    done = subprocess.run(
        [sys.executable, "-c", SHELL],
        input=typed,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    found = [line.split()[-3:] for line in done.stdout.splitlines() if "PER TICK " in line]
    told = {(kind, int(burst)): float(packets) for kind, burst, packets in found}
    expected = {("tbf", 5000): 3, ("tbf", 112500): 74, ("htb", 5000): 4, ("htb", 112500): 75}
    assert told == pytest.approx(expected, rel=0.011), done.stdout[-2000:] + done.stderr[-2000:]
