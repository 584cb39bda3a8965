"""REDopt: RED parameters for a known link, round-trip times and number of TCP flows.

The comparison of tail drop and RED (ISCC 2001) calls a setting *REDopt* if the average queue
converges to the middle between the two thresholds with small oscillation. The model of its authors
(IWQoS 2001) is not available. From the papers: ``max_p`` is twice the estimated drop probability,
and 1.1 times that if unresponsive traffic shares the link. Thresholds and buffer are 3 : 13 : 20.
They grow with the number of flows; by the paper directly proportionally, here less. The drop
probability is the inverse of the PFTK formula (Padhye et al. 1998). The width of the ramp and the
averaging weight are our *reconstruction*. A simulation accepts them or rejects them, and replaces
``max_p`` by the value that puts the average in the middle: see :mod:`sojourn.tune.verify`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from sojourn.arguments import checked
from sojourn.settings import Bytes, Option, Seconds, SettingError, settings

#: Share of the average's weight that samples older than one TCP cycle have (Firoiu and Borden
#: 2000).
WEIGHT_OF_OLDER_SAMPLES = 0.1
#: Factor of ``max_p`` if unresponsive traffic shares the link.
UNRESPONSIVE_FACTOR = 1.1
#: Thresholds and buffer divided by the width of the ramp. The thresholds are 3/20 and 13/20 of the
#: buffer.
MIN_SHARE, MAX_SHARE, BUFFER_SHARE = 0.3, 1.3, 2.0
#: Averaging weight of REDstd, which is the usual recommendation for RED.
STANDARD_WEIGHT = 0.002
#: Largest averaging weight of REDopt. By the ISCC paper it is smaller than REDstd's, by an
#: unknown factor, so a small factor is chosen.
LARGEST_WEIGHT = STANDARD_WEIGHT / 2
#: Smallest averaging weight, with which the average covers about a million packets.
SMALLEST_WEIGHT = 1e-6


@settings
class Link:
    """The bottleneck link and its traffic, as input of the model."""

    rate: Annotated[float, Option("RATE", unit="rate", min=1, max=1e15)]
    """Rate of the bottleneck, for example 10mbit."""
    rtts: Annotated[tuple[float, ...], Option("TIME", flag="--rtt", unit="time", min=1e-6, max=100)]
    """Base round-trip time of the flows, which are divided equally between the times. Repeat for
    several.
    """
    flows: Annotated[float, Option(min=0.01, max=1e6)]
    """Average number of TCP flows."""
    packet: Annotated[Bytes, Option(min=64, max=65_535)] = 1514
    """Size of a full TCP frame on the link."""
    unresponsive: Annotated[float, Option("RATE", flag="--udp", unit="rate", min=0)] = 0.0
    """Rate of unresponsive traffic (UDP). By default none."""
    segments_per_ack: Annotated[int, Option(command=False, min=1, max=2)] = 2
    """1 without, 2 with delayed acknowledgements (*b* in the PFTK formula)."""
    min_rto: Annotated[Seconds, Option(command=False, min=1e-3, max=60)] = 0.2
    """Minimum retransmission timeout of the senders."""

    def __post_init__(self) -> None:
        if not self.rtts:
            raise SettingError("rtts", "must have at least one time")
        if self.unresponsive >= self.rate:
            why = f"less than the link's rate, {self.rate:g} bit/s; found {self.unresponsive:g}"
            raise SettingError("unresponsive", f"must be {why}")


def plain(fraction: float) -> str:
    """Returns a number from 0 to 1 for ``tc``: up to six significant digits, no exponent."""
    digits = 6 - min(0, math.floor(math.log10(fraction)) + 1) if fraction > 0 else 1
    return f"{fraction:.{min(digits, 12)}f}".rstrip("0").rstrip(".")


@dataclass(frozen=True)
class RedParameters:
    """Parameters of RED in packets, and the estimates from which they follow.

    Attributes:
        minimum, maximum, limit: thresholds and buffer in packets.
        max_p: drop probability at the upper threshold.
        weight: averaging weight for each arriving packet.
        drop_probability: estimated drop probability, from which ``max_p`` follows.
        equilibrium: intended average queue in packets.
        kappa: factor of the ramp's width that the verification found; 1 without verification.
    """

    minimum: int
    maximum: int
    limit: int
    max_p: float
    weight: float
    drop_probability: float
    equilibrium: float
    kappa: float = 1.0

    def queue(self, extra: str = "") -> str:
        """Returns the queue as words of a scenario, followed by the words `extra`."""
        text = (
            f"red unit packets limit {self.limit} min {self.minimum} max {self.maximum} "
            f"probability {plain(self.max_p)} weight {plain(self.weight)}"
        )
        return f"{text} {extra}".strip()


def pftk_rate(p: float, rtt: float, rto: float, b: int) -> float:
    """Returns the packets per second of a flow at loss-event rate ``p``.

    The formula is equation 32 of Padhye et al. (1998). `rtt` and `rto` are in seconds, and `b` is
    the number of segments for each ACK.
    """
    in_recovery = rtt * math.sqrt(2 * b * p / 3)
    in_timeout = rto * min(1.0, 3 * math.sqrt(3 * b * p / 8)) * p * (1 + 32 * p * p)
    return 1 / (in_recovery + in_timeout)


def drop_probability(link: Link, queue: float) -> float:
    """Returns the loss rate at which TCP flows and unresponsive traffic together fill the link.

    ``queue`` is the mean queue in packets. The PFTK rate decreases as the loss rate increases, so
    bisection finds the only solution.
    """
    low, high = 1e-9, 1.0
    if flows_at(link, high, queue) < link.flows:
        return 1.0
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if flows_at(link, middle, queue) < link.flows else (low, middle)
    return math.sqrt(low * high)


def flows_at(link: Link, p: float, queue: float) -> float:
    """Returns the number of flows that fill the link at loss rate ``p``.

    ``queue`` is the mean queue in packets. This is the inverse of :func:`drop_probability`; it does
    not use the number of flows of `link`.
    """
    waiting = queue * link.packet * 8 / link.rate
    # Rate for TCP: the unresponsive traffic has the same loss rate as TCP.
    left = (link.rate - link.unresponsive * (1 - p)) / (8 * link.packet)
    rates = [
        pftk_rate(p, rtt, max(link.min_rto, 2 * rtt), link.segments_per_ack)
        for rtt in (base + waiting for base in link.rtts)
    ]
    return left * len(rates) / sum(rates)


def averaging_weight(link: Link, p: float, queue: float, largest: float) -> float:
    """Returns the averaging weight with which RED's average covers one cycle of TCP's rate.

    The weight is at most `largest`. The rule is by Firoiu and Borden (2000). ``p`` is the loss rate
    and ``queue`` the mean queue in packets.
    """
    rate = (link.rate - link.unresponsive * (1 - p)) / (8 * link.packet)
    rtt = sum(link.rtts) / len(link.rtts) + queue * link.packet * 8 / link.rate
    peak_window = math.sqrt(8 / (3 * link.segments_per_ack * p))
    cycle = max(link.segments_per_ack * peak_window / 2 * rtt, rtt)
    weight = 1 - math.pow(WEIGHT_OF_OLDER_SAMPLES, 1 / (rate * cycle))
    return min(largest, max(SMALLEST_WEIGHT, weight))


@checked
def redopt(link: Link, kappa: float = 1.0, largest_weight: float = LARGEST_WEIGHT) -> RedParameters:
    """Returns RED parameters from the model, without verification by simulation.

    The width of the ramp is a fixed point. It determines the queue, which determines the round-trip
    time and the loss. These determine the width, which is the growth of all windows in the feedback
    delay and in the time that the average covers. `kappa` is a factor of the width.
    """
    width = max(20.0, 2.0 * link.flows)
    p = weight = 0.0
    middle = (MIN_SHARE + MAX_SHARE) / 2
    for _ in range(200):
        queue = middle * width
        p = drop_probability(link, queue)
        weight = averaging_weight(link, p, queue, largest_weight)
        rate = (link.rate - link.unresponsive * (1 - p)) / (8 * link.packet)
        rtt = sum(link.rtts) / len(link.rtts) + queue * link.packet * 8 / link.rate
        wanted = kappa * link.flows * (1 + 1 / (weight * rate * rtt)) / link.segments_per_ack
        wanted = max(wanted, 10.0)
        if abs(wanted - width) < 1e-6 * width:
            break
        width = math.sqrt(width * wanted)
    factor = UNRESPONSIVE_FACTOR if link.unresponsive else 1.0
    return RedParameters(
        minimum=round(MIN_SHARE * width),
        maximum=round(MAX_SHARE * width),
        limit=round(BUFFER_SHARE * width),
        max_p=min(1.0, factor * 2 * p),
        weight=weight,
        drop_probability=p,
        equilibrium=middle * width,
        kappa=kappa,
    )
