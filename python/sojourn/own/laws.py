"""Laws of published algorithms in Linux's integer arithmetic, for policies that match Linux."""

from __future__ import annotations


def codel_invsqrt(count: int, rec_inv_sqrt: int) -> int:
    """Returns CoDel's 1 / sqrt(count) after one Newton step (`codel_Newton_step`).

    `rec_inv_sqrt` is the value before the step, a fraction of 2^16; an episode begins with 65535.
    """
    root = rec_inv_sqrt << 16
    square = (root * root) >> 32
    value = ((3 << 32) - count * square) % 2**64 >> 2
    return ((value * root) % 2**64 >> 31 >> 16) & 0xFFFF


def codel_control_law(time: int, interval: int, rec_inv_sqrt: int) -> int:
    """Returns the time of CoDel's next drop, `time + interval / sqrt(count)` (`codel_control_law`).

    Times are in ticks of CoDel's clock, 32 bits of `now >> 10`.
    """
    return (time + ((interval * (rec_inv_sqrt << 16)) >> 32)) & 0xFFFFFFFF
