"""Writes figures and a page from a results folder."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, product
from pathlib import Path
from types import MappingProxyType

from matplotlib.figure import Figure

from sojourn.metrics import view
from sojourn.show import coexistence as matrix
from sojourn.show import figures, style
from sojourn.show.html import across, coexistence, comparison, run, study
from sojourn.show.html.blocks import Page
from sojourn.show.html.render import write
from sojourn.show.html.study import axes
from sojourn.study import disk
from sojourn.study.across import AcrossEngines
from sojourn.study.coexistence import KIND, Coexistence
from sojourn.study.comparison import Comparison
from sojourn.study.errors import ResultsError, StudyError
from sojourn.study.names import in_words
from sojourn.study.question import Asked
from sojourn.study.results import Results

REPORT = "report.html"
FIGURES = "figures"
MOST_CELLS = 12
"""Largest number of figures of one metric in a study with more than two factors."""


def page_of(results: Results) -> Page:
    """Returns the page for the kind of results in a folder."""
    if results.kind == "comparison":
        question = Asked.of(results.manifest.question)
        if len(results.manifest.engines) > 1:
            return across.page(AcrossEngines(results.table(), question))
        return comparison.page(Comparison(results.table(), question))
    if results.kind == KIND:
        return coexistence.page(Coexistence(results.table()))
    if not results.factors and len(results.runs()) == 1:
        return run.page(results)
    return study.page(results)


def figures_of(results: Results) -> dict[str, Figure]:
    """Returns the figures of the results in a folder, by the figure's name."""
    table = results.table()
    if results.kind == KIND:
        return matrix.drawings(Coexistence(table))
    found: dict[str, Figure] = {}
    first = table.factors[0] if table.factors else ""

    def attempt(name: str, make: Callable[[], Figure]) -> None:
        with contextlib.suppress(StudyError):  # the runs have no data for this figure
            found[name] = make()

    if len(table.factors) <= 1 and (not first or len(table.levels(first)) <= 10):
        attempt("cdf", lambda: figures.cdf(results, by=first))
        attempt("cdf-tail", lambda: figures.cdf(results, by=first, tail=True))
        attempt("series", lambda: figures.series(results, by=first))
        for level in table.levels(first) if first else [""]:
            name = "-".join(["classes", *re.findall(r"[\w.]+", str(level))])
            attempt(name, partial(figures.classes, results, str(level), first))
    if not first:
        return found
    across, rest = axes(table)
    metrics = table.interesting()[:6]
    by = results.manifest.by
    if results.kind == "comparison" and by is not None:  # the question's metric comes first
        metrics = list(dict.fromkeys([table.metric(by), *metrics]))
    for metric in metrics:
        name = metric.replace(".", "-").replace("_", "-")
        if across is None:
            attempt(name, partial(figures.bars, table, metric, first))
            if metric in view("tradeoff"):
                attempt(f"{name}-box", partial(figures.box, table, metric, first))
        elif len(rest) == 1:
            attempt(name, partial(figures.over, table, metric, across, rest[0]))
        elif (
            metric == metrics[0]
        ):  # with more factors, only the first metric is drawn, in up to `MOST_CELLS` figures
            levels = product(*(table.levels(factor) for factor in rest[1:]))
            for cell in islice((dict(zip(rest[1:], x, strict=True)) for x in levels), MOST_CELLS):
                title = in_words(cell)
                draw = partial(
                    figures.over, table.select(cell), metric, across, rest[0], title=title
                )
                attempt("-".join([name, *re.findall(r"[\w.]+", title)]), draw)
    if {*view("tradeoff")} <= set(table.metrics) and len(table.factors) == 1:
        attempt("delay-goodput", lambda: figures.tradeoff(table, by=first))
    return found


def report(
    folder: str | Path,
    out: str | Path | None = None,
    formats: Sequence[str] = ("png", "svg", "pdf"),
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    question: Mapping[str, str] = MappingProxyType({}),
) -> list[Path]:
    """Writes the page and figures of a results folder; returns the written files, page first.

    The files are written into the folder itself, or into `out`. `progress` is called with the
    number of drawn figures and the number of all figures. `question` may have `by`, `subject_to`
    and `smallest`, which replace those of the results.
    """
    results = Results.open(folder)
    asked_for = dict(results.manifest.question)
    if question.get("by", asked_for.get("by")) != asked_for.get("by"):
        asked_for.pop("smallest", None)  # the stored smallest difference is for another metric
    results.manifest = replace(results.manifest, question={**asked_for, **question})
    if not results.runs():
        raise ResultsError(
            results.folder,
            "the study has no finished run yet: repeat the command that started it",
        )
    target = Path(out) if out is not None else results.folder
    return write_report(target, page_of(results), figures_of(results), formats, progress)


def write_report(
    folder: str | Path,
    page: Page,
    figures: Mapping[str, Figure],
    formats: Sequence[str] = style.FORMATS,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[Path]:
    """Writes a page and its figures, one report at a time; returns the written files, page first.

    Incomplete files of killed processes are removed. `progress` is that of `report`.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    with disk.locked(target):
        for place in (target, target / FIGURES):
            disk.remove_leftover_files(place)
        written = [write(page, target / REPORT)]
        for done, (name, figure) in enumerate(figures.items(), 1):
            written += style.save(figure, target / FIGURES / name, tuple(formats))
            progress(done, len(figures))
    return written
