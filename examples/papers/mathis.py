"""A published study in one file: the claim of Mathis et al. (1997) on random loss.

`python examples/papers/mathis.py` runs it, prints the verdict and writes results/paper-mathis.
"""

from pathlib import Path

import sojourn
from sojourn.papers.bench import Bench
from sojourn.papers.paper import Paper
from sojourn.papers.part import Part, Size
from sojourn.papers.report import show
from sojourn.stats import Ratio, Region

LINE = """
duration = "30s"
warmup = "10s"
flows = [{ from = "a", to = "b", app = "bulk", tcp = "reno" }]
[links.line]
from = "a"
to = "b"
rate = "100mbit"
netem = "delay 25ms"
queue = "pfifo limit 10000p"
"""
# The claims were written before the first run, with metric, factor levels and region.
CLAIMS = [
    Ratio(
        id="root",
        text="four times the loss halves the rate, within 20 %",
        metric="goodput",
        published="BW = C MSS / (RTT sqrt(p)), equation 1",
        a={"loss": "0.4%"},
        b={"loss": "0.1%"},
        region=Region(0.4, 0.6),
    )
]


def measure(bench: Bench[Size]) -> None:
    line = sojourn.Scenario.from_toml(LINE)
    cells = [
        ({"loss": loss}, line.replace({"links.line.netem": f"delay 25ms loss {loss}"}))
        for loss in ("0.1%", "0.4%")
    ]
    bench.make(Part(name="loss", title="Loss", cells=cells, claims=CLAIMS))


title, source = "A TCP flow's rate under random loss", "Mathis, Semke, Mahdavi, Ott, CCR 1997"
PAPER = Paper(
    name="mathis",
    title=title,
    reference=source,
    quick=Size(seeds=5),
    full=Size(seeds=30),
    measure=measure,
)

if __name__ == "__main__":
    show(PAPER.run(Path("results/paper-mathis"), quick=True))
