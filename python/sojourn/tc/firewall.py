"""Rules of a firewall that set marks, code points and classes, on which filters depend.

Queues here have no firewall before them, but filters test values that rules of a firewall set. So
the filters are rewritten to give the same result for packets that have not passed the firewall:
a packet that matches a rule goes where the filters send it after the rule's change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product

from sojourn.tc.classify import RULES, Rule, within
from sojourn.tc.filters import Condition
from sojourn.tc.model import WORD, Change, Firewall, Match, Name, Refused, Step

DEPTH = 16
"""Largest depth of nested chains."""


class Rewriter:
    """Rewrites the filters of one discipline for packets as they are before the firewall."""

    def __init__(
        self,
        firewall: Firewall,
        device: str,
        default: Name | None,
        conditions: dict[int, list[tuple[Condition, ...]]],
    ) -> None:
        """`default` is the class of packets that match no filter; None without such a class.

        `conditions` has the alternatives by which a packet matches each rule of the firewall, by
        the `id` of the rule.
        """
        self._firewall = firewall
        self._device = device
        self._default = default
        self._conditions = conditions

    def rewritten(self, rules: Sequence[Rule], major: int) -> list[Rule]:
        """Returns rules for packets before the firewall; `rules` are those for packets after it."""
        found = [*self._by_class(major), *rules]
        for name in reversed(self._firewall.entered()):
            found = self._before(name, found, found, found, 0)
        return [rule for rule in found if not any(key == "class" for key, _ in rule.conditions)]

    def _by_class(self, major: int) -> Iterator[Rule]:
        """Yields a rule for each class that the firewall sets as a packet's priority.

        Linux sends such a packet to this class before it evaluates filters.
        """
        seen: set[Name] = set()
        for step in self._firewall.changes:
            for change in step.changes:
                name = change.value
                if isinstance(name, Name) and name.major == major and name not in seen:
                    seen.add(name)
                    yield Rule((("class", str(name)),), name, step.place)

    def _before(
        self, chain: str, after: list[Rule], accepted: list[Rule], returned: list[Rule], depth: int
    ) -> list[Rule]:
        """Returns the rules for packets before a chain.

        `after`, `accepted` and `returned` are the rules for packets that leave the chain at its
        end, by `accept` and by `return`.
        """
        if depth > DEPTH:
            raise Refused(f"chains of the firewall are nested more than {DEPTH} deep")
        found = after
        for step in reversed(self._firewall.chains.get(chain, [])):
            if not step.applies(self._device):
                continue
            match step.verdict:
                case "accept":
                    block = accepted
                case "return":
                    block = returned
                case "jump":
                    block = self._before(step.target, found, accepted, found, depth + 1)
                case "goto":
                    block = self._before(step.target, returned, accepted, returned, depth + 1)
                case _:
                    block = found
            for change in reversed(step.changes):
                block = [rule for one in block if (rule := _changed(one, change)) is not None]
            found = self._joined(step, block, found)
        return found

    def _joined(self, step: Step, met: list[Rule], others: list[Rule]) -> list[Rule]:
        """Returns rules for packets before a step: `met` for matching packets, else `others`."""
        same = 0
        while same < min(len(met), len(others)) and met[same] == others[same]:
            same += 1
        if len(met) == len(others) == same:
            return others
        ways = self._conditions[id(step)]
        if () in ways:
            return met
        block = list(met[same:])
        if others[same:] == block[max(len(block) - len(others) + same, 0) :]:
            # The last rules of `block` are also in `others`, so they do not need the step's tests.
            block = block[: len(block) - len(others) + same]
        elif self._default is not None and not any(rule.is_total for rule in block):
            block.append(Rule((), self._default, step.place))
        found = list(others[:same])
        for conditions in ways:
            found += within(block, conditions)
        return _pruned([*found, *others[same:]])


def _changed(rule: Rule, change: Change) -> Rule | None:
    """Returns a rule for packets before a change; None if no changed packet matches the rule."""
    kept: list[Condition] = []
    for key, text in rule.conditions:
        if key != change.field:
            kept.append((key, text))
        elif key == "mark":
            assert isinstance(change.value, int)
            value, mask = mark_of(text)
            known = mask & change.mask
            if (change.value ^ value) & known:
                return None
            if rest := mask & ~change.mask:
                kept.append(("mark", mark_text(value & rest, rest)))
        elif str(change.value) != text:
            return None
    return replace(rule, conditions=tuple(kept))


def _pruned(rules: Iterable[Rule]) -> list[Rule]:
    """Returns the rules without those that no packet can reach."""
    found: list[Rule] = []
    sets: list[frozenset[Condition]] = []
    for rule in rules:
        conditions = frozenset(rule.conditions)
        if not _can_hold(rule.conditions) or any(one <= conditions for one in sets):
            continue
        found.append(rule)
        sets.append(conditions)
        if len(found) > RULES:
            raise Refused(f"filters and rules of the firewall would need more than {RULES} rules")
    return found


def _can_hold(conditions: tuple[Condition, ...]) -> bool:
    """Returns whether a packet can meet all conditions."""
    return all(
        _agree(key, text, other)
        for (key, text), (known, other) in combinations(conditions, 2)
        if key == known
    )


def _agree(key: str, one: str, other: str) -> bool:
    """Returns whether a packet can meet two conditions on the same field `key`."""
    if key == "mark":
        (value, mask), (given, bits) = mark_of(one), mark_of(other)
        return not (value ^ given) & mask & bits
    if key in ("sport", "dport"):
        ends, limits = one.split("-"), other.split("-")
        return int(ends[0]) <= int(limits[-1]) and int(limits[0]) <= int(ends[-1])
    return one == other


def mark_of(text: str) -> tuple[int, int]:
    """Returns the value and the mask of a mark in a scenario's filter, such as `0x1/0xff`."""
    value, slash, mask = text.partition("/")
    return int(value, 0), int(mask, 0) if slash else WORD


def mark_text(value: int, mask: int) -> str:
    """Returns a mark for a scenario's filter, such as `0x1/0xff`; a mask of all bits is omitted."""
    return f"{value:#x}" if mask == WORD else f"{value:#x}/{mask:#x}"


def alternatives(step: Step) -> list[list[Match]]:
    """Returns the alternatives of a step; a packet must meet all matches of one alternative."""
    return [[match for part in parts for match in part] for parts in product(*step.tests)]
