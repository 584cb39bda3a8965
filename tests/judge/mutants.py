"""Faulty and faithful variants of small implementations, each by replacements in their source."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

from sojourn.judge.judge import Judgement, judge, offered
from sojourn.judge.monitor import Answer, Decision, Op, Params
from sojourn.judge.subjects import Hello
from tests.conftest import ROOT

CLASSES = {"codel": "Codel", "fq_codel": "FqCodel", "pie": "Pie", "dualpi2": "DualPi2"}
Change = Sequence[str]
"""A text of the source, and its replacement."""


def variants(discipline: str, kind: str) -> dict[str, list[Change]]:
    """Returns the changes of each variant; `kind` is `faults` or `faithful`."""
    text = (ROOT / f"tests/judge/{discipline}.toml").read_text(encoding="utf-8")
    return dict(tomllib.loads(text)[kind])


def source(discipline: str) -> str:
    """Returns the source of a discipline's example."""
    text = (ROOT / f"examples/judge/{discipline}.py").read_text(encoding="utf-8")
    before, found, after = text.partition("from codel import Codel, serve\n")
    text = f"{before}{source('codel')}{after}" if found else text
    return text.replace("from codel import serve\n", "")


class Local:
    """An implementation in this process."""

    def __init__(self, discipline: str, changes: Sequence[Change]) -> None:
        text = source(discipline)
        for old, new in changes:
            assert old in text, f"{old!r} is not in the source"
            text = text.replace(old, new)
        self.name = "local"
        self.names: dict[str, Any] = {"__name__": discipline}
        exec(compile(text, discipline, "exec"), self.names)
        self.make = self.names[CLASSES[discipline]]

    def begin(self, hello: Hello) -> Params:
        self.queue = self.make(dict(hello.params))
        return hello.params

    def play(self, ops: Sequence[Op]) -> Iterator[Answer]:
        for op in ops:
            packet = op._asdict()
            found = getattr(self.queue, op.kind)(op.t, packet)
            lists = (tuple(found.get(key, ())) for key in ("dropped", "marked"))
            shown = {key: found[key] for key in found if key.startswith("p")}
            yield Answer(Decision(found.get("id"), *lists), shown)


def judged(discipline: str, changes: Sequence[Change], seeds: int) -> Judgement:
    """Judges an implementation with changes by generated schedules."""
    schedules = offered(discipline, range(1, seeds + 1), None)
    return judge(Local(discipline, changes), discipline, schedules)
