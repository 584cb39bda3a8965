"""Figures in the layout of the paper's figures 3 and 4, and tables of the page."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from sojourn.papers.part import Drawn
from sojourn.papers.side_by_side import REAL, SIMULATED
from sojourn.papers.taildrop.study import Results, Setting
from sojourn.papers.taildrop.variants import Variant
from sojourn.show.multipanel import Losses, Over, panels
from sojourn.study import Table

FORMULA = Variant("", {"max_p": "formula"})
"""The reading with `max_p` by the formulas alone."""
_CAPTION = (
    "As the paper's figure {0}, but panel (a) shows goodput, which the paper describes in words, "
    "instead of the table of REDopt's parameters. 95 % intervals over seeds. The paper's own "
    "points are missing, because the available copy of the paper lacks them."
)


def loads(table: Table, over: str, heaviest: int, word: str) -> Figure:
    """Draws six panels over the load.

    `over` is the factor of the load, `heaviest` its largest level, and `word` the noun of the
    counted items.
    """
    contents: list[Over | Losses] = [
        Over("goodput", over, "mechanism", title="TCP goodput", zero=False),
        Over("udp_loss", over, "mechanism", title="UDP loss"),
        Over("sojourn_mean", over, "mechanism", title="Queueing delay"),
        Losses(
            "mechanism",
            {over: heaviest},
            title=f"Consecutive losses, {heaviest} {word}",
            most=sys.maxsize,
        ),
        Over("sojourn_sd", over, "mechanism", title="Standard deviation of delay"),
        Over("consecutive_loss_mean", over, "mechanism", title="Mean losses in a row", zero=False),
    ]
    return panels(table, contents)


def simulated(outcome: Results) -> Drawn:
    """Returns the paper's figures 3 and 4 from simulated runs, with title and caption."""
    bulk = loads(outcome.tables["bulk"], "flows", 256, "flows")
    web = loads(outcome.tables["web"], "sessions", 1400, "sessions")
    return {
        "bulk": (bulk, "Bulk traffic", _CAPTION.format(3)),
        "web": (web, "Web traffic", _CAPTION.format(4)),
    }


def real(outcome: Results) -> Drawn:
    """Returns the paper's figure 3 from real runs and from simulated runs of the same scenarios."""
    heaviest = max(outcome.size.flows)
    words = {
        REAL: ("Real runs", "Real TCP; 95 % intervals over seeds."),
        SIMULATED: ("Simulated runs", "Scenarios of the real runs; 95 % intervals over seeds."),
    }
    return {
        name: (loads(column.tables["bulk"], "flows", heaviest, "flows"), *words[name])
        for name, column in outcome.columns.items()
    }


def settings(chosen: Sequence[Setting], load: str) -> pd.DataFrame:
    """Returns REDopt's parameters by load, as in the paper's figures 3(a) and 4(a).

    The last columns have `max_p` by the formulas alone, which the verification replaced, and the
    growth of `max_p` from the previous load.
    """
    max_p = pd.Series([s.parameters.max_p for s in chosen])
    table = pd.DataFrame(
        {
            load: s.load,
            "flows in the model": round(s.flows, 1),
            "min": s.parameters.minimum,
            "max": s.parameters.maximum,
            "buffer": s.parameters.limit,
            "max_p": round(s.parameters.max_p, 4),
            "weight": round(s.parameters.weight, 6),
            "kappa": round(s.parameters.kappa, 2),
            "max_p by formula": round(s.read(FORMULA).max_p, 4),
        }
        for s in chosen
    )
    return table.assign(growth=(max_p / max_p.shift()).round(2))


def weights(chosen: Sequence[Setting], load: str) -> pd.DataFrame:
    """Returns the behaviour of REDopt's average queue with each weight, under bulk flows."""
    return pd.DataFrame(
        {
            load: s.load,
            "largest share of REDstd's weight": f"1/{part}",
            "weight": round(trial.parameters.weight, 6),
            "mean queue / middle": round(trial.average / trial.middle, 3),
            "deviation / ramp": round(trial.oscillation, 3),
            "meets REDopt's conditions": "yes" if trial.accepted else "no",
        }
        for s in chosen
        for part, trial in s.trials.items()
    )


def today(outcome: Results) -> pd.DataFrame:
    """Returns means over seeds for queues and congestion controls of today."""
    keys = ["rate", "tcp", "queue"]
    found = outcome.frame("today").groupby(keys, sort=False).mean(numeric_only=True).reset_index()
    return pd.DataFrame(
        {
            "link, Mbit/s": (found["rate"] / 1e6).astype(int),
            "TCP": found["tcp"].str.replace("classic", "").str.upper().str.strip(),
            "queue": found["queue"],
            "TCP goodput, %": (found["goodput"] / found["rate"] * 100).round(1),
            "queueing delay, ms": (found["sojourn_mean"] * 1e3).round(),
            "UDP's delay, ms": (found["udp.delay_mean"] * 1e3).round(),
            "UDP loss, %": (found["udp_loss"] * 100).round(2),
            "page, median, s": found["web.page_p50"].round(2),
            "page, 95 %, s": found["web.page_p95"].round(1),
        }
    )
