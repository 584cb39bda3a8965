"""Rules of the firewall, and what filters see of the packets that meet them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from sojourn.tc import Applied, apply, read
from tests.conftest import ROOT
from tests.tc.test_filters import selecting
from tests.tc.texts import HOME_SCENARIO, applied, queue

TREE = (
    "tc qdisc add dev eth0 root handle 1: htb default 30\n"
    + "".join(
        f"tc class add dev eth0 parent 1: classid 1:{minor} htb rate 1mbit\n"
        for minor in (10, 20, 30)
    )
    + "tc filter add dev eth0 parent 1: protocol ip prio 1 handle 1 fw flowid 1:10\n"
    "tc filter add dev eth0 parent 1: protocol ip prio 2 handle 2 fw flowid 1:20\n"
    "tc filter add dev eth0 parent 1: protocol ip prio 3 u32 match ip tos 0xb8 0xfc flowid 1:20\n"
)
ALL = 2**32 - 1
BY_KEY = [("mark 1", 0x10), ("mark 2", 0x20), ("dscp 46", 0x20)]
"""The filters of the tree: conditions and class."""


def rules(script: str) -> list[tuple[str, int]]:
    """The filters of the tree behind a firewall."""

    def text(condition: dict[str, Any]) -> str:
        ((key, value),) = condition.items()
        if key == "mark":
            return f"mark {value[0]}" + ("" if value[1] == ALL else f"/{value[1]:#x}")
        if key in ("sport", "dport"):
            first, last = value
            return f"{key} {first}" + ("" if first == last else f"-{last}")
        return f"{key} {value}"

    found = queue(f"{script}\n{TREE}")["tree"]["filters"]
    return [(" ".join(map(text, one["conditions"])), one["class"]) for one in found]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("iptables -t mangle -A POSTROUTING -p tcp --dport 22 -j MARK --set-mark 1",
         [("protocol 6 dport 22", 0x10)]),
        # The last rule that a packet meets counts.
        (("iptables -t mangle -A OUTPUT -p udp -j MARK --set-mark 0x2\n"
         "iptables -t mangle -A OUTPUT -p udp --dport 53 -j MARK --set-mark 0x1"),
         [("protocol 17 dport 53", 0x10), ("protocol 17", 0x20)]),
        # But for a chain that is left.
        (("iptables -t mangle -A PREROUTING -p icmp -j MARK --set-mark 1\n"
         "iptables -t mangle -A PREROUTING -p icmp -j RETURN\n"
         "iptables -t mangle -A PREROUTING -j MARK --set-mark 2"),
         [("protocol 1", 0x10), ("", 0x20)]),
        (("iptables -t mangle -N Q\niptables -t mangle -A POSTROUTING -o eth+ -j Q\n"
         "iptables -t mangle -A Q -s 10.0.0.1 -m multiport --dports 80,443 -j MARK --set-mark 1\n"
         "iptables -t mangle -A POSTROUTING -o wlan0 -j MARK --set-mark 2"),
         [("src 0 dport 80", 0x10), ("src 0 dport 443", 0x10)]),
        # Packets that no filter selects go to the default class.
        ("iptables -t mangle -A OUTPUT -p udp --sport 5000:5100 -j MARK --set-mark 9",
         [("protocol 17 sport 5000-5100 dscp 46", 0x20), ("protocol 17 sport 5000-5100", 0x30)]),
        ("iptables -t mangle -A OUTPUT -m dscp --dscp-class EF -j MARK --or-mark 1",
         [("dscp 46 mark 0/0xfffffffe", 0x10)]),
        ("iptables -t mangle -A OUTPUT -m mark --mark 2 -j CLASSIFY --set-class 1:30",
         [("mark 2", 0x30)]),
        ("iptables -t mangle -A OUTPUT -p tcp --dport 5060 -j DSCP --set-dscp 46",
         [("mark 1", 0x10), ("mark 2", 0x20), ("protocol 6 dport 5060", 0x20)]),
        ("iptables -t mangle -A OUTPUT -p tcp -j TOS --set-tos Minimize-Delay",
         [("mark 1", 0x10), ("mark 2", 0x20), ("protocol 6", 0x30)]),
        (("iptables -t mangle -A OUTPUT -p tcp -j MARK --set-mark 1\n"
         "iptables -t mangle -I OUTPUT -p udp -j MARK --set-mark 2\n"
         "iptables -t mangle -D OUTPUT -p tcp -j MARK --set-mark 1"),
         [("protocol 17", 0x20)]),
        ("iptables -t mangle -A OUTPUT -p tcp -j MARK --set-mark 1\niptables -t mangle -F", []),
        ("ip6tables -t mangle -A OUTPUT -p tcp -j MARK --set-mark 1", []),
        (("iptables-restore <<X\n*mangle\n:OUTPUT ACCEPT\n-A OUTPUT -p tcp -j MARK --set-mark 1\n"
         "COMMIT\nX"), [("protocol 6", 0x10)]),
        (("nft add chain inet t c '{ type filter hook output priority mangle; }'\n"
         "nft add rule inet t c udp dport { 53, 5000-5100, } counter meta mark set 0x1"),
         [("protocol 17 dport 53", 0x10), ("protocol 17 dport 5000-5100", 0x10)]),
        ("nft -f - <<X\n"
         "define VOICE = 5060\n"
         "table inet q {\n"
         "  set games {\n    type inet_service\n    elements = { 3074 }\n  }\n"
         "  chain post {\n"
         "    type filter hook postrouting priority mangle + 1; policy accept;\n"
         '    oifname "eth0" tcp dport $VOICE ip dscp set ef comment "calls"  # voice\n'
         "    meta l4proto { tcp, udp } meta mark and 0xf == 3 jump low\n"
         "    ip6 dscp ef meta mark set 2\n"
         "  }\n"
         "  chain low {\n    ip daddr 10.0.0.2 meta priority set 1:30 accept\n  }\n"
         "}\nX".replace("$VOICE", "\\$VOICE"),
         [("protocol 6 mark 3/0xf dst 1", 0x30), ("protocol 17 mark 3/0xf dst 1", 0x30),
          ("mark 1", 0x10), ("mark 2", 0x20), ("protocol 6 dport 5060", 0x20)]),
    ],
)  # fmt: skip
def test_rules_of_the_firewall_become_conditions(
    script: str, expected: list[tuple[str, int]]
) -> None:
    found = rules(script)
    given = [*BY_KEY, ("", 0x30)]
    assert [one for one in found if one in expected or one not in given] == expected


RULESET = ROOT / "crates/tc/tests/nft/ruleset.json"
"""Rules as `nft -j list ruleset` prints them."""


def test_rules_in_json_are_read_like_rules_in_text() -> None:
    def found(name: Path) -> Applied:
        return apply(HOME_SCENARIO, read([("nft", name.read_text()), ("f", TREE)], {}))

    json, text = found(RULESET), found(RULESET.with_suffix(".nft"))
    assert json.placed[0].queue == text.placed[0].queue
    assert "dport 1000-2000 to 1:30" in str(json.placed[0].queue)
    ignored = [told for told in json.notices if "is ignored" in told]
    assert any(
        re.match(r"nft:1: .*`add rule ip mangle post limit .*`: `limit rate` is not", told)
        for told in ignored
    )
    assert len(ignored) == len([told for told in text.notices if "is ignored" in told]) > 3


def test_notices_list_the_lines_that_are_read_and_ignored() -> None:
    found = selecting(
        "MARK=1\niptables -t mangle -A OUTPUT -m owner --uid-owner 7 -j MARK --set-mark $MARK\n"
        "iptables -t mangle -A OUTPUT -p tcp ! --dport 22 -j MARK --set-mark 2\n"
        "iptables -t mangle -A OUTPUT -p tcp --dport 22 -j MARK --set-mark 2\n"
        "nft add rule ip t c ct state new counter meta mark set 7\n" + TREE
    )
    read, *left = sorted(found.notices[:4], key=lambda told: "ignored" in told)
    assert re.match("f:4: .* is read: filters see .*marks, classes .*code points", read)
    reasons = ((2, "`-m owner`", 1), (3, r"negated test \(`!`\)", 2), (5, "`ct state`", 7))
    for notice, (line, reason, value) in zip(left, reasons, strict=True):
        words = rf"f:{line}: .*ignored: .*{reason} is not supported; .*\({value}\) by `mark`"
        assert re.match(words, notice), notice
        assert notice.endswith("`mark` or `dscp`")
    assert [(one.line, one.flows) for one in found.selections if one.flows] == [("f:11", ("ssh",))]


def test_incoming_packets_are_shaped_before_the_firewall() -> None:
    found = selecting(
        "iptables -t mangle -A PREROUTING -p tcp --dport 22 -j MARK --set-mark 1\n"
        + TREE.replace("eth0", "ifb0")
    )
    assert re.match("f:1: .* is ignored: .*shaped before", found.notices[0])
    assert not any(one.flows for one in found.selections)


@pytest.mark.parametrize(
    "test", ["-p tcp,udp", "--dscp 46,8", "--tos 8,16", "--mark 1,2", "--length 40,80"]
)
def test_a_list_that_iptables_refuses_is_named(test: str) -> None:
    line = f"iptables -t mangle -A POSTROUTING {test} -j MARK --set-mark 1\n"
    option = test.split(maxsplit=1)[0]
    assert any(f"`{option}` takes one value" in one for one in applied(line + TREE).notices)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("tcp dport '{ 80 90 }' meta mark set 1", "commas must separate"),
        ("tcp dport 80 meta mark set 0x1/0xff", "this form of `mark set`"),
    ],
)
def test_rules_that_nft_refuses_are_named(words: str, why: str) -> None:
    chain = "nft add chain inet t c '{ type filter hook output priority mangle; }'\n"
    found = applied(f"{chain}nft add rule inet t c {words}\n{TREE}")
    assert any(why in one for one in found.notices)


def test_an_incoming_device_is_named_once_with_the_number_of_its_rules() -> None:
    """The rules act on packets from all devices."""
    mark = "iptables -t mangle -A PREROUTING {} -j MARK --set-mark 1\n"
    some = [mark.format(words) for words in ("-i wlan0 -p tcp", "-i wlan1 -p udp", "-p icmp")]
    found = applied("".join([*some, "iptables -A INPUT -i lo -j ACCEPT\n", TREE]))
    told = [one for one in found.notices if "the incoming device" in one]
    assert len(told) == 1
    assert "f:1: `wlan0`, the incoming device, is not compared" in told[0]
    assert not [one for one in applied(some[2] + TREE).notices if "incoming device" in one]
    added = (
        "nft add table ip t\nnft add chain ip t c '{ type filter hook prerouting priority 0; }'\n"
    )
    nft = applied(f"{added}nft add rule ip t c iifname wlan0 meta mark set 1\n{TREE}")
    assert any("`wlan0`, the incoming device" in one for one in nft.notices)
