"""A balancer that learns from requests: the server that would answer first gets the flow.

Peak EWMA after Finagle and tower: latencies are averaged with a decay in time, but a higher one
counts at once, and a server's cost is its latency times the requests that it would then have.
Sojourn's own `peak-ewma` with d 16 decides alike.
"""

import math

import sojourn


@sojourn.balancer("peak", look="latency", decay="10s", default="1s")
class Peak:
    """The server with the least latency times open requests."""

    def __init__(self, params, draws):
        self.decay, self.default, self.draws = params.decay, params.default, draws
        self.latency = {}  # of each server: time of the last answer, average

    def choose(self, now, flow, servers):
        costs = [(self.cost(now, server), server) for server in servers if server.up]
        least = min((cost for cost, _ in costs), default=None)
        best = [server for cost, server in costs if cost == least]
        if not best:
            return None
        return best[self.draws.below(len(best))] if len(best) > 1 else best[0]

    def finished(self, now, server, latency, servers):
        if latency is None:
            return
        at, average = self.latency.get(server, (now, 0.0))
        if latency <= average:
            weight = self.weight(now, at)
            latency = average * weight + latency * (1.0 - weight)
        self.latency[server] = max(at, now), latency

    def cost(self, now, server):
        at, average = self.latency.get(server.index, (now, self.default))
        return average * self.weight(now, at) * (server.open + 1.0) / server.weight

    def weight(self, now, at):
        """Returns the present weight of an average from the time `at`."""
        return math.exp(-(max(0, now - at) / self.decay))
