"""Outputs of `tc`, as text and as JSON, are read as the tree that Linux has."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from sojourn import _core
from tests.tc.texts import SHOWN, applied, parsed, problems, queue

KINDS = ["htb", "hfsc", "prio", "netem"]
MADE = {
    # The commands that made what was printed, with the bursts that `tc` computed at HZ=100.
    "htb": """htb default 30 r2q 5; class 1:1 parent 1: rate 6mbit \
ceil 6mbit burst 15kb cburst 9100b
class 1:10 parent 1:1 rate 5mbit ceil 6mbit burst 15kb cburst 9100b prio 1 quantum 3000b
class 1:20 parent 1:1 rate 3mbit ceil 6mbit burst 5350b cburst 9100b overhead 14 mpu 64 \
linklayer atm quantum 75000b
class 1:30 parent 1:1 rate 1kbit ceil 6mbit burst 1601b cburst 9100b quantum 1000b
class 1:40 parent 1: rate 1kbit ceil 6mbit burst 1601b cburst 9100b quantum 1000b
qdisc parent 1:30 handle 30: prio
qdisc parent 30:1 pie
qdisc parent 1:10 fq_codel quantum 1480b
qdisc parent 1:20 sfq limit 127p perturb 10 quantum 1480b""",
    "hfsc": """hfsc default 20; class 1:1 parent 1: sc rate 400mbit ul rate 400mbit
class 1:10 parent 1:1 rt m1 875kbit d 520us m2 150kbit ls m1 875kbit d 520us m2 833kbit \
ul rate 1500kbit
class 1:20 parent 1:1 ls d 28800us m2 10mbit
qdisc parent 1:10 cake besteffort""",
}


def shown(name: str) -> str:
    return (SHOWN / name).read_text(encoding="utf-8")


def tree(name: str) -> dict[str, Any]:
    found: dict[str, Any] = queue(shown(name), hosts={"10.0.0.1": "isp"})
    return found


def without_filters(found: dict[str, Any]) -> dict[str, Any]:
    return found | {"tree": found["tree"] | {"filters": []}}


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("form", ["txt", "json"])
def test_a_printed_tree_is_the_one_that_was_made(kind: str, form: str) -> None:
    made = json.loads(_core.parse_queue(MADE[kind]))
    found = without_filters(tree(f"{kind}.{form}"))
    # Linux's PIE updates every 20 ms at HZ=100, and `tc` prints this value.
    for one in made["tree"]["classes"]:
        if one["id"] == 0x30:
            one["child"]["tree"]["classes"][0]["child"]["tupdate_us"] = 20_000
    assert found == made | ({"direct_qlen": 1000} if kind == "htb" else {})


@pytest.mark.parametrize("kind", KINDS)
def test_both_forms_say_the_same(kind: str) -> None:
    text, data = (applied(shown(f"{kind}.{form}")).placed[0] for form in ("txt", "json"))
    assert text.netem is None or _core.parse_netem(text.netem) == _core.parse_netem(
        data.netem or ""
    )
    found = [json.loads(_core.parse_queue(str(one.queue))) for one in (text, data)]
    if kind == "prio":
        # `tc -j` leaves out the quantum of drr's classes, and RED's probability.
        for one in found:
            one["tree"]["classes"] = [
                {**inner, "child": (inner["child"] or {}).get("name")}
                for inner in one["tree"]["classes"]
            ]
    assert found[0] == found[1]


def test_values_that_json_lacks_are_reported() -> None:
    assert any("peakrate" in notice for notice in applied(shown("tbf.json")).notices)
    assert any("quantum of drr" in notice for notice in applied(shown("prio.json")).notices)
    assert queue(shown("tbf.txt"))["peakrate"] == 2_000_000
    assert queue(shown("tbf.txt"))["child"]["maxrate"] == 5_000_000


def test_printed_filters_are_those_that_were_made() -> None:
    for form in ("txt", "json"):
        found = tree(f"htb.{form}")["tree"]["filters"]
        conditions = [[next(iter(c)) for c in one["conditions"]] for one in found]
        assert ["dscp"] in conditions
        assert conditions[-1] == []
        assert [one["class"] for one in found][-1] == 0x30


def test_disciplines_by_themselves_read_in_both_forms() -> None:
    lines = shown("alone.txt").splitlines()
    seen = set()
    for text, data in zip(lines[::2], lines[1::2], strict=True):
        kind = text.split()[1]
        seen.add(kind)
        if kind == "gred":
            ((_, message),) = problems(text)
            assert f"`{kind}` is not modelled" in message
            continue
        first, second = queue(text), queue(data)
        if kind in ("choke", "dualpi2"):
            assert first["name"] == second["name"] == kind
        else:
            assert first == second, text
    assert len(seen) >= 12


def test_outputs_follow_their_commands() -> None:
    one = """# tc qdisc show dev {0}
