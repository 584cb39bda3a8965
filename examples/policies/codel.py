"""CoDel after RFC 8289."""

import math

import sojourn


@sojourn.queue("codel_rfc", limit="1000p", target="5ms", interval="100ms")
class Codel:
    """CoDel after RFC 8289, section 5."""

    def __init__(self, params, draws):
        self.p = params
        self.first_above = self.drop_next = self.count = self.last_count = self.dropping = 0

    def enqueue(self, now, packet, queue):
        return sojourn.ACCEPT

    def next(self, now, queue):
        packet = queue.pop()
        if packet is None or now - packet.at < self.p.target or queue.bytes <= self.p.mtu:
            self.first_above = 0
        elif not self.first_above:
            self.first_above = now + self.p.interval
        return packet, 0 < self.first_above <= now

    def law(self, time):
        return time + int(self.p.interval / math.sqrt(self.count))

    def dequeue(self, now, queue):
        packet, late = self.next(now, queue)
        if late and not self.dropping:
            queue.drop(packet)
            packet, _ = self.next(now, queue)
            recent = now - self.drop_next < 16 * self.p.interval
            self.count = self.last_count = max(1, recent and self.count - self.last_count)
            self.drop_next = self.law(now)
        self.dropping = late
        while self.dropping and now >= self.drop_next:
            queue.drop(packet)
            self.count += 1
            packet, self.dropping = self.next(now, queue)
            if self.dropping:
                self.drop_next = self.law(self.drop_next)
        return packet
