"""Linux takes the commands that are written for trees, and shows what was meant."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from ipaddress import IPv4Address
from typing import Any

import pytest

from sojourn import _core
from sojourn.linux.engine import LinuxEngine
from sojourn.linux.kernels import Kernel
from sojourn.scenario import Scenario
from sojourn.tc import read
from tests.conftest import ROOT
from tests.lab.conftest import described
from tests.linux.test_engine import row
from tests.tc.test_written import LEAVES

TREES = {
    "prio": (
        "prio bands 4 priomap 0 1 2 3 0 1 2 3 0 1 2 3 0 1 2 3 ; "
        "qdisc parent 1:1 fq_codel limit 99p flows 64 ; qdisc parent 1:2 handle 20: drr ; "
        "class 20:1 quantum 3000b ; class 20:2 quantum 1600b ; qdisc parent 20:1 codel limit 30p ; "
        "filter parent 20: flow divisor 2 to 20:1 ; filter dscp EF protocol udp to 1:1 ; "
        "filter src 1 sport 5000 mark 3/7 to 1:2 ; filter all to 1:4"
    ),
    "ets": (
        "ets bands 4 strict 1 quanta 1600 5000 4800 "
        "priomap 0 1 2 3 3 3 3 3 3 3 3 3 3 3 3 3 ; class 1:2 quantum 1600b ; "
        "class 1:3 quantum 5000b ; class 1:4 quantum 4800b ; "
        "qdisc parent 1:1 pfifo limit 40p ; qdisc parent 1:3 sfq limit 200p perturb 10 ; "
        "filter protocol 1 to 1:2"
    ),
    "mq": (
        "mq numtxqueues 4 ; qdisc parent 1:2 handle 20: drr ; class 20:1 quantum 1600b ; "
        "qdisc parent 20:1 codel ; filter parent 20: all to 20:1 ; qdisc parent 1:3 fq_codel ; "
        "qdisc parent 1:4 cake bandwidth 3mbit"
    ),
    "drr": (
        "drr ; class 1:1 quantum 3000b ; class 1:2 quantum 1514b ; qdisc parent 1:2 fq_codel ; "
        "filter dscp AF41 dst 0 mark 3/7 protocol tcp sport 80-90 dport 443 flow divisor 2 "
        "to 1:1 ; "
        "filter protocol udp flow divisor 2 to 1:1 ; filter all to 1:2"
    ),
    "htb": (
        "htb default 20 r2q 5 direct_qlen 50 ; class 1:1 parent 1: rate 9mbit ceil 9mbit "
        "burst 9000b cburst 9000b ; class 1:10 parent 1:1 rate 5mbit ceil 9mbit burst 5000b "
        "cburst 9000b prio 1 quantum 1600b overhead 18 ; class 1:20 parent 1:1 rate 4mbit "
        "ceil 8mbit burst 4000b cburst 8000b prio 2 quantum 1600b linklayer atm mpu 64 ; "
        "qdisc parent 1:10 fq_codel ; qdisc parent 1:20 tbf rate 4mbit burst 6000b child codel ; "
        "filter dscp EF to 1:10 ; filter dscp CS1 to 1:20 ; filter mark 16 to 1:10 ; "
        "filter mark 0x20/0xf0 to 1:20 ; filter mark 0/1 dport 53 protocol udp to 1:10"
    ),
    "hfsc": (
        "hfsc default 20 ; class 1:1 parent 1: ls rate 8mbit ul rate 8mbit ; class 1:10 parent 1:1 "
        "rt m1 8mbit d 10ms m2 2mbit ls rate 4mbit ; class 1:20 parent 1:1 ls rate 4mbit ; "
        "qdisc parent 1:10 cake bandwidth 3mbit besteffort ; qdisc parent 1:20 fq_codel ; "
        "filter protocol udp to 1:10"
    ),
    "tbf": "tbf rate 8mbit burst 6000b peakrate 16mbit mtu 3200b child fq_codel limit 300p",
}
"""By the outermost discipline: its classes, others inside and filters."""
SCENARIO = """
duration = "6s"
warmup = "2s"

[links.line]
from = "a"
to = "b"
rate = "10mbit"
netem = "delay 10ms"
queue = "htb default 2; class 1:1 rate 1mbit ceil 9mbit prio 1; class 1:2 rate 8mbit ceil 9mbit; \
qdisc parent 1:1 fq_codel; qdisc parent 1:2 codel; filter dscp EF to 1:1"

[[flows]]
from = "a"
to = "b"
app = "bulk"
tcp = "cubic ecn off"
count = 4

