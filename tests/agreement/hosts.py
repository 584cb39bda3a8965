"""Cells with queues of the sending hosts: super-packets in them, or `fq` at the sender.

The networks and queues are those of the first drawing. With `offload`, the drawn queue is the
host's own and gets super-packets, which it splits or counts as one. With `fq`, the host has a link
of ten times the rate with `fq`, which paces, and sends its super-packets to the drawn queue behind.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, Literal

from tests.agreement.population import Cell, drawing

RECORD = Path(__file__).with_suffix(".json")
Kind = Literal["offload", "fq"]
KINDS: dict[Kind, str] = {
    "offload": "super-packets in the drawn queue",
    "fq": "`fq` in front of it",
}
COUNT = 40
"""Number of cells of each kind."""
MOST = 2.0
"""Processor seconds that Linux takes at most for a run of a cell."""


@dataclass(frozen=True)
class HostCell(Cell):
    """A cell of the drawing whose hosts have queues of their own."""

    kind: Kind

    @property
    def name(self) -> str:
        """The kind, and the name of the cell in the drawing."""
        return f"{self.kind} {super().name}"

    def scenario(self, seed: int) -> dict[str, Any]:
        """The cell in the language of scenarios, as the runs with a seed have it."""
        made = super().scenario(seed)
        own: dict[str, Any] = {"host_queue": True, "offload": "linux"}
        line = made["links"]["line"]
        line["reverse"] |= own
        if self.kind == "offload":
            line |= own
        else:
            rate = f"{self.rate // 100}kbit"
            made["links"]["own"] = {"from": "a", "to": "r", "rate": rate, "queue": "fq", **own}
            line["from"] = "r"
        return made


def grid() -> list[HostCell]:
    """All cells. Groups with different round trips, and random losses, would need more links."""
    fitting = [
        cell
        for cell in islice(drawing(1), 400)
        if cell.cost <= MOST and len(set(cell.trips)) == 1 and not cell.loss
    ]
    return [HostCell(**vars(cell), kind=kind) for kind in KINDS for cell in fitting[:COUNT]]


def table() -> str:
    """The record as tables for the page: verdicts by kind, and the cells that are different."""
    cells = json.loads(RECORD.read_text("utf-8"))["cells"]
    lines = [
        "| | cells | equal | different | undecided | all inside | median error of goodput |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind, words in KINDS.items():
        own = [found for name, found in cells.items() if name.startswith(f"{kind} ")]
        counts = Counter(_verdict(found) for found in own)
        inside = sum(all(one["inside"] for one in found.values()) for found in own)
        error = median(abs(found["goodput"]["ratio"] - 1) for found in own)
        shown = [len(own), *(counts[one] for one in ("equal", "different", "undecided")), inside]
        row = [words, *map(str, shown), f"{100 * error:.2g} %"]
        lines.append(f"| {' | '.join(row)} |")
    lines += ["", "| different | simulator / Linux |", "|---|---|"]
    for name, found in cells.items():
        apart = [
            f"{n} {one['ratio']:.2f}" for n, one in found.items() if one["verdict"] == "different"
        ]
        if apart:
            lines.append(f"| {name} | {', '.join(apart)} |")
    return "\n".join(lines)


def _verdict(found: dict[str, dict[str, Any]]) -> str:
    verdicts = {one["verdict"] for one in found.values()}
    return next(one for one in ("different", "undecided", "equal") if one in verdicts)
