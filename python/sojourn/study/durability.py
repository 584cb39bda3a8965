"""Checks whether the fastest consistency level of a comparison is safe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sojourn.plan.queries import store_in, the_store
from sojourn.plan.replication import SimplePlacement
from sojourn.plan.store import Store
from sojourn.stats.promises import Lack, Promise
from sojourn.stats.quorum import needed

if TYPE_CHECKING:
    from sojourn.scenario import Scenario
    from sojourn.study.cells import Level
    from sojourn.study.comparison import Comparison

SURVIVE = 1
"""Number of lost nodes that an acknowledged write should survive, as in `sojourn advise store`."""
DOWN = 1
"""Number of replicas that may be down while requests succeed, as in `sojourn advise store`."""


def promise_of(store: Store) -> Promise:
    """Returns the weakest guarantee of a plan's store.

    With levels that concern one data centre, it is the guarantee in the data centre with the fewest
    replicas.
    """
    placement = store.placement
    factors = (placement.factor,) if isinstance(placement, SimplePlacement) else placement.factors
    factors = tuple(filter(None, factors))
    levels = (store.write_level, store.read_level)
    local = any(level.startswith(("local_", "each_")) for level in levels)
    replicas = min(factors) if local else sum(factors)

    def count(level: str) -> int:
        return needed(level.removeprefix("local_").removeprefix("each_"), replicas)

    return Promise(replicas, *map(count, levels))


def lacks(scenario: Scenario) -> dict[Lack, str]:
    """Returns the guarantees that a scenario's store lacks, in words; empty without a store."""
    store = store_in(scenario.plan)
    return {} if store is None else promise_of(store).lacks(SURVIVE, DOWN)


def caution(found: Comparison, made: Callable[[Mapping[str, Level]], Scenario]) -> str:
    """Returns a warning if the fastest consistency level is unsafe, with a safe level if any.

    The warning is empty if this level is safe, if no level meets the conditions, or if not only the
    consistency level varies. `made` returns the scenario with a choice's levels.
    """
    if list(found.table.factors) != ["store.consistency"]:
        return ""
    fit = [entry for entry in found.entries if entry.feasible]
    if not fit:
        return ""
    best = fit[0]
    wrong = lacks(made(best.levels))
    if not wrong:
        return ""
    text = f"{best.choice} is fast, but speed alone should not decide: {'; '.join(wrong.values())}."
    sound = next((entry for entry in found.entries if not lacks(made(entry.levels))), None)
    if sound is not None and not sound.feasible:
        return (
            f"{text} {sound.choice} survives the loss of a node, works with one node down, and "
            f"its reads see earlier writes, but it is excluded from the ranking: {sound.reason}."
        )
    one_place = len(the_store(made(best.levels).plan).data_centres) < 2
    if sound is None:
        others = " `sojourn advise store` also compares other levels." if one_place else ""
        return (
            f"{text} None of the compared levels does all three: survive the loss of a node, work "
            f"with one node down, and have reads that see earlier writes.{others}"
        )
    others = " `sojourn advise store` also compares replication factors." if one_place else ""
    return (
        f"{text} Take {sound.choice}, the fastest level that survives the loss of a node, works "
        f"with one node down, and has reads that see earlier writes.{others}"
    )
