"""CoDel with the integer arithmetic of Linux.

Therefore `sojourn verify --queue` finds no difference to the recordings of Linux.
"""

import sojourn


@sojourn.queue(
    "codel_linux", limit="1000p", target="5ms", interval="100ms", ecn=False, ce_threshold="0s"
)
class Codel:
    """CoDel with Linux's clock in units of 1024 ns, and with Newton steps for the square root.

    A `ce_threshold` of 0 turns marking above this threshold off.
    """

    def __init__(self, params, draws):
        self.target = params.target >> 10
        self.interval = params.interval >> 10
        self.ce_threshold = params.ce_threshold >> 10
        self.ecn, self.mtu = params.ecn, params.mtu
        self.count = self.lastcount = self.rec_inv_sqrt = 0
        self.first_above_time = self.drop_next = self.ldelay = 0
        self.dropping = False

    def state(self):
        names = ("count", "lastcount", "dropping", "rec_inv_sqrt", "first_above_time")
        return {name: int(getattr(self, name)) for name in (*names, "drop_next", "ldelay")}

    def enqueue(self, now, packet, queue):
        return sojourn.ACCEPT

    def take(self, now, queue):
        """Returns the next packet, and whether CoDel may mark or drop it (`codel_should_drop`)."""
        packet = queue.pop()
        if packet is None:
            self.first_above_time = 0
            return None, False
        self.ldelay = (now - (packet.at >> 10)) & 0xFFFFFFFF
        if self.ldelay < self.target or queue.bytes <= self.mtu:
            self.first_above_time = 0
        elif self.first_above_time == 0:
            self.first_above_time = (now + self.interval) & 0xFFFFFFFF
        else:
            return packet, after(now, self.first_above_time)
        return packet, False

    def signal(self, packet, queue):
        """Marks the packet, or drops it if it cannot be marked; returns whether it was marked."""
        marked = self.ecn and queue.mark(packet)
        if not marked:
            queue.drop(packet)
        return marked

    def law(self, time):
        return sojourn.codel_control_law(time, self.interval, self.rec_inv_sqrt)

    def dequeue(self, now, queue):
        packet = self.next(now >> 10 & 0xFFFFFFFF, queue)
        if packet is not None and self.ce_threshold and self.ldelay > self.ce_threshold:
            queue.mark(packet)
        return packet

    def next(self, now, queue):
        packet, drop = self.take(now, queue)
        if packet is None:
            self.dropping = False
            return None
        if self.dropping:
            if not drop:
                self.dropping = False
            while self.dropping and not after(self.drop_next, now):
                self.count += 1
                self.rec_inv_sqrt = sojourn.codel_invsqrt(self.count, self.rec_inv_sqrt)
                if self.signal(packet, queue):
                    self.drop_next = self.law(self.drop_next)
                    return packet
                packet, drop = self.take(now, queue)
                if drop:
                    self.drop_next = self.law(self.drop_next)
                else:
                    self.dropping = False
        elif drop:
            if not self.signal(packet, queue):
                packet, _ = self.take(now, queue)
            self.dropping = True
            delta = self.count - self.lastcount
            if delta > 1 and after(16 * self.interval, now - self.drop_next):
                self.count = delta
                self.rec_inv_sqrt = sojourn.codel_invsqrt(self.count, self.rec_inv_sqrt)
            else:
                self.count, self.rec_inv_sqrt = 1, 0xFFFF
            self.lastcount = self.count
            self.drop_next = self.law(now)
        return packet


def after(a, b):
    """Returns whether `a` is after `b` on a 32-bit clock, which wraps around."""
    return 0 < (a - b) & 0xFFFFFFFF < 1 << 31
