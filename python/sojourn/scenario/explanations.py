"""Sentences that explain the results of a run's applications."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sojourn.scenario import responsiveness

APPS = (responsiveness,)
"""Modules with the sentences of one application each."""


def explanations(
    metrics: Mapping[str, float], waits: Callable[[], Mapping[str, float]]
) -> list[str]:
    """Returns sentences on the results of each group whose application has an explanation.

    `metrics` are the run's metrics by name; `waits` returns the mean queueing delay of each link in
    seconds.
    """
    return [
        app.explained(group, metrics, waits()) for app in APPS for group in app.groups_of(metrics)
    ]
