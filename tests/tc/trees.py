"""Trees of `tc` for property tests: as commands, and as versions of iproute2 print them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

LEAVES = {
    "": ("", "", {}),
    "pfifo limit 77": ("pfifo", "limit 77p", {"limit": 77}),
    "sfq limit 77 perturb 9 quantum 3000": (
        "sfq",
        "limit 77p quantum 3000b depth 127 flows 128/1024 divisor 1024 perturb 9sec",
        {"limit": 77, "quantum": 3000, "depth": 127, "divisor": 1024, "perturb": 9},
    ),
    "fq_codel limit 99 flows 64 quantum 300 target 7ms ecn": (
        "fq_codel",
        (
            "limit 99p flows 64 quantum 300 target 7ms interval 100ms memory_limit 32Mb ecn "
            "drop_batch 64"
        ),
        {
            "limit": 99,
            "flows": 64,
            "quantum": 300,
            "target": 6999,
            "interval": 99999,
            "memory_limit": 33554432,
            "ecn": True,
            "drop_batch": 64,
        },
    ),
    "pie limit 99 target 20ms tupdate 30ms": (
        "pie",
        "limit 99p target 20ms tupdate 30ms alpha 2 beta 20",
        {"limit": 99, "target": 20000, "tupdate": 30000, "alpha": 2, "beta": 20},
    ),
}
"""Disciplines of leaves: as a command, and the kind, text and data that `tc` prints."""

FILTERS = {
    "u32 match ip dport {n} 0xffff": [(0, "{n:08x}/0000ffff at 20")],
    "u32 match ip sport {n} 0xffff match ip protocol 17 0xff": [
        (0, "{s:08x}/ffff0000 at 20"),
        (0, "00110000/00ff0000 at 8"),
    ],
    "u32 match ip tos 0xb8 0xfc": [(0, "00b80000/00fc0000 at 0")],
    "handle {n} fw": "fw",
    "flower ip_proto tcp dst_port {n}": "flower",
    "matchall": "matchall",
}
"""Filters with a number: as a command, and the tests that `tc` prints of `u32`."""


@dataclass
class Leaf:
    """A class with packets."""

    minor: int
    rate: int
    ceil: int
    prio: int
    queue: str


@dataclass
class Tree:
    """A tree of HTB."""

    leaves: list[Leaf]
    default: int
    filters: list[tuple[str, int, int]] = field(default_factory=list)
    """Each with its number and the class."""

    def commands(self, *, quanta: bool = False) -> list[str]:
        """Commands after `tc`; with `quanta` also the quantum of each class."""
        quantum = " quantum 3000" if quanta else ""
        lines = [
            f"qdisc add dev eth0 root handle 1: htb default {self.default:x} direct_qlen 1000",
            (
                "class add dev eth0 parent 1: classid 1:1 htb rate 18mbit ceil 18mbit burst 15k "
                "cburst 1600b"
            ),
        ]
        for one in self.leaves:
            lines.append(
                f"class add dev eth0 parent 1:1 classid 1:{one.minor:x} htb rate {one.rate}kbit "
                f"ceil {one.ceil}kbit burst 2000b cburst 1600b prio {one.prio}{quantum}"
            )
            if one.queue:
                lines.append(
                    f"qdisc add dev eth0 parent 1:{one.minor:x} handle {one.minor:x}: {one.queue}"
                )
        for order, (kind, number, minor) in enumerate(self.filters, 1):
            text = kind.format(n=number)
            lines.append(
                f"filter add dev eth0 parent 1: protocol ip pref {order} {text} flowid 1:{minor:x}"
            )
        return lines


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Any tree; each number that versions print in different bases names one class in all."""
    minors = draw(st.lists(st.sampled_from([2, 3, 5, 7, 9]), min_size=1, max_size=4, unique=True))
    leaves = [
        Leaf(
            minor=minor,
            rate=draw(st.integers(8, 9_000)),
            ceil=draw(st.integers(9_000, 18_000)),
            prio=draw(st.integers(0, 7)),
            queue=draw(st.sampled_from(sorted(LEAVES))),
        )
        for minor in minors
    ]
    filters = st.tuples(
        st.sampled_from(sorted(FILTERS)), st.integers(1, 65_535), st.sampled_from(minors)
    )
    return Tree(leaves, draw(st.sampled_from(minors)), draw(st.lists(filters, max_size=4)))


def _rate(kbit: int) -> str:
    return f"{kbit // 1000}Mbit" if kbit % 1000 == 0 else f"{kbit}Kbit"


VERSIONS = {
    # Base of the default class; what follows `pref N KIND`; the word for a class; end of a filter.
    "4.9": ("{:x}", "", "flowid", ""),
    "4.17": ("{:d}", " chain 0", "flowid", ""),
    "5.15": ("0x{:x}", " chain 0", "flowid", " not_in_hw"),
    "6.1": ("0x{:x}", " chain 0", "*flowid", " not_in_hw"),
    "7.0": ("0x{:x}", " chain 0", "*flowid", " not_in_hw"),
}
"""Differences of versions of iproute2."""


