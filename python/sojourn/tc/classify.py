"""The classes to which a discipline's filters send packets, as rules in the order of asking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sojourn.tc.filters import Condition
from sojourn.tc.model import Name, Place, Refused

RULES = 256
"""Rules of one discipline, at most."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What sends packets that meet all conditions to a class."""

    conditions: tuple[Condition, ...]
    target: Name
    place: Place
    divisor: int = 1
    """Over how many classes flows are spread by their hash, from the target on."""

    @property
    def is_total(self) -> bool:
        """Whether it fits every packet."""
        return not self.conditions

    def text(self, major: int) -> str:
        """The rule as a statement of the discipline with a number."""
        tests = [f"{key} {value}" for key, value in self.conditions]
        if self.divisor != 1:
            tests.append(f"flow divisor {self.divisor}")
        return f"filter parent {major:x}: {' '.join(tests) or 'all'} to {self.target}"


def within(rules: Iterable[Rule], conditions: tuple[Condition, ...]) -> list[Rule]:
    """The rules for packets that meet conditions as well, up to one that takes all of them."""
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
    """The rules with those of inner classes in the place of each rule that leads to one.

    A packet that an inner class' own rules send nowhere goes to the default, as in Linux.
    """
    found: list[Rule] = []
    for rule in rules:
        if rule.target not in inner or rule.divisor != 1:
            found.append(rule)
        else:
            # A filter may only lead downwards.
            deeper = descended(
                of_class.get(rule.target, []), of_class, inner - {rule.target}, default
            )
            end = Rule((), default, rule.place)
            found += within([*deeper, end], rule.conditions)
        if len(found) > RULES:
            raise Refused(f"the filters would become more than {RULES} rules")
    return found
