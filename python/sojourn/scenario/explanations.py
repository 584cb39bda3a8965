"""Sentences that explain a run: what limited it, and the results of its applications."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sojourn import _core
from sojourn.scenario import responsiveness

APPS = (responsiveness,)
"""Modules with the sentences of one application each."""


def explanations(
    plan_json: str, metrics: Mapping[str, float], waits: Callable[[], Mapping[str, float]]
) -> list[str]:
    """Returns sentences on what limited a run, and on the results of its applications.

    `metrics` are the run's metrics by name; `waits` returns the mean queueing delay of each link in
    seconds.
    """
    found = [text for _, _, text in _core.causes(plan_json, numbers(metrics))]
    return found + [
        app.explained(group, metrics, waits()) for app in APPS for group in app.groups_of(metrics)
    ]


def numbers(metrics: Mapping[str, object]) -> dict[str, float]:
    """Returns the metrics that are numbers."""
    return {k: float(v) for k, v in metrics.items() if isinstance(v, (int, float))}
