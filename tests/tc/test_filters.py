"""Filters of `tc` by port and mark, and which flows of a scenario they select."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sojourn.scenario import Scenario
from sojourn.tc import Applied, apply, read
from tests.tc.texts import HOME, problems, queue

TREE = """tc qdisc add dev eth0 root handle 1: prio bands 3
tc filter add dev eth0 parent 1: protocol ip prio 1 {0}
"""
FLOWS = """
[[flows]]
name = "ssh"
from = "home"
to = "isp"
app = "bulk"
destination_port = 22
[[flows]]
name = "https"
from = "isp"
to = "home"
app = "bulk"
source_port = 443
[[flows]]
name = "torrent"
from = "home"
to = "isp"
app = "cbr rate 1mbit"
mark = 128
"""
SCENARIO = Scenario.from_toml(HOME + FLOWS)


def conditions(line: str) -> list[dict[str, Any]]:
    (found,) = queue(TREE.format(line))["tree"]["filters"]
    assert found["class"] == 1
    return list(found["conditions"])


def selecting(text: str) -> Applied:
    return apply(SCENARIO, read([("f", text)], {}))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("u32 match ip dport 80 0xffff flowid 1:1", [{"dport": [80, 80]}]),
        ("u32 match ip sport 25 0xffff flowid 1:1", [{"sport": [25, 25]}]),
        ("u32 match tcp dst 0x50 0xffff flowid 1:1", [{"dport": [80, 80]}]),
        # The last bits are not compared: a range.
        ("u32 match ip dport 0x1400 0xff00 flowid 1:1", [{"dport": [5120, 5375]}]),
        ("u32 match ip sport 0 0xfc00 flowid 1:1", [{"sport": [1, 1023]}]),
        (
            "u32 match ip sport 25 0xffff match ip dport 80 0xffff flowid 1:1",
            [{"sport": [25, 25]}, {"dport": [80, 80]}],
        ),
        ("u32 match u16 22 0xffff at nexthdr+2 flowid 1:1", [{"dport": [22, 22]}]),
        ("u32 match u32 0x00160050 0xffffffff at 20 flowid 1:1",
         [{"sport": [22, 22]}, {"dport": [80, 80]}]),
        ("u32 match ip protocol 6 0xff match ip dport 22 0xffff flowid 1:1",
         [{"protocol": 6}, {"dport": [22, 22]}]),
        ("u32 match mark 0x10 0xf0 flowid 1:1", [{"mark": [16, 240]}]),
        ("handle 128 fw flowid 1:1", [{"mark": [128, 2**32 - 1]}]),
        ("handle 0x10/0xff fw classid 1:1", [{"mark": [16, 255]}]),
        ("flower ip_proto tcp dst_port 443 classid 1:1",
         [{"protocol": 6}, {"dport": [443, 443]}]),
        ("flower ip_proto udp src_port 5000-5100 classid 1:1",
         [{"protocol": 17}, {"sport": [5000, 5100]}]),
        ("flower ip_proto udp dst_port 0x1400/0xff00 classid 1:1",
         [{"protocol": 17}, {"dport": [5120, 5375]}]),
        ("basic match 'cmp(u16 at 2 layer 2 eq 22)' flowid 1:1", [{"dport": [22, 22]}]),
        ("basic match 'cmp(u16 at 0 layer transport gt 1023)' flowid 1:1",
         [{"sport": [1024, 65_535]}]),
        ("basic match 'meta(nf_mark eq 3)' flowid 1:1", [{"mark": [3, 2**32 - 1]}]),
        # Both bounds of a range, and the order in which tests are typed.
        (("basic match 'cmp(u16 at 2 layer 2 gt 79) and meta(nf_mark mask 0xf eq 3) and "
         "cmp(u16 at 2 layer 2 lt 91)' flowid 1:1"), [{"dport": [80, 90]}, {"mark": [3, 15]}]),
    ],
)  # fmt: skip
def test_ports_and_marks_become_conditions(line: str, expected: list[dict[str, Any]]) -> None:
    assert conditions(line) == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("u32 match ip dport 22 0x00ff flowid 1:1", "a mask that does not give a range of ports"),
        (
            "flower ip_proto tcp dst_port 90-80 classid 1:1",
            "`90-80` is neither a port nor a range of ports",
        ),
        ("flower ip_proto tcp dst_port 70000 classid 1:1", "`70000` is not a port"),
        (
            "basic match 'cmp(u16 at 2 layer 2 gt 65535)' flowid 1:1",
            "no port is on this side of 65535",
        ),
        ("fw flowid 1:1", "uses the mark as the class, which is not modelled"),
    ],
)
def test_errors_name_the_line(line: str, message: str) -> None:
    ((number, told),) = problems(TREE.format(line))
    assert number == 2
    assert message in told


FLOW = "flow hash keys src,dst,proto,proto-src,proto-dst"


def test_a_flow_hash_with_tests_of_ports() -> None:
    """The filters of one order are asked one after another; those of `flow` may have conditions."""
    found = queue(
        "tc qdisc add dev eth0 root handle 1: drr\n"
        + "".join(f"tc class add dev eth0 parent 1: classid 1:{n} drr\n" for n in range(1, 6))
        + "add='tc filter add dev eth0 parent 1: protocol ip prio'\n"
        f"$add 3 handle 1 {FLOW} divisor 2 baseclass 1:4\n"
        f"$add 2 handle 2 {FLOW} divisor 3 match 'cmp(u8 at 9 layer 1 eq 17)'\n"
        "$add 1 u32 match ip dport 22 0xffff flowid 1:5\n"
    )["tree"]["filters"]
    assert found == [
        {"conditions": [{"dport": [22, 22]}], "divisor": 1, "class": 5},
        # Without `baseclass` it is the discipline's first class.
        {"conditions": [{"protocol": 17}], "divisor": 3, "class": 1},
        {"conditions": [], "divisor": 2, "class": 4},
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("flow map key dst divisor 2 baseclass 1:1", "`flow map` selects the class by a field"),
        (f"{FLOW} baseclass 1:1", "`flow` needs a `divisor`"),
        (f"{FLOW} divisor 2 match 'nbyte(x)'", "the expression `nbyte(x)` is not supported"),
    ],
)
def test_a_flow_hash_that_is_not_read_is_named(words: str, message: str) -> None:
    ((number, told),) = problems(TREE.format(f"handle 1 {words}"))
    assert number == 2
    assert message in told


def inner(*filters: str) -> list[dict[str, Any]]:
    """Returns the filters of a tree with two classes in `1:1`, and one next to it."""
    found = queue(
        "tc qdisc add dev eth0 root handle 1: htb default 30\n"
        "tc class add dev eth0 parent 1: classid 1:1 htb rate 9mbit\n"
        + "".join(
            f"tc class add dev eth0 parent 1:{parent} classid 1:{minor} htb rate 1mbit\n"
            for parent, minor in (("1", "10"), ("1", "20"), ("", "30"))
        )
        + "".join(f"tc filter add dev eth0 protocol ip {words}\n" for words in filters)
    )["tree"]["filters"]
    return list(found)


def test_filters_of_an_inner_class_are_asked_behind_one_that_leads_there() -> None:
    found = inner(
        "parent 1: prio 1 u32 match ip dport 443 0xffff flowid 1:1",
        "parent 1:1 prio 2 u32 match ip protocol 17 0xff flowid 1:20",
        "parent 1:1 prio 1 handle 3 fw flowid 1:10",
        "parent 1: prio 2 u32 match ip dport 80 0xffff flowid 1:20",
    )
    https, mark = {"dport": [443, 443]}, {"mark": [3, 2**32 - 1]}
    assert [(one["conditions"], one["class"]) for one in found] == [
        ([https, mark], 0x10),
        ([https, {"protocol": 17}], 0x20),
        # None of the class' own fits.
        ([https], 0x30),
        ([{"dport": [80, 80]}], 0x20),
    ]


def test_filters_of_an_inner_class_to_which_none_leads_are_not_asked() -> None:
    found = selecting(
        "tc qdisc add dev eth0 root handle 1: htb default 30\n"
        "tc class add dev eth0 parent 1: classid 1:1 htb rate 9mbit\n"
        "tc class add dev eth0 parent 1:1 classid 1:10 htb rate 1mbit\n"
        "tc class add dev eth0 parent 1: classid 1:30 htb rate 1mbit\n"
        "tc filter add dev eth0 parent 1:1 protocol ip prio 1 u32 match ip dport 22 0xffff "
        "flowid 1:10\n"
    )
    assert found.selections == []
    (notice,) = found.notices
    assert re.match("f:5: no .*leads to `1:1`, .*not evaluate the filters", notice)


def test_ranges_that_flower_prints() -> None:
    shown = (
        '[{"kind":"prio","handle":"1:","dev":"eth0","root":true,"options":{"bands":3}}]\n'
        '[{"parent":"1:","protocol":"ip","pref":1,"kind":"flower","chain":0,"options":{"handle":1,'
        '"classid":"1:1","keys":{"ip_proto":"tcp","dst_port":{"start":80,"end":90}}}}]\n'
    )
    (found,) = queue(shown)["tree"]["filters"]
    assert found["conditions"] == [{"protocol": 6}, {"dport": [80, 90]}]


def test_it_says_which_flows_a_filter_selects() -> None:
    add = "tc filter add dev eth0 parent 1: protocol ip prio"
    found = selecting(
        TREE.format("u32 match ip dport 22 0xffff flowid 1:1")
        + f"{add} 2 u32 match ip dport 443 0xffff flowid 1:2\n"
        f"{add} 3 handle 128 fw flowid 1:3\n"
        f"{add} 4 u32 match ip dport 53 0xffff flowid 1:1\n"
        f"{add} 5 u32 match ip tos 0x00 0xe0 flowid 1:2\n"
    )
    found_flows = [(one.line, one.flows, one.answers) for one in found.selections]
    assert found_flows == [
        ("f:2", ("ssh",), ()),
        ("f:3", (), ("https",)),
        ("f:4", ("torrent",), ()),
        ("f:5", (), ()),
        # Eight code points are eight filters; they select what no filter before them does.
        ("f:6", ("bulk",), ()),
    ]
    assert [str(one) for one in found.selections[:2]] == [
        f"f:2: `{add} 1 u32 match ip dport 22 0xffff flowid 1:1` selects ssh",
        (
            f"f:3: `{add} 2 u32 match ip dport 443 0xffff flowid 1:2` selects the packets from "
            "the receivers of https"
        ),
    ]
    (notice,) = found.notices
    assert re.match(r"no flow .*selected .*: f:5 \(dport 53 to 1:1\)\. Set `source", notice)
    assert found.as_dict()["filters"][1] == {
        "link": "line",
        "line": "f:3",
        "text": f"{add} 2 u32 match ip dport 443 0xffff flowid 1:2",
        "filters": ["dport 443 to 1:2"],
        "flows": [],
        "answers": ["https"],
    }


def test_a_filter_moves_packets_of_tcp_in_both_directions() -> None:
    """The class of a port has its own rate, for data and for acknowledgements."""

    def goodputs(answers: str) -> tuple[float, float]:
        found = selecting(
            "tc qdisc add dev eth0 root handle 1: htb default 30\n"
            "tc class add dev eth0 parent 1: classid 1:10 htb rate 2mbit\n"
            "tc class add dev eth0 parent 1: classid 1:20 htb rate 5mbit\n"
            "tc class add dev eth0 parent 1: classid 1:30 htb rate 8mbit\n"
            "tc class add dev eth0 parent 1: classid 1:40 htb rate 100kbit\n"
            "tc filter add dev eth0 prio 1 u32 match ip dport 22 0xffff flowid 1:10\n"
            f"tc filter add dev eth0 prio 1 u32 match ip dport 443 0xffff flowid {answers}"
        )
        metrics = found.scenario.replace({"duration": "6s", "warmup": "2s"}).run(1).metrics
        return metrics["ssh.goodput"] / 1e6, metrics["https.goodput"] / 1e6

    (data, fast), (_, slow) = goodputs("1:20"), goodputs("1:40")
    assert 1.6 < data < 2
    assert fast > 15
    assert slow < fast / 2


HASHED = (
    "tc qdisc add dev eth0 root handle 1: htb default 30\n"
    "tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit\n"
    "tc class add dev eth0 parent 1: classid 1:30 htb rate 5mbit\n"
    "tc filter add dev eth0 parent 1: prio 5 handle 2: protocol ip u32 divisor 256\n"
    "tc filter add dev eth0 protocol ip parent 1: prio 5 u32 ht 800:: match ip dst 10.0.0.0/24 "
    "hashkey mask 0x000000ff at 16 link {link}\n"
    "tc filter add dev eth0 protocol ip parent 1: prio 5 u32 ht {seat} match ip protocol 17 0xff "
    "flowid 1:10\n"
)


def test_a_filter_in_a_hash_table_also_tests_its_bucket() -> None:
    (found,) = queue(HASHED.format(link="2:", seat="2:2:"))["tree"]["filters"]
    assert {"protocol": 17} in found["conditions"]
    assert any("dst" in condition for condition in found["conditions"])
    assert found["class"] == 16
    assert not queue(HASHED.format(link="2:", seat="2:63:"))["tree"]["filters"]


@pytest.mark.parametrize(
    ("link", "seat", "line", "message"),
    [
        ("3:", "2:2:", 5, "the hash table `3:` does not exist"),
        ("2:", "4:2:", 6, "the hash table `4:` does not exist"),
    ],
)
def test_a_hash_table_that_does_not_exist_is_named(
    link: str, seat: str, line: int, message: str
) -> None:
    ((number, told),) = problems(HASHED.format(link=link, seat=seat))
    assert number == line
    assert message in told


def test_the_length_of_a_packet_is_a_condition() -> None:
    tree = (
        "tc qdisc add dev eth0 root handle 1: prio\n"
        "tc filter add dev eth0 parent 1: protocol ip u32 match ip protocol 6 0xff match u8 0x05 "
        "0x0f at 0 match u16 0x0000 0xffc0 at 2 match u8 0x10 0xff at 33 flowid 1:1\n"
    )
    (found,) = queue(tree)["tree"]["filters"]
    assert found["conditions"] == [{"protocol": 6}, {"length": [0, 63]}]
