"""Commands written for `tc` are read as the same queue."""

from __future__ import annotations

import json
import re
from ipaddress import IPv4Address
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sojourn import _core
from sojourn.scenario import Scenario
from sojourn.tc import read
from tests.scenario.texts import HOME

HOSTS = 5
LEAVES = [
    "pfifo limit 40p",
    "bfifo limit 40kb",
    "codel limit 30p ecn",
    "fq_codel limit 99p flows 16",
    "pie limit 50p",
    "fq_pie limit 500p flows 64",
    "sfq perturb 10 limit 60p",
    "fq limit 99p maxrate 2mbit",
    "red limit 400kb min 30kb max 90kb avpkt 1000 probability 0.1",
    "choke limit 300p min 20p max 80p ecn",
    "sfb limit 300p max 30p",
    "cake bandwidth 3mbit besteffort",
    "dualpi2 step_thresh 2ms",
    "tbf rate 2mbit burst 5kb latency 20ms",
    "tbf rate 2mbit burst 5kb child codel",
    "pfifo_fast",
    "pfifo_head_drop limit 9p",
    "skbprio limit 9p",
    "hhf limit 99p hh_limit 9 reset_timeout 10ms admit_bytes 9kb non_hh_weight 3",
]
CONDITIONS = {
    "dscp": st.integers(0, 63),
    "protocol": st.sampled_from(["tcp", "udp", "1"]),
    "src": st.integers(0, HOSTS - 1),
    "dst": st.integers(0, HOSTS - 1),
    "sport": st.integers(1, 65_535),
    "dport": st.integers(1, 65_535),
    "mark": st.one_of(
        st.integers(0, 2**32 - 1).map(hex),
        st.tuples(st.integers(0, 255), st.integers(1, 255)).map(
            lambda pair: f"{pair[0] & pair[1]:#x}/{pair[1]:#x}"
        ),
    ),
}
RANGES = st.tuples(st.integers(1, 65_525), st.integers(0, 10)).map(
    lambda ends: f"{ends[0]}-{sum(ends)}"
)
SPLIT = [
    {"host": CONDITIONS["src"], "dport": RANGES, "protocol": CONDITIONS["protocol"]},
    {"host": CONDITIONS["src"], "port": RANGES, "mark": CONDITIONS["mark"]},
]
"""Conditions of which some are several filters of `tc`."""
HEADS = {
    "prio": st.just("prio bands 4 priomap 0 1 2 3 0 1 2 3 0 1 2 3 0 1 2 3"),
    "ets": st.sampled_from(["ets bands 4 strict 1 quanta 1600 3200", "ets bands 4 priomap 3 2 1"]),
    "drr": st.just("drr"),
    "htb": st.sampled_from(["htb default 2", "htb", "htb r2q 5 default 3 direct_qlen 7"]),
    "hfsc": st.sampled_from(["hfsc", "hfsc default 2"]),
}
CLASSES = {
    "drr": ["", "quantum 3000b"],
    "ets": ["", "quantum 3000b"],
    "htb": ["rate 1mbit", "rate 1mbit ceil 3mbit prio 2 quantum 1600 burst 5kb cburst 4kb"],
    "hfsc": ["sc rate 1mbit", "rt m1 2mbit d 5ms m2 1mbit ls rate 1mbit ul rate 3mbit"],
}


@st.composite
def trees(draw: st.DrawFn, *, conditions: dict[str, Any] | None = None) -> str:
    """The text of a tree."""
    parts = _tree(
        draw, [1], draw(st.sampled_from(["", " txqueuelen 60p"])), 0, conditions or CONDITIONS
    )
    return " ; ".join(parts)


def _tree(
    draw: st.DrawFn, used: list[int], length: str, depth: int, conditions: dict[str, Any]
) -> list[str]:
    """The statements of a tree whose number is the last one used."""
    kind, handle = draw(st.sampled_from(sorted(HEADS))), used[-1]
    own = "" if depth == 0 else f" handle {handle:x}:"
    parts = [draw(HEADS[kind]) + own + length]
    minors, inner = [1, 2, 3, 4], []
    for minor in minors:
        words = draw(st.sampled_from(CLASSES.get(kind, [""])))
        if kind == "ets" and words and minor == 1:
            words = ""
        if kind in ("drr", "htb", "hfsc") or words:
            parent = 0
            if kind in ("htb", "hfsc") and minor > 1 and draw(st.booleans()):
                parent = inner_class = draw(st.sampled_from(minors[: minor - 1]))
                inner.append(inner_class)
            above = f" parent {handle:x}:{parent or ''}" if kind in ("htb", "hfsc") else ""
            parts.append(f"class {handle:x}:{minor}{above} {words}".rstrip())
    leaves = [minor for minor in minors if minor not in inner]
    for minor in leaves:
        match draw(st.integers(0, 3 if depth < 2 else 2)):
            case 0:
                continue
            case 3:
                used.append(max(used) + draw(st.integers(1, 40)))
                first, *rest = _tree(draw, used, length, depth + 1, conditions)
                parts += [f"qdisc parent {handle:x}:{minor} {first}", *rest]
            case _:
                leaf = draw(st.sampled_from(LEAVES))
                if leaf == "pfifo_fast":
                    leaf += length.replace("txqueuelen", "limit")
                parts.append(f"qdisc parent {handle:x}:{minor} {leaf}")
    for _ in range(draw(st.integers(0, 3))):
        to = f"to {handle:x}:{draw(st.sampled_from(leaves))}"
        tests = draw(st.lists(st.sampled_from(sorted(conditions)), max_size=3, unique=True))
        said = [f"{key} {draw(conditions[key])}" for key in tests]
        if kind in ("prio", "ets", "drr") and draw(st.booleans()):
            said, to = [*said, "flow divisor 4"], f"to {handle:x}:1"
        parts.append(f"filter parent {handle:x}: {' '.join(said) or 'all'} {to}")
    return parts


