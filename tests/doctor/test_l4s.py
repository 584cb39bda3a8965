"""`sojourn doctor l4s`: what it says of interfaces in namespaces, and of recorded ones."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sojourn.doctor import l4s
from sojourn.doctor.finding import Finding
from sojourn.doctor.interface import Facts, Qdisc, htb_classes
from sojourn.lab import Host, Sandbox
from sojourn.lab.typed import of_json
from tests.cli.test_commands import sojourn
from tests.conftest import ROOT
from tests.lab.conftest import joined, started

SECONDS = 60.0
MBIT = 1_000_000
OFF = {"active": False, "changeable": True}
ON = {"active": True, "changeable": True}
FIXED = {"active": True, "changeable": False}


@pytest.fixture
def host() -> Iterator[Host]:
    """A host with a veth device called eth0."""
    with closing(started(Sandbox())) as sandbox:
        yield joined(sandbox)[0]


def asked(host: Host, *arguments: str) -> tuple[int, str]:
    code = "from sojourn.cli import main; main()"
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", code, "doctor", "l4s", *arguments]
    program = host.spawn(words, env=environment, cwd=str(ROOT))
    status = program.wait(SECONDS)
    assert b"Traceback" not in program.errors(), program.errors()
    return status, program.output().decode()


def seen(host: Host, name: str = "eth0") -> dict[str, dict[str, Any]]:
    _, out = asked(host, name, "--json")
    (group,) = json.loads(out)["groups"]
    assert group["name"] == "l4s"
    return {finding["name"]: finding for finding in group["findings"]}


def run(host: Host, line: str) -> None:
    program = host.spawn(line.split())
    assert program.wait(SECONDS) == 0, program.errors()


def test_offloads_of_a_device(host: Host) -> None:
    host.set_offloads("eth0", tso=True, gso=True, gro=True)
    status, out = asked(host, "eth0")
    assert status == 1
    assert "→ sudo ethtool -K eth0 tso off gso off gro off" in out
    host.set_offloads("eth0", tso=False)
    assert seen(host)["offloads"]["found"] == "on: gso gro"
    host.set_offloads("eth0", gso=False, gro=False)
    finding = seen(host)["offloads"]
    assert (finding["state"], finding["remedy"]) == ("yes", "")
    assert "as one" in finding["why"]


def test_settings_of_ecn(host: Host) -> None:
    host.sysctl({"net.ipv4.tcp_ecn": 0, "net.ipv4.tcp_ecn_fallback": 0})
    found = seen(host)
    assert (found["tcp_ecn"]["state"], found["tcp_ecn"]["needed"]) == ("no", True)
    assert found["tcp_ecn_fallback"]["found"] == "0: off"
    host.sysctl({"net.ipv4.tcp_ecn": 1})
    finding = seen(host)["tcp_ecn"]
    assert finding["found"].startswith("1: RFC 3168, offered and accepted")
    assert (finding["state"], finding["needed"]) == ("no", False)
    host.sysctl({"net.ipv4.tcp_congestion_control": "reno"})
    assert seen(host)["congestion control"]["found"].startswith("reno; available: ")


def test_where_the_queue_forms(host: Host) -> None:
    found = seen(host)
    assert found["bottleneck"]["state"] == "no"
    assert "veth device sends immediately" in found["bottleneck"]["found"]
    run(host, "tc qdisc replace dev eth0 root tbf rate 20mbit burst 20kb latency 50ms")
    found = seen(host)
    assert found["bottleneck"]["state"] == "yes"
    assert found["bottleneck"]["found"].startswith("tbf sends at 20mbit:")
    assert "htb rate 20mbit" in found["discipline"]["remedy"]
    # veth states 10 Gbit/s.
    run(host, "tc qdisc replace dev eth0 root tbf rate 20gbit burst 2mb latency 50ms")
    finding = seen(host)["bottleneck"]
    assert (finding["state"], finding["needed"]) == ("no", True)
    assert finding["remedy"] == (
        "sudo tc qdisc replace dev eth0 root tbf rate 9.5gbit burst 1187500b latency 50ms"
    )
    run(host, "tc qdisc replace dev eth0 root handle 1: htb default 1")
    run(host, "tc class replace dev eth0 parent 1: classid 1:1 htb rate 30mbit")
    assert seen(host)["bottleneck"]["found"].startswith("htb sends at 30mbit")
    run(host, "tc class replace dev eth0 parent 1: classid 1:1 htb rate 20gbit")
    remedy = seen(host)["bottleneck"]["remedy"]
    assert remedy == "sudo tc class replace dev eth0 parent 1: classid 1:1 htb rate 9.5gbit"
    # The advised command has the stated effect.
    run(host, remedy.removeprefix("sudo "))
    assert seen(host)["bottleneck"]["state"] == "yes"


def test_routes_that_override(host: Host) -> None:
    assert "routes" not in seen(host)
    run(host, "ip route add 10.9.0.0/16 via 10.0.0.2 dev eth0 features ecn congctl reno")
    finding = seen(host)["routes"]
    assert finding["found"] == "10.9.0.0/16: features ecn congctl reno"
    run(host, finding["remedy"].removeprefix("sudo "))
    assert "routes" not in seen(host)


def test_nothing_is_changed(host: Host) -> None:
    names = ["net.ipv4.tcp_ecn", "net.ipv4.tcp_congestion_control"]
    before = host.qdiscs("eth0"), host.offloads("eth0"), host.sysctls(names)
    asked(host, "eth0")
    after = host.qdiscs("eth0"), host.offloads("eth0"), host.sysctls(names)
    kinds = [[q.kind for q in qdiscs] for qdiscs in (before[0], after[0])]
    assert kinds[0] == kinds[1]
    assert before[1:] == after[1:]


def test_without_tc_it_says_what_it_could_not_read(host: Host, tmp_path: Path) -> None:
    code = (
        "import sys; from sojourn.lab.machine import needs; needs._SBIN = sys.argv.pop(1);"
        "from sojourn.cli import main; main()"
    )
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": str(tmp_path)}
    words = [sys.executable, "-c", code, str(tmp_path), "doctor", "l4s", "eth0", "--json"]
    program = host.spawn(words, env=environment, cwd=str(ROOT))
    program.wait(SECONDS)
    (group,) = json.loads(program.output())["groups"]
    found = {finding["name"]: finding for finding in group["findings"]}
    assert found["bottleneck"]["state"] == "unknown"
    assert re.fullmatch("could not .*: not installed: tc", found["bottleneck"]["found"])
    assert found["bottleneck"]["remedy"]
    assert found["offloads"]["state"] in ("yes", "no")


def test_words_that_are_wrong() -> None:
    assert "exactly one interface; existing:" in sojourn("doctor", "l4s").err
    done = sojourn("doctor", "l4s", "lp")
    assert done.status == 2
    assert "no interface `lp`: did" in done.err
    assert "you mean `lo`?" in done.err
    assert "did you mean `l4s`?" in sojourn("doctor", "l4").err
    assert "--measure" in sojourn("doctor", "l4s", "lo", "--measure").err


def of(**facts: Any) -> dict[str, Finding]:
    told = {"name": "eth0", "limits": (0,), **facts}
    return {finding.name: finding for finding in l4s.findings(Facts(**told))}


RECORDED: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "recorded" / "tc.json").read_text(encoding="utf-8")
)
"""`tc -j -s -d qdisc show` of iproute2 7.2.0 on Linux 7.3.4, of one discipline after the other."""


@pytest.mark.parametrize(
    ("name", "state", "says"),
    [
        ("dualpi2", "yes", "dualpi2, step at 1000 µs"),
        ("htb dualpi2", "yes", "dualpi2, step at 1000 µs"),
        ("fq_codel", "yes", "fq_codel with ce_threshold 999 µs"),
        ("fq", "yes", "fq with ce_threshold 1000 µs"),
        ("codel", "yes", "codel with ce_threshold 999 µs"),
        ("cake", "no", "cake marks ECT(1) by RFC 3168"),
        ("cake unlimited", "no", "cake marks ECT(1) by RFC 3168"),
        ("pie", "no", "pie marks ECT(1) by RFC 3168"),
        ("netem", "no", "netem contains no AQM"),
        ("hfsc", "no", "hfsc contains no AQM"),
    ],
)
def test_disciplines_as_tc_prints_them(name: str, state: str, says: str) -> None:
    found = of(qdiscs=as_printed(RECORDED[name]))
    assert found["discipline"].state == state
    assert found["discipline"].found.startswith(says)
    assert found["counts"].state == "unknown"
    assert found["pacing"].state == ("yes" if name == "fq" else "no")


def test_rates_and_counts_as_tc_prints_them() -> None:
    for kind, rate, remedy in (
        ("cake", 20 * MBIT, "sudo tc qdisc change dev eth0 root cake bandwidth 19mbit"),
        (
            "netem",
            10 * MBIT,
            "htb rate 9.5mbit && sudo tc qdisc replace dev eth0 parent 1:1 dualpi2",
        ),
    ):
        assert Facts("eth0", qdiscs=as_printed(RECORDED[kind])).shaper == (kind, rate)
        slow = of(qdiscs=as_printed(RECORDED[kind]), speed=rate)["bottleneck"]
        assert slow.state == "no"
        assert slow.remedy.endswith(remedy)
    assert Facts("eth0", qdiscs=as_printed(RECORDED["cake unlimited"])).shaper is None
    (dualpi2,) = RECORDED["dualpi2"]
    for count, told in (
        ("maxq", "longest queue 5"),
        ("ecn-mark", "5 marked"),
        ("step-mark", "5 m"),
    ):
        queue = dualpi2 | {"packets": 9000, count: 5}
        finding = of(qdiscs=as_printed([queue]))["counts"]
        assert finding.state == "yes"
        assert told in finding.found
    (cake,) = RECORDED["cake"]
    tins = [tin | {"ecn_mark": 2} for tin in cake["tins"]]
    assert "6 marked" in of(qdiscs=as_printed([cake | {"tins": tins}]))["counts"].found


def as_printed(queues: Any) -> tuple[Qdisc, ...]:
    """Disciplines in the format of `tc -j -s -d qdisc show`."""
    return of_json(tuple[Qdisc, ...], queues)


def qdisc(kind: str, **more: Any) -> Qdisc:
    """A discipline in the format of `tc -j -s -d qdisc show`."""
    counts = {"bytes": 0, "packets": 0, "drops": 0, "overlimits": 0, "requeues": 0, "qlen": 0}
    place = {} if "parent" in more else {"root": True}
    (made,) = as_printed(
        [{"kind": kind, "handle": "8001:", **place, "options": {}, **counts, **more}]
    )
    return made


def test_offloads_that_are_fixed() -> None:
    offloads = {"tso": {"a": FIXED}, "gso": {"b": OFF}, "gro": {"c": ON}, "lro": {"d": ON}}
    found = [f for f in l4s.findings(Facts("eth0", offloads=offloads)) if f.name == "offloads"]
    assert [f.remedy for f in found] == [
        "sudo ethtool -K eth0 gro off lro off",
        "another network card",
    ]
    assert "cannot disable them: tso" in found[1].found


def test_a_slow_link_without_a_shaper_queues_in_its_ring() -> None:
    """L4STeam/linux#25: a link of 100 Mbit/s behind one of 1 Gbit/s."""
    slow = of(speed=100 * MBIT, ring=512, qdiscs=(qdisc("dualpi2", packets=10),))
    assert slow["transmit ring"].state == "no"
    assert re.match(r"512 packets \(62 ms\), .*no byte queue limits", slow["transmit ring"].found)
    assert slow["bottleneck"].state == "unknown"
    assert "htb rate 95mbit" in slow["bottleneck"].remedy
    limits = of(speed=100 * MBIT, ring=512, limits=(30280, 3028), qdiscs=(qdisc("dualpi2"),))
    assert limits["transmit ring"].state == "no"
    assert "30280 bytes a queue (2.4 ms)" in limits["transmit ring"].found
    assert "limit_max" in limits["transmit ring"].remedy
    short = of(speed=1000 * MBIT, ring=512, limits=(30280,), qdiscs=(qdisc("dualpi2"),))
    assert short["transmit ring"].state == "yes"
    classes = {"1:1": ("", 95 * MBIT, 95 * MBIT)}
    tree = (qdisc("htb", handle="1:"), qdisc("dualpi2", parent="1:1"))
    shaped = of(speed=100 * MBIT, ring=512, qdiscs=tree, classes=classes)
    assert shaped["transmit ring"].state == "yes"
    assert shaped["bottleneck"].state == "yes"


