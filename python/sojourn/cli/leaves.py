"""Classes whose packets wait long in a plain FIFO, and the same tree with a better queue there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sojourn import _core
from sojourn._core import NoKernelEquivalent
from sojourn.data import Json
from sojourn.own.sources import is_own
from sojourn.plan import decoding
from sojourn.scenario import ScenarioError, classes
from sojourn.scenario.placement import place
from sojourn.scenario.summary import format_value

if TYPE_CHECKING:
    from sojourn.scenario import Scenario

SLOW = 0.1
"""Queueing delay (95 %), in seconds, above which another queue is proposed for a class."""
FULL = 0.9
"""Utilisation below which a line is not full; a tree for a line itself is at 95 % of its rate."""
BETTER = "fq_codel"
LONGEST = 40
"""Largest length of the classes in the name of a tree."""
OWN = "present"
"""Name of the scenario's own tree in the comparison."""


@dataclass(frozen=True)
class Leaves:
    """The slow classes of a scenario's tree."""

    scenario: Scenario
    """The scenario, with names for its tree and for the changed trees."""
    queues: list[str]
    """Names of the trees: the scenario's own, those with one changed class, and all changed."""
    before: dict[str, float]
    """Queueing delay (95 %) of each slow class in seconds, in a run with seed 1."""
    after: dict[str, float]
    """The same with `BETTER` in all these classes."""
    limits: bool = False
    """Whether packets wait for the rates of the classes, because the line is not full."""

    def beside(self, queues: list[str]) -> list[str]:
        """Returns the trees, and other queues to compare, which must not lift the users' limits."""
        return list(dict.fromkeys([*self.queues, *([] if self.limits else queues)]))

    def as_dict(self) -> dict[str, Json]:
        """Returns the delays as plain data; without slow classes an empty dictionary."""
        if not self.after:
            return {}
        return {"slow_classes": {"before": {**self.before}, "after": {**self.after}}}

    def best_of(self, equals: Sequence[str]) -> str:
        """Returns which of equally good queues is advised.

        It is the tree with most changed classes, otherwise the first queue.
        """
        changed = (queue for queue in reversed(self.queues[1:]) if queue in equals)
        return next(changed, equals[0])

    @cached_property
    def in_place(self) -> bool:
        """Returns whether the tree acts where it is: its rate is below the line's, or no modem is.

        Otherwise packets wait in the modem, and the tree needs a shaper around it.
        """
        try:
            return place(self.scenario, None, None).is_root
        except (NoKernelEquivalent, ScenarioError):
            return True

    def is_change(self, queue: str) -> bool:
        """Returns whether `queue` is this tree, to be changed and not replaced."""
        return queue in self.queues and self.in_place

    def advice(self, interface: str | None, best: str) -> str:
        """Returns the delays, and the commands that change only these classes of `interface`.

        The commands are those of the best queue if it is a changed tree, otherwise those of all
        classes. If another queue is installed, the result has no commands.
        """
        said = [
            f"Class {name} holds packets for {format_value(self.before[name], 's')} (95 %, seed 1) "
            f"in its FIFO; with {BETTER} for {format_value(delay, 's')}."
            for name, delay in self.after.items()
        ]
        if not self.is_change(best):
            return "\n".join(said)
        tree = best if best in self.queues[1:] else self.queues[-1]
        try:
            own, changed = (
                self.scenario.with_queue(queue).to_tc(interface, form="tc").commands
                for queue in (self.queues[0], tree)
            )
        except (NoKernelEquivalent, ScenarioError) as error:
            return "\n".join([*said, str(error)])
        lines = [f"  {line}" for line in changed if line not in own]
        all_changed = tree == self.queues[-1] and len(self.after) > 1
        number = "these classes" if all_changed else "this class"
        return "\n".join([*said, f"To change {number} and nothing else:", "", *lines])


def limit(scenario: Scenario) -> int | None:
    """Returns the rate to which the scenario's queue limits the line; `None` if it does not."""
    queue = scenario.bottleneck_link.params.queue
    found = None if is_own(scenario.queue) else _core.queue_rate(decoding.queue_text(queue))
    return found if found is not None and found < scenario.bottleneck_rate else None


def slow(scenario: Scenario, *, asked: bool) -> Leaves:
    """Returns the classes of the bottleneck's tree that a better queue helps.

    The result is empty if the user has `asked` for queues or factors, or the scenario has.
    """
    none = Leaves(scenario, [], {}, {})
    if asked or scenario.question.queues or ";" not in scenario.queue:
        return none
    fifos = [one.name for one in classes.tree(scenario.queue).leaves if one.is_fifo]

    def delays(of: Scenario) -> tuple[dict[str, float], float]:
        metrics = of.run(1).metrics
        waits = {name: metrics.get(f"{of.bottleneck}.{name}.sojourn_p95", 0.0) for name in fifos}
        return waits, metrics["utilisation"]

    alone = len(scenario.bottlenecks) == 1
    waits, used = delays(scenario) if fifos and alone else ({}, 1.0)
    before = {name: delay for name, delay in waits.items() if delay > SLOW}
    if not before:
        return none
    better, _ = delays(scenario.replace(_changes(before)))
    before = {name: delay for name, delay in before.items() if better[name] < delay / 2}
    groups = [[name] for name in before] + ([list(before)] if len(before) > 1 else [])
    if not groups:
        return none
    trees = {OWN: scenario.queue}
    for group in groups:
        label = "-".join(re.sub(r"\W", "-", name) for name in group)
        name = f"{BETTER}-in-{label}" if len(label) < LONGEST else f"{BETTER}-in-all"
        trees[name] = scenario.replace(_changes(group)).queue
    named = scenario.replace({f"queues.{name}": text for name, text in trees.items()})
    after = {name: better[name] for name in before}
    return Leaves(named.with_queue(OWN), list(trees), before, after, used < FULL)


def _changes(names: Iterable[str]) -> dict[str, object]:
    return {f"queue.class[{name}]": BETTER for name in names}
