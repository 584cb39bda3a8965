"""Where a finding does not reproduce: other readings of what the paper leaves open.

Each variant changes one thing of the bulk study that the paper does not say, and the same claims
are looked at again. These looks are exploratory: they suggest reasons and give no verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from sojourn.papers.taildrop import scenarios
from sojourn.papers.taildrop.mechanisms import DUMMYNET, NS2, queues
from sojourn.scenario import Scenario
from sojourn.tune.redopt import BUFFER_SHARE, MAX_SHARE, MIN_SHARE, RedParameters

#: Loads of the bulk variants: light, medium and heavy, as the claims need them.
FLOWS = (16, 32, 128, 256)
#: The path's capacity in packets, as the paper gives it.
CAPACITY = 300


def _half(redopt: RedParameters) -> RedParameters:
    return replace(
        redopt,
        minimum=round(redopt.minimum / 2),
        maximum=round(redopt.maximum / 2),
        limit=round(redopt.limit / 2),
    )


def _capacity(redopt: RedParameters) -> RedParameters:
    return replace(
        redopt,
        minimum=round(MIN_SHARE / BUFFER_SHARE * CAPACITY),
        maximum=round(MAX_SHARE / BUFFER_SHARE * CAPACITY),
        limit=CAPACITY,
    )


def _same(scenario: Scenario) -> Scenario:
    return scenario


@dataclass(frozen=True)
class Variant:
    """One other reading.

    Attributes:
        name: its name in tables.
        text: what is read otherwise, and why one might.
        queues: the mechanisms' queues.
        scenario: what is changed of the scenario besides.
        tcp: the transport, for bulk traffic.
        world: which of the two studies it belongs to.
    """

    name: str
    text: str
    queues: Callable[[RedParameters], Mapping[str, str]]
    scenario: Callable[[Scenario], Scenario] = _same
    tcp: str = scenarios.TCP
    world: Literal["bulk", "web"] = "bulk"

    @property
    def part(self) -> str:
        """The name of its part of the study."""
        return f"variants/{self.name.lower().replace(' ', '-').replace(',', '')}"


VARIANTS: tuple[Variant, ...] = (
    Variant(
        "bytes",
        "queues count bytes instead of packets, which favours the small UDP packets",
        lambda redopt: queues(redopt, DUMMYNET, "bytes"),
    ),
    Variant(
        "ns-2 spacing",
        "early drops wait as in ns-2: at the same max_p a third as many",
        lambda redopt: queues(redopt, NS2),
    ),
    Variant(
        "half buffers",
        "half of the reconstructed REDopt's buffer, thresholds in proportion",
        lambda redopt: queues(_half(redopt), DUMMYNET),
    ),
    Variant(
        "half buffers, ns-2 spacing",
        "half of the buffers and ns-2's spacing together",
        lambda redopt: queues(_half(redopt), NS2),
    ),
    Variant(
        "Ethernet framing",
        "24 bytes a frame for preamble, checksum and gap, and TCP timestamps, as on a cable",
        lambda redopt: queues(redopt, DUMMYNET),
        lambda scenario: scenario.replace({"topology.overhead": 24}),
        f"{scenarios.TCP} timestamps on",
    ),
    Variant(
        "Web, small buffers",
        "buffers of the path's capacity, 300 packets, at every load instead of growing with it",
        lambda redopt: queues(_capacity(redopt), NS2),
        world="web",
    ),
)
"""The readings tried."""
