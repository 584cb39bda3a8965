"""Readings of the paper: the assumptions on what it leaves open.

`claims.toml` declares the readings other than the main one by the assumptions that differ. The page
lists their verdicts next to those of the main reading, which they do not replace. A reading with
other numbers of Web sessions is of equal rank.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from sojourn.papers.taildrop import scenarios
from sojourn.papers.taildrop.claims import DECLARED
from sojourn.papers.taildrop.mechanisms import MECHANISMS, REDOPT, Spacing, lighter, queues
from sojourn.scenario import Scenario
from sojourn.stats.cells import Level
from sojourn.tune.redopt import (
    BUFFER_SHARE,
    MAX_SHARE,
    MIN_SHARE,
    STANDARD_WEIGHT,
    Link,
    RedParameters,
)
from sojourn.tune.redopt import redopt as modelled

#: Loads of bulk traffic in alternative readings: those of the claims on single loads.
FLOWS = (16, 32, 128, 256)
#: The path's capacity in packets, as the paper states it.
CAPACITY = 300

_MAIN: Mapping[str, Level] = {
    "framing": "Ethernet",
    "timestamps": "yes",
    "unit": "packets",
    # The paper measured bulk traffic with dummynet, and simulated Web traffic with ns-2.
    "spacing": "of the paper's part",
    "buffers": "model",
    # By section 5, REDopt's weight is smaller than REDstd's by an unknown factor.
    "weight": 2,
    "max_p": "verified",
    "sessions": 1.0,
}
"""Assumptions of the main reading.

`weight` is the number by which REDstd's weight is divided to limit REDopt's. `sessions` is the
number of Web sessions for each session of the paper. In the paper, REDopt's `max_p` indicates the
load and grows most from 1200 to 1400 sessions (by a factor of 16.7). Here it grows most from 840 to
980 sessions (by 1.5).
"""


@cache
def sized(path: Link, limit: float) -> RedParameters:
    """Returns REDopt's model with the width of the ramp that gives the buffer `limit`."""
    low, high = 0.01, 100.0
    while high > low * 1.001:
        middle = math.sqrt(low * high)
        small = modelled(path, middle, STANDARD_WEIGHT).limit < limit
        low, high = (middle, high) if small else (low, middle)
    return modelled(path, high, STANDARD_WEIGHT)


def limited(redopt: RedParameters, limit: float) -> RedParameters:
    """Returns the parameters with a buffer of `limit` packets and its shares as thresholds."""
    return replace(
        redopt,
        minimum=round(MIN_SHARE / BUFFER_SHARE * limit),
        maximum=round(MAX_SHARE / BUFFER_SHARE * limit),
        limit=round(limit),
    )


@dataclass(frozen=True)
class Variant:
    """A reading of the paper; its name begins with the kind of traffic that it concerns."""

    name: str
    assumes: Mapping[str, Level] = field(default_factory=dict)
    """The assumptions that differ from the main reading."""

    def of(self, key: str) -> Level:
        """Returns an assumption."""
        return self.assumes.get(key, _MAIN[key])

    @property
    def bulk(self) -> bool:
        """Returns whether the reading is of bulk traffic."""
        return self.name.startswith("bulk")

    @property
    def part(self) -> str:
        """Returns the name of the part of the study with the runs of this reading."""
        words = self.name.lower().replace(",", "").replace("/", "-").replace(" ", "-")
        return f"variants/{words}"

    @property
    def equal_rank(self) -> bool:
        """Returns whether the reading is as good as the main one."""
        return "sessions" in self.assumes

    @property
    def scale(self) -> float:
        """Returns the number of Web sessions for each session of the paper."""
        return float(self.of("sessions"))

    @property
    def differing(self) -> tuple[str, ...]:
        """Returns the mechanisms whose runs differ from those of the main reading."""
        own = self.assumes and {*self.assumes} <= {"weight", "max_p"}
        return (REDOPT,) if own else MECHANISMS

    @property
    def spacing(self) -> Spacing:
        """Returns the spacing of early drops."""
        return "dummynet" if self.bulk and self.of("spacing") != "ns-2" else "ns-2"

    def redopt(self, path: Link, found: RedParameters) -> RedParameters:
        """Returns REDopt's parameters in this reading.

        `path` is the link with the load, and `found` has the verified parameters. For other buffers
        `max_p` is the model's, with the correction of the verified one.
        """
        model = modelled(path, found.kappa, STANDARD_WEIGHT)
        correction = found.max_p / model.max_p if self.of("max_p") == "verified" else 1.0
        match self.of("buffers"):
            case "half":
                model = limited(model, model.limit / 2)
            case "300":
                model = limited(model, CAPACITY)
            case str() as anchor if anchor.isdigit():
                one = replace(path, flows=float(anchor))
                model = sized(path, modelled(one).limit * path.flows / one.flows)
        model = replace(model, max_p=min(1.0, model.max_p * correction))
        return lighter(model, int(self.of("weight")))

    def queues(self, redopt: RedParameters) -> dict[str, str]:
        """Returns the mechanisms' queues for REDopt's parameters in this reading."""
        return queues(redopt, self.spacing, str(self.of("unit")))

    def scenario(self, load: int, seconds: float, warmup: float) -> Scenario:
        """Returns the scenario of a load of the paper; times are in seconds."""
        if not self.bulk:
            return scenarios.web(round(load * self.scale), seconds, warmup)
        tcp = scenarios.LINUX_TCP if self.of("timestamps") == "yes" else scenarios.TCP
        made = scenarios.bulk(load, seconds, warmup, tcp=tcp)
        return made if self.of("framing") == "Ethernet" else made.replace({"topology.overhead": 0})


BULK, WEB = Variant("bulk"), Variant("Web")
"""The main reading of bulk traffic and of Web traffic."""
VARIANTS = tuple(Variant(one.name, one.assumes) for one in DECLARED.readings.values())
"""All other readings."""