[[flows]]
name = "call"
from = "a"
to = "b"
app = "voip"
dscp = "EF"
"""
BEGIN, END = "==begin==", "==end=="


def shown(lines: list[str], form: str) -> str:
    """The output of `tc` about a device in virtual time after these commands."""
    with_filters = {line.partition(" protocol ")[0] for line in lines if " filter " in line}
    parents = sorted(line.rpartition(" ")[2] for line in with_filters)
    show = [f"{form} {kind} show dev eth9" for kind in ("qdisc", "class")]
    show += [f"{form} filter show dev eth9 parent {parent}" for parent in parents]
    script = [
        f"ip link add eth9 numtxqueues {4 if lines[0].endswith(' mq') else 1} type veth peer eth8",
        "ip link set dev eth9 up",
        *(f"{line} || echo REFUSED" for line in lines),
        f"echo {BEGIN[:5]}''{BEGIN[5:]}",
        *(f"tc {words}" for words in show),
        f"echo {END[:4]}''{END[4:]}",
        "exit",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "sojourn.cli", "linux", "shell", str(ROOT / "examples/home.toml")],
        check=False,
        input=f"cat > /tmp/s <<'XX'\n{chr(10).join(script)}\nXX\nsh /tmp/s\nexit\n",
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"COLUMNS": "999"},
    )
    assert done.returncode == 0, done.stderr
    output = done.stdout.replace("\r", "")
    assert output.count("REFUSED") == len(lines), output[-3000:]  # each as it is typed
    return output.partition(f"{BEGIN}\n")[2].partition(END)[0]


def plain(plan: Any) -> Any:
    """A plan without what a kernel fills in, and with its classes and conditions in order."""
    if isinstance(plan, dict):
        found = {key: plain(value) for key, value in plan.items() if key != "hz"}
        if "classes" in found:
            found["classes"].sort(key=lambda one: one["id"])
        if "conditions" in found:
            found["conditions"].sort(key=str)
        return found
    return [plain(one) for one in plan] if isinstance(plan, list) else plan


def read_back(text: str) -> dict[str, Any]:
    """The plan of the queue that is shown."""
    reading = read([("eth9", text)], {})
    assert reading.problems == [], text
    hosts = {int(IPv4Address("10.0.0.1")) + number: number for number in range(3)}
    built = reading.build("eth9", hosts, False)
    assert built is not None
    assert built.problems == []
    assert built.queue is not None
    found: dict[str, Any] = plain(json.loads(_core.parse_queue(built.queue)))
    return found


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("kind", TREES)
def test_linux_shows_what_was_meant(kind: str) -> None:
    made = _core.parse_queue(TREES[kind])
    lines = _core.queue_commands(made, "eth9")
    assert read_back(shown(lines, "-d")) == plain(json.loads(made))


@pytest.mark.usefixtures("kernel")
def test_its_json_says_the_same() -> None:
    """But for TBF's peak rate and DRR's quantum, which it leaves out."""
    for kind in ("ets", "htb", "hfsc"):
        lines = _core.queue_commands(_core.parse_queue(TREES[kind]), "eth9")
        assert read_back(shown(lines, "-j -d")) == read_back(shown(lines, "-d"))
    flow = _core.queue_commands(_core.parse_queue("prio; filter flow divisor 2 to 1:1"), "eth9")
    assert read_back(shown(flow, "-j -d"))["tree"]["filters"][0]["divisor"] == 2


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("leaves", [LEAVES[:10], LEAVES[10:]])
def test_linux_takes_every_discipline_in_a_class(leaves: list[str]) -> None:
    classes = "; ".join(f"qdisc parent 1:{n + 1:x} {leaf}" for n, leaf in enumerate(leaves))
    text = shown(_core.queue_commands(_core.parse_queue(f"prio bands 16; {classes}"), "eth9"), "-d")
    assert f"\n{text}".count("\nqdisc ") >= len(leaves) + 1


def test_a_run_over_a_tree_is_the_simulator_s(kernel: Kernel) -> None:
    """A call passes by the bulk in its class; drops and marks are those of the classes."""
    made = Scenario.from_toml(SCENARIO)
    record = LinuxEngine(kernel).simulate(made.plan, 1)
    assert described(record)["links"] == "kernel"
    assert sum("filter replace" in command for command in described(record)["commands"]) == 2
    linux, simulated = row(record), made.run(seed=1).metrics
    for name in ("goodput", "call.delay_p95"):
        assert linux[name] == pytest.approx(simulated[name], rel=0.05), name
    assert linux["call.packet_loss"] == 0
    assert linux["drops"] == linux["drops_early"] > 10
    assert linux["marks"] == 0


def test_packets_have_the_marks_of_their_flows(kernel: Kernel) -> None:
    """`fw` finds them, and `u32` with a protocol."""
    made = Scenario.from_toml(SCENARIO).replace(
        {
            "flows.call.dscp": "CS0",
            "flows.call.mark": 7,
            "links.line.queue": "htb default 2; class 1:1 rate 1mbit ceil 9mbit prio 1; "
            "class 1:2 rate 8mbit ceil 9mbit; qdisc parent 1:1 fq_codel; qdisc parent 1:2 "
            "pfifo limit 60p; filter mark 7 protocol 6 to 1:2; filter mark 3/7 to 1:2; "
            "filter mark 7 to 1:1",
        }
    )
    record = LinuxEngine(kernel).simulate(made.plan, 1)
    assert described(record)["links"] == "kernel"
    linux, simulated = row(record), made.run(seed=1).metrics
    assert linux["bulk.delay_mean"] > 0.05
    assert linux["call.delay_p95"] == pytest.approx(simulated["call.delay_p95"], rel=0.05)
    assert linux["call.delay_p95"] < 0.02
