"""Mutual effects of two competing flows, in a matrix of pairs of congestion controls.

The matrix has shares of goodput, harm, delays, marks and losses. Harm (Ware, Mukerjee, Seshan and
Sherry, HotNets 2019) is the share of its solo goodput that an incumbent loses to a rival. By their
threshold, a rival is acceptable if it does no more harm to an incumbent than a second flow with the
incumbent's control does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from sojourn.data import Object
from sojourn.stats import Gap, Interval, gaps, mean_of_runs
from sojourn.study.errors import ResultsError
from sojourn.study.results import Results, results_of
from sojourn.study.table import Table

KIND = "coexistence"
"""Kind of the study in its manifest."""
ALONE = "none"
"""Level of the factor `rival` for an incumbent that uses the link alone."""
SMALLEST = 0.1
"""Smallest difference of interest between two harms, as a share of the solo goodput."""
METRICS = (
    "utilisation",
    "mark_share",
    "incumbent.goodput",
    "rival.goodput",
    "incumbent.delay_mean",
    "rival.delay_mean",
    "incumbent.packet_loss",
    "rival.packet_loss",
)
"""Metrics that are stored for each run."""
FACTORS = ("incumbent", "rival", "queue", "rtt")
QUANTITIES = {
    "share": "share of the goodput that the rival obtains",
    "harm": "share of the incumbent's solo goodput that it loses to the rival",
    "incumbent_delay": "mean one-way delay of the incumbent in addition to propagation, s",
    "rival_delay": "mean one-way delay of the rival in addition to propagation, s",
    "marks": "share of packets that the queue marked",
    "incumbent_loss": "share of the incumbent's packets that were lost",
    "rival_loss": "share of the rival's packets that were lost",
    "utilisation": "utilisation of the bottleneck",
}
"""Descriptions of the quantities of each pair, by name."""
Verdict = Literal["harms more", "harms less", "as itself", "inconclusive"]
_VERDICTS: dict[str, Verdict] = {
    "above": "harms more",
    "below": "harms less",
    "within": "as itself",
}
Values = npt.NDArray[np.float64]
Key = tuple[str, str, str, str]
"""Levels of `FACTORS`: incumbent, rival, queue, round-trip times."""


@dataclass(frozen=True)
class Encounter:
    """An incumbent and a rival at one queue."""

    incumbent: str
    rival: str
    queue: str
    rtt: str
    values: dict[str, Interval]
    """Mean and interval of each of `QUANTITIES`, by name."""
    excess: Gap
    """The rival's harm minus the harm of a second incumbent, paired by seed."""

    @property
    def verdict(self) -> Verdict:
        """Returns whether the rival does more harm, less harm or as much as a second incumbent."""
        return _VERDICTS.get(self.excess.where, "inconclusive")


def round_trips(rtt: str) -> tuple[float, float]:
    """Returns the base RTTs of the rival and of the incumbent in seconds.

    `rtt` is a level such as `20/80 ms`, or `20 ms` if both are equal.
    """
    first, _, second = rtt.removesuffix(" ms").partition("/")
    return float(first) / 1e3, float(second or first) / 1e3


