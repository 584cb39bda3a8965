"""PIE after RFC 8033, section 4, with timestamps: an example for `sojourn judge`."""

import random
from collections import deque

from codel import serve

STEPS = [(1e-6, 2048), (1e-5, 512), (1e-4, 128), (1e-3, 32), (1e-2, 8), (1e-1, 2), (9, 1)]
MAX_BURST = 150_000_000


class Pie:
    def __init__(self, params):
        self.params, self.queue, self.bytes = params, deque(), 0
        self.target = params["target"] / 1e9
        self.p = self.delay = self.old = 0.0
        self.burst, self.draws = MAX_BURST, random.Random(1)  # noqa: S311 - a repeatable queue

    def enqueue(self, now, packet):
        if len(self.queue) >= self.params["limit"]:
            return {"dropped": [packet["id"]]}
        if self.p == 0 and self.delay < self.target / 2 and self.old < self.target / 2:
            self.burst = MAX_BURST
        if self.burst == 0 and self.drop_early():
            if self.params["ecn"] and packet["ecn"] and self.p < 0.1:
                self.accept(packet)
                return {"marked": [packet["id"]], "p": self.p}
            return {"dropped": [packet["id"]], "p": self.p}
        self.accept(packet)
        return {"p": self.p}

    def accept(self, packet):
        self.queue.append(packet)
        self.bytes += packet["size"]

    def drop_early(self):
        if self.old < self.target / 2 and self.p < 0.2:
            return False
        if self.bytes <= 2 * self.params["mtu"]:
            return False
        return self.draws.random() < self.p

    def dequeue(self, now, _):
        if not self.queue:
            return {"id": None, "p": self.p}
        packet = self.queue.popleft()
        self.bytes -= packet["size"]
        self.delay = (now - packet["t"]) / 1e9
        return {"id": packet["id"], "p": self.p}

    def update(self, now, _):
        step = 0.125 * (self.delay - self.target) + 1.25 * (self.delay - self.old)
        step /= next(divisor for below, divisor in STEPS if self.p < below)
        self.p += step
        if self.delay == 0 and self.old == 0:
            self.p *= 0.98
        self.p = min(1.0, max(0.0, self.p))
        self.old = self.delay
        self.burst = max(0, self.burst - self.params["update"])
        return {"p": self.p}


if __name__ == "__main__":
    serve(Pie)
