"""The mechanisms compared, as queues: tail drop and three kinds of RED, all with equal buffers.

From the paper: thresholds of (G)REDstd at 3/20 and 13/20 of the buffer, weight 0.002, max_p 0.1;
gentle RED's ramp ends at the buffer size; all queues count packets and take REDopt's buffer.
"""

from __future__ import annotations

from sojourn.tune.redopt import RedParameters

TD, RED, GRED, REDOPT = "TD", "REDstd", "GREDstd", "REDopt"
#: In the paper's order.
MECHANISMS = (TD, RED, GRED, REDOPT)


def _standard(limit: float, unit: str, scale: int) -> str:
    low, high = round(limit * 3 / 20) * scale, round(limit * 13 / 20) * scale
    return (
        f"red unit {unit} limit {round(limit) * scale} min {low} max {high} "
        "probability 0.1 weight 0.002 avpkt 1514 bandwidth 10mbit"
    )


def queues(redopt: RedParameters) -> dict[str, str]:
    """Each mechanism's queue with REDopt's buffer."""
    return {
        TD: f"pfifo limit {redopt.limit}p",
        RED: _standard(redopt.limit, "packets", 1),
        GRED: _standard(redopt.limit, "packets", 1) + " gentle-limit",
        REDOPT: redopt.queue("avpkt 1514 bandwidth 10mbit"),
    }


def in_bytes(redopt: RedParameters, frame: int) -> dict[str, str]:
    """The same counting bytes of `frame` a packet, which favours small packets: a sensitivity check."""
    opt = (
        f"red unit bytes limit {redopt.limit * frame} min {redopt.minimum * frame} "
        f"max {redopt.maximum * frame} probability {redopt.max_p:.6g} weight {redopt.weight:.6g} "
        "avpkt 1514 bandwidth 10mbit"
    )
    return {
        TD: f"bfifo limit {redopt.limit * frame}",
        RED: _standard(redopt.limit, "bytes", frame),
        GRED: _standard(redopt.limit, "bytes", frame) + " gentle-limit",
        REDOPT: opt,
    }
