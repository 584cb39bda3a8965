"""FQ-CoDel after RFC 8290, on `codel.py`; the flows have the labels of the judge."""

from collections import OrderedDict

from codel import Codel, serve


class FqCodel:
    def __init__(self, params):
        self.params, self.flows, self.credits = params, {}, {}
        self.new, self.old = OrderedDict(), OrderedDict()

    def enqueue(self, _, packet):
        name = packet["flow"]
        flow = self.flows.setdefault(name, Flow(self))
        flow.queue.append(packet)
        flow.bytes += packet["size"]
        if name not in self.new and name not in self.old:
            self.new[name] = True
            self.credits[name] = self.params["quantum"]
        packets = sum(len(flow.queue) for flow in self.flows.values())
        if packets <= self.params["limit"]:
            return {}
        fattest = max(self.flows.values(), key=lambda flow: flow.bytes)
        batch = min(64, max(1, len(fattest.queue) // 2))
        dropped = [fattest.queue.popleft() for _ in range(batch)]
        fattest.bytes -= sum(packet["size"] for packet in dropped)
        return {"dropped": [packet["id"] for packet in dropped]}

    def dequeue(self, now, _):
        signals = {"dropped": [], "marked": []}
        while self.new or self.old:
            active = self.new or self.old
            name = next(iter(active))
            if self.credits[name] < 0:
                self.credits[name] += self.params["quantum"]
                del active[name]
                self.old[name] = True
                continue
            found = self.flows[name].dequeue(now, None)
            for key in signals:
                signals[key] += found[key]
            if found["id"] is not None:
                self.credits[name] -= self.flows[name].sent
                return {"id": found["id"], **signals}
            was_new = active is self.new
            del active[name]
            if was_new:
                self.old[name] = True
        return {"id": None, **signals}


class Flow(Codel):
    def __init__(self, parent):
        super().__init__(parent.params)
        self.parent = parent

    def low(self):
        total = sum(flow.bytes for flow in self.parent.flows.values())
        return total <= self.params["mtu"]

    def take(self, now):
        found = super().take(now)
        self.sent = found[0]["size"] if found[0] else 0
        return found


if __name__ == "__main__":
    serve(FqCodel)
