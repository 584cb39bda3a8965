"""CoDel after RFC 8289."""

import math

import sojourn


@sojourn.queue("codel_rfc", limit="1000p", target="5ms", interval="100ms")
class Codel:
    """CoDel after RFC 8289, section 5."""

    def __init__(self, params, draws):
        self.p = params
        self.first_above = self.drop_next = self.count = self.last_count = 0
        self.dropping = False

    def enqueue(self, now, packet, queue):
        return sojourn.ACCEPT

    def next(self, now, queue):
        packet = queue.pop()
        if packet is None or now - packet.at < self.p.target or queue.bytes <= self.p.mtu:
            self.first_above = 0
            return packet, False
        if self.first_above == 0:
            self.first_above = now + self.p.interval
            return packet, False
        return packet, now >= self.first_above

    def law(self, time):
        return time + int(self.p.interval / math.sqrt(self.count))

    def dequeue(self, now, queue):
        packet, ok = self.next(now, queue)
        if not ok:
            self.dropping = False
        elif self.dropping:
            while self.dropping and now >= self.drop_next:
                queue.drop(packet)
                self.count += 1
                packet, ok = self.next(now, queue)
                self.dropping = self.dropping and ok
                if ok:
                    self.drop_next = self.law(self.drop_next)
        else:
            queue.drop(packet)
            packet, ok = self.next(now, queue)
            self.dropping = True
            delta = self.count - self.last_count
            recent = now - self.drop_next < 16 * self.p.interval
            self.count = delta if delta > 1 and recent else 1
            self.drop_next = self.law(now)
            self.last_count = self.count
        return packet
