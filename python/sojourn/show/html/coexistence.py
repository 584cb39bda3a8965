"""The report on a coexistence matrix."""

from __future__ import annotations

from sojourn.show import coexistence, style
from sojourn.show.html import common
from sojourn.show.html.blocks import Block, Cell, Drawing, Page, Section, Table, Text
from sojourn.stats import Interval
from sojourn.study import quantities
from sojourn.study.coexistence import QUANTITIES, Coexistence, Encounter

BADGES = {"harms more": "bad", "as itself": "good", "harms less": "good", "inconclusive": "open"}


def page(matrix: Coexistence) -> Page:
    """Returns the page of the report."""
    results = common.needed(matrix.results)
    return common.page(
        results,
        [
            f"{len(matrix.encounters)} encounters",
            f"{matrix.seeds} seeds",
            common.simulated(results),
        ],
        [
            Text(f"Who shares a link with {' and '.join(matrix.incumbents)}?", "question"),
            *(Text(line, "answer") for line in matrix.answer().splitlines()),
        ],
        [
            Section("matrix", "The matrix", [_drawing(matrix, x) for x in matrix.incumbents]),
            Section("cells", "Every cell", [*_tables(matrix), _explained(matrix)]),
        ],
        (),
        ["sojourn study coexistence" + " --full" * (len(matrix.incumbents) > 1)],
        "Coexistence of congestion controls",
    )


def _drawing(matrix: Coexistence, incumbent: str) -> Drawing:
    title = f"Against {incumbent}"
    text = f"Shares against {incumbent} by rival, queue and round-trip time; the numbers are below."
    return Drawing(style.svg(coexistence.drawing(matrix, incumbent)), title, alt=text)


def _tables(matrix: Coexistence) -> list[Block]:
    heads = [
        ("queue", ""), ("rtt", ""), ("share", "%"), ("harm", "%"), ("excess harm", "%"),
        ("verdict", ""), ("delay of rival", "ms"), ("delay of incumbent", "ms"), ("marks", "%"),
        ("losses of rival", "%"), ("losses of incumbent", "%"), ("utilisation", "%"),
    ]  # fmt: skip
    blocks: list[Block] = []
    for incumbent in matrix.incumbents:
        for rival in matrix.rivals(incumbent):
            rows = [
                _row(e)
                for e in matrix.encounters.values()
                if (e.incumbent, e.rival) == (incumbent, rival)
            ]
            blocks.append(Table(heads, rows, f"{rival} against {incumbent}"))
    return blocks


def _row(e: Encounter) -> list[Cell]:
    def cell(i: Interval, factor: float = 0.01) -> Cell:
        text = quantities.means([i], quantities.Scale(factor, ""))[0]
        return Cell(text if i.n else quantities.NOTHING, numeric=True)

    return [
        Cell(e.queue),
        Cell(e.rtt),
        cell(e.values["share"]),
        cell(e.values["harm"]),
        cell(e.excess.interval),
        Cell(e.verdict, badge=BADGES[e.verdict]),
        cell(e.values["rival_delay"], 1e-3),
        cell(e.values["incumbent_delay"], 1e-3),
        cell(e.values["marks"]),
        cell(e.values["rival_loss"]),
        cell(e.values["incumbent_loss"]),
        cell(e.values["utilisation"]),
    ]


def _explained(matrix: Coexistence) -> Text:
    listed = "; ".join(f"{name.replace('_', ' ')}: {what}" for name, what in QUANTITIES.items())
    return Text(
        f"{listed}. Half widths of simultaneous intervals over {len(matrix.encounters)} "
        f"encounters (Bonferroni, {100 * matrix.level:.4g} % each). Harm is that of Ware and "
        "others (HotNets 2019); excess harm is harm minus the incumbent's harm to itself, "
        "paired by seed. A rival harms more if the whole interval of this excess is above a "
        "tenth.",
        "note",
    )
