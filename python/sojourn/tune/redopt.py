"""REDopt: RED parameters for a known link, round-trip times and number of TCP flows.

The comparison of tail drop and RED (ISCC 2001) calls a setting *REDopt* if the
average queue converges to the middle of the two thresholds with small oscillation. The model that
its authors used (IWQoS 2001) could not be read. What is taken from the papers: ``max_p`` is twice
the estimated drop probability, times 1.1 where unresponsive traffic shares the link; thresholds and
buffer grow with the number of flows and stand in the proportion 3 : 13 : 20. The drop probability
is the inversion of the PFTK formula (Padhye et al. 1998). The width of the ramp and the averaging
weight are our *reconstruction*, to be accepted or rejected by simulation: see
:mod:`sojourn.tune.verify`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

#: Fraction of the average's weight left to samples older than one TCP cycle (Firoiu and Borden
#: 2000).
WEIGHT_OF_OLDER_SAMPLES = 0.1
#: The paper's factor on ``max_p`` where a tenth of the traffic does not respond.
UNRESPONSIVE_FACTOR = 1.1
#: min : max : buffer, in widths of the ramp (3/20, 13/20 and 1 of the buffer).
MIN_SHARE, MAX_SHARE, BUFFER_SHARE = 0.3, 1.3, 2.0
#: REDstd's averaging weight, RED's usual recommendation.
STANDARD_WEIGHT = 0.002
#: The largest averaging weight. REDopt's is smaller than REDstd's (the paper, section 5); how much
#: is lost, so this departs little from it.
LARGEST_WEIGHT = STANDARD_WEIGHT / 2
#: Below this the average remembers more than any run shows.
SMALLEST_WEIGHT = 1e-6


@dataclass(frozen=True)
class Link:
    """The bottleneck and who uses it.

    Attributes:
        rate: capacity in bit/s.
        rtts: base round-trip times in seconds; flows spread evenly over them.
        flows: number of TCP flows (a mean, if they come and go).
        packet: length of a full TCP frame in bytes.
        unresponsive: rate of unresponsive traffic in bit/s.
        segments_per_ack: 1 without, 2 with delayed acknowledgements (PFTK's *b*).
        min_rto: the senders' least retransmission timeout in seconds.
    """

    rate: float
    rtts: tuple[float, ...]
    flows: float
    packet: int = 1514
    unresponsive: float = 0.0
    segments_per_ack: int = 2
    min_rto: float = 0.2

    def __post_init__(self) -> None:
        """Refuse what has no meaning, naming the field."""
        checks: Sequence[tuple[str, bool, str]] = (
            ("rate", 0 < self.rate < 1e15, "a rate above zero, in bit/s"),
            (
                "rtts",
                bool(self.rtts) and all(0 < r < 100 for r in self.rtts),
                "times in (0, 100) s",
            ),
            ("flows", 0 < self.flows <= 1e6, "a number of flows in (0, 1e6]"),
            ("packet", 64 <= self.packet <= 65535, "64 to 65535 bytes"),
            ("unresponsive", 0 <= self.unresponsive < self.rate, "less than the link's rate"),
            ("segments_per_ack", self.segments_per_ack in (1, 2), "1 or 2"),
            ("min_rto", 0 < self.min_rto <= 60, "a time in (0, 60] s"),
        )
        for field, good, wanted in checks:
            if not good:
                raise ValueError(f"{field}: found {getattr(self, field)!r}, expected {wanted}")


def plain(fraction: float) -> str:
    """A fraction as ``tc`` reads it: at least six digits, never an exponent."""
    digits = 6 - min(0, math.floor(math.log10(fraction)) + 1) if fraction > 0 else 1
    return f"{fraction:.{min(digits, 12)}f}".rstrip("0").rstrip(".")


@dataclass(frozen=True)
class RedParameters:
    """RED counting packets, and where the numbers come from.

    Attributes:
        minimum, maximum, limit: thresholds and buffer in packets.
        max_p: drop probability at the upper threshold.
        weight: averaging weight per arriving packet.
        drop_probability: the estimate that ``max_p`` is made from.
        equilibrium: the average queue aimed at, in packets.
        kappa: factor on the ramp's width that verification settled on; 1 to start.
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
        """The queue as one writes it in a scenario."""
        text = (
            f"red unit packets limit {self.limit} min {self.minimum} max {self.maximum} "
            f"probability {plain(self.max_p)} weight {plain(self.weight)}"
        )
        return f"{text} {extra}".strip()


def pftk_rate(p: float, rtt: float, rto: float, b: int) -> float:
    """Packets per second of one flow at loss-event rate ``p`` (Padhye et al. 1998, equation 32)."""
    in_recovery = rtt * math.sqrt(2 * b * p / 3)
    in_timeout = rto * min(1.0, 3 * math.sqrt(3 * b * p / 8)) * p * (1 + 32 * p * p)
    return 1 / (in_recovery + in_timeout)


def drop_probability(link: Link, queue: float) -> float:
    """The loss rate at which the flows together fill the link, with ``queue`` packets waiting.

    The PFTK rate falls with the loss rate, so bisection finds the one solution.
    """
    low, high = 1e-9, 1.0
    if flows_at(link, high, queue) < link.flows:
        return 1.0
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if flows_at(link, middle, queue) < link.flows else (low, middle)
    return math.sqrt(low * high)


def flows_at(link: Link, p: float, queue: float) -> float:
    """The number of flows that fill the link at loss rate ``p``, with ``queue`` packets waiting.

    The inverse of :func:`drop_probability`; the link's own number of flows has no part in it.
    """
    waiting = queue * link.packet * 8 / link.rate
    # What the unresponsive traffic leaves: it suffers the same loss as the others.
    left = (link.rate - link.unresponsive * (1 - p)) / (8 * link.packet)
    rates = [
        pftk_rate(p, rtt, max(link.min_rto, 2 * rtt), link.segments_per_ack)
        for rtt in (base + waiting for base in link.rtts)
    ]
    return left * len(rates) / sum(rates)


def averaging_weight(link: Link, p: float, queue: float, largest: float) -> float:
    """RED's weight, remembering one cycle of TCP's rate (Firoiu, Borden 2000), up to `largest`."""
    rate = (link.rate - link.unresponsive * (1 - p)) / (8 * link.packet)
    rtt = sum(link.rtts) / len(link.rtts) + queue * link.packet * 8 / link.rate
    peak_window = math.sqrt(8 / (3 * link.segments_per_ack * p))
    cycle = max(link.segments_per_ack * peak_window / 2 * rtt, rtt)
    weight = 1 - math.pow(WEIGHT_OF_OLDER_SAMPLES, 1 / (rate * cycle))
    return min(largest, max(SMALLEST_WEIGHT, weight))


def redopt(link: Link, kappa: float = 1.0, largest_weight: float = LARGEST_WEIGHT) -> RedParameters:
    """RED parameters from the model alone, not yet verified.

    The ramp's width *D* is a fixed point: it sets the queue, the queue the round-trip time and the
    loss, and these the width (the windows' growth over feedback delay and filter memory).
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
