"""Another number gives another plan, or a notice with this number, or an error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median

import pytest

from sojourn.scenario import ScenarioError
from sojourn.tc import apply, read
from tests.tc.kinds import configurations
from tests.tc.test_public import CHOSEN, GIVEN, HOSTS, NOT_READ, TEXTS, of
from tests.tc.texts import HOME_SCENARIO

#: Configurations in which one of several devices or transmit queues is chosen, or a later command
#: replaces the first.
ELSEWHERE = ("LibreQoS/issues", "plantegg.github.io", "gist.github.com/ignisf")
PUBLIC = [one for one in TEXTS if one not in NOT_READ and not any(e in one for e in ELSEWHERE)]
MADE = dict(enumerate(configurations()))

NUMBER = re.compile(r"(?<![\w.:-])(?:0x[0-9a-fA-F]+|\d+)(?![\d:])")
NAMES = {"handle", "classid", "parent", "flowid", "baseclass", "dev", "pref", "at", "priority"}
"""Words before a name of a class or device, before the order of filters, and before an offset."""


def result(text: str, address: str = "") -> tuple[str, list[str]] | None:
    """The plan and the notices of a configuration; None if it cannot be read."""
    try:
        reading = read([("posted", text)], of(GIVEN, address) or {}, of(CHOSEN, address))
        found = apply(HOME_SCENARIO, reading, of(CHOSEN, address), of(HOSTS, address))
    except ScenarioError:
        return None
    return found.scenario.plan_json, found.notices + found.scenario.warnings()


def other(number: str) -> str:
    """Another number that has the same base."""
    if number.startswith("0x"):
        return f"0x{int(number, 16) ^ 1:x}"
    return str(int(number) * 2 + 1)


def changed(text: str) -> Iterator[tuple[str, str, str, str]]:
    """The text with another number; this number, the word before it, and the line."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        sets = re.search(r"\btc (?:qdisc|class|filter) (?:add|replace|change)\b", line)
        if not sets or "ingress" in line or "ffff:" in line or re.match(r"\s*#tc", line):
            continue
        is_filter = "tc filter" in line
        for match in NUMBER.finditer(line, sets.end()):
            before = line[: match.start()].split()
            name = "" if line[match.start() - 1] not in " \t" else before[-1]
            is_order = name == "prio" and is_filter
            # The handle of a `fw` filter is a mark.
            is_name = name in NAMES and not (name == "handle" and "fw" in line)
            if is_name or is_order or "#" in line[: match.start()].strip()[1:]:
                continue
            if line[match.start() - 1] not in " \t./-(" or "$" in "".join(before[-1:]):
                continue
            number = other(match[0])
            new = f"{line[: match.start()]}{number}{line[match.end() :]}"
            yield "\n".join([*lines[:at], new, *lines[at + 1 :]]), number, name, line


def check(text: str, address: str = "") -> None:
    before = result(text, address)
    assert before is not None, text
    for new, number, name, line in changed(text):
        after = result(new, address)
        told = after is not None and any(
            number in notice or (name and f"`{name}`" in notice) for notice in after[1]
        )
        assert after is None or after[0] != before[0] or told, (line, number)


@pytest.mark.parametrize("address", PUBLIC)
def test_no_number_of_a_posted_configuration_is_dropped_in_silence(address: str) -> None:
    check(TEXTS[address], address)


@pytest.mark.parametrize("name", MADE)
def test_no_number_is_dropped_in_silence(name: int) -> None:
    check(MADE[name])


def test_there_are_two_hundred_configurations_of_many_kinds() -> None:
    assert len(PUBLIC) + len(MADE) >= 200


def test_half_of_the_configurations_have_at_most_one_notice() -> None:
    found = [result(TEXTS[address], address) for address in PUBLIC]
    assert median(len(one[1]) for one in found if one is not None) <= 1
