"""Additive increase, multiplicative decrease (AIMD), counted in bytes.

With its default parameters the policy is Reno.
"""

import sojourn


@sojourn.congestion("aimd", increase=1.0, decrease=0.5)
class Aimd:
    """Adds `increase` segments per round trip; congestion multiplies the window by `decrease`."""

    def __init__(self, params, draws):
        self.increase, self.decrease = params.increase, params.decrease
        self.counted = 0

    def on_ack(self, now, ack, window):
        if not (ack.may_grow and ack.cwnd_limited):
            return
        left = ack.acked
        if window.in_slow_start:
            grown = min(left, window.ssthresh - window.cwnd)
            window.cwnd += grown
            left -= grown
        self.counted += min(left, window.cwnd)
        if left and self.counted >= window.cwnd:
            self.counted -= window.cwnd
            window.cwnd += self.increase * window.mss

    def reduce(self, now, cause, flight, window):
        self.counted = 0
        kept = int(self.decrease * min(flight, window.cwnd))
        return max(kept - kept % window.mss, 2 * window.mss)