def test_a_queue_that_never_forms() -> None:
    """L4STeam/linux#32: packets pass the discipline, and none ever waits."""
    (dualpi2,) = RECORDED["dualpi2"]
    passed = of(qdiscs=as_printed([dualpi2 | {"packets": 50_000, "maxq": 1}]))["counts"]
    assert passed.state == "no"
    assert passed.found == (
        "dualpi2: 50000 packets, 0 marked, 0 dropped, longest queue 1: no queue formed here"
    )
    assert of(qdiscs=(qdisc("dualpi2", packets=50),))["counts"].state == "unknown"


def test_how_disciplines_mark() -> None:
    def judged(kind: str, **options: Any) -> Finding:
        return of(qdiscs=(qdisc(kind, options=options),))["discipline"]

    assert judged("dualpi2", coupling=2).state == "yes"
    assert judged("dualpi2", coupling=0).state == "no"
    assert judged("fq_codel", ce_threshold=999).state == "yes"
    plain = judged("fq_codel")
    assert plain.state == "no"
    assert plain.remedy.endswith("root fq_codel ce_threshold 1ms ce_threshold_selector 0x1/0x3")
    assert "does not mark" in judged("pfifo_fast").found
    assert "RFC 3168" in judged("pie").found
    cake = judged("cake", bandwidth=2_500_000)
    assert "htb rate 20mbit" in cake.remedy


