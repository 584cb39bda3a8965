"""Formulas of CoDel in Linux's integer arithmetic, for policies that must decide as Linux does."""

from __future__ import annotations


def codel_invsqrt(count: int, rec_inv_sqrt: int) -> int:
    """Returns 1 / sqrt(count) in units of 1/65536, after one Newton step (`codel_Newton_step`).

    `rec_inv_sqrt` is the value before the step, in the same units. It is 65535 if a dropping
    episode begins with a count of 1.
    """
    root = rec_inv_sqrt << 16
    square = (root * root) >> 32
    value = ((3 << 32) - count * square) % 2**64 >> 2
    return ((value * root) % 2**64 >> 31 >> 16) & 0xFFFF


def codel_control_law(time: int, interval: int, rec_inv_sqrt: int) -> int:
    """Returns the time of the next drop: `time + interval * rec_inv_sqrt / 65536`.

    Times are in ticks of CoDel's clock of 1024 ns: the low 32 bits of `now >> 10`.
    """
    return (time + ((interval * (rec_inv_sqrt << 16)) >> 32)) & 0xFFFFFFFF
