"""Each word of a file acts, or is named in a notice, or is an error."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from sojourn import _core
from sojourn.scenario import ScenarioError
from sojourn.tc import apply, read
from tests.tc.kinds import alone
from tests.tc.texts import HOME_SCENARIO, applied, problems, queue

HTB = (
    "tc qdisc add dev eth0 root handle 1: htb default 10\n"
    "tc class add dev eth0 parent 1: classid 1:10 htb rate 9mbit\n"
)

MADE_ALONE = {
    "\n".join(f"tc {line}" for line in lines) for lines in alone() if "netem" not in "".join(lines)
}


def test_the_limit_of_netem_acts() -> None:
    found = applied("tc qdisc add dev eth0 root netem rate 5mbit delay 10ms limit 50\n").placed[0]
    assert found.netem == "rate 5mbit delay 10ms limit 50"


def test_netem_without_a_limit_has_that_of_linux() -> None:
    assert applied("tc qdisc add dev eth0 root netem delay 10ms\n").placed[0].netem == (
        "delay 10ms limit 1000"
    )


@pytest.mark.parametrize(
    ("words", "read_as"),
    [
        ("fq_codel target 5", "`target 5` is read as 5us"),
        ("pie target 20 tupdate 30ms", "`target 20` is read as 20us"),
        ("tbf rate 5000 burst 5k latency 50ms", "`rate 5000` is read as 5kbit"),
        ("cake bandwidth 20000", "`bandwidth 20000` is read as 20kbit"),
    ],
)
def test_a_number_without_a_unit_is_named(words: str, read_as: str) -> None:
    at_root = applied(f"tc qdisc add dev eth0 root {words}\n").notices
    in_a_class = applied(f"{HTB}tc qdisc add dev eth0 parent 1:10 {words}\n").notices
    assert all(any(read_as in one for one in notices) for notices in (at_root, in_a_class))


@pytest.mark.parametrize("rate", ["rate 9000000", "rate 8mbit ceil 9000000"])
def test_a_rate_of_a_class_without_a_unit_is_named(rate: str) -> None:
    notices = applied(HTB.replace("rate 9mbit", rate)).notices
    assert any("000000` is read as 9mbit" in one for one in notices)


@pytest.mark.parametrize("hook", ["parent ffff:", "ingress", "egress"])
@pytest.mark.parametrize("action", ["police rate 1mbit burst 10k drop", "mirred redirect dev ifb0"])
def test_filters_alone_hold_no_packets(hook: str, action: str) -> None:
    text = f"tc filter add dev eth0 {hook} protocol all u32 match u32 0 0 action {action}\n"
    lead = "tc qdisc add dev eth0 clsact\n"
    assert {line for line, message in problems(lead + text) if "holds no packets" in message} == {2}


def test_impairments_of_a_device_are_added_to_those_of_the_path() -> None:
    plan = applied("tc qdisc add dev eth0 root netem delay 50ms\n").scenario.plan
    assert [link.params.delay for link in plan.links] == [60_000_000, 10_000_000]
    lossy = HOME_SCENARIO.replace({"links.line.forward.netem": "delay 10ms loss 1%"})
    with pytest.raises(ScenarioError, match="one wire cannot"):
        apply(lossy, read([("f", "tc qdisc add dev eth0 root netem delay 5ms loss 2%\n")], {}))


@pytest.mark.parametrize(
    ("lead", "device"),
    [
        ("sudo tc -n r1", "r1:eth0"),
        ("ip netns exec r1 tc", "r1:eth0"),
        ("docker exec -it r1 tc", "r1:eth0"),
        ("ssh -p 22 r1 tc", "r1:eth0"),
        ("kubectl exec r1 -c main -- tc", "r1:eth0"),
        ("docker run --rm -it --net container:r1 --cap-add NET_ADMIN alpine tc", "r1:eth0"),
        ("docker run -i --network=container:r1 example/iproute2", "r1:eth0"),
        ("podman run --entrypoint /sbin/tc --net container:r1 alpine", "r1:eth0"),
        ("sudo nice -n 5 /sbin/tc", "eth0"),
        ("env LC_ALL=C timeout 5 tc", "eth0"),
    ],
)
def test_the_place_of_a_command_is_a_part_of_the_device(lead: str, device: str) -> None:
    text = (
        HTB.replace("tc ", f"{lead} ") + f"{lead} qdisc add dev eth0 parent 1:10 handle 10: codel\n"
    )
    reading = read([("f", text)], {})
    assert [one.name for one in reading.devices] == [device]
    (inner,) = queue(text)["tree"]["classes"]
    assert inner["child"]["name"] == "codel"


def test_a_command_elsewhere_does_not_join_the_tree_of_this_machine() -> None:
    text = HTB + "sudo tc -n r1 qdisc add dev eth0 parent 1:10 fq_codel\n"
    names = [device.name for device in read([("f", text)], {}).devices]
    assert names == ["eth0", "r1:eth0"]


@pytest.mark.parametrize(
    "text",
    [
        'sh -c "{}"',
        "ssh gw '{}'",
        "cat << END | sh\n{}\nEND",
        "bash << END\n{}\nEND",
        "echo '{}' > f; . ./f",
    ],
)
def test_commands_in_texts_for_a_shell_are_read(text: str) -> None:
    commands = HTB.strip().replace("\n", "; ")
    script = text.replace("f; . ./f", "/tmp/f; . /tmp/f").format(commands)
    assert queue(script + "\n")["tree"]["classes"][0]["rate"] == 9_000_000


def test_commands_that_are_not_read_are_named() -> None:
    ((line, message),) = problems(HTB + 'run_later "tc qdisc add dev eth0 parent 1:10 codel"\n')
    assert line == 3
    assert re.search("`run_later` gets .*TC=echo", message)
    told = applied(HTB + "echo tc qdisc add dev eth0 parent 1:10 codel\n").notices
    assert told == ["f:3: line 3 with `tc` is only printed"]
    told = applied(HTB + "f() { tc qdisc add dev eth0 parent 1:10 codel; }\n").notices
    assert told == ["f:3: line 3 with `tc` is in branches or functions that do not run"]


def test_a_call_of_a_function_is_no_prose() -> None:
    text = "Limit() { tc qdisc add dev $1 root tbf rate $2 burst 15k limit 30k; }\n"
    found = applied(text + "Limit eth0 10mbit from now\n").placed
    assert [one.device for one in found] == ["eth0"]


def test_targets_of_newer_versions_of_tc_are_read() -> None:
    """iproute2 6.1 prints `*flowid` for the class of a filter."""
    text = (
        "qdisc htb 1: dev eth0 root refcnt 3 r2q 20 default 0x30\n"
        "class htb 1:10 root prio 1 rate 4800Kbit ceil 48Mbit burst 1599b cburst 1590b\n"
        "class htb 1:30 root prio 3 rate 16800Kbit ceil 48Mbit burst 1596b cburst 1590b\n"
        "filter parent 1: protocol ip pref 1 u32 chain 0\n"
        "filter parent 1: protocol ip pref 1 u32 chain 0 fh 800: ht divisor 1\n"
        "filter parent 1: protocol ip pref 1 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 "
        "*flowid 1:10 not_in_hw\n"
        "  match 00b80000/00fc0000 at 0\n"
    )
    assert queue(text)["tree"]["filters"] == [
        {"conditions": [{"dscp": 46}], "divisor": 1, "class": 16}
    ]


@pytest.mark.parametrize(
    ("line", "options", "why"),
    [
        ("  input dev eth7\n", {"input_dev": "eth7"}, "the device on which packets arrive"),
        (
            "\taction order 1: mirred (Ingress Redirect to device ifb0) stolen\n",
            {
                "actions": [
                    {
                        "kind": "mirred",
                        "mirred_action": "redirect",
                        "direction": "ingress",
                        "to_dev": "ifb0",
                    }
                ]
            },
            "`mirred (Ingress Redirect to device ifb0",
        ),
    ],
)
def test_parts_of_a_printed_filter_that_are_not_modelled_are_named(
    line: str, options: dict[str, Any], why: str
) -> None:
    lead = "filter parent 1: protocol ip pref 1 u32 chain 0"
    text = (
        "qdisc prio 1: dev eth0 root refcnt 2 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1\n"
        f"{lead} fh 800::800 order 2048 key ht 800 bkt 0 flowid 1:1\n"
        f"  match 00500000/ffff0000 at 20\n{line}"
    )
    ((_, message),) = problems(text)
    assert why in message
    qdisc = {"kind": "prio", "handle": "1:", "dev": "eth0", "root": True, "options": {"bands": 3}}
    match = {"value": "500000", "mask": "ffff0000", "offmask": "", "off": 20}
    printed = {"fh": "800::800", "flowid": "1:1", "match": match, **options}
    lead_of = {"parent": "1:", "protocol": "ip", "pref": 1, "kind": "u32", "chain": 0}
    ((_, message),) = problems(json.dumps([qdisc]) + json.dumps([{**lead_of, "options": printed}]))
    assert why in message


def test_a_default_in_decimal_is_the_class_that_exists() -> None:
    text = (
        "qdisc htb 1: dev eth0 root refcnt 2 r2q 10 default 16 direct_packets_stat 4 ver 3.17\n"
        "class htb 1:10 root prio 0 rate 830Kbit ceil 830Kbit burst 1602b cburst 1602b\n"
    )
    assert queue(text)["default"] == 16
    assert "decimal: class `1:10`" in applied(text).notices[0]
    script = HTB.replace("default 10", "default 16")
    assert "the default class `1:16` does not exist" in applied(script).notices[0]


def test_a_size_of_the_rate_table_is_no_error() -> None:
    (notice,) = applied(HTB.replace("9mbit", "9mbit mtu 1500")).notices
    assert "`mtu 1500` of a class" in notice


def test_a_large_priority_is_that_of_linux() -> None:
    text = HTB.replace("9mbit", "9mbit prio 12")
    assert queue(text)["tree"]["classes"][0]["prio"] == 7
    assert "`prio 12` is read as 7, as by Linux" in applied(text).notices[0]


@pytest.mark.parametrize(
    ("contents", "what"),
    [
        (b"[Match]\nName=eth0\n[CAKE]\nBandwidth=5M\n", "a file of systemd-networkd"),
        (b"[connection]\nid=home\n[ipv4]\n", "a file of NetworkManager"),
        (b'{"start": {}, "intervals": [], "end": {}}', "a result of iperf3"),
        (b'{"metadata": {}, "results": {}}', "a file of flent"),
        (b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00", "a capture of packets"),
        (b"apiVersion: v1\nkind: Pod\n", "a manifest of Kubernetes"),
    ],
)
def test_files_of_other_programs_are_recognised(contents: bytes, what: str) -> None:
    with pytest.raises(ScenarioError, match=f"this is {what}, not a configuration of `tc`"):
        apply(HOME_SCENARIO, read([("f", contents)], {}))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_encodings_of_files_are_recognised(encoding: str) -> None:
    text = "# d\u00e9bit\n" + HTB
    reading = read([("f", text.encode(encoding))], {})
    assert apply(HOME_SCENARIO, reading).placed[0].device == "eth0"


def test_ten_thousand_circuits_are_read() -> None:
    lines = [HTB.replace("tc ", "")]
    for n in range(0x100, 0x100 + 10_000):
        lines.append(f"class add dev eth0 parent 1: classid 1:{n:x} htb rate 25mbit ceil 100mbit")
        lines.append(f"qdisc add dev eth0 parent 1:{n:x} fq_codel")
    reading = read([("circuits", "\n".join(lines))], {})
    built = reading.build("eth0", {}, False)
    assert built is not None
    assert not built.problems
    assert str(built.queue).count("class 1:") == 10_001


def test_all_faults_of_a_tree_are_reported_at_once() -> None:
    lines = [HTB]
    for n in range(0x100, 0x100 + 1000):
        rate = "x" if n % 5 == 0 else "5mbit"
        lines.append(f"tc class add dev eth0 parent 1: classid 1:{n:x} htb rate {rate}\n")
    assert len(problems("".join(lines))) == 200


@pytest.mark.parametrize(
    ("joint", "says"), [("AND", ""), ("OR", "expression with `OR`"), ("AND NOT", "with `NOT`")]
)
@pytest.mark.parametrize("kind", ["basic", "flow"])
def test_printed_expressions_are_read_whole(kind: str, joint: str, says: str) -> None:
    target = "flowid 1:1" if kind == "basic" else "hash keys src,dst divisor 1 baseclass 1:1"
    text = (
        "qdisc drr 1: dev eth0 root refcnt 2\nclass drr 1:1 root quantum 3000b\n"
        f"filter parent 1: protocol ip pref 1 {kind} chain 0 handle 0x1 {target}\n"
        f"  cmp(u8 at 9 layer 1 eq 17)\n  {joint} cmp(u16 at 2 layer 2 eq 53)\n"
    )
    if says:
        assert says in problems(text)[0][1]
    else:
        (found,) = queue(text)["tree"]["filters"]
        assert {"protocol": 17} in found["conditions"]
        assert len(found["conditions"]) == 2


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("tc -n r1 qdisc add dev eth0 parent 1:10 codel", 3, "`r1:eth0` has no discipline `1:`"),
        ("tc qdisc add dev eth0 parent 2:10 codel", 3, "`eth0` has no discipline `2:`"),
        ("tc class add dev eth1 parent 1: classid 1:5 htb rate 5mbit", 3, "; `eth0` has one"),
        ("tc filter add dev eth0 parent 7: matchall flowid 1:10", 3, "`eth0` has no discipline"),
        ("tc qdisc add dev wlan0 parent :1 codel", 3, "`wlan0` has no root discipline"),
    ],
)
def test_a_command_without_its_discipline_is_an_error(text: str, line: int, says: str) -> None:
    ((at, message),) = problems(HTB + text + "\n", "eth0")
    assert at == line
    assert says in message


@pytest.mark.parametrize(
    "root", ["tbf rate 8mbit burst 4k limit 30k", "netem delay 1ms", "pfifo limit 20", "prio"]
)
def test_a_root_without_a_handle_has_no_inner_discipline(root: str) -> None:
    """Linux gives it a handle from `8001:` on, so commands cannot know it."""
    text = f"tc qdisc add dev eth0 root {root}\ntc qdisc add dev eth0 parent 1:1 codel\n"
    assert [at for at, _ in problems(text, "eth0")] == [2]


def test_actions_that_tc_prints_are_read_or_refused() -> None:
    tree = (
        "qdisc htb 1: dev eth0 root refcnt 2 r2q 10 default 0x10\n"
        "class htb 1:10 root prio 0 rate 9Mbit ceil 9Mbit burst 1600b cburst 1600b\n"
        "filter parent 1: protocol ip pref 1 flower chain 0 handle 0x1 {}\n"
        "  eth_type ipv4\n{}"
    )
    action = "\taction order 1: {}\n\t index 1 ref 1 bind 1\n"
    priority = action.format(" skbedit  priority 1:10 pipe")
    assert queue(tree.format("", priority))["tree"]["filters"][0]["class"] == 16
    for lines, why in (
        (action.format("gact action drop"), "packets that a filter drops are not modelled"),
        (action.format("pedit action pass keys 1"), "the action `pedit` is not modelled"),
        (action.format("police 0x1 rate 1Mbit burst 10Kb"), "`police`: a limit that drops"),
        ("  tcp_flags 0x2/0x2\n", "`flower` by `tcp_flags` is not modelled"),
    ):
        ((line, message),) = problems(tree.format("classid 1:10", lines))
        assert line in (3, 5)
        assert why in message


@pytest.mark.parametrize("key", ["mark", "queue_mapping", "ptype"])
def test_values_that_an_action_sets_are_named_in_json_too(key: str) -> None:
    tree = "qdisc htb 1: dev eth0 root refcnt 2 default 0x10\nclass htb 1:10 root rate 9Mbit\n"
    action = {"order": 1, "kind": "skbedit", key: 3, "control_action": {"type": "pipe"}}
    options = {"handle": 1, "classid": "1:10", "keys": {"eth_type": "ipv4"}, "actions": [action]}
    rule = {"parent": "1:", "protocol": "ip", "pref": 1, "kind": "flower", "options": options}
    found = apply(HOME_SCENARIO, read([("tree", tree), ("rules", json.dumps([rule]))], {}))
    assert any("filters here do not change packets" in one for one in found.notices)


def test_the_buckets_of_sfq_are_not_its_flows() -> None:
    text = (
        "qdisc sfq 1: dev eth0 root limit 127p quantum 1514b depth 127 flows 128/1024 perturb 9sec"
    )
    assert queue(text)["flows"] == 128


@pytest.mark.parametrize(("value", "mask"), [("0x31", "0xf0"), ("0x1", "0x0")])
def test_a_mark_outside_its_mask_is_that_of_no_packet(value: str, mask: str) -> None:
    lead = HTB + "tc filter add dev eth0 parent 1: protocol ip "
    text = f"{lead}handle {value}/{mask} fw flowid 1:10\n"
    assert queue(text)["tree"]["filters"] == []
    assert any(f"the mask `{mask}`" in one for one in applied(text).notices)


def test_words_without_effect_are_named_inside_a_shaper() -> None:
    text = HTB + "tc qdisc add dev eth0 parent 1:10 cake bandwidth 5mbit autorate-ingress\n"
    assert any("`autorate-ingress` has no effect" in one for one in applied(text).notices)


def test_a_dump_without_classes_claims_no_rate() -> None:
    text = "qdisc htb 1: dev eth0 root refcnt 2 r2q 10 default 0x10 direct_packets_stat 0\n"
    found = applied(text)
    assert "`tc class show dev eth0`" in found.notices[0]
    assert found.placed[0].relation.startswith("Its classes are not in")


def test_the_relation_is_that_of_the_flows_that_filters_select() -> None:
    text = (
        "tc qdisc add dev eth0 root handle 1: htb\n"
        "tc class add dev eth0 parent 1: classid 1:1 htb rate 1200kbit\n"
        "tc filter add dev eth0 parent 1: protocol ip prio 1 \\\n"
        "  u32 match ip {} flowid 1:1\n"
    )
    found = applied(text.format("src 10.0.0.1"))
    assert found.placed[0].relation.startswith("It shapes to 1.2mbit, 6 % of the line's 20mbit")
    assert found.selections[0].text.endswith("prio 1 u32 match ip src 10.0.0.1 flowid 1:1")
    idle = applied(text.format("dport 9 0xffff")).placed[0].relation
    assert idle.startswith("Its filters select no")


@pytest.mark.parametrize(
    "text",
    [
        "for i in 1; do tc qdisc add dev eth0 root codel limit 9; done",
        "#!/bin/sh\nexec tc qdisc add dev eth0 root codel limit 9",
        "ip netns exec r1 tc qdisc add dev eth0 root codel limit 9",
        "docker exec web sh -c 'tc qdisc add dev eth0 root codel limit 9'",
        "$ sudo tc qdisc add dev eth0 root codel limit 9",
        "tc qdisc add dev eth0 parent 1:1 codel",
        "qdisc codel 8001: dev eth0 parent 1:1 limit 9p",
        "qdisc noqueue 0: dev lo root refcnt 2",
        "tc qdisc add dev eth0 root handle 1: mqprio num_tc 2",
        "qdisc mq 0: dev eth0 root",
        "tc qdisc add dev eth0 root codell",
        "tc qdisc add dev eth0 root tbf rate ${R}mbit burst 9k latency 9ms",
        *sorted(MADE_ALONE),
    ],
)
def test_a_text_is_the_same_queue_as_a_file_and_as_a_key(text: str) -> None:
    """The key `queue`, `--tc` and recordings give the same parameters or the same error."""
    try:
        found: object = json.loads(_core.parse_queue(text))
    except _core.WordError as error:
        found = error.message
    told = problems(text)
    assert found == (told[0][1] if told else queue(text))


def test_filters_at_the_egress_of_clsact_are_refused() -> None:
    text = (
        HTB + "tc qdisc add dev eth0 clsact\n"
        "tc filter add dev eth0 egress protocol ip matchall action skbedit priority 1:10\n"
    )
    ((line, message),) = problems(text)
    assert line == 4
    assert message.startswith("filters at the egress")


@pytest.mark.parametrize(("tests", "count"), [("src 192.0.2.0/24", 1), ("src 0.0.0.0/0", 0)])
def test_packets_that_are_not_redirected_are_named(tests: str, count: int) -> None:
    text = (
        "tc qdisc add dev ifb0 root cake bandwidth 9mbit\ntc qdisc add dev eth0 ingress\n"
        f"tc filter add dev eth0 parent ffff: protocol ip u32 match ip {tests} "
        "action mirred egress redirect dev ifb0\n"
    )
    told = [one for one in applied(text).notices if "only packets of this filter" in one]
    assert len(told) == count


def test_a_tree_in_a_class_has_its_warnings() -> None:
    text = (
        "tc qdisc add dev eth0 root handle 1: prio\n"
        "tc qdisc add dev eth0 parent 1:1 handle 10: htb default 1\n"
        "tc class add dev eth0 parent 10: classid 10:1 htb rate 9mbit\n"
        "tc class add dev eth0 parent 10:1 classid 10:2 htb rate 9mbit\n"
    )
    (notice,) = applied(text).notices
    assert notice.startswith("f:2: `default 1`: `10:1` is no class with packets")


def test_impairments_of_one_class_are_refused_with_place_and_remedy() -> None:
    text = "tc qdisc add dev eth0 root handle 1: prio\n{} netem delay 100ms loss 1%\n"
    lead = "tc qdisc add dev eth0 parent 1:3 handle 30:"
    ((line, message),) = problems(text.format(lead))
    assert line == 2
    assert re.search('flows of `1:3` pass a link .* `netem = "delay 100ms loss 1%"`', message)


def test_a_construct_that_is_not_evaluated_says_how_to_get_the_commands() -> None:
    text = HTB + "[[ eth0 =~ ^eth ]] && tc qdisc add dev eth0 parent 1:10 codel\n"
    told = applied(text).notices
    assert any(re.match("f:3: `=~` is not supported, .*TC=echo", one) for one in told)


def test_an_element_keeps_the_value_of_a_plain_variable() -> None:
    text = "r=9mbit\nr[1]=4mbit\n" + HTB.replace("9mbit", "${r[0]} ceil ${r[0]} cburst ${#r[@]}k")
    (found,) = queue(text)["tree"]["classes"]
    assert (found["rate"], found["cburst"]) == (9_000_000, 2048)


def test_elements_are_in_the_order_of_their_indices() -> None:
    text = "r[2]=9mbit\nr[1]=4mbit\nset -- ${r[@]}\n" + HTB.replace("9mbit", "$1 ceil $2")
    (found,) = queue(text)["tree"]["classes"]
    assert (found["rate"], found["ceil"]) == (4_000_000, 9_000_000)


@pytest.mark.parametrize(
    "filter_",
    [
        "filter parent 1: protocol ip pref 3 {} chain 0 handle 0x1 \n",
        (
            '[{{"parent": "1:", "protocol": "ip", "pref": 3, "kind": "{}", "chain": 0, '
            '"options": {{"handle": "0x1", "direct-action": true}}}}]'
        ),
    ],
    ids=["text", "json"],
)
@pytest.mark.parametrize("kind", ["cgroup", "bpf"])
def test_a_printed_filter_of_another_kind_is_refused_as_its_command(
    kind: str, filter_: str
) -> None:
    ((_, asked),) = problems(
        "tc qdisc add dev eth0 root handle 1: prio\n"
        f"tc filter add dev eth0 parent 1: protocol ip prio 3 handle 1: {kind}\n"
    )
    made = [("q", "qdisc prio 1: dev eth0 root refcnt 2 bands 3\n"), ("f", filter_.format(kind))]
    with pytest.raises(ScenarioError) as refused:
        apply(HOME_SCENARIO, read(made, {}))
    assert [one.message for one in refused.value.problems] == [asked]


@pytest.mark.parametrize(
    "filter_",
    [
        "filter parent 1: protocol ip pref 3 {} chain 0 handle 0x1 flowid 1:1 newword 7\n",
        (
            '[{{"parent": "1:", "protocol": "ip", "pref": 3, "kind": "{}", "chain": 0, '
            '"options": {{"handle": "0x1", "flowid": "1:1", "newword": 7}}}}]'
        ),
    ],
    ids=["text", "json"],
)
@pytest.mark.parametrize("kind", ["u32", "fw", "flow", "basic", "matchall"])
def test_an_unknown_word_of_a_printed_filter_is_named(kind: str, filter_: str) -> None:
    made = [("q", "qdisc prio 1: dev eth0 root refcnt 2 bands 3\n"), ("f", filter_.format(kind))]
    with pytest.raises(ScenarioError, match=f"f:1: `newword` .* filter of {kind} is not known"):
        apply(HOME_SCENARIO, read(made, {}))


@pytest.mark.parametrize(
    ("rules", "program"),
    [
        ("table inet mangle {\n chain post {\n udp dport 5004 meta mark set 3\n }\n}\n", "nft"),
        ("*mangle\n-A POSTROUTING -p udp -j MARK --set-mark 3\nCOMMIT\n", "iptables-save"),
    ],
)
def test_rules_of_the_firewall_among_commands_are_refused(rules: str, program: str) -> None:
    ((_, told),) = problems(HTB + rules)
    assert told == (
        f"rules of `{program}` among commands are not read: give them in a file of their own"
    )
