"""DualPI2 after RFC 9332, appendix A: an example for `sojourn judge`."""

import random
from collections import deque

from codel import serve


class DualPi2:
    def __init__(self, params):
        self.params, self.classic, self.l4s = params, deque(), deque()
        self.p = self.old = 0.0
        self.turns, self.draws = 0, random.Random(1)  # noqa: S311 - a repeatable queue

    def enqueue(self, now, packet):
        if len(self.classic) + len(self.l4s) >= self.params["limit"]:
            return {"dropped": [packet["id"]]}
        queue = self.l4s if packet["ecn"] in (1, 3) else self.classic
        queue.append(packet)
        return {}

    def next_queue(self):
        if self.classic and self.l4s:
            self.turns = (self.turns + 1) % 10
            return self.classic if self.turns == 0 else self.l4s
        return self.l4s or self.classic

    def signal(self, queue, packet, now):
        likely = self.params["coupling"] * self.p
        if packet["ecn"] == 0 or likely > 1:
            if self.draws.random() < self.p**2:
                return "dropped"
        elif queue is self.classic:
            return "marked" if self.draws.random() < self.p**2 else None
        if queue is self.classic:
            return None
        wait, begin, end = now - packet["t"], self.params["ramp_min"], self.params["ramp_max"]
        ramp = min(1, max(0, (wait - begin) / (end - begin)))
        return "marked" if self.draws.random() < max(ramp, likely) else None

    def dequeue(self, now, _):
        answer = {"id": None, "dropped": [], "marked": []}
        while queue := self.next_queue():
            packet = queue.popleft()
            signal = self.signal(queue, packet, now)
            if signal:
                answer[signal].append(packet["id"])
            if signal != "dropped":
                return answer | {"id": packet["id"]}
        return answer

    def update(self, now, _):
        delay = (now - self.classic[0]["t"]) / 1e9 if self.classic else 0
        target = self.params["target"] / 1e9
        self.p += self.params["alpha"] * (delay - target) + self.params["beta"] * (delay - self.old)
        self.p = min(1.0, max(0.0, self.p))
        self.old = delay
        return {"p": self.p, "p_c": self.p**2, "p_cl": self.params["coupling"] * self.p}


if __name__ == "__main__":
    serve(DualPi2)
