"""REDopt on-line: RED that estimates the number of flows and adapts its parameters to it.

This queue extends REDopt, which is RED with parameters for a known number of TCP flows (ISCC
2001). It estimates this number from its loss rate and its mean queue, by the inverse of the formula
for REDopt's drop probability. Its parameters are those of :func:`sojourn.tune.redopt.redopt` for
the estimate, in steps of 10 %. `examples/papers/redopt_online.py` is a study of this queue.

The gaps between early drops are uniform from 1 to 2/p - 1. Their mean is 1/p, so the share of
dropped packets is the probability p of the ramp, as REDopt's ``max_p`` assumes. RED's own spacing
drops twice as many packets.

Invariants: there is no early drop below the lower threshold. Every arrival is dropped if the
average is at or above the upper threshold or the buffer of the parameters is full. The parameters
change only when the timer fires.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import sojourn
from sojourn.tune.redopt import Link, flows_at, redopt

PERIOD = 1.0
"""Seconds between two estimates."""
STEP = 1.1
"""Ratio of consecutive numbers of flows for which parameters are computed."""


@sojourn.queue(
    "redopt_online",
    period=f"{PERIOD:g}s",
    rate="10mbit",
    rtt="150ms",
    unresponsive="0%",
    packet="1514b",
    memory="10s",
    flows=16,
    limit="5000p",
)
class RedoptOnline:
    """RED that estimates the number of flows from its losses and adapts its parameters to it."""

    def __init__(self, params: Any, draws: Any) -> None:
        """Sets the parameters for the number of flows `params.flows`."""
        self.p, self.draws = params, draws
        self.link = Link(
            rate=params.rate,
            rtts=(params.rtt / 1e9,),
            flows=params.flows,
            packet=params.packet,
            unresponsive=params.unresponsive * params.rate,
        )
        self.average, self.idle_since = 0.0, 0
        self.since_drop, self.draw = 0, 0.0
        self.arrivals = self.drops = self.carried = self.seen = self.seconds = 0.0
        self.step, self.red = 0, redopt(self.link)
        self._set(params.flows)

    def _set(self, flows: float) -> None:
        step = round(math.log(flows) / math.log(STEP))
        if step != self.step:
            self.step = step
            self.red = redopt(replace(self.link, flows=STEP**step))

    def enqueue(self, now: int, packet: Any, queue: Any) -> Any:
        """Decides as RED (Floyd and Jacobson 1993), with the gaps that the module describes."""
        backlog, weight = len(queue), self.red.weight
        if self.idle_since:
            # The average decays as if packets had met an empty queue during the idle time.
            packets = (now - self.idle_since) * self.p.rate / (8e9 * self.p.packet)
            self.average *= (1 - weight) ** packets
            self.idle_since = 0
        self.average += weight * (backlog - self.average)
        self.arrivals += 1
        self.seen += backlog
        if self._accepts(backlog):
            return sojourn.ACCEPT
        self.drops += 1
        return sojourn.DROP

    def _accepts(self, backlog: int) -> bool:
        low, high = self.red.minimum, self.red.maximum
        if backlog >= self.red.limit or self.average >= high:
            return False
        if self.average < low:
            self.since_drop = 0
            return True
        probability = self.red.max_p * (self.average - low) / (high - low)
        if self.since_drop == 0:
            self.draw = self.draws.uniform()
        self.since_drop += 1
        if self.since_drop * probability < probability + 2 * self.draw * (1 - probability):
            return True
        self.since_drop = 0
        return False

    def dequeue(self, now: int, queue: Any) -> Any:
        """Removes the oldest packet."""
        packet = queue.pop()
        if packet is None:
            self.idle_since = self.idle_since or now
        else:
            self.carried += packet.bytes
        return packet

    def on_timer(self, now: int, queue: Any) -> None:
        """Estimates the number of flows and sets the parameters for it."""
        self.seconds += PERIOD
        if self.arrivals and self.carried:
            # Without losses, half a loss is assumed.
            loss = max(self.drops, 0.5) / self.arrivals
            rate = min(8 * self.carried / self.seconds, self.p.rate)
            if rate > self.link.unresponsive:
                link = replace(self.link, rate=rate)
                waiting = self.seen / self.arrivals * rate / self.p.rate
                self._set(min(max(flows_at(link, loss, waiting), 1.0), 1e6))
        forgetting = math.exp(-1e9 * PERIOD / self.p.memory)
        for name in ("arrivals", "drops", "carried", "seen", "seconds"):
            setattr(self, name, getattr(self, name) * forgetting)

    def state(self) -> dict[str, int]:
        """Returns the estimated number of flows and the parameters.

        `max_p` and `average` are in millionths.
        """
        return {
            "flows": round(STEP**self.step),
            "min": self.red.minimum,
            "max": self.red.maximum,
            "limit": self.red.limit,
            "max_p": round(1e6 * self.red.max_p),
            "average": round(1e6 * self.average),
        }
