"""A configuration that was read comes back in the user's words, and never in the simulator's."""

from __future__ import annotations

import pickle
from ipaddress import IPv4Address

import pytest

from sojourn import _core
from sojourn.scenario import Scenario
from sojourn.tc import apply, read
from tests.tc.test_public import GIVEN, TEXTS
from tests.tc.texts import HOME, SCRIPTS, SHOWN

SIMULATED = "198.18.7.0"
"""Network of the addresses that replace those of the simulator: no file has them."""
HOSTS = {int(IPv4Address("10.20.0.5")): 0, int(IPv4Address("192.168.1.2")): 1}
ADDRESSES = [f"{SIMULATED[:-1]}{number}" for number in range(1, 9)]

FILES = {
    **{path.name: path.read_text(encoding="utf-8") for path in sorted(SCRIPTS.iterdir())},
    **{f"shown-{path.name}": path.read_text(encoding="utf-8") for path in SHOWN.iterdir()},
    **{f"public-{number}": text for number, text in enumerate(TEXTS.values())},
    "all kinds of filters": """
tc qdisc add dev eth1 root handle 1: htb default 30 r2q 20
tc class add dev eth1 parent 1: classid 1:1 htb rate 48mbit ceil 48mbit
tc class add dev eth1 parent 1:1 classid 1:10 htb rate 10mbit ceil 48mbit prio 0
tc class add dev eth1 parent 1:1 classid 1:30 htb rate 20mbit ceil 48mbit prio 1
tc qdisc add dev eth1 parent 1:10 handle 110: sfq perturb 10
tc qdisc add dev eth1 parent 1:30 handle 130: fq_codel target 5ms
tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip dport 443 0xffff flowid 1:10
tc filter add dev eth1 parent 1: protocol ip prio 2 u32 match ip src 10.20.0.0/16 flowid 1:30
tc filter add dev eth1 parent 1: protocol ip prio 3 handle 0x10/0xff fw flowid 1:10
tc filter add dev eth1 parent 1: protocol ipv6 prio 4 flower dst_ip 2001:db8::/32 classid 1:10
tc filter add dev eth1 parent 1: protocol ip prio 5 flower ip_proto udp dst_port 5000-5100 \
    classid 1:10
tc filter add dev eth1 parent 1: prio 6 basic match 'cmp(u8 at 1 layer 1 mask 0xfc eq 0xb8)' \
    flowid 1:10
tc filter add dev eth1 parent 1: prio 7 protocol ip handle 1 flow hash keys \
    src,dst,proto,proto-src,proto-dst divisor 1 baseclass 1:30
""",
}


def facts(built: _core.TcBuilt) -> object:
    filters = [text for one in built.filters for text in one.statements]
    return built.queue and _core.parse_queue(built.queue), built.rate, built.netem, filters


@pytest.mark.parametrize("name", FILES)
def test_reading_the_printed_commands_gives_the_same_reading(name: str) -> None:
    given = next((g for part, g in GIVEN.items() if part in address_of(name)), {})
    reading = read([("file", FILES[name])], given)
    holding = [one for one in reading.devices if one.holds]
    for device in holding:
        built = reading.build(device.name, HOSTS, True, 10**7)
        assert built is not None
        if built.queue is None or built.problems:
            continue
        params = _core.parse_queue(built.queue, 1514, 1000, 10**7)
        own = device.name.rpartition(":")[2]
        lines = reading.commands(device.name, HOSTS, True, 10**7, params, own, addresses=ADDRESSES)
        text = "\n".join(lines)
        assert SIMULATED[:-1] not in text
        again = read([("printed", text)], {})
        assert again.problems == [], (again.problems[0].message, text)
        assert [one.name for one in again.devices if one.holds] == [own]
        rebuilt = again.build(own, HOSTS, True, 10**7)
        assert rebuilt is not None
        assert rebuilt.problems == [], (rebuilt.problems[0].message, text)
        if not reading.firewall[0]:
            assert facts(rebuilt) == facts(built), text


