"""The thesis' findings (its sections 4.3.5, 6 and 7) as claims, under each reading's metrics.

Interpretation of words: *lowest*, *highest*, *better* and *outperforms* mean by any amount. If the
thesis calls other mechanisms *comparable* or *on par*, these are excluded from the comparison and
judged by equivalence, except losses of zero. All other words have the meaning that they have in all
studies. Where the text distinguishes long flows from short flows, findings on completion times and
delays concern only the long flows, because the text calls the values of short flows the same.
Values differ by orders of magnitude, so claims compare geometric means, paired by seed.

The claims were written after runs of the same cells had been seen, so all are exploratory.
`WITHDRAWN` lists replaced claims. Conditions and the models of the main reading were chosen by
published levels, not by the contrasts that the claims assert.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from sojourn.papers.claim_table import ClaimTable
from sojourn.papers.daqm import published
from sojourn.papers.daqm.terms import KINDS, PUBLISHED, Terms, completed
from sojourn.stats.claims import Claim

FIRST_SEED = 2001
"""First seed of the runs that judge the claims."""
UNIFORM, BY_FEATURE = "0.4 for all", "0.2 to 0.5 by derivative"
"""Levels of the factor `rates`: one drop rate for all features, or one for each derivative."""

_TABLE = ClaimTable(__file__, KINDS)


def section(name: str, terms: Terms) -> tuple[Claim, ...]:
    """Returns the claims of a group of `claims.toml`, in the terms of a reading."""
    names = {
        "published": terms.figures,
        "http-full": {"figure": 13, "flow": "http", **terms.full["http"]},
        "ftp-full": {"figure": 14, "flow": "ftp", **terms.full["ftp"]},
    }
    return _TABLE.claims(name, names, partial(completed, terms))


SECTIONS: Mapping[str, Callable[[Terms], tuple[Claim, ...]]] = {
    name: partial(section, name)
    for name in ("features", "time", "flows", "models", "drop-rates", "loads", "payloads")
}
"""Functions that return a section's claims, by the name of the part with the section's runs.

The names are those of the parts on the switch, as meant.
"""
flows, models = SECTIONS["flows"], SECTIONS["models"]
uniform, tailored = partial(section, "uniform"), partial(section, "tailored")
"""Return the claims of section 4.3.5, on one drop rate for all features, and of section 6.1.1."""


def made(terms: Terms) -> tuple[Claim, ...]:
    """Returns the claims of all sections with figures, in the terms of a reading."""
    return tuple(claim for section in SECTIONS.values() for claim in section(terms))


DECLARED = _TABLE.declared()
"""The readings, and which claims are exploratory."""
CONDITIONS = _TABLE.conditions(
    {f"scatter-{metric}": value for metric, value in published.scatter().items()},
    partial(completed, PUBLISHED),
)
"""Published quantities that runs near the thesis' have, in the reading *as published*."""
WITHDRAWN = _TABLE.withdrawn()
