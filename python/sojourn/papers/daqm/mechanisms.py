"""The sixteen mechanisms compared, as queues with the thesis' settings (its table 2).

From the thesis: buffers of 2000 packets; RED's thresholds of 500 and 1000 packets and weight 0.002;
PIE's period of 15 ms and its gains; the intervals and targets of CoDel's family. From the published
code, where the thesis is silent: RED's max_p of 0.02 and its gentle ramp (the target and gains that
the table gives for RED are those of adaptive RED, which was off). The dequeue threshold that the
table gives for PIE belongs to a rate estimator that was off.

Two differences remain, because these are Linux's mechanisms: PIE's burst allowance is the kernel's
150 ms (ns-3 had 15 ms), and COBALT, which counts memory, has the memory of 2000 packets.
"""

from __future__ import annotations

#: Packets that every queue holds, and bytes of headers of a full TCP packet.
LIMIT, HEADERS = 2000, 54

RED, PIE, CODEL, FQ_CODEL, COBALT = "RED", "PIE", "CoDel", "FQ-CoDel", "COBALT"
#: The rivals, in the thesis' order.
RIVALS = (RED, PIE, CODEL, FQ_CODEL, COBALT)
#: dAQM with one feature, and with all.
FEATURES = tuple(f"dAQM_f{i}" for i in range(1, 9))
CONFIGURATIONS = ("dAQM_c1", "dAQM_c2", "dAQM_c3")
C1, C2, C3 = CONFIGURATIONS
#: The eight mechanisms of most figures, and the sixteen of figure 6.
EIGHT = (*RIVALS, *CONFIGURATIONS)
SIXTEEN = (*RIVALS, *FEATURES, *CONFIGURATIONS)

_RIVALS = {
    RED: (
        f"red unit packets limit {LIMIT} min 500 max 1000 probability 0.02 weight 0.002 "
        "avpkt 1500 gentle wait"
    ),
    PIE: f"pie limit {LIMIT}p target 15ms tupdate 15ms alpha 2 beta 20",
    CODEL: f"codel limit {LIMIT}p target 5ms interval 100ms",
    FQ_CODEL: f"fq_codel limit {LIMIT}p flows 1024 target 5ms interval 100ms noecn",
    COBALT: "cobalt memlimit {memory} target 5ms interval 100ms increment 0.08 decrement 0.04",
}


def _memory(payload: int) -> int:
    """Returns the memory of `LIMIT` packets: data and headers in a power of two, and overhead."""
    power = (payload + HEADERS + 64 + 320 - 1).bit_length()
    return LIMIT * ((1 << power) + 256)


def queue(mechanism: str, payload: int = 1400, words: str = "") -> str:
    """Returns the queue of a mechanism for packets of `payload` bytes.

    `words` are added to dAQM's, such as ``rate 0.3``.
    """
    if mechanism in _RIVALS:
        return _RIVALS[mechanism].format(memory=_memory(payload))
    preset = mechanism.removeprefix("dAQM_")
    return f"daqm preset {preset} limit {LIMIT}p {words}".strip()
