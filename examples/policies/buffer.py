"""A receive buffer that doubles when a packet does not fit, and never shrinks.

Sojourn's own `on-demand` makes the same decisions.
"""

import sojourn


@sojourn.buffer("doubling", ceiling="64mb")
class Doubling:
    """Doubles when a packet does not fit; without a packet, after discards or above half full."""

    def __init__(self, params):
        self.ceiling, self.discarded = params.ceiling, None

    def observe(self, now, buffer):
        lost = self.discarded is not None and buffer.discarded > self.discarded
        self.discarded = max(buffer.discarded, self.discarded or 0)
        size = max(1, buffer.size)
        if buffer.needed == 0 and (lost or buffer.occupied > buffer.size // 2):
            size *= 2
        while size < buffer.occupied + buffer.needed and size < self.ceiling:
            size *= 2
        return size