def commands(queue: str, parent: str | None = None, handle: str | None = None) -> list[str]:
    return _core.queue_commands(_core.parse_queue(queue), "eth0", parent, handle)


def read_back(lines: list[str]) -> str:
    reading = read([("written", "\n".join(lines))], {})
    assert reading.problems == []
    hosts = {int(IPv4Address("10.0.0.1")) + number: number for number in range(HOSTS)}
    built = reading.build("eth0", hosts, False)
    assert built is not None
    assert built.problems == []
    assert built.queue is not None
    return built.queue


def parsed(queue: str) -> Any:
    """The plan of a queue, the conditions of each filter in an order of their own."""

    def in_order(part: Any) -> Any:
        if isinstance(part, list):
            return [in_order(one) for one in part]
        if not isinstance(part, dict):
            return part
        found = {key: in_order(value) for key, value in part.items()}
        if "conditions" in found:
            found["conditions"].sort(key=str)
        return found

    return in_order(json.loads(_core.parse_queue(queue)))


@given(trees())
def test_a_tree_reads_as_what_was_written(queue: str) -> None:
    assert parsed(read_back(commands(queue))) == parsed(queue)


@given(st.one_of(*(trees(conditions=conditions) for conditions in SPLIT)))
def test_commands_that_were_read_are_written_as_before(queue: str) -> None:
    """One condition about either end, or about a range of ports, is several filters of `tc`."""
    lines = commands(queue)
    assert commands(read_back(lines)) == lines


@given(trees(), st.sampled_from([None, "1:10", "20:1"]), st.sampled_from([None, "10:", "7f:"]))
def test_names_are_unique_wherever_it_is(
    queue: str, parent: str | None, handle: str | None
) -> None:
    place = {"parent": parent, "handle": handle}
    lines = commands(queue, **{key: text for key, text in place.items() if text})
    words = [line.split() for line in lines if line.startswith("tc qdisc")]
    numbers = [line[line.index("handle") + 1] for line in words]
    numbers += [] if parent is None else [parent.partition(":")[0] + ":"]
    assert len(set(numbers)) == len(numbers)
    assert handle in (None, numbers[0])
    orders = [re.split(" u32| handle", line)[0] for line in lines if " filter " in line]
    assert len(set(orders)) == len(orders)


@given(st.lists(st.sampled_from(LEAVES), min_size=2, max_size=6), st.sampled_from(["", "60"]))
def test_transmit_queues_read_as_they_were_written(leaves: list[str], length: str) -> None:
    given_length = f" txqueuelen {length}p" if length else ""
    told = [f"qdisc parent 1:{n + 2} {leaf}" for n, leaf in enumerate(leaves)]
    told = [text.replace("pfifo_fast", f"pfifo_fast limit {length or 1000}p") for text in told]
    queue = " ; ".join([f"mq numtxqueues {len(leaves) + 1}{given_length}", *told])
    lines = commands(queue)
    again = read_back(lines)
    assert json.loads(_core.parse_queue(again)) == json.loads(_core.parse_queue(queue))
    assert commands(again) == lines


def test_deployed_trees_read_as_the_scenario_s() -> None:
    queue = (
        "htb default 20; class 1:1 parent 1: rate 9mbit; "
        "class 1:10 parent 1:1 rate 5mbit ceil 9mbit; "
        "class 1:20 parent 1:1 rate 4mbit ceil 9mbit; qdisc parent 1:20 fq_codel; "
        "filter dscp EF to 1:10"
    )
    for machine, device in (("home", "wan0"), ("isp", "ifb-wan0")):
        deployment = Scenario.from_toml(HOME).with_queue(queue).to_tc("wan0", machine=machine)
        reading = read([("steps", str(deployment))], {})
        assert reading.problems == []
        assert (built := reading.build(device, {}, False)) is not None
        assert json.loads(_core.parse_queue(str(built.queue))) == json.loads(
            _core.parse_queue(queue)
        )
