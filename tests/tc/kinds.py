"""Configurations of every kind that people have, made from a grammar of kinds."""

from __future__ import annotations

import random
from collections.abc import Iterator

DISCIPLINES = {
    "pfifo": ["limit 77"],
    "bfifo": ["limit 77000"],
    "tbf": [
        "rate 7mbit burst 9kb latency 20ms",
        "rate 7mbit burst 9kb limit 30kb overhead 7 mpu 64",
        "rate 7mbit burst 9kb/8 limit 30kb peakrate 9mbit minburst 1600",
    ],
    "red": [
        "limit 400000 min 30000 max 90000 avpkt 1000 burst 55 probability 0.1",
        "limit 300kb avpkt 1000 bandwidth 7mbit ecn adaptive",
    ],
    "sfq": [
        "limit 77 perturb 9 quantum 3000 divisor 512 depth 66",
        "limit 99 flows 64 headdrop",
        "limit 3000 flows 512 redflowlimit 77777 min 7777 max 17777 probability 0.1 ecn",
    ],
    "fq": [
        "limit 77 flow_limit 33 quantum 3000 initial_quantum 9000 maxrate 7mbit",
        "buckets 512 refill_delay 7ms low_rate_threshold 77kbit orphan_mask 127",
    ],
    "fq_codel": [
        "limit 77 flows 64 target 7ms interval 90ms quantum 300 memory_limit 9mb",
        "ce_threshold 3ms drop_batch 16 noecn",
    ],
    "codel": ["limit 77 target 7ms interval 90ms ecn", "ce_threshold 3ms"],
    "pie": ["limit 77 target 20ms tupdate 30ms alpha 3 beta 21 ecn bytemode"],
    "fq_pie": ["limit 77 flows 64 target 20ms tupdate 30ms alpha 3 beta 21 quantum 300 ecn_prob 9"],
    "cake": [
        "bandwidth 7mbit rtt 50ms overhead 18 mpu 64 nat ack-filter",
        "bandwidth 7mbit diffserv4 memlimit 3mb atm overhead 32",
        "bandwidth 7mbit fwmark 0xf0",
    ],
    "choke": ["limit 300 bandwidth 7mbit min 20 max 80 burst 90"],
    "sfb": ["limit 300 max 30 target 20 increment 0.001 decrement 0.0001 penalty_rate 9"],
    "hhf": ["limit 77 quantum 3000 hh_limit 99 reset_timeout 30ms admit_bytes 99kb"],
    "skbprio": ["limit 77"],
    "dualpi2": ["limit 777 target 20ms tupdate 20ms step_thresh 3ms coupling_factor 3"],
    "netem": [
        "delay 7ms 3ms 25% limit 777",
        "loss 3% 25% duplicate 5% corrupt 2%",
        "rate 7mbit 5 48 3 delay 9ms",
        "delay 9ms reorder 25% 50% gap 5",
        "loss gemodel 3% 30% 90% 5%",
        "slot 7ms 9ms packets 5 bytes 3000",
        "delay 9ms 3ms distribution normal",
    ],
}
"""Words of disciplines without classes."""

CLASSES = {
    "htb": [
        "rate 7mbit",
        "rate 3mbit ceil 8mbit prio 3 burst 15k cburst 16k",
        "rate 5mbit ceil 9mbit quantum 3000 mpu 64 overhead 18",
        "rate 512kbit ceil 1mbit prio 1",
    ],
    "hfsc": [
        "sc rate 7mbit",
        "rt m1 9mbit d 10ms m2 3mbit ls m2 3mbit ul m2 8mbit",
        "rt umax 1500b dmax 20ms rate 3mbit ls rate 3mbit",
    ],
    "drr": ["quantum 3000", "quantum 600"],
}
"""Words of classes."""

FILTERS = [
    "u32 match ip dport 5004 0xffff",
    "u32 match ip sport 443 0xffff match ip protocol 6 0xff",
    "u32 match ip src 10.0.0.0/30",
    "u32 match ip tos 0x10 0xff",
    "u32 match u16 0x40 0xffc0 at 2",
    "u32 match u8 0x40 0xf0 at 0",
    "handle 7 fw",
    "handle 0x30/0xf0 fw",
    "flower ip_proto udp dst_port 5060",
    "flower dst_ip 10.0.0.2 ip_tos 0x10/0xfc",
    "flower ip_proto tcp src_port 6000-7000",
    "basic match 'cmp(u16 at 2 layer transport eq 993)'",
    "basic match 'meta(nf_mark eq 9)'",
    "matchall",
]
"""Filters before their class."""


def alone() -> Iterator[list[str]]:
    """Each discipline by itself, and in a shaper."""
    for kind, options in DISCIPLINES.items():
        for words in options:
            yield [f"qdisc add dev eth0 root handle 1: {kind} {words}"]
            if kind == "netem":
                yield [
                    f"qdisc add dev eth0 root handle 1: netem {words}",
                    "qdisc add dev eth0 parent 1: handle 2: tbf rate 8mbit burst 9kb latency 30ms",
                ]
            else:
                yield [
                    "qdisc add dev eth0 root handle 1: tbf rate 9mbit burst 15kb",
                    f"qdisc add dev eth0 parent 1: handle 2: {kind} {words}",
                ]


def trees(seed: int) -> list[str]:
    """A tree of classes, disciplines and filters."""
    chance = random.Random(seed)
    kind = chance.choice(["htb", "htb", "htb", "hfsc", "drr", "prio", "ets"])
    count = chance.randint(2, 5)
    root = {
        "htb": f"htb default 20 r2q {chance.randint(3, 9)}",
        "hfsc": "hfsc default 20",
        "prio": f"prio bands {count} priomap {' '.join('0' * 16)}",
        "ets": f"ets bands {count} strict 1 quanta {' '.join(['3000'] * (count - 1))}",
    }.get(kind, kind)
    lines = [f"qdisc add dev eth0 root handle 1: {root}"]
    parent = "1:"
    if kind in ("htb", "hfsc"):
        parent = "1:1"
        whole = "rate 18mbit ceil 18mbit" if kind == "htb" else "sc rate 18mbit ul rate 18mbit"
        lines.append(f"class add dev eth0 parent 1: classid 1:1 {kind} {whole}")
    leaves = [f"{n + 1}{0 if kind in CLASSES else ''}" for n in range(count)]
    for leaf in leaves:
        if kind in CLASSES:
            words = chance.choice(CLASSES[kind])
            lines.append(f"class add dev eth0 parent {parent} classid 1:{leaf} {kind} {words}")
        inner = chance.choice([None, *DISCIPLINES])
        if inner and inner != "netem":
            words = chance.choice(DISCIPLINES[inner])
            lines.append(f"qdisc add dev eth0 parent 1:{leaf} handle 1{leaf}: {inner} {words}")
    for order, text in enumerate(chance.sample(FILTERS, chance.randint(1, 5)), 1):
        target = f"flowid 1:{chance.choice(leaves)}"
        lines.append(f"filter add dev eth0 parent 1: protocol ip pref {order} {text} {target}")
    return lines


def configurations() -> Iterator[str]:
    """All of them, as commands."""
    for lines in [*alone(), *map(trees, range(120))]:
        yield "".join(f"tc {line}\n" for line in lines)