def printed(tree: Tree, version: str, option: str = "") -> str:
    """The output of `tc qdisc show`, `class show` and `filter show` with an option."""
    default, chain, flowid, state = VERSIONS[version]
    counters = (
        "\n Sent 9 bytes 1 pkt (dropped 0, overlimits 0 requeues 0) \n backlog 0b 0p requeues 0"
        if option == "-s"
        else ""
    )
    cell = "/1 mpu 0b" if version < "6" else "/1mpu 0b"
    detailed = option == "-d"
    quantum = " quantum 3000" if detailed else ""
    layer = " linklayer ethernet" if detailed else ""
    found = [
        (
            f"qdisc htb 1: dev eth0 root refcnt 2 r2q 10 default {default.format(tree.default)} "
            f"direct_packets_stat 0{' ver 3.17' if detailed else ''} direct_qlen 1000{counters}"
        )
    ]
    classes = []
    for one in tree.leaves:
        kind, text, _ = LEAVES[one.queue]
        handle = f"{one.minor:x}:"
        if kind:
            place = f"dev eth0 parent 1:{one.minor:x}"
            found.append(f"qdisc {kind} {handle} {place} {text} {counters}")
        leaf = f"leaf {handle} " if kind else ""
        size = [f"{size}{cell if detailed else ''}" for size in ("2000b", "1600b")]
        classes.append(
            f"class htb 1:{one.minor:x} parent 1:1 {leaf}prio {one.prio}{quantum} rate "
            f"{_rate(one.rate)} ceil {_rate(one.ceil)}{layer} burst {size[0]} cburst {size[1]}"
            f"{' level 0' if detailed else ''} {counters}"
        )
    size = [f"{size}{cell if detailed else ''}" for size in ("15Kb", "1600b")]
    inner = f"class htb 1:1 root rate 18Mbit ceil 18Mbit{layer} burst {size[0]} cburst {size[1]}"
    found += [f"{inner}{' level 7' if detailed else ''} {counters}", *classes]
    for order, (kind, number, minor) in enumerate(tree.filters, 1):
        name = kind.removeprefix("handle {n} ").split()[0]
        lead = f"filter parent 1: protocol ip pref {order} {name}{chain}"
        target, tests = f"1:{minor:x}", FILTERS[kind]
        hits = " (rule hit 0 success 0)" if option == "-s" else ""
        found.append(lead + " ")
        if isinstance(tests, list):
            table = f"{0x7FF + order:x}"
            found.append(f"{lead} fh {table}: ht divisor 1 ")
            found.append(
                f"{lead} fh {table}::800 order 2048 key ht {table} bkt 0 {flowid} {target}{state}"
                f" {hits}"
            )
            after = " (success 0 )" if option == "-s" else ""
            lines = [f"match {one}{after}" for _, one in tests]
        elif name == "fw":
            found[-1] = f"{lead} handle {number:#x} classid {target} "
            lines = []
        elif name == "flower":
            found.append(f"{lead} handle 0x1 classid {target} ")
            lines = ["eth_type ipv4", "ip_proto tcp", f"dst_port {number}", state.strip()]
        else:
            found.append(f"{lead} handle 0x1 flowid {target} ")
            lines = [state.strip()]
        found += [f"  {one.format(n=number, s=number << 16)}" for one in lines if one]
    return "\n".join(found) + "\n"


def data(tree: Tree) -> str:
    """The output of the same commands with `-j`."""
    options: dict[str, Any] = {"r2q": 10, "default": f"{tree.default:#x}", "direct_qlen": 1000}
    disciplines: list[dict[str, Any]] = [
        {"kind": "htb", "handle": "1:", "dev": "eth0", "root": True, "options": options}
    ]
    common = {"linklayer": "ethernet", "burst_cell": 1, "mpu_rate": 0, "cburst": 1600, "level": 0}
    whole = {"rate": 2_250_000, "ceil": 2_250_000, "burst": 15360}
    classes: list[dict[str, Any]] = [
        {"class": "htb", "handle": "1:1", "root": True, **whole, **common}
    ]
    for one in tree.leaves:
        kind, _, values = LEAVES[one.queue]
        name = f"1:{one.minor:x}"
        if kind:
            disciplines.append(
                {
                    "kind": kind,
                    "handle": f"{one.minor:x}:",
                    "dev": "eth0",
                    "parent": name,
                    "options": values,
                }
            )
        classes.append(
            {
                "class": "htb",
                "handle": name,
                "parent": "1:1",
                "prio": one.prio,
                "rate": one.rate * 125,
                "ceil": one.ceil * 125,
                "burst": 2000,
                **common,
            }
        )
    filters: list[str] = []
    for order, (kind, number, minor) in enumerate(tree.filters, 1):
        name = kind.removeprefix("handle {n} ").split()[0]
        lead = {"parent": "1:", "protocol": "ip", "pref": order, "kind": name, "chain": 0}
        filters.append(json.dumps(lead))
        target, tests = f"1:{minor:x}", FILTERS[kind]
        of: dict[str, Any]
        if isinstance(tests, list):
            of = {"fh": "800::800", "order": 2048, "key_ht": "800", "bkt": "0", "flowid": target}
            matches = []
            for _, text in tests:
                value, _, offset = text.format(n=number, s=number << 16).partition(" at ")
                bits, _, mask = value.partition("/")
                match = {"value": f"{int(bits, 16):x}", "mask": f"{int(mask, 16):x}"}
                matches.append(f'"match": {json.dumps({**match, "off": int(offset)})}')
            # `tc` repeats the key.
            whole_filter = json.dumps({**lead, "options": of})
            filters.append(whole_filter[:-2] + ", " + ", ".join(matches) + "}}")
            continue
        if name == "fw":
            of = {"handle": f"{number:#x}", "classid": target}
        elif name == "flower":
            keys = {"eth_type": "ipv4", "ip_proto": "tcp", "dst_port": number}
            of = {"handle": 1, "classid": target, "keys": keys}
        else:
            of = {"handle": 1, "flowid": target}
        filters.append(json.dumps({**lead, "options": of}))
    return f"{json.dumps(disciplines)}\n{json.dumps(classes)}\n[{', '.join(filters)}]\n"
