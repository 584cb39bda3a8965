"""Commands of `tc` mean what they mean to Linux."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sojourn.scenario import ScenarioError
from sojourn.tc import apply, read
from tests.tc.texts import HOME_SCENARIO, applied, parsed, problems, queue

ROOT = "tc qdisc add dev eth0 root handle 1: htb default 20\n"
TREE = (
    ROOT
    + """\
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit burst 15k
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 6mbit ceil 10mbit prio 1
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 4mbit ceil 10mbit prio 2
tc qdisc add dev eth0 parent 1:20 handle 20: fq_codel limit 300
"""
)


def filters(*lines: str, **options: Any) -> list[Any]:
    text = TREE + "".join(f"tc filter add dev eth0 {line}\n" for line in lines)
    found: list[Any] = queue(text, **options)["tree"]["filters"]
    return found


def test_a_tree_is_what_its_commands_say() -> None:
    assert queue(TREE) == parsed(
        "htb default 20; class 1:1 parent 1: rate 10mbit burst 15kb; "
        "class 1:10 parent 1:1 rate 6mbit ceil 10mbit prio 1; "
        "class 1:20 parent 1:1 rate 4mbit ceil 10mbit prio 2; qdisc parent 1:20 fq_codel limit 300p"
    )


@pytest.mark.parametrize(
    "text",
    [
        TREE.replace("tc ", "sudo /sbin/tc "),
        TREE.replace("tc ", ""),
        TREE.replace("tc ", "# tc "),
        TREE.replace("tc ", "root@router:~# tc "),
        TREE.replace("tc ", "+ tc "),
        TREE.replace("tc ", "DEBUG: tc "),
        TREE.replace("tc ", "ip netns exec a tc "),
        TREE.replace(" htb rate", " \\\n    htb rate"),
        TREE.replace("qdisc add dev", "qd a dev").replace("class add", "cl ad"),
        TREE.replace("\n", "\r\n"),
        TREE.replace("1:", "0x1:"),
        "tc -b - <<END\n" + TREE.replace("tc ", "") + "END\n",
        "cat > /tmp/b << END\n" + TREE.replace("tc ", "") + "END\ntc -batch /tmp/b\n",
        "tc qdisc del dev eth0 root 2>/dev/null || true; " + TREE.replace("\n", ";", 1),
        TREE.replace("eth0", "$DEV").replace("tc qdisc", "DEV=eth0\ntc qdisc", 1),
        'f() { command tc class add dev "$@"; }\n' + TREE.replace("tc class add dev", "f"),
    ],
)  # fmt: skip
def test_commands_are_written_in_many_ways(text: str) -> None:
    assert queue(text) == queue(TREE)


def test_commands_change_the_existing_tree() -> None:
    changed = TREE + (
        "tc class change dev eth0 classid 1:10 htb rate 5mbit\n"
        "tc qdisc replace dev eth0 parent 1:20 codel\n"
        "tc class add dev eth0 parent 1:1 classid 1:30 htb rate 1mbit\n"
        "tc class del dev eth0 classid 1:30\n"
    )
    found = queue(changed)["tree"]["classes"]
    assert [(c["id"], c["rate"], (c["child"] or {}).get("name")) for c in found] == [
        (1, 10_000_000, None), (16, 5_000_000, None), (32, 4_000_000, "codel"),
    ]  # fmt: skip
    assert (
        queue(TREE + "tc qdisc del dev eth0 root\ntc qdisc add dev eth0 root cake")["name"]
        == "cake"
    )
    assert queue(TREE + "tc qdisc replace dev eth0 root handle 9: sfq")["name"] == "sfq"


def test_commands_that_linux_refuses_are_refused() -> None:
    for line, why in [
        ("tc qdisc add dev eth0 root cake", "line 1 has already added a discipline here"),
        ("tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit", "has already added `1:10`"),
        ("tc class add dev eth0 parent 1: classid 1:11 hfsc ls m2 1mbit", "cannot be in `htb`"),
        ("tc class add dev eth0 parent 1:1 classid 1:11 htb ceil 1mbit", "needs `rate`"),
        ("tc qdisc add dev eth0 parent 1:77 codel", "class `1:77` does not exist"),
        ("tc qdisc add dev eth0 parent 1:10 handle 20: codel", "two disciplines of `eth0` have"),
        ("tc qdisc add dev eth0 parent 1:10 cdel", "unknown queue `cdel`"),
        ("tc qdisc add dev eth0", "the kind of discipline is missing"),
        ("tc qdisc add root cake", "`dev` is missing"),
        ("tc qdsc add dev eth0 root cake", "unknown word `qdsc` for `tc`"),
        ("tc class add dev eth0 parent 1: htb rate 1mbit", "`classid` is missing"),
        ("tc filter add dev eth0 parent 1: u32 match ip tos", "`tos` needs a value"),
        ("tc filter add dev eth0 parent 1: bpf obj a.o classid 1:10", "filters are not supported"),
        ("tc filter add dev eth0 parent 1: u32 match ip ttl 5 0xff classid 1:10", "`match ip ttl`"),
        ("tc filter add dev eth0 parent 1: u32 match u8 5 0x0f at 33 classid 1:10", "this part of"),
        ("tc filter add dev eth0 parent 1: u32 match u32 0 0 police rate 1mbit drop", "`police`"),
    ]:  # fmt: skip
        ((number, message),) = problems(TREE + line)
        assert number == 6, line
        assert why in message, (line, message)


def test_every_line_that_cannot_be_read_is_reported() -> None:
    text = TREE + (
        "tc class add dev eth0 parent 1:1 classid 1:30 htb rate 1mbt\n"
        "tc qdisc add dev eth0 parent 1:30 fq_codel\n"
        "tc qdisc add dev eth0 parent 1:10 qfq\n"
        "tc filter add dev eth0 parent 1: protocol ip u32 match ip tos x 0xff flowid 1:10\n"
    )
    assert [line for line, _ in problems(text)] == [6, 8, 9]
    found = applied(text, partial=True)
    ignored = [notice for notice in found.notices if notice.startswith("ignored: ")]
    assert [notice.split(":")[2] for notice in ignored] == ["6", "8", "9"]
    assert "f:7: ignored, because the class `1:30` cannot be read" in found.notices
    assert queue(text, partial=True) == queue(TREE)


def test_filters_ask_for_code_points_protocols_and_hosts() -> None:
    found = filters(
        "parent 1: protocol ip prio 1 u32 match ip tos 0xb8 0xfc flowid 1:10",
        "parent 1: protocol ip prio 2 u32 match ip dsfield 0x40 0xe0 match ip protocol 17 0xff "
        "flowid 1:10",
        "protocol ip prio 3 u32 match ip src 192.0.2.7/32 match ip dst 10.0.0.0/8 flowid 1:10",
        "parent 1: protocol all prio 4 matchall classid 1:20",
        hosts={"192.0.2.7": "home"},
    )
    assert found == [
        {"conditions": [{"dscp": 46}], "divisor": 1, "class": 16},
        *(
            {"conditions": [{"dscp": dscp}, {"protocol": 17}], "divisor": 1, "class": 16}
            for dscp in range(16, 24)
        ),
        {"conditions": [{"src": 0}, {"dst": 1}], "divisor": 1, "class": 16},
        {"conditions": [], "divisor": 1, "class": 32},
    ]


def test_addresses_may_be_short() -> None:
    (found,) = filters(
        "parent 1: prio 1 u32 match ip src 10/8 match ip dst 192.0 flowid 1:10",
        hosts={"192.0.0.0": "isp"},
    )
    assert found["conditions"] == [{"src": 0}, {"dst": 1}]


def test_kinds_of_filters_say_the_same() -> None:
    expected = [{"conditions": [{"dscp": 46}, {"protocol": 6}], "divisor": 1, "class": 16}]
    for line in (
        "u32 match ip tos 0xb8 0xfc match ip protocol 6 0xff flowid 1:10",
        "u32 match u8 0xb8 0xfc at 1 match u8 6 0xff at 9 flowid 1:10",
        "u32 match u32 0x00b80000 0x00fc0000 at 0 match u16 0x0006 0x00ff at 8 flowid 1:10",
        "flower ip_tos 0xb8/0xfc ip_proto tcp classid 1:10",
        "basic match 'cmp(u8 at 1 layer 1 mask 0xfc eq 0xb8) and cmp(u8 at 9 eq 6)' flowid 1:10",
        "u32 match ip tos 0xb8 0xfc match ip protocol 6 0xff action skbedit priority 1:10",
    ):
        assert filters(f"parent 1: protocol ip prio 1 {line}") == expected, line
    text = (
        "tc qdisc add dev eth0 root handle 1: drr\n"
        "tc class add dev eth0 parent 1: classid 1:1 drr\n"
        "tc class add dev eth0 parent 1: classid 1:2 drr\n"
        "tc filter add dev eth0 parent 1: prio 1 flow hash keys src,dst,proto-src,proto-dst "
        "divisor 2 baseclass 1:1\n"
    )
    assert queue(text) == parsed("drr; class 1:1; class 1:2; filter flow divisor 2 to 1:1")


def test_the_order_of_filters_is_that_of_linux() -> None:
    def classes(*lines: str) -> list[int]:
        return [found["class"] for found in filters(*lines)]

    match = "u32 match ip protocol 17 0xff flowid"
    assert classes(f"parent 1: prio 2 {match} 1:10", f"parent 1: prio 1 {match} 1:20") == [32, 16]
    assert classes(f"parent 1: prio 1 {match} 1:10", f"parent 1: prio 1 {match} 1:20") == [16, 32]
    # Of filters without an order the later one is asked first.
    assert classes(f"parent 1: {match} 1:10", f"parent 1: {match} 1:20") == [32, 16]


def test_filters_that_match_no_packet_are_reported() -> None:
    text = TREE + (
        "tc filter add dev eth0 parent 1: protocol ip u32 match ip dst 192.0.2.1 flowid 1:10\n"
        "tc filter add dev eth0 parent 1: protocol ip u32 match ip dst 192.0.2.2 flowid 1:10\n"
        "tc filter add dev eth0 parent 1: protocol ipv6 u32 match ip6 priority 8 0xff flowid 1:10\n"
        "tc filter add dev eth0 parent 1: protocol ip u32 match u8 0x46 0xff at 0 flowid 1:10\n"
    )
    told = applied(text).notices
    assert re.search("no host has 192.0.2.1, 192.0.2.2: .*match no packet", told[-1])
    assert any("for `ipv6` matches none" in notice for notice in told)
    assert any("header length matches none" in notice for notice in told)
    assert queue(text) == queue(TREE)


def test_classes_that_linux_does_not_find() -> None:
    found = applied(ROOT + "tc class add dev eth0 parent 1:1 classid 1:2 htb rate 1mbit\n")
    assert found.notices == [
        (
            "f:1: the default class `1:20` does not exist: packets that no filter selects are "
            "sent without a limit"
        ),
        "f:2: the parent `1:1` does not exist: as in Linux, the class is below the root",
    ]
    found = applied(TREE + "tc filter add dev eth0 parent 1: prio 1 matchall flowid 1:99\n")
    (notice,) = found.notices
    assert re.fullmatch("f:6: .*`1:99` does not exist: .*default class `1:20`", notice)
    found = applied(TREE + "tc qdisc add dev eth0 parent 1:1 cake\n")
    (notice,) = found.notices
    assert re.match("f:6: `1:1` has child classes, .*ignores the discipline", notice)


def test_sizes_of_frames() -> None:
    def shaper(stab: str, kind: str) -> object:
        return queue(f"tc qdisc add dev eth0 root handle 1: {stab} {kind}")

    tbf = "tbf rate 1mbit burst 10k latency 50ms"
    assert shaper("stab overhead 44 linklayer atm", tbf) == parsed(
        f"{tbf} overhead 44 linklayer atm"
    )
    text = TREE.replace("handle 1: htb", "handle 1: stab overhead 18 mpu 64 htb")
    assert {(c["overhead"], c["mpu"]) for c in queue(text)["tree"]["classes"]} == {(18, 64)}


def test_disciplines_inside_tbf_and_netem_are_read() -> None:
    tbf = "tc qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 10k latency 50ms\n"
    for parent in ("1:", "1:1", "1:7"):
        text = f"{tbf}tc qdisc add dev eth0 parent {parent} handle 10: prio\n"
        text += "tc qdisc add dev eth0 parent 10:1 codel\n"
        found = queue(text)["child"]
        assert (found["name"], found["tree"]["classes"][0]["child"]["name"]) == ("prio", "codel")
    netem = applied("tc qdisc add dev eth0 root netem delay 30ms loss 1% limit 5000\n")
    assert (netem.placed[0].queue, netem.placed[0].netem) == (None, "delay 30ms loss 1% limit 5000")
    delays = [one.params.delay for one in netem.scenario.plan.links]
    assert delays == [40_000_000, 10_000_000]
    both = applied(
        "tc qdisc add dev eth0 root handle 1: netem delay 30ms\n"
        "tc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 1mbit burst 10k latency 50ms\n"
    ).placed[0]
    assert (both.queue or "").startswith("tbf")
    assert both.netem == "delay 30ms limit 1000"
    mininet = applied(
        "tc qdisc add dev eth0 root handle 5: htb default 1\n"
        "tc class add dev eth0 parent 5: classid 5:1 htb rate 10mbit burst 15k\n"
        "tc qdisc add dev eth0 parent 5:1 handle 10: netem delay 5ms\n"
    ).placed[0]
    assert mininet.netem == "delay 5ms limit 1000"
    assert (mininet.queue or "").startswith("htb handle 5: default 1 ; class 5:1")
    other = applied(tbf + "tc qdisc add dev eth0 parent 1:1 netem delay 30ms\n").placed[0]
    assert (other.queue, other.netem) == (
        "tbf rate 1mbit burst 10k latency 50ms",
        "delay 30ms limit 1000",
    )
    inner = (
        "tc qdisc add dev x root handle 5: htb default 1\n"
        "tc class add dev x parent 5: classid 5:1 htb rate 10mbit\n"
        "tc qdisc add dev x parent 5:1 handle 10: netem delay 5ms\n"
        "tc qdisc add dev x parent 10:1 codel\n"
    )
    ((line, message),) = problems(inner)
    assert line == 3
    assert re.match("netem in a class .*not modelled", message)


def test_cbq_is_read_as_htb() -> None:
    text = """
