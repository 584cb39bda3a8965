"""Whether a consistency level that is fast is also one to take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sojourn.plans import store_in
from sojourn.stats.promises import Lack, Promise
from sojourn.stats.quorum import needed

if TYPE_CHECKING:
    from sojourn.scenario import Scenario
    from sojourn.study.cells import Level
    from sojourn.study.comparison import Comparison

SURVIVE = 1
"""Nodes whose loss an acknowledged write is to survive, as `sojourn advise store` has it."""
DOWN = 1
"""Replicas that may be down while requests succeed, likewise."""


def promise_of(store: Mapping[str, Any]) -> Promise:
    """Return what a plan's store promises where it promises least: of one data centre or of all."""
    placement = store["placement"]
    factors = [n for n in placement.get("factors", [placement.get("factor")]) if n]
    levels = (store["write_level"], store["read_level"])
    local = any(level.startswith(("local_", "each_")) for level in levels)
    replicas = int(min(factors) if local else sum(factors))

    def count(level: str) -> int:
        return needed(level.removeprefix("local_").removeprefix("each_"), replicas)

    return Promise(replicas, *map(count, levels))


def lacks(scenario: Scenario) -> dict[Lack, str]:
    """Return what a scenario's store does not keep of what is usually asked, in words."""
    store = store_in(scenario.plan())
    return {} if store is None else promise_of(store).lacks(SURVIVE, DOWN)


def caution(found: Comparison, made: Callable[[Mapping[str, Level]], Scenario]) -> str:
    """Return what the fastest consistency level lacks and which one to take; nothing otherwise.

    `made` makes the scenario of a choice's levels.
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
    text = f"{best.choice} is fast, but do not take it for that alone: {'; '.join(wrong.values())}."
    sound = next((entry for entry in found.entries if not lacks(made(entry.levels))), None)
    if sound is not None and not sound.feasible:
        return (
            f"{text} {sound.choice} survives the loss of a node, works with one down, and has "
            f"reads that see what was written, but is out of the ranking: {sound.reason}. That is "
            "what it costs while nodes are away."
        )
    one_place = len((store_in(made(best.levels).plan()) or {})["data_centres"]) < 2
    if sound is None:
        others = ": `sojourn advise store` searches others" if one_place else ""
        return (
            f"{text} None of the levels compared survives the loss of a node, works with one down, "
            f"and has reads that see what was written{others}."
        )
    others = " `sojourn advise store` compares replication factors, too." if one_place else ""
    return (
        f"{text} Take {sound.choice}, the fastest that survives the loss of a node, works with one "
        f"down, and has reads that see what was written.{others}"
    )
