"""Settings against retransmission timeouts in the tail of a store's latencies, by simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import Literal

from sojourn.plan.queries import the_store
from sojourn.stats import Interval, gaps, mean_of_runs
from sojourn.tune.advise_store import ALPHA, EQUIVALENT, Advice, logs, ratio, runs_of, values
from sojourn.tune.settings import Asked

SPECULATIVE = "95p"
"""Proposed time of speculative reads: one in twenty reads is sent again."""
LOCAL_RTO = "50ms"
"""Proposed least retransmission timeout of TCP: above the 40 ms of delayed acknowledgements."""


@dataclass(frozen=True)
class Remedy:
    """A setting that shortens the tail of a store's latencies."""

    key: Literal["store.tcp", "store.speculative"]
    """Key of the scenario."""
    value: str
    """Value of the key."""
    p99: Interval
    """99th percentile of the latency in seconds with this setting."""
    ratio: Interval
    """This percentile divided by that without the setting."""

    @property
    def helps(self) -> bool:
        """Returns whether the percentile is certainly lower by a tenth at least."""
        return self.ratio.high < 1 / EQUIVALENT

    def __str__(self) -> str:
        if self.key == "store.tcp":
            return f"`ip route change ... rto_min {LOCAL_RTO}` on the nodes ({self.value})"
        return f"`speculative_retry = '{self.value}'`"


def remedies(
    advice: Advice,
    asked: Asked,
    workers: int | None = None,
    report: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[Remedy]:
    """Simulates the recommended candidate with settings against retransmission timeouts.

    The settings are a lower least timeout of TCP, and speculative reads, if the scenario has none.
    The list is empty if the 99th percentile of the latency is less than TCP's least timeout, or if
    it is less than twice the mean, since timeouts are then not its cause.
    """
    scenario, take = advice.scenario, advice.take
    store = None if scenario is None else scenario.model.store
    if scenario is None or store is None:
        return []
    p99, mean = (take.latency[m].estimate for m in ("p99", "mean"))
    if p99 < the_store(scenario.plan).tcp.min_rto / 1e9 or p99 < 2 * mean:
        return []
    changes: list[tuple[Literal["store.tcp", "store.speculative"], str]] = []
    if "min_rto" not in store.tcp:
        changes.append(("store.tcp", f"{store.tcp} min_rto {LOCAL_RTO}"))
    if store.speculative == "none" and advice.reads > 0:
        changes.append(("store.speculative", SPECULATIVE))
    if not changes:
        return []
    made = [scenario, *(scenario.replace({key: value}) for key, value in changes)]
    plain, *runs = runs_of(made, range(1, asked.seeds + 1), workers, report)
    found = []
    for (key, value), changed in zip(changes, runs, strict=True):
        pair = (logs(changed, "p99"), logs(plain, "p99"))
        [gap] = gaps([pair], lambda _: log(EQUIVALENT), ALPHA)
        p99_of = mean_of_runs(values(changed, "p99"))
        found.append(Remedy(key, value, p99_of, ratio(gap)))
    return found
