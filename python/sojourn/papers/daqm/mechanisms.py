"""The sixteen compared mechanisms as queues, with the settings of the thesis' table 2.

Settings from the thesis: buffers of 2000 packets; RED's thresholds of 500 and 1000 packets and its
weight of 0.002; PIE's period of 15 ms and its gains; the intervals and targets of CoDel, FQ-CoDel
and COBALT. Settings from the published code, which the thesis does not state: RED's max_p of 0.02
and its gentle ramp. Some settings of the table had no effect: the target and gains of RED belong to
adaptive RED, and the dequeue threshold of PIE to a rate estimator; both were off. COBALT's
Blue.Th=400 has no unit; it is ns-3's threshold of 400 ms, because COBALT has none in packets.

Two settings differ from the thesis, because the queues implement Linux's mechanisms: PIE's burst
allowance is 150 ms (ns-3: 15 ms), and COBALT, whose limit is in bytes of memory, has the memory of
2000 packets.
"""

from __future__ import annotations

#: Limit of every queue in packets; length of a TCP packet's headers in bytes.
LIMIT, HEADERS = 2000, 54

RED, PIE, CODEL, FQ_CODEL, COBALT = "RED", "PIE", "CoDel", "FQ-CoDel", "COBALT"
#: Mechanisms with which the thesis compares dAQM, in the thesis' order.
RIVALS = (RED, PIE, CODEL, FQ_CODEL, COBALT)
#: dAQM with one of eight features, and with all features in three configurations.
FEATURES = tuple(f"dAQM_f{i}" for i in range(1, 9))
CONFIGURATIONS = ("dAQM_c1", "dAQM_c2", "dAQM_c3")
C1, C2, C3 = CONFIGURATIONS
#: The eight mechanisms of figures 7 to 16; the sixteen mechanisms of figure 6.
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
    COBALT: (
        "cobalt memlimit {memory} target 5ms interval 100ms increment 0.08 decrement 0.04 "
        "blue_threshold 400ms"
    ),
}


def _memory(payload: int) -> int:
    """Returns the memory that `LIMIT` packets occupy in Linux, in bytes.

    A packet occupies its data, headers and `skb_shared_info`, rounded up to a power of two, and
    256 bytes of `sk_buff`.
    """
    power = (payload + HEADERS + 64 + 320 - 1).bit_length()
    return LIMIT * ((1 << power) + 256)


def queue(mechanism: str, payload: int = 1400, words: str = "") -> str:
    """Returns the queue of a mechanism for packets of `payload` bytes, as words of a scenario.

    `words`, such as ``rate 0.3``, are added to dAQM's queue. Rivals ignore `words`, except RED the
    word ``adaptive``.
    """
    if mechanism in _RIVALS:
        added = f" {words}" if (mechanism, words) == (RED, "adaptive") else ""
        return _RIVALS[mechanism].format(memory=_memory(payload)) + added
    preset = mechanism.removeprefix("dAQM_")
    return f"daqm preset {preset} limit {LIMIT}p {words}".strip()
