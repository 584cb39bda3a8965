"""Speed of other simulators: the figures that `bench/peers/run.py --write` recorded.

`{peers}`   how the speeds were measured, a table of speeds with ratios, and a table of the work
"""

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from words import inline, table

RECORDED = Path(__file__).resolve().parents[2] / "bench" / "peers" / "recorded.json"
OURS = "Sojourn"


def speed(packets_per_cpu_s: float) -> str:
    """Returns a speed with three digits."""
    if packets_per_cpu_s >= 1e6:
        return f"{packets_per_cpu_s / 1e6:.2f} million"
    return f"{packets_per_cpu_s:,.0f}"


def figures(name: str, column: dict[str, Any] | None) -> str:
    """Returns a program's speed and, unless it is Sojourn, the ratio of Sojourn's speed to it."""
    if column is None:
        return "–"
    text = speed(column["packets_per_cpu_s"])
    return text if name == OURS else f"{text} ({column['ratio']:.3g})"


def done(column: dict[str, Any] | None) -> str:
    """Returns the packets, drops and goodput of a program's run."""
    if column is None:
        return "–"
    return f"{column['packets']:,}; {column['drops']:,}; {column['goodput_bps'] / 1e6:,.1f}"


def conditions(columns: list[dict[str, Any]]) -> str:
    """Returns a sentence with the date of the measurement, the machine and its load."""
    dates = sorted({column["date"] for column in columns})
    loads = sorted({float(column["load"].split()[0]) for column in columns})
    where = "; ".join(sorted({column["processor"] for column in columns}))
    load = f"{loads[0]:g}" if len(loads) == 1 else f"{loads[0]:g} to {loads[-1]:g}"
    when = " and ".join(dates)
    return f"Recorded on {when}, {where}. The load average (1 min) before the runs was {load}."


class Peers(SphinxDirective):
    """Tables of the recorded speeds and of the work of each program."""

    def run(self) -> list[nodes.Node]:
        """Returns the tables."""
        self.env.note_dependency(str(RECORDED))
        found: dict[str, dict[str, dict[str, Any]]] = json.loads(RECORDED.read_text())
        names = list(dict.fromkeys(name for columns in found.values() for name in columns))
        widths = [20, *(80 // len(names) for _ in names)]

        def made(first: str, cell: Any) -> nodes.table:
            rows = [(work, *(cell(n, c.get(n)) for n in names)) for work, c in found.items()]
            return table([first, *names], rows, widths)

        everything = [column for columns in found.values() for column in columns.values()]
        return [
            nodes.paragraph("", "", *inline(conditions(everything))),
            made("packets per CPU-second (ratio)", figures),
            made("packets; drops; Mbit/s", lambda _, column: done(column)),
        ]


def setup(app: Sphinx) -> dict[str, bool]:
    """Adds the directive."""
    app.add_directive("peers", Peers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
