"""Figures laid out as the paper's figures 3 and 4, and the tables beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pandas as pd
from matplotlib.figure import Figure

from sojourn.papers.beside import REAL, SIMULATED
from sojourn.papers.outcome import Outcome
from sojourn.papers.paper import Drawn
from sojourn.papers.taildrop.study import Setting
from sojourn.papers.taildrop.variants import VARIANTS
from sojourn.show.multipanel import Losses, Over, panels
from sojourn.study import Table


def loads(table: Table, over: str, heaviest: int, word: str) -> Figure:
    """Six panels over the load `over`, whose largest is `heaviest`, counted in `word`."""
    contents: list[Over | Losses] = [
        Over("goodput", over, "mechanism", title="TCP goodput", zero=False),
        Over("udp_loss", over, "mechanism", title="UDP loss"),
        Over("sojourn_mean", over, "mechanism", title="Queueing delay"),
        Losses("mechanism", {over: heaviest}, title=f"Consecutive losses, {heaviest} {word}"),
        Over("sojourn_sd", over, "mechanism", title="Deviation of queueing delay"),
        Over("consecutive_loss_mean", over, "mechanism", title="Mean losses in a row", zero=False),
    ]
    return panels(table, contents)


def simulated(outcome: Outcome) -> Drawn:
    """The paper's figures 3 and 4."""
    bulk = loads(outcome.tables["bulk"], "flows", 256, "flows")
    web = loads(outcome.tables["web"], "sessions", 1400, "sessions")
    return {
        "bulk": (bulk, "Bulk traffic", "As the paper's figure 3; 95 % intervals over seeds."),
        "web": (web, "Web traffic", "As the paper's figure 4; 95 % intervals over seeds."),
    }


def real(outcome: Outcome) -> Drawn:
    """Figure 3 from real runs, and from the same runs simulated."""
    heaviest = max(outcome.size.flows)
    words = {
        REAL: ("For real", "Real TCP; 95 % intervals over seeds."),
        SIMULATED: ("Simulated", "The same scenarios; 95 % intervals over seeds."),
    }
    return {
        name: (loads(column.tables["bulk"], "flows", heaviest, "flows"), *words[name])
        for name, column in outcome.columns.items()
    }


def settings(chosen: Sequence[Setting], load: str) -> pd.DataFrame:
    """REDopt's parameters by load, as the paper's figures 3(a) and 4(a) list them."""
    return pd.DataFrame(
        {
            load: s.load,
            "flows in the model": round(s.flows, 1),
            "min": s.parameters.minimum,
            "max": s.parameters.maximum,
            "buffer": s.parameters.limit,
            "max_p": round(s.parameters.max_p, 4),
            "weight": round(s.parameters.weight, 6),
            "kappa": round(s.parameters.kappa, 2),
            "mean queue / middle": round(s.found.best.average / s.found.best.middle, 3),
            "deviation / ramp": round(s.found.best.oscillation, 3),
            "accepted": "yes" if s.found.accepted else "no",
        }
        for s in chosen
    )


def growth(outcome: Outcome) -> pd.DataFrame:
    """max_p by Web sessions, relative to the load before: the paper's sign of load."""
    means = outcome.frame("pilot").groupby("sessions", as_index=False)[["active", "max_p"]].mean()
    before = means["max_p"].shift()
    return pd.DataFrame(
        {
            "sessions": means["sessions"],
            "active flows": means["active"].round(1),
            "max_p": means["max_p"].round(4),
            "growth": (means["max_p"] / before).round(3),
        }
    )


def sensitivity(outcome: Outcome, world: Literal["bulk", "web"]) -> pd.DataFrame:
    """How the claims of one world look under other readings; exploratory."""
    tried = [v.name for v in VARIANTS if v.world == world]
    readings = outcome.column.readings
    looked = {name: {j.claim.id: j.verdict for j in readings[name]} for name in tried}
    known = next(iter(looked.values()))
    return pd.DataFrame(
        {
            "claim": j.claim.id,
            "as published": j.verdict,
            **{name: verdicts[j.claim.id] for name, verdicts in looked.items()},
        }
        for j in outcome.judgements
        if j.claim.id in known
    )
