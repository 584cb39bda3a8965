"""Speed of other simulators: the figures that `bench/peers/run.py --write` recorded.

`{peers}`   for each processor how the speeds were measured, and a table of ratios and work
"""

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from words import inline, table

RECORDED = Path(__file__).resolve().parents[2] / "bench" / "peers" / "recorded.json"
HEADS = ("work", "program", "ratio", "packet-hops a CPU-second", "payload; packets; drops")
WIDTHS = (18, 32, 26, 14, 22)


def ratio(column: dict[str, Any]) -> str:
    """Returns the ratio, with its interval and the ratio of the least times if it has them."""
    if column["ratio"] is None:
        return "–"
    text = f"{column['ratio']:.3g}"
    if column["low"] is None:
        return text
    low, high, least = (f"{column[name]:.3g}" for name in ("low", "high", "least_ratio"))
    return f"{text} ({low} to {high}); least {least}"


def cells(work: str, name: str, column: dict[str, Any]) -> tuple[str, ...]:
    """Returns the row of a program on a work."""
    return (
        work,
        f"{name} ({column['build']})" if column["build"] else name,
        ratio(column),
        f"{hops / 1e6:.3g} million" if (hops := column["hops_per_cpu_s"]) else "–",
        f"{column['payload'] / 1e6:.1f} MB; {column['packets']:,}; {column['drops']:,}",
    )


def conditions(where: str, columns: list[dict[str, Any]]) -> str:
    """Returns sentences on the processor, the dates, the rounds and the load."""
    dates = " and ".join(sorted({column["date"] for column in columns}))
    rounds = min(column["rounds"] for column in columns)
    loads = sorted(float(column["load"].split(",")[0]) for column in columns)
    return (
        f"{where}, {dates}: {rounds} rounds a work. "
        f"The load average (1 min) before the runs was {loads[0]:g} to {loads[-1]:g}."
    )


class Peers(SphinxDirective):
    """Tables of the recorded comparisons, one for each processor."""

    def run(self) -> list[nodes.Node]:
        """Returns the tables."""
        self.env.note_dependency(str(RECORDED))
        found: dict[str, dict[str, dict[str, dict[str, Any]]]] = json.loads(RECORDED.read_text())
        made: list[nodes.Node] = []
        for where, works in found.items():
            rows = [(w, name, column) for w, p in works.items() for name, column in p.items()]
            made.append(nodes.paragraph("", "", *inline(conditions(where, [r[2] for r in rows]))))
            made.append(table(HEADS, [cells(*row) for row in rows], WIDTHS))
        return made


def setup(app: Sphinx) -> dict[str, bool]:
    """Adds the directive."""
    app.add_directive("peers", Peers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
