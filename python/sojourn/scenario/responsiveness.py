"""Sentences that explain the result of a responsiveness test."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

CONFIDENCE = {1: "low", 2: "medium", 3: "high"}
SIGN = ".responsiveness_08"
"""Suffix of the column with a test's result; the name of the test's group precedes the suffix."""
NAMED = 0.05
"""Smallest share of the added delay at which a link's queue is named."""


def groups_of(metrics: Iterable[str]) -> list[str]:
    """Returns the groups that are responsiveness tests, from the names of a run's metrics."""
    return [name.removesuffix(SIGN) for name in metrics if name.endswith(SIGN)]


def explained(group: str, metrics: Mapping[str, float], waits: Mapping[str, float]) -> str:
    """Returns sentences on the result of the test `group`.

    `metrics` are the run's metrics by name; `waits` is the mean queueing delay of each link in
    seconds.
    """
    trips = float(metrics[group + SIGN])
    if not math.isfinite(trips):
        return (
            f"{group}: no result: the test was too short, a load-generating connection broke, or "
            "no probe was answered."
        )
    added = float(metrics[f"{group}.probe_added"])
    confidence = CONFIDENCE[int(metrics[f"{group}.responsiveness_08_confidence"])]
    text = (
        f"{group}: responsiveness {trips:.0f} round trips per minute ({confidence} confidence): a "
        f"round trip takes {_ms(60 / trips)} under load"
    )
    if not math.isfinite(added):
        return f"{text}. No probe was answered before the load began."
    text += f", and {_ms(60 / trips - added)} without load"
    worst = sorted(waits.items(), key=lambda one: -one[1])[:2]
    named = [
        f"{_ms(wait)} at `{link}`"
        for link, wait in worst
        if math.isfinite(wait) and added > 0 and wait >= NAMED * added and wait >= 0.0005
    ]
    if not named:
        return f"{text}. No queue on the path adds much delay."
    return f"{text}. The load adds {_ms(added)}; mean queueing delay: {', '.join(named)}."


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms"
