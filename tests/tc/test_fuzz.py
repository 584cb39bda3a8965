"""Every file of `tc` is soon read, or refused by line."""

from __future__ import annotations

import json
import random
import re

from hypothesis import example, given
from hypothesis import strategies as st

from sojourn.scenario import ScenarioError
from sojourn.tc import apply, read
from tests.tc.test_public import TEXTS
from tests.tc.texts import HOME_SCENARIO, SCRIPTS, SHOWN

PARTS = [
    *TEXTS.values(),
    *(path.read_text(encoding="utf-8") for path in sorted(SCRIPTS.iterdir())),
    *(path.read_text(encoding="utf-8") for path in sorted(SHOWN.iterdir())),
]
WORDS = sorted({word for text in PARTS for word in re.findall(r"[\w.:/-]+|[^\w\s]", text)})
GIVEN = {"DEV": "eth0", "1": "eth0", "IFACE": "eth0", "RATE": "5"}


def attempt(text: str) -> None:
    """Reads a text; a refusal must name the place."""
    reading = read([("fuzz", text)], GIVEN)
    devices = [device.name for device in reading.devices if device.holds]
    for device in [None, *devices[:3]]:
        for partial in (False, True):
            try:
                found = apply(HOME_SCENARIO, reading, device, partial=partial)
            except ScenarioError as error:
                assert error.problems
                for problem in error.problems:
                    assert problem.message
                    assert str(problem)
                    json.dumps(problem.as_dict())
                    assert problem.line is None or 0 < problem.line <= len(text.splitlines()) + 1
            else:
                json.dumps(found.as_dict())
                assert found.placed


@given(st.text(max_size=200))
@example("tc qdisc add dev a root tbf")
@example('[{"kind":"tbf","handle":"1:","root":true,"options":{"rate":-1}}]')
@example("qdisc mq 0: dev a root\nqdisc mq 2: dev a parent :ffff")
@example("qdisc mq 1: dev a root\nqdisc mq 2: dev a parent 1:1\nqdisc mq 1: dev a parent 2:1")
@example("tc qdisc add dev a root handle 1: tbf\ntc qdisc add dev a parent 1:1 handle 1: tbf")
@example("tc qdisc add dev a root htb\ntc class add dev a parent 1:2 classid 1:2 htb rate 1mbit")
def test_any_text(text: str) -> None:
    attempt(text)


@given(st.lists(st.sampled_from([*WORDS, "\n", "\n", " ", "tc", "dev eth0", "root"]), max_size=60))
def test_any_words(words: list[str]) -> None:
    attempt(" ".join(words))


@given(st.sampled_from(PARTS), st.randoms(use_true_random=False), st.integers(1, 5))
def test_mutations(text: str, chance: random.Random, edits: int) -> None:
    for _ in range(edits):
        at = chance.randrange(len(text) + 1)
        end = min(len(text), at + chance.randrange(12))
        match chance.randrange(5):
            case 0:
                text = text[:at] + text[end:]
            case 1:
                text = f"{text[:at]} {chance.choice(WORDS)} {text[at:]}"
            case 2:
                text = text[:at] + chance.choice("\"'`[]{}()$|&;<>=.#\n\\0-, \x7f€") + text[end:]
            case 3:
                text = text[:at] + text[at:end] * 3 + text[end:]
            case _:
                lines = text.split("\n")
                one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
                lines[one], lines[other] = lines[other], lines[one]
                text = "\n".join(lines)
    attempt(text)
