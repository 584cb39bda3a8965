"""The result of a trial as text, as data, as JUnit's XML and as Markdown."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from xml.etree import ElementTree as ET

from sojourn.ab.trial import Trial, Which
from sojourn.data import Object
from sojourn.study import quantities

WORDS = {
    "worse": "B is worse",
    "better": "B is better",
    "equal": "B and A differ by less than {}",
    "holds": "B is at most {} worse",
    "inconclusive": "inconclusive",
}
"""Verdicts in words, with the smallest difference or the margin."""
MARKS = {"worse": "❌", "inconclusive": "❔"}
"""Marks of negative verdicts in Markdown."""


def _signed(x: float, places: int) -> str:
    """Returns a change in per cent with its sign; one that is not 0 is not shown as 0."""
    text = f"{x:+.{places}f}" if abs(x) < 1e4 else f"{x:+.2g}"
    return f"{text if float(text) or not x else f'{x:+.1g}'} %"


@dataclass(frozen=True)
class Report:
    """The result of a trial."""

    trial: Trial
    label: str
    """Name of the compared number."""
    commands: Mapping[Which, Sequence[str]]
    status: int
    """Exit status of the command."""

    @property
    def sides(self) -> list[tuple[Which, str, float]]:
        """Returns name, command line and median of each program."""
        return [(s, shlex.join(words), self.trial.median(s)) for s, words in self.commands.items()]

    def sentence(self) -> str:
        """Returns the result in a sentence."""
        trial, change = self.trial, self.trial.change
        asked = trial.question
        share = f"{100 * (asked.smallest if asked.margin is None else asked.margin):g} %"
        text = WORDS[trial.verdict].format(share)
        if trial.verdict == "worse" and asked.margin is not None:
            text += f" by more than {share}"
        places = quantities.decimals([100 * change.estimate], [100 * change.half_width])
        size = f"{quantities.number(100 * abs(change.estimate), places)} % "
        size = size + ("higher" if change.estimate > 0 else "lower") if change.estimate else "equal"
        limits = " to ".join(_signed(100 * x, places) for x in (change.low, change.high))
        pairs = f"{len(trial.pairs)} of at most {trial.design.most} pairs"
        text += f": {self.label} of B is {size} ({limits}, 95 % interval, {pairs})"
        if trial.alike:
            text += ". All pairs are equal and count as one: nothing varies between the seeds"
        return text

    def lines(self) -> list[str]:
        """Returns the result as lines of text."""
        sides = [f"{s}: {line}: {self.label} {x:.4g} (median)" for s, line, x in self.sides]
        return [*sides, self.sentence()]

    def as_dict(self) -> Object:
        """Returns the result as plain data."""
        trial = self.trial
        return {
            "verdict": trial.verdict,
            "status": self.status,
            "sentence": self.sentence(),
            "metric": self.label,
            **asdict(trial.question),
            "seed": trial.seed,
            **{s.lower(): {"command": line, "median": x} for s, line, x in self.sides},
            "change": asdict(trial.change),
            "noise": trial.floor,
            "detectable": trial.found,
            "looks": list(trial.design.looks),
            "excluded": trial.excluded,
            "pilot": [asdict(pair) for pair in trial.pilot],
            "pairs": [asdict(pair) for pair in trial.pairs],
        }

    def junit(self) -> str:
        """Returns the result as a test suite with one case, in JUnit's XML."""
        verdict, text = self.trial.verdict, self.sentence()
        kind = {"worse": "failure", "inconclusive": "error"}.get(verdict)
        attributes = {f"{one}s": str(int(one == kind)) for one in ("failure", "error")}
        suite = ET.Element("testsuite", {"name": "sojourn ab", "tests": "1", **attributes})
        (_, a, _), (_, b, _) = self.sides
        case = ET.SubElement(suite, "testcase", classname="sojourn.ab", name=f"{b} against {a}")
        if kind is not None:
            ET.SubElement(case, kind, message=text, type=verdict).text = text
        ET.SubElement(case, "system-out").text = text
        return ET.tostring(suite, "unicode", xml_declaration=True) + "\n"

    def markdown(self) -> str:
        """Returns the result as Markdown, for a summary of CI."""
        lines = [f"{MARKS.get(self.trial.verdict, '✅')} {self.sentence()}", ""]
        lines += [f"| | command | {self.label} (median) |", "|---|---|---|"]
        for side, line, value in self.sides:
            quoted = line.replace("|", "\\|").replace("`", "'")
            lines.append(f"| {side} | `{quoted}` | {value:.4g} |")
        return "\n".join(lines) + "\n"
