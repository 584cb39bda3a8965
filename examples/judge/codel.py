"""CoDel after RFC 8289: `sojourn judge --discipline codel -- python codel.py` judges it."""

import json
import sys
from collections import deque
from math import sqrt


class Codel:
    def __init__(self, params):
        self.params, self.queue, self.bytes = params, deque(), 0
        self.first_above = self.drop_next = self.count = self.last = 0
        self.dropping = False

    def enqueue(self, now, packet):
        if len(self.queue) >= self.params["limit"]:
            return {"dropped": [packet["id"]]}
        self.queue.append(packet)
        self.bytes += packet["size"]
        return {}

    def take(self, now):
        packet = self.queue.popleft() if self.queue else None
        self.bytes -= packet["size"] if packet else 0
        if packet is None or now - packet["t"] < self.params["target"] or self.low():
            self.first_above = 0
        elif self.first_above == 0:
            self.first_above = now + self.params["interval"]
        return packet, 0 < self.first_above <= now

    def low(self):
        return self.bytes <= self.params["mtu"]

    def law(self, time):
        return time + self.params["interval"] / sqrt(self.count)

    def dequeue(self, now, _):
        packet, late = self.take(now)
        answer = {"dropped": [], "marked": []}
        entering = late and not self.dropping
        if entering:
            recent = now - self.drop_next < 16 * self.params["interval"]
            self.last = self.count = max(1, recent and self.count - self.last)
            self.drop_next = self.law(now)
        self.dropping = late
        while self.dropping and (entering or now >= self.drop_next):
            self.count += not entering
            marks = self.params["ecn"] and packet["ecn"]
            answer["marked" if marks else "dropped"].append(packet["id"])
            if not marks:
                packet, still = self.take(now)
                self.dropping = still or entering
            if self.dropping and not entering:
                self.drop_next = self.law(self.drop_next)
            if marks or entering:
                break
        return {"id": packet and packet["id"], **answer}


def serve(make):
    for line in map(json.loads, sys.stdin):
        if "judge" in line:
            queue, answer = make(line["params"]), {}
        else:
            answer = getattr(queue, line["op"])(line["t"], line)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve(Codel)
