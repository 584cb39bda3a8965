"""Every queue discipline with settings that suit a link, all with one buffer."""

from __future__ import annotations

from collections.abc import Mapping

FULL_FRAME = 1514


def adaptive_red(rate: int, limit: int) -> str:
    """Adaptive RED for a link of `rate` bit/s and a buffer of `limit` bytes.

    Floyd, Gummadi and Shenker (2001): min is what half of 5 ms carries, at least five packets; max
    three times that.
    """
    from sojourn import _core

    least = max(5 * FULL_FRAME, rate // 8 // 400)
    return (
        f"red limit {max(limit, 12 * least)} min {least} max {3 * least} avpkt 1000 "
        f"bandwidth {_core.format_quantity('rate', rate)} adaptive"
    )


def every(rate: int, packets: int) -> Mapping[str, str]:
    """All disciplines by the name a table shows, for a link of `rate` bit/s.

    Where a discipline counts memory or bytes it has those of `packets` full frames.
    """
    size = packets * FULL_FRAME
    memory = packets * 2304
    low = max(2, packets // 12)
    return {
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
        "daqm_c1": f"daqm preset c1 limit {packets}p",
        "daqm_c2": f"daqm preset c2 limit {packets}p",
        "daqm_c3": f"daqm preset c3 limit {packets}p",
    }