tc qdisc add dev eth0 root handle 1: cbq avpkt 1000 bandwidth 10mbit
tc class add dev eth0 parent 1: classid 1:1 cbq rate 512kbit allot 1500 prio 5 bounded isolated
tc class add dev eth0 parent 1: classid 1:2 cbq rate 1mbit allot 1500 prio 1
"""
    assert queue(text) == parsed(
        "htb; class 1:1 parent 1: rate 512kbit prio 4; class 1:2 parent 1: rate 1mbit ceil 10mbit"
    )
    assert any(re.search("`cbq`.* is read as `htb`", notice) for notice in applied(text).notices)


def test_variables_without_a_value_are_named() -> None:
    text = "tc qdisc add dev $DEV root tbf rate ${RATE}kbit burst 10k latency 50ms $MORE\n"
    ((line, message),) = problems(text)
    assert line == 1
    assert message.startswith("no value for `DEV`, `RATE`, `MORE` (set it by --var DEV=VALUE)")
    found = queue(text, given={"DEV": "eth0", "RATE": "5000"})
    assert found["rate"] == 5_000_000
    told = applied(text, given={"DEV": "eth0", "RATE": "5000"}).notices
    assert told == ["f:1: no value for `MORE`: read as an empty text"]
    ((_, message),) = problems('[ -n "$1" ] && tc qdisc add dev $1 root cake\n')
    assert re.fullmatch(".*no queue; .*variables have no value: 1; .*--var NAME=VALUE", message)
    ((line, message),) = problems("dev=$(ip r | awk x)\ntc qdisc add dev $dev root cake\n")
    assert line == 2
    assert re.search(r"`ip r \| awk x` .*`dev` is unknown: .*--var dev=VALUE", message)


def test_files_of_one_script_read_each_other() -> None:
    main = ("main.sh", ". /etc/shaper/defaults.sh\ntc qdisc add dev $DEV root cake\n")
    defaults = ("here/defaults.sh", "DEV=eth0\n")
    for files in ([main, defaults], [defaults, main]):
        reading = read(files, {})
        assert not reading.absent
        assert [device.name for device in reading.devices] == ["eth0"]
    with pytest.raises(ScenarioError, match=r"defaults\.sh, which --tc must also name"):
        apply(HOME_SCENARIO, read([("x.sh", ". ./defaults.sh\n")], {}))


def test_a_tree_of_an_access_network_is_read() -> None:
    """An access network has hundreds to thousands of circuits at a port."""
    lines = "".join(
        f"tc class add dev eth0 parent 1:1 classid 1:{n:x} htb rate 1mbit ceil 5mbit\n"
        for n in range(0x100, 0x1100)
    )
    assert len(queue(TREE + lines)["tree"]["classes"]) == 0x1000 + len(
        queue(TREE)["tree"]["classes"]
    )


def test_a_line_that_is_no_shell_command_is_reported() -> None:
    text = "tc qdisc add dev eth0 root cake\nit isn't a command\n\n"
    ((line, message),) = problems(text)
    assert line == 2
    assert re.match("this is not .*shell command: .*closing ' is missing", message)
    assert queue(text, partial=True)["name"] == "cake"


def test_deleted_objects_can_be_added_again() -> None:
    """A script that deletes first and then adds sets up the same from any state."""
    begin = (
        "tc class del dev eth0 classid 1:10\ntc qdisc del dev eth0 parent 1:10\n"
        "tc filter del dev eth0 parent 1: prio 1\ntc qdisc del dev eth0 root\n"
    )
    tree = (
        "tc qdisc add dev eth0 root handle 1: htb default 20\n"
        "tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n"
        "tc class add dev eth0 parent 1: classid 1:20 htb rate 2mbit\n"
        "tc qdisc add dev eth0 parent 1:10 handle 10: sfq\n"
    )
    text = "htb default 20; class 1:10 rate {}; class 1:20 rate 2mbit; qdisc parent 1:10 {}"
    assert queue(begin + tree) == queue(begin + tree + begin + tree)
    assert queue(tree) == parsed(text.format("1mbit", "sfq"))
    again = (
        "tc class del dev eth0 classid 1:10\n"
        "tc class add dev eth0 parent 1: classid 1:10 htb rate 3mbit\n"
        "tc qdisc add dev eth0 parent 1:10 handle 10: codel\n"
    )
    found = queue(tree + again)["tree"]["classes"]
    assert [(one["id"], one["rate"]) for one in found] == [(0x20, 2_000_000), (0x10, 3_000_000)]
    assert found[1]["child"]["name"] == "codel"


def test_a_class_in_use_is_not_deleted() -> None:
    lines = (
        "tc qdisc add dev eth0 root handle 1: htb\n"
        "tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n"
        "tc class add dev eth0 parent 1:1 classid 1:2 htb rate 1mbit\n"
        "tc filter add dev eth0 parent 1: protocol ip prio 1 handle 1 fw flowid 1:2\n"
        "tc class del dev eth0 classid 1:1\n"
        "tc class del dev eth0 classid 1:2\n"
    )
    reading = read([("f", lines)], {})
    assert [f"{one.file}:{one.line}: {one.message}" for one in reading.notices] == [
        "f:5: `1:1` has child classes: Linux rejects this, and the class is not deleted",
        "f:6: `1:2` is the target of filters: Linux rejects this, and the class is not deleted",
    ]
    assert len(queue(lines)["tree"]["classes"]) == 2


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("prio 1", [3]),
        ("prio 1 handle 800::801 u32", [1, 3]),
        ("prio 3 handle 7 fw", [1, 2]),
        ("prio 3 handle 8 fw", [1, 2, 3]),
        ("", []),
    ],
)
def test_filters_are_deleted_by_order_and_handle(words: str, left: list[int]) -> None:
    lead = "tc filter add dev eth0 parent 1: protocol ip prio"
    lines = (
        "tc qdisc add dev eth0 root handle 1: prio\n"
        f"{lead} 1 u32 match ip tos 0xb8 0xfc flowid 1:1\n"
        f"{lead} 1 u32 match ip tos 0x20 0xfc flowid 1:2\n"
        f"{lead} 3 handle 7 fw flowid 1:3\n"
        f"tc filter del dev eth0 parent 1: {words}\n"
    )
    targets = [one["class"] for one in queue(lines)["tree"]["filters"]]
    assert targets == left
