"""The commands that put a queue on a real interface."""

from __future__ import annotations

import json
import re
import shlex
import subprocess

import pytest

from sojourn.scenario import NoKernelEquivalent, Scenario, ScenarioError
from tests.scenario.texts import HOME, LAN, SWITCH

QUEUES = [
    "pfifo limit 300p",
    "bfifo limit 300kb",
    "codel limit 300p ecn",
    "fq_codel",
    "pie limit 500p ecn",
    "fq_pie limit 500p flows 64 ecn ecn_prob 20",
    "red limit 400kb min 30kb max 90kb avpkt 1000 probability 0.1",
    "choke limit 300p min 20p max 80p ecn",
    "sfb limit 300p max 30p rehash 60000 db 10000",
    "cobalt",
    "dualpi2 step_thresh 2ms any_ect",
]


@pytest.mark.parametrize("queue", QUEUES)
def test_the_queue_is_inside_a_shaper(queue: str) -> None:
    deployment = Scenario.from_toml(HOME).with_queue(queue).to_tc("wan0")
    root, shaper, leaf = deployment.commands
    assert root == "tc qdisc replace dev wan0 root handle 1: htb default 10"
    # 95 % of 20 Mbit/s, and a burst of two frames: the queue forms here.
    assert "rate 19000kbit ceil 19000kbit burst 3028b" in shaper
    assert leaf == f"tc qdisc replace dev wan0 parent 1:10 handle 10: {deployment.queue}"
    assert deployment.undo == ("tc qdisc del dev wan0 root",)
    assert "`home`" in deployment.where
    # A deployed queue reads back as the same queue.
    again = Scenario.from_toml(HOME).with_queue(deployment.queue)
    name = queue.split(maxsplit=1)[0]
    kernel = {"pfifo": "fifo", "bfifo": "fifo", "cobalt": "cake"}.get(name, name)
    assert json.loads(again.plan_json)["links"][0]["params"]["queue"]["name"] == kernel


@pytest.mark.parametrize(
    ("queue", "overhead", "line"),
    [
        ("cake", 0, "cake bandwidth 19mbit diffserv3 triple-isolate rtt 100ms raw noatm"),
        ("cake bandwidth 18mbit lan", 0, "cake bandwidth 18mbit diffserv3 triple-isolate rtt 1ms"),
        ("cake bandwidth 20mbit", 24, "rtt 100ms overhead 38 noatm mpu 84 egress"),
        ("cake docsis ack-filter", 24, "overhead 18 noatm mpu 64 egress ack-filter nowash"),
    ],
)
def test_cake_shapes_by_itself(queue: str, overhead: int, line: str) -> None:
    scenario = Scenario.from_toml(HOME).with_queue(queue)
    scenario = scenario.replace({"links.uplink.overhead": overhead})
    deployment = scenario.to_tc("wan0")
    assert deployment.commands == (f"tc qdisc replace dev wan0 root handle 1: {deployment.queue}",)
    assert line in deployment.queue
    assert "htb" not in str(deployment)
    ingress = scenario.to_tc("wan0", machine="isp")
    assert ingress.commands[-1].startswith("tc qdisc replace dev ifb-wan0 root handle 1: cake ")
    assert " ingress " in ingress.queue


def test_a_tree_slower_than_the_line_needs_no_shaper() -> None:
    queue = "htb default 2; class 1:2 rate 18mbit; qdisc parent 1:2 fq_codel; filter src 0 to 1:2"
    deployment = Scenario.from_toml(HOME).with_queue(queue).to_tc("wan0")
    first, root, *rest = deployment.commands
    # An earlier tree goes with all its filters.
    assert first == "tc qdisc replace dev wan0 root pfifo"
    assert root == "tc qdisc replace dev wan0 root handle 1: htb default 2 r2q 10"
    assert len(rest) == 3
    assert deployment.queue == queue
    assert any("sends at 18000kbit, 90 % of the line rate" in note for note in deployment.notes)
    replace = "Replace ADDRESS-OF-home with the addresses of your hosts"
    assert any(replace in note for note in deployment.notes)
    slower = Scenario.from_toml(HOME).with_queue("tbf rate 9mbit burst 5kb limit 50kb").to_tc("w")
    assert len(slower.commands) == 1
    told = " ".join(slower.notes)
    assert "sends at 9000kbit, the limit that the queue itself has, on a line of 20mbit" in told
    assert "modem" not in told
    assert " root handle 1: tbf rate 9mbit " in slower.commands[0]