class Coexistence:
    """The matrix of encounters from a table with the factors `FACTORS`.

    The intervals of each quantity are simultaneous over all encounters (Bonferroni).
    """

    def __init__(self, table: Table, alpha: float = 0.05) -> None:
        self.table = table
        self.alpha = alpha
        frame = table.frame
        groups = frame.groupby(list(FACTORS), sort=False)
        self._runs: dict[Key, pd.DataFrame] = {
            tuple(map(str, key)): rows.set_index("seed").sort_index()  # type: ignore[misc]
            for key, rows in groups
        }
        keys = [key for key in self._runs if key[1] != ALONE]
        harms = {key: self._harm(key) for key in keys}
        own = [harms.get((a, a, queue, rtt)) for a, _, queue, rtt in keys]
        pairs = [
            _aligned(harms[key], mine if mine is not None else harms[key] * math.nan)
            for key, mine in zip(keys, own, strict=True)
        ]
        self.level = 1 - alpha / max(1, len(keys))
        self.encounters: dict[Key, Encounter] = {
            key: Encounter(*key, self._values(key, harms[key]), gap)
            for key, gap in zip(keys, gaps(pairs, lambda _: SMALLEST, alpha), strict=True)
        }

    @classmethod
    def open(cls, folder: str | Path) -> Coexistence:
        """Returns the matrix whose results are in a folder."""
        results = Results.open(folder)
        if results.kind != KIND:
            raise ResultsError(results.folder, f"holds a {results.kind}, not a {KIND} matrix")
        return cls(results.table())

    def _harm(self, key: Key) -> pd.Series[float]:
        incumbent, _, queue, rtt = key
        beside = self._runs[key]["incumbent.goodput"]
        alone = self._runs.get((incumbent, ALONE, queue, rtt))
        if alone is None:
            return beside * math.nan
        return (1 - beside / alone["incumbent.goodput"]).reindex(beside.index)

    def _values(self, key: Key, harm: pd.Series[float]) -> dict[str, Interval]:
        rows = self._runs[key]
        mine, theirs = rows["incumbent.goodput"], rows["rival.goodput"]
        rival, incumbent = round_trips(key[3])
        found = {
            "share": theirs / (mine + theirs),
            "harm": harm,
            "incumbent_delay": rows["incumbent.delay_mean"] - incumbent / 2,
            "rival_delay": rows["rival.delay_mean"] - rival / 2,
            "marks": rows["mark_share"],
            "incumbent_loss": rows["incumbent.packet_loss"],
            "rival_loss": rows["rival.packet_loss"],
            "utilisation": rows["utilisation"],
        }
        return {name: mean_of_runs(found[name], self.level) for name in QUANTITIES}

    def of(self, incumbent: str, rival: str, queue: str, rtt: str) -> Encounter | None:
        """Returns the encounter with these levels; `None` if the matrix has no such encounter."""
        return self.encounters.get((incumbent, rival, queue, rtt))

    def levels(self, factor: int) -> list[str]:
        """Returns the levels of a factor, by its index in `FACTORS`, in the order of the runs."""
        return list(dict.fromkeys(key[factor] for key in self.encounters))

    @property
    def incumbents(self) -> list[str]:
        """Returns the names of the incumbents."""
        return self.levels(0)

    def rivals(self, incumbent: str) -> list[str]:
        """Returns the names of the rivals of an incumbent."""
        return list(dict.fromkeys(b for a, b, _, _ in self.encounters if a == incumbent))

    @property
    def queues(self) -> list[str]:
        """Returns the names of the queues."""
        return self.levels(2)

    @property
    def rtts(self) -> list[str]:
        """Returns the levels of the round-trip times, such as `20/80 ms`."""
        return self.levels(3)

    @property
    def seeds(self) -> int:
        """Returns the number of runs of an encounter."""
        return len(self.table.seeds)

    @property
    def results(self) -> Results | None:
        """Returns the folder of results; `None` if the table was not read from a folder."""
        return results_of(self.table)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Returns a row for each encounter, with quantities, intervals and verdict."""
        return pd.DataFrame(self.rows())

    def rows(self) -> list[Object]:
        """Returns a row for each encounter as data for JSON."""
        found = []
        for e in self.encounters.values():
            row: Object = dict(zip(FACTORS, (e.incumbent, e.rival, e.queue, e.rtt), strict=True))
            for name, value in {**e.values, "excess_harm": e.excess.interval}.items():
                row |= {name: value.estimate, f"{name}_low": value.low, f"{name}_high": value.high}
            found.append({**row, "verdict": e.verdict})
        return found

    def answer(self) -> str:
        """Returns sentences on the queues where a rival harms more than a second incumbent does."""
        lines = []
        for incumbent in self.incumbents:
            for rival in self.rivals(incumbent):
                if rival == incumbent:
                    continue
                met = [
                    e
                    for e in self.encounters.values()
                    if (e.incumbent, e.rival) == (incumbent, rival)
                ]
                worse = [e for e in met if e.verdict == "harms more"]
                where = ", ".join(dict.fromkeys(e.queue for e in worse))
                lines.append(
                    f"{rival} harms {incumbent} more than {incumbent} harms itself, by over a tenth"
                    f", in {len(worse)} of {len(met)} cells{f': {where}' if worse else ''}."
                )
        return "\n".join(lines)


def _aligned(a: pd.Series[float], b: pd.Series[float]) -> tuple[Values, Values]:
    """Returns the values of both series for the seeds that both have."""
    both = a.index.intersection(b.index)
    x, y = (np.asarray(one.loc[both], dtype=np.float64) for one in (a, b))
    return x, y
