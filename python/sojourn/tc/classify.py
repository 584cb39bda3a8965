"""Classes to which a discipline's filters send packets, as rules in the order of evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sojourn.tc.filters import Condition
from sojourn.tc.model import Name, Place, Refused

RULES = 256
"""Largest number of rules of one discipline."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: packets that meet all conditions go to the class `target`."""

    conditions: tuple[Condition, ...]
    target: Name
    place: Place
    divisor: int = 1
    """Number of classes, from `target` on, over which flows are distributed by their hash."""

    @property
    def is_total(self) -> bool:
        """Returns whether the rule matches every packet."""
        return not self.conditions

    def text(self, major: int) -> str:
        """Returns the rule as a filter statement of the discipline `major`."""
        tests = [f"{key} {value}" for key, value in self.conditions]
        if self.divisor != 1:
            tests.append(f"flow divisor {self.divisor}")
        return f"filter parent {major:x}: {' '.join(tests) or 'all'} to {self.target}"


def within(rules: Iterable[Rule], conditions: tuple[Condition, ...]) -> list[Rule]:
    """Adds conditions to rules; omits the rules after the first that had no conditions."""
    found: list[Rule] = []
    for rule in rules:
        found.append(replace(rule, conditions=tuple(dict.fromkeys(conditions + rule.conditions))))
        if rule.is_total:
            break
    return found


def descended(
    rules: Sequence[Rule],
    of_class: dict[Name, list[Rule]],
    inner: set[Name],
    default: Name,
) -> list[Rule]:
    """Returns the rules; a rule that leads to an inner class is replaced by this class's rules.

    A packet that matches no rule of an inner class goes to the default class, as in Linux.
    """
    found: list[Rule] = []
    for rule in rules:
        if rule.target not in inner or rule.divisor != 1:
            found.append(rule)
        else:
            # A rule that leads back to a class already entered is kept, so the recursion ends.
            deeper = descended(
                of_class.get(rule.target, []), of_class, inner - {rule.target}, default
            )
            end = Rule((), default, rule.place)
            found += within([*deeper, end], rule.conditions)
        if len(found) > RULES:
            raise Refused(f"the filters would need more than {RULES} rules")
    return found
