"""The report on the real runs: verdicts in both worlds, their figures side by side, each metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.papers.taildrop.real import COLUMNS, TCP, TITLE, rows
from sojourn.papers.taildrop.study import NAME, PAPER

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from sojourn.papers.taildrop.real import Outcome


def remarks(outcome: Outcome) -> list[str]:
    """What a reader has to know before the verdicts."""
    assert outcome.real.results is not None
    about = outcome.real.results.runs()[0].about["real"]
    programs = ", ".join(f"{name} {version}" for name, version in about["programs"].items())
    size = outcome.size
    return [
        (
            f"Real programs ({programs}) on Linux {about['kernel']}, engine {about['engine']}: "
            f"{len(outcome.real)} runs of {size.duration:g} s, {size.seeds} seeds; the first "
            f"{size.warmup:g} s are cut, flows start within {size.starts:g} s. The same scenarios "
            "were simulated with the same seeds. Verdicts are on the real runs."
        ),
        (
            f"TCP is {TCP} as in today's Linux in both worlds: no kernel has the TCP of the "
            "paper's days. UDP sources are ours, over real sockets. Buffers and thresholds are "
            "those of REDopt as reconstructed for the study."
        ),
        *outcome.notes,
    ]


def verdicts(outcome: Outcome) -> pd.DataFrame:
    """Each claim's verdict in both worlds."""
    import pandas as pd

    return pd.DataFrame(
        {"claim": mine.claim.id, "real": mine.verdict, "simulated": other.verdict}
        for mine, other in zip(outcome.judgements, outcome.in_simulation, strict=True)
    )


def show(outcome: Outcome) -> list[Path]:
    """Writes the figures and the report; gives their paths, the report first."""
    import pandas as pd

    from sojourn.papers.taildrop import figures
    from sojourn.show import paper_page, paper_report

    heaviest = max(outcome.size.loads)
    drawn = {
        "real": figures.loads(outcome.real, "flows", heaviest, "flows"),
        "simulated": figures.loads(outcome.simulated, "flows", heaviest, "flows"),
    }
    results = {
        world: table.results
        for world, table in (("real", outcome.real), ("simulated", outcome.simulated))
        if table.results is not None
    }
    page = paper_page(
        title=TITLE,
        reference=PAPER,
        judgements=outcome.judgements,
        results=results,
        figures=[
            (drawn["real"], "For real", "Real TCP; 95 % intervals over seeds."),
            (drawn["simulated"], "Simulated", "The same scenarios; 95 % intervals over seeds."),
        ],
        tables=[
            ("Verdicts in both worlds", verdicts(outcome)),
            ("Means in both worlds", pd.DataFrame(rows(outcome), columns=COLUMNS)),
            ("REDopt's parameters", figures.settings(outcome.settings, "flows")),
        ],
        remarks=remarks(outcome),
        commands=[f"sojourn paper {NAME} --real{' --quick' if outcome.quick else ''}"],
    )
    return paper_report(outcome.folder, page, drawn)