@pytest.mark.parametrize(
    ("queue", "lowered"),
    [
        ("cake", False),
        ("cake bandwidth 19mbit", False),
        ("cake bandwidth 19500kbit", True),
        ("cake bandwidth 25mbit", True),
    ],
)
def test_a_rate_of_cake_that_does_not_shape_is_lowered_with_a_note(
    queue: str, lowered: bool
) -> None:
    deployment = Scenario.from_toml(HOME).with_queue(queue).to_tc("wan0")
    assert "cake bandwidth 19mbit" in deployment.queue
    assert ("the rate is 19000kbit here." in str(deployment).replace("\n#", "")) == lowered


def test_a_host_s_own_queue_needs_no_shaper() -> None:
    own = Scenario.from_toml(HOME).replace({"links.uplink.host_queue": True})
    deployment = own.with_queue("fq").to_tc("wan0")
    (command,) = deployment.commands
    assert command.startswith("tc qdisc replace dev wan0 root handle 1: fq ")
    assert "there is no shaper" in str(deployment)
    assert "shaper sends" not in str(deployment)
    # CAKE shapes as ever, and so does a bucket below the line's rate.
    assert "cake bandwidth 19mbit" in own.with_queue("cake").to_tc("wan0").queue
    slower = own.with_queue("tbf rate 5mbit burst 10k limit 10k").to_tc("wan0")
    assert "The shaper sends at 5000kbit" in str(slower)
    with pytest.raises(ScenarioError, match="host's own queue needs"):
        own.with_queue("fq_codel").to_tc("wan0", form="sqm")


def test_another_tree_is_in_the_shaper_under_another_number() -> None:
    queue = "drr; class 1:1; class 1:2; qdisc parent 1:1 codel; filter all to 1:2"
    for text in (queue, "htb default 1; class 1:1 rate 30mbit"):
        commands = Scenario.from_toml(HOME).with_queue(text).to_tc("wan0").commands
        assert commands[1] == "tc qdisc replace dev wan0 root handle 1: htb default 10"
        assert " parent 1:10 handle 10: " in commands[3]
        assert all(" parent 10:" in command for command in commands[4:])
    incoming = Scenario.from_toml(HOME).with_queue(queue).to_tc("wan0", machine="isp")
    # A class without a queue holds as many packets as its device says.
    assert "ip link set dev ifb-wan0 txqueuelen 1000 up" in incoming.commands
    for form in ("sqm", "networkd"):
        with pytest.raises(ScenarioError, match=f"{form} .*only one discipline"):
            Scenario.from_toml(HOME).with_queue(queue).to_tc("wan0", form=form)
    with pytest.raises(NoKernelEquivalent, match="`blue` in `1:1`"):
        Scenario.from_toml(HOME).with_queue("prio; qdisc parent 1:1 blue").to_tc("wan0")


@pytest.mark.parametrize(
    ("text", "where", "rate"),
    [
        (
            SWITCH,
            "on `switch`, on its interface towards each of `server1` to `server2` (servers)",
            3800,
        ),
        (
            LAN,
            (
                "on each of `client1` to `server2`, "
                "on its interface towards the shared medium `lan` (lan)"
            ),
            1900000,
        ),
    ],
)
def test_a_queue_at_several_places(text: str, where: str, rate: int) -> None:
    deployment = Scenario.from_toml(text).to_tc("eth1")
    assert deployment.where == where
    # The slowest of the links.
    assert f"rate {rate}kbit ceil {rate}kbit" in str(deployment)