def printed(changes: dict[str, str], hosts: dict[str, str] | None = None, text: str = "") -> str:
    """The script that deploys the home's queue after a file of `tc`, or without one."""
    scenario = Scenario.from_toml(HOME)
    if text:
        scenario = apply(scenario, read([("gw.sh", text)], {}), None, hosts).scenario
    changed = pickle.loads(pickle.dumps(scenario.replace(changes)))
    lines = str(changed.to_tc())
    assert "10.0.0." not in lines
    return lines


GATEWAY = FILES["all kinds of filters"]


def test_a_gateway_comes_back_with_its_device_numbers_and_filters() -> None:
    lines = printed({}, {"10.20.0.5": "home"}, GATEWAY)
    for part in (
        "dev eth1 parent 1:10 handle 110: sfq perturb 10",
        "pref 2 u32 match ip src 10.20.0.0/16 flowid 1:30",
        "pref 3 handle 0x10/0xff fw flowid 1:10",
        "protocol ipv6 pref 4 flower dst_ip 2001:db8::/32 classid 1:10",
        "match 'cmp(u8 at 1 layer 1 mask 0xfc eq 0xb8)'",
    ):
        assert part in lines
    assert "eth0" not in lines


def test_a_changed_class_leaves_the_other_words_of_the_user() -> None:
    scenario = apply(Scenario.from_toml(HOME), read([("gw.sh", GATEWAY)], {})).scenario
    changed = scenario.queue.replace(
        "qdisc parent 1:30 fq_codel target 5ms", "qdisc parent 1:30 pie"
    )
    lines = str(scenario.with_queue(changed).to_tc())
    assert "dev eth1 parent 1:30 pie " in lines
    assert "parent 1:10 handle 110: sfq perturb 10" in lines
    assert "match ip src 10.20.0.0/16" in lines
    assert "fq_codel" not in lines


def test_another_queue_is_for_the_device_of_the_file() -> None:
    lines = printed({"links.line.queue": "fq_codel"}, None, GATEWAY)
    assert "dev eth1 parent 1:10 handle 10: fq_codel" in lines
    assert "eth0" not in lines
    assert "dev eth1" in lines


def test_incoming_packets_keep_the_devices_and_redirections_of_the_file() -> None:
    text = """
tc qdisc add dev wan handle ffff: ingress
tc filter add dev wan parent ffff: protocol all u32 match u32 0 0 action connmark \
    action mirred egress redirect dev ifb7
tc qdisc add dev ifb7 root cake bandwidth 15mbit docsis nat
"""
    lines = printed({}, None, text)
    assert "dev wan parent ffff: protocol all u32 match u32 0 0 action connmark" in lines
    assert "tc qdisc replace dev ifb7 root cake bandwidth 15mbit docsis nat\n" in lines
    assert "eth0" not in lines


def test_a_queue_in_a_scenario_comes_back_for_its_device() -> None:
    queue = (
        "tc qdisc add dev wan1 root handle 5: prio\ntc qdisc add dev wan1 parent 5:1 handle 7: pie"
    )
    lines = printed({"links.line.queue": queue})
    assert "dev wan1 parent f0:10" not in lines
    assert "dev wan1 parent 5:1 handle 7: pie" in lines


def test_an_unknown_address_is_named_after_its_node() -> None:
    changes = {"links.line.queue": "prio ; filter host isp to 1:1"}
    assert "match ip dst ADDRESS-OF-isp/32" in printed(changes)
    scenario = Scenario.from_toml(HOME).replace(changes).on_devices({}, {"isp": "203.0.113.9"})
    lines = str(scenario.to_tc())
    assert "match ip dst 203.0.113.9/32" in lines
    assert "ADDRESS" not in lines


def address_of(name: str) -> str:
    kind, _, number = name.partition("-")
    return list(TEXTS)[int(number)] if kind == "public" else ""
