"""All queue disciplines with suitable settings for a link, and with buffers of equal size."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise

from sojourn import _core
from sojourn.own.sources import is_own
from sojourn.own.text import own

FULL_FRAME = 1514
"""Length of a full Ethernet frame in bytes."""
SIZES = ("limit", "memlimit", "memory_limit")
"""Parameters that limit a queue."""


def adaptive_red(rate: int, limit: int) -> str:
    """Returns Adaptive RED for a link of `rate` bit/s and a buffer of `limit` bytes.

    The thresholds are those of Floyd, Gummadi and Shenker (2001). `min` is half of the data of 5
    ms, but at least five packets. `max` is three times `min`.
    """
    least = max(5 * FULL_FRAME, rate // 8 // 400)
    return (
        f"red limit {max(limit, 12 * least)} min {least} max {3 * least} avpkt 1000 "
        f"bandwidth {_core.format_quantity('rate', rate)} adaptive"
    )


def every(rate: int, packets: int) -> Mapping[str, str]:
    """Returns all disciplines by name, with settings for a link of `rate` bit/s.

    The limit of each discipline is `packets` packets. If a discipline counts bytes or memory, the
    limit is the bytes or the memory of `packets` full frames.
    """
    size = packets * FULL_FRAME
    memory = packets * 2304
    low = max(2, packets // 12)
    burst = max(2 * FULL_FRAME, rate // 8000)
    shaped = rate * 95 // 100
    known = {
        "pfifo": f"pfifo limit {packets}p",
        "red": adaptive_red(rate, size),
        "blue": f"blue limit {packets}p",
        "choke": f"choke limit {packets}p min {low}p max {3 * low}p bandwidth {rate}bit",
        "sfb": f"sfb limit {packets}p",
        "codel": f"codel limit {packets}p",
        "fq_codel": f"fq_codel limit {packets}p",
        "pie": f"pie limit {packets}p",
        "fq_pie": f"fq_pie limit {packets}p",
        "cobalt": f"cobalt memlimit {memory}",
        "fq_cobalt": f"fq_cobalt limit {packets}p",
        "cake": f"cake unlimited memlimit {memory}",
        "pi2": f"pi2 limit {packets}p",
        "dualpi2": f"dualpi2 limit {packets}p",
        # The shaper's rate is below the link's, so that the queue forms in the shaper.
        "tbf": f"tbf rate {shaped}bit burst {burst} limit {size}",
        # The bands are selected by the DSCP, as by default in Linux.
        "prio": f"prio txqueuelen {packets}p",
        "ets": f"ets bands 3 strict 1 priomap 1 2 2 2 1 2 0 0 txqueuelen {packets}p",
        # Some network cards have four transmit queues.
        "mq": f"mq default_qdisc pfifo txqueuelen {packets // 4 + 1}p",
        # Flows are distributed over eight classes by a hash.
        "drr": f"drr txqueuelen {packets // 8 + 1}p"
        + "".join(f"; class 1:{n}" for n in range(1, 9))
        + "; filter flow divisor 8 to 1:1",
        # Two classes, for voice and for other traffic; the rate is below the link's.
        "htb": f"htb default 20 txqueuelen {packets}p"
        f"; class 1:1 rate {shaped}bit burst {burst} cburst {burst}"
        f"; class 1:10 parent 1:1 rate {shaped // 4}bit ceil {shaped}bit burst {burst} "
        f"cburst {burst}"
        f"; class 1:20 parent 1:1 rate {shaped * 3 // 4}bit ceil {shaped}bit burst {burst} "
        f"cburst {burst} prio 1; filter dscp EF to 1:10",
        "hfsc": f"hfsc default 20 txqueuelen {packets}p"
        f"; class 1:1 ls rate {shaped}bit ul rate {shaped}bit"
        f"; class 1:10 parent 1:1 sc rate {shaped // 4}bit"
        f"; class 1:20 parent 1:1 ls rate {shaped * 3 // 4}bit"
        "; filter dscp EF to 1:10",
        "daqm_c1": f"daqm preset c1 limit {packets}p",
        "daqm_c2": f"daqm preset c2 limit {packets}p",
        "daqm_c3": f"daqm preset c3 limit {packets}p",
    }
    # All other disciplines have their default settings and the limit.
    chosen = {"bfifo", *(text.split()[0] for text in known.values())}
    for name in _countable():
        if name not in chosen:
            known[name] = f"{name} limit {packets}p"
    return known


def buffered(text: str, rate: int, packets: int) -> str:
    """Returns a queue in words of `tc` with the limit that it has in `every`.

    A queue with a limit is unchanged. `rate` is in bit/s. Raises `WordError` for an invalid queue.
    """
    if is_own(text):
        found = own("queue", text)
        counts = any(w.name == "limit" and w.kind == "packets" for w in found.declaration.words)
        return f"{text} limit {packets}p" if counts and "limit" not in text.split() else text
    name, _, given = text.partition(" ")
    for usual in every(rate, packets).values():
        words = usual.split()
        if words[0] != name:
            continue
        for word, size in pairwise(words):
            if word in SIZES and not any(own in given.split() for own in SIZES):
                text = f"{text} {word} {size}"
        break
    _core.parse_queue(text)
    return text


def _countable() -> list[str]:
    """Returns the names of disciplines that accept a limit in packets as their only parameter."""
    found = []
    for table in json.loads(_core.describe())["queue"]:
        try:
            _core.parse_queue(f"{table['name']} limit 100p")
        except _core.WordError:
            continue
        found.append(table["name"])
    return found
