"""A judgement as text, Markdown, or JUnit's XML."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from sojourn.judge.judge import DISCIPLINES, Case, Judgement

STEPS = 20
"""Most operations that are shown of a schedule that was not made as small as possible."""
STATES = 3
"""Most possible states that are shown."""


def summary(found: Judgement) -> str:
    """Returns the judgement in one sentence."""
    did = f"{found.schedules} schedules, {found.operations} operations, {found.signals} signals"
    if found.case is None:
        return f"{found.subject} follows {found.text}: {did}"
    return f"{found.subject} breaks {found.text} in `{found.case.schedule}`: {found.case.message}"


def freedoms(found: Judgement) -> Iterator[dict[str, str]]:
    """Yields the freedoms of the text, and whether the implementation uses them."""
    words = {None: "not seen", True: "yes", False: "no"}
    for name, freedom in DISCIPLINES[found.discipline].state.freedoms.items():
        if freedom.per_decision or (freedom.linux and not found.allow_linux):
            continue
        used = words[found.taken.get(name)]
        yield {"freedom": name, "used": used, "place": freedom.place, "text": freedom.sentence}


def shown(case: Case) -> Iterator[str]:
    """Yields the lines of the smallest case: schedule, decisions, and both states."""
    least = ", none can be removed" if case.smallest else f"; the last {STEPS}"
    yield f"found with {case.found_with} operations; {len(case.steps)} are left{least}:"
    yield ""
    yield from (f"  {step}" for step in case.steps[0 if case.smallest else -STEPS :])
    yield ""
    yield f"{case.rule}: {case.message}"
    for decision in case.permitted:
        yield f"permitted: {decision}"
    before = [dict(pairs) for pairs in {tuple(state.items()): 0 for state in case.expected}]
    names = list(dict.fromkeys(name for state in before for name in state))
    rows = [(name, *(state.get(name, "") for state in before[:STATES])) for name in names]
    possible = [f"possible state {n + 1}" for n in range(len(before[:STATES]))]
    theirs = [f"{name} = {value:g}" for name, value in case.shown.items()]
    rows = [("before the last operation", *possible), *rows]
    wide = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    right = ["shown by the implementation after it", *(theirs or ["nothing"])]
    yield ""
    for n in range(max(len(rows), len(right))):
        row = rows[n] if n < len(rows) else [""] * len(wide)
        left = "   ".join(cell.ljust(width) for cell, width in zip(row, wide, strict=True))
        yield f"  {left}   | {right[n] if n < len(right) else ''}".rstrip()
    if len(before) > STATES:
        yield f"  ({len(before) - STATES} further states are possible)"


def markdown(found: Judgement) -> str:
    """Returns a judgement as Markdown."""
    lines = [f"# {found.subject}: {found.text}", "", f"{summary(found)}.", ""]
    if found.case is not None:
        lines += ["```text", *shown(found.case), "```", ""]
    lines += ["| freedom | used | text |", "|---|---|---|"]
    lines += [
        f"| {r['freedom']} | {r['used']} | {r['place']}: {r['text']} |" for r in freedoms(found)
    ]
    return "\n".join(lines) + "\n"


def junit(found: Judgement) -> str:
    """Returns a judgement as a test suite of JUnit, with a test for each schedule."""
    failures = str(int(found.case is not None))
    suite = ET.Element(
        "testsuite",
        name=f"sojourn judge {found.discipline}",
        tests=str(found.schedules),
        failures=failures,
        time=f"{found.seconds:.3f}",
    )
    for name in found.names:
        test = ET.SubElement(suite, "testcase", classname=found.subject, name=name)
        if found.case is not None and name == found.names[-1]:
            failure = ET.SubElement(test, "failure", message=found.case.message)
            failure.text = "\n".join(shown(found.case))
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