qdisc htb 1: root refcnt 2 r2q 10 default 10 direct_packets_stat 3
# tc class show dev {0}
class htb 1:10 root prio 0 rate {1}Mbit ceil {1}Mbit burst 1600b cburst 1600b
"""
    text = one.format("eth0", 5) + one.format("eth1", 7)
    assert queue(text, "eth1")["tree"]["classes"][0]["rate"] == 7_000_000
    assert [placed.link for placed in applied(text, "eth1,eth0").placed] == ["line", "line.reverse"]
    ((_, message),) = problems(text)
    assert message.startswith("2 devices have queues: eth0 (htb), eth1 (htb); choose one for line")
    # Without their commands classes cannot be told apart, unless a device is chosen.
    mixed = (
        "qdisc htb 1: dev eth0 root refcnt 2 r2q 10 default 10\n"
        "qdisc htb 1: dev eth1 root refcnt 2 r2q 10 default 10\n"
        "class htb 1:10 root prio 0 rate 5Mbit ceil 5Mbit burst 1600b cburst 1600b\n"
    )
    assert queue(mixed, "eth0")["tree"]["classes"][0]["rate"] == 5_000_000
    assert queue(mixed, "eth1")["tree"]["classes"][0]["rate"] == 5_000_000
    both = problems(mixed, "eth0,eth1")
    assert any(re.search("several devices .*`1:`: eth0, eth1;", told) for _, told in both)


def test_defaults_of_linux_give_way_to_what_was_set_up() -> None:
    text = (
        "qdisc noqueue 0: dev lo root refcnt 2\n"
        "qdisc fq_codel 0: dev eth0 root refcnt 2 limit 10240p flows 1024 quantum 1514 target 5ms\n"
        "qdisc mq 0: dev wlan0 root\n"
        "qdisc fq_codel 0: dev wlan0 parent :1 limit 10240p\n"
        "qdisc cake 8009: dev eth1 root refcnt 2 bandwidth 18Mbit diffserv3\n"
    )
    assert queue(text)["bandwidth"] == 18_000_000
    # An option that is not printed is off, although `fq_codel` marks by default.
    assert queue(text, "eth0")["ecn"] is False
    assert queue(text, "wlan0")["name"] == "fq_codel"


def test_transmit_queues() -> None:
    def device(second: str) -> str:
        return (
            "tc qdisc add dev eth0 root handle 7fff: mq\n"
            "tc qdisc add dev eth0 parent 7fff:1 handle 1: tbf rate 1mbit burst 9k latency 9ms\n"
            f"tc qdisc add dev eth0 parent 7fff:2 handle 2: {second}\n"
        )

    (notice,) = applied(device("cake")).notices
    assert re.match("f:1: flows .*transmit queues by .*hash", notice)
    tbf = "tbf rate 1mbit burst 9k latency 9ms"
    whole = f"mq handle 7fff: numtxqueues 2; qdisc parent 7fff:1 {tbf}; qdisc parent 7fff:2"
    assert queue(device("cake")) == parsed(f"{whole} cake")
    assert queue(device(tbf)) == parsed(f"{whole} {tbf}")
    assert queue(device("cake"), "eth0:2")["name"] == "cake"
    (_, message), *_ = problems(device("cake"), "eth0:3")
    assert re.fullmatch(".*no queue .*`eth0:3`; .*: eth0", message)


def test_transmit_queues_as_they_are_printed() -> None:
    """Their number is the largest one; `tc` prints no number of a discipline that Linux set up."""
    shown = (
        "qdisc mq 0: dev eth0 root\n"
        "qdisc htb 1: dev eth0 parent :2 r2q 10 default 0x10 direct_packets_stat 0\n"
        "class mq :1 root leaf 1:\n"
        "class mq :2 root\n"
        "class htb 1:10 root prio 0 rate 5Mbit ceil 5Mbit burst 1600b cburst 1600b\n"
        "qdisc fq_codel 0: dev eth0 parent :1 limit 99p flows 1024 quantum 1514 ecn\n"
    )
    expected = (
        "mq handle 7fff: numtxqueues 2; qdisc parent 7fff:1 fq_codel limit 99p ecn; "
        "qdisc parent 7fff:2 handle 1: htb default 10; class 1:10 parent 1: rate 5mbit ceil 5mbit"
    )
    assert queue(shown, "eth0") == parsed(expected)
    found = applied("qdisc mq 0: dev eth0 root\nqdisc sfq 0: dev eth0 parent :3 limit 9p\n", "eth0")
    words = "f:1: 2 of 3 transmit queues .*not in these lines: .*as the `sfq` of queue 3"
    assert re.fullmatch(words, found.notices[0])
    assert found.placed[0].queue is not None
    assert found.placed[0].queue.count("sfq limit 9p") == 3
    told = problems("qdisc mq 8001: dev eth0 root\n")
    assert told[0][0] == 1
    assert re.match("these lines do not .*transmit queues of `mq`", told[0][1])


def test_a_device_knows_how_many_transmit_queues_it_has() -> None:
    found = applied("tc qdisc add dev eth0 root mq\ntc filter add dev eth0 matchall flowid :1\n")
    assert re.fullmatch("f:1: .*number of transmit queues: 4 are assumed", found.notices[0])
    assert any(re.search("filters of `mq` .*ignored", notice) for notice in found.notices)
    assert found.placed[0].queue == "mq handle 7fff:"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('[{"kind":"htb","handle":"1:","root":true,"options":{fh 800: }}]', 1, "this is not JSON"),
        ('[{"kind":"htb"}]', 1, "this is not a discipline, class or filter as `tc -j` prints it"),
        ("[{}, 5]", 1, "this is not a discipline"),
        (
            '[{"kind":"htb","handle":7,"root":true}]',
            1,
            "the classes of `7:` are not in these lines",
        ),
        ('[{"class":"htb","handle":"x"}]', 1, "`x` is not the name of a class"),
        ('[{"class":"htb","handle":"1:1","rate":"a"}]', 1, "has the wrong type"),
        ('[{"class":"htb","handle":"1:1","rate":5}]', 1, "the files have no discipline `1:`"),
        ('[{"a":' * 5000, 1, "nested too deeply"),
        (
            "qdisc htb x: dev eth0 root\nqdisc cake 1: dev eth0 root\n",
            1,
            "not a discipline as `tc` prints",
        ),
        ("class htb 1:1 root rate 1Mbit\n", 1, "the files have no discipline `1:`"),
    ],
)
def test_text_that_is_no_output_of_tc_is_refused(text: str, line: int, message: str) -> None:
    found = problems(text)
    assert any(at == line and message in told for at, told in found), found


def test_an_entry_without_a_key_is_named() -> None:
    assert problems('[{"class":"htb","parent":"1:"}]') == [(1, "this entry lacks `handle`")]
