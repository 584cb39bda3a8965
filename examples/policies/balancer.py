"""A balancing policy that learns from latencies: Peak EWMA, as in Finagle and tower.

The policy averages the latencies of each server; older latencies have less weight. A latency above
the average replaces the average at once. The cost of a server is its average latency times the
number of requests that it would have with the new one, divided by its weight. The flow goes to the
server with the least cost.
Among up to 16 servers, Sojourn's own `peak-ewma` with d 16 makes the same choices.
"""

import math

import sojourn


@sojourn.balancer("peak", look="latency", decay="10s", default="1s")
class Peak:
    """Chooses the server with the least cost, from average latency, open requests and weight."""

    def __init__(self, params, draws):
        self.decay, self.default, self.draws = params.decay, params.default, draws
        self.latency = {}  # server: (time of the last answer, average latency), in nanoseconds

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
        """Returns the weight at `now` of an average from the time `at`."""
        return math.exp(-(max(0, now - at) / self.decay))
