"""Checks whether the fastest choice of a comparison of stores is safe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sojourn.plan.queries import store_in
from sojourn.plan.replication import SimplePlacement
from sojourn.plan.store import Store
from sojourn.stats.promises import Lack
from sojourn.stats.sites import Sites
from sojourn.study.metrics import store_of

if TYPE_CHECKING:
    from sojourn.scenario import Scenario
    from sojourn.study.cells import Level
    from sojourn.study.comparison import Comparison

SURVIVE = 1
"""Number of lost nodes that an acknowledged write should survive, as in `sojourn advise store`."""
DOWN = 1
"""Number of replicas that may be down while requests succeed, as in `sojourn advise store`."""


def sites_of(store: Store) -> Sites:
    """Returns the guarantees of a plan's store."""
    placement = store.placement
    levels = (store.write_level, store.read_level)
    if isinstance(placement, SimplePlacement):
        return Sites((placement.factor,), *levels, (0,))
    near = store.coordinator in ("dc-aware", "token-dc-aware")
    held = {site for site, count in enumerate(placement.factors) if count}
    sites = {client.data_centre for client in store.clients} if near else held
    return Sites(placement.factors, *levels, tuple(sorted(sites)), near)


def lacks(scenario: Scenario) -> dict[Lack, str]:
    """Returns the guarantees that a scenario's store lacks, in words; empty without a store."""
    store = store_in(scenario.plan)
    return {} if store is None else sites_of(store).lacks(SURVIVE, DOWN)


def caution(found: Comparison, made: Callable[[Mapping[str, Level]], Scenario]) -> str:
    """Returns a warning if the fastest choice of a store is unsafe, with a safe choice if any.

    For a safe choice with several data centres, the text states what is lost with one of them. It
    is empty if there is nothing to state, if no choice meets the conditions, or if the comparison
    does not concern a store. `made` returns the scenario with a choice's levels.
    """
    factors = list(found.table.factors)
    of_store = store_of(found.by, found.table.metrics) is not None
    if not of_store and not any(factor.startswith("store.") for factor in factors):
        return ""
    fit = [entry for entry in found.entries if entry.feasible]
    if not fit:
        return ""
    best = fit[0]
    wrong = lacks(made(best.levels))
    if not wrong:
        store = store_in(made(best.levels).plan)
        notes = [] if store is None else sites_of(store).notes()
        return f"With {best.choice}, {'; '.join(notes)}." if notes else ""
    what = "level" if factors == ["store.consistency"] else "choice"
    text = f"{best.choice} is fast, but speed alone should not decide: {'; '.join(wrong.values())}."
    sound = next((entry for entry in found.entries if not lacks(made(entry.levels))), None)
    if sound is not None and not sound.feasible:
        return (
            f"{text} {sound.choice} survives the loss of a node, works with one node down, and "
            f"its reads see earlier writes, but it is excluded from the ranking: {sound.reason}."
        )
    if sound is None:
        return (
            f"{text} None of the compared {what}s does all three: survive the loss of a node, work "
            f"with one node down, and have reads that see earlier writes. `sojourn advise store` "
            f"also compares other levels."
        )
    return (
        f"{text} Take {sound.choice}, the fastest {what} that survives the loss of a node, works "
        f"with one node down, and has reads that see earlier writes. `sojourn advise store` also "
        f"compares replication factors."
    )
