"""Parts of a study: their runs, claims and derived tables, and the size of a study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pandas as pd
from matplotlib.figure import Figure

from sojourn.stats import Claim
from sojourn.study import Table
from sojourn.study.cells import Level, Runnable
from sojourn.study.progress import Report

Stage = Callable[[str], Report | None]
"""Function that is called with the name of each stage, such as "bulk traffic".

The function returns the callback for the progress of the stage, or `None`.
"""
Cells = Sequence[tuple[Mapping[str, Level], Runnable]]
"""Cells: levels of the factors, each set of levels with its scenario or another `Runnable`."""
Frames = Mapping[str, pd.DataFrame]
"""A part's tables by name.

A claim is judged on the table with the name of its metric; if there is no such table, on the table
with the empty name.
"""
Drawn = Mapping[str, tuple[Figure, str, str]]
"""Figures with title and caption, by file name without suffix."""
Titled = Sequence[tuple[str, pd.DataFrame]]
"""Tables for the page, each with its title."""


def silent(_name: str) -> None:
    """Ignores the name of the stage: a `Stage` without reports."""


def whole(table: Table) -> Frames:
    """Returns the table of runs, unchanged, under the empty name."""
    return {"": table.frame}


@dataclass(frozen=True, kw_only=True)
class Size:
    """Size of a study's runs; a study adds its lengths and levels."""

    seeds: int
    """Number of seeds of each cell, in parts that state no other number."""


S_co = TypeVar("S_co", bound=Size, covariant=True)
"""Type of a study's sizes."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a study: the runs of one table, and the claims that are judged on this table."""

    name: str
    """Name of the part's table and of its folder of results."""
    title: str
    """Title of the part in reports of progress."""
    cells: Cells
    seeds: int | range | None = None
    """Number of seeds from the paper's first seed on, or a range of seeds; by default the size's.
    """
    claims: Sequence[Claim] = ()
    """Claims that simulated and real runs can decide."""
    frames: Callable[[Table], Frames] = whole
    """Derives the tables of claims, figures and output from the table of runs."""
    metrics: Sequence[str] | None = None
    """Metrics that are stored for each run; `None` for all."""
    tables: Sequence[str] | None = None
    """Tables that are stored for each run, such as `series`; `None` for all."""
    reading: str = ""
    """Name of an alternative reading of the paper; empty for the reading that gives the verdicts.

    The claims of an alternative reading are judged separately.
    """
    sweep: str = ""
    """Name of the parameter of which `reading` is a value; empty if `reading` is no value.

    The values of a parameter are not counted as readings.
    """
    real_seeds: int | None = None
    """Number of seeds of the real runs; `None` for `seeds`."""
    real_claims: Sequence[Claim] = ()
    """Claims that only real runs can decide."""
    open: Sequence[Claim] = ()
    """Claims that are not judged because levels that they need are not run."""


def estimate(runs: str, seconds: float) -> str:
    """Describes real runs that are made in sequence; `seconds` is their total duration."""
    minutes = seconds / 60
    time = f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"
    return f"{runs}, one after the other: about {time}"