def test_pacing_and_queues_of_a_sender() -> None:
    tree = (
        qdisc("mq", handle="0:"),
        qdisc("fq", parent=":1", handle="8001:"),
        qdisc("fq", parent=":2", handle="8002:", packets=7),
    )
    found = of(qdiscs=tree, sysctls={"tcp_ecn": "3", "tcp_ecn_option": "0"})
    assert found["pacing"].state == "yes"
    assert found["transmit queues"].found == "mq: 2 queues, each with its own fq"
    assert found["transmit queues"].remedy == "sudo ethtool -L eth0 combined 1"
    assert found["counts"].found.startswith("fq: 7 packets")
    assert found["tcp_ecn"].state == "yes"
    assert found["tcp_ecn_option"].state == "no"
    alone = of(qdiscs=(qdisc("netem"),), sysctls={"tcp_ecn": "2"})
    assert alone["pacing"].state == "no"
    assert alone["netem"].state == "no"
    assert "no Accurate ECN" in alone["tcp_ecn"].found


def test_controls() -> None:
    def told(present: str, there: str) -> Finding:
        names = ("tcp_congestion_control", "tcp_available_congestion_control")
        return of(sysctls=dict(zip(names, (present, there), strict=True)))["congestion control"]

    assert told("prague", "reno prague").state == "yes"
    assert told("cubic", "reno cubic dctcp").remedy.endswith("tcp_congestion_control=dctcp")
    assert "modprobe" in told("cubic", "reno cubic").remedy


def test_classes_as_tc_prints_them() -> None:
    text = (
        "class htb 1:1 root prio 0 quantum 125000 rate 10Mbit ceil 12Mbit linklayer ethernet "
        "burst 1600b/1 mpu 0b cburst 1600b/1 mpu 0b level 0 \n Sent 0 bytes 0 pkt\n"
        "class htb 1:10 parent 1:1 leaf 10: prio 0 quantum 1514 rate 800Kbit ceil 1Gbit burst 1b\n"
    )
    assert htb_classes(text) == {
        "1:1": ("", 10 * MBIT, 12 * MBIT),
        "1:10": ("1:1", 800_000, 1000 * MBIT),
    }