def test_ingress_goes_through_an_ifb() -> None:
    deployment = Scenario.from_toml(HOME).to_tc("wan0", machine="isp")
    text = str(deployment)
    assert "ip link add name ifb-wan0 type ifb" in text
    assert "redirect dev ifb-wan0" in text
    assert "dev ifb-wan0 parent 1:10 handle 10: codel" in text
    assert deployment.undo[-1] == "ip link del dev ifb-wan0"
    assert "`isp`" in deployment.where


def test_overhead_is_the_shapers() -> None:
    scenario = Scenario.from_toml(HOME).replace({"links.uplink.overhead": 18})
    assert scenario.to_tc().commands[1].endswith(" overhead 18")


def test_a_young_discipline_says_what_it_needs() -> None:
    young = Scenario.from_toml(HOME).with_queue("dualpi2").to_tc("wan0", machine="home")
    assert re.match(r"Linux .*`dualpi2` since version 6\.17; `tc` must", young.notes[0])
    assert not any("since" in note for note in Scenario.from_toml(HOME).to_tc("wan0").notes)


def test_the_printed_form_is_a_shell_script() -> None:
    text = str(Scenario.from_toml(HOME).to_tc("wan0", machine="isp"))
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        assert not words or words[0] in {"tc", "ip"}


@pytest.mark.parametrize(
    ("queue", "reason"),
    [
        ("blue", "blue"),
        ("pi2", "dualpi2"),
        ("red limit 300p min 45p max 195p avpkt 1514 unit packets", "bytes"),
        ("red limit 400kb min 30kb max 90kb avpkt 1000 gentle", "gentle"),
        ("red limit 400kb min 30kb max 90kb avpkt 1000 feng", "feng"),
        ("choke limit 300p harddrop", "harddrop"),
    ],
)
def test_queues_that_linux_lacks_are_refused(queue: str, reason: str) -> None:
    scenario = Scenario.from_toml(HOME).with_queue(queue)
    with pytest.raises(NoKernelEquivalent, match=reason):
        scenario.to_tc()


@pytest.mark.parametrize("name", ["", "a b", "eth0;reboot", "x" * 16, "-x", "../e"])
def test_names_that_are_no_interface(name: str) -> None:
    with pytest.raises(ScenarioError, match="not a name of"):
        Scenario.from_toml(HOME).to_tc(name)


@pytest.mark.needs("tc")
@pytest.mark.needs("ip")
@pytest.mark.needs("unshare")
@pytest.mark.parametrize("queue", [*QUEUES, "cake", "cake bandwidth 18mbit pppoe-ptm ack-filter"])
@pytest.mark.parametrize("ingress", [False, True])
def test_the_kernel_takes_them(queue: str, ingress: bool) -> None:
    """In a network namespace of its own, with a veth pair for an interface."""
    deployment = (
        Scenario.from_toml(HOME).with_queue(queue).to_tc("v0", machine="isp" if ingress else "home")
    )
    script = "\n".join(
        ["set -e", "ip link add v0 type veth peer name v1", *deployment.commands, *deployment.undo]
    )
    command = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", script]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0 and _lacking(result.stderr):
        pytest.skip(f"not installed: the kernel's part ({result.stderr.strip()})")
    assert result.returncode == 0, result.stderr


def _lacking(message: str) -> bool:
    """Whether the machine lacks a module or the right to a namespace, which is not our fault."""
    return any(
        words in message
        for words in (
            "Specified qdisc kind is unknown",
            "Unknown qdisc",
            "Unknown device type",
            "Operation not permitted",
            "unshare failed",
            "Operation not supported",
            "TC classifier not found",
        )
    )
