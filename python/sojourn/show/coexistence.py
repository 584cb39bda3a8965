"""The coexistence matrix as a figure, and as a table in the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from rich.text import Text

from sojourn.show import style, tables
from sojourn.show.suite import delay, folded, grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import Console

    from sojourn.stats import Interval
    from sojourn.study.coexistence import Coexistence, Encounter


@dataclass(frozen=True)
class Theme:
    """Colours of a figure: background, text, and bars of smaller, equal and larger shares."""

    plate: str
    ink: str
    faint: str
    """Colour of secondary text."""
    less: str
    equal: str
    more: str


THEMES = {
    "light": Theme("#ffffff", "#1d2329", "#68727d", "#0072B2", "#d9dde1", "#D55E00"),
    "dark": Theme("#131416", "#e4e8ec", "#98a2ad", "#5AB4E8", "#3a3f45", "#FF8A4C"),
}
KINDS = {
    "pfifo": "no AQM",
    "red": "one queue, ECN",
    "pie": "one queue, ECN",
    "codel": "one queue, ECN",
    "fq_codel": "queue per flow",
    "cake": "queue per flow",
    "fq_codel L4S": "per flow, L4S marks",
    "dualpi2": "two coupled queues",
}
"""Descriptions of the matrix's queues, shown below their names."""
HARM = "\N{BLACK DOWN-POINTING TRIANGLE}"
"""Sign of a cell in which the rival does more harm than the incumbent does to itself."""
_WIDTH, _HEIGHT = 1.34, 1.0
"""Width and height of a cell, in inches."""
_GAP = 0.5
"""Gap between bars of equal and unequal round-trip times, in units of the bars' usual distance."""


def drawing(matrix: Coexistence, incumbent: str | None = None, theme: str = "light") -> Figure:
    """Returns the figure of the matrix for one incumbent: rivals in rows, queues in columns.

    `incumbent` None is the first one. Each cell has a bar for each round-trip time, from the equal
    share to the rival's share, with its simultaneous interval.
    """
    look = THEMES[theme]
    mine = incumbent or matrix.incumbents[0]
    rivals, queues, rtts = matrix.rivals(mine), matrix.queues, matrix.rtts
    left, right, top, bottom = 1.3, 0.15, 1.38, 0.95
    width = left + right + _WIDTH * len(queues)
    height = top + bottom + _HEIGHT * len(rivals)
    with style.styled():
        figure = Figure(figsize=(width, height), facecolor=look.plate)
        figure.set_layout_engine("none")
        grid = figure.subplots(
            len(rivals), len(queues), sharey=True, squeeze=False,
            gridspec_kw={
                "left": left / width, "right": 1 - right / width, "top": 1 - top / height,
                "bottom": bottom / height, "wspace": 0.06, "hspace": 0.08,
            },
        )  # fmt: skip
        for row, rival in zip(grid, rivals, strict=True):
            for axes, queue in zip(row, queues, strict=True):
                met = [matrix.of(mine, rival, queue, rtt) for rtt in rtts]
                _cell(axes, met, look)
            row[0].text(
                -0.3, 0.5, rival, transform=row[0].transAxes, ha="right", va="center",
                fontsize=11, weight="bold", color=look.ink,
            )  # fmt: skip
            row[0].set_yticks([0, 0.5, 1], ["0", "half", "all"], color=look.faint, fontsize=6.5)
        _heads(grid[0], queues, look)
        for axes in grid[-1]:
            _round_trips(axes, rtts, look)
        title(figure, matrix.seeds, mine, look)
    return figure


def drawings(matrix: Coexistence) -> dict[str, Figure]:
    """Returns a figure for each incumbent and theme, by name."""
    return {
        f"matrix-{incumbent}-{theme}": drawing(matrix, incumbent, theme)
        for incumbent in matrix.incumbents
        for theme in THEMES
    }


def places(rtts: Sequence[str]) -> list[float]:
    """Returns the bars' horizontal positions, with a gap between equal and unequal RTTs."""
    found, at = [], 0.0
    for before, rtt in zip(["", *rtts], rtts, strict=False):
        at += _GAP * (bool(before) and ("/" in rtt) != ("/" in before))
        found.append(at)
        at += 1
    return found


def _scale(look: Theme) -> LinearSegmentedColormap:
    return LinearSegmentedColormap.from_list("share", [look.less, look.equal, look.more])


def _cell(axes: Axes, met: Sequence[Encounter | None], look: Theme) -> None:
    colours = _scale(look)
    there = [e for e in met if e is not None]
    axes.set(ylim=(-0.06, 1.06), xlim=(-0.75, len(met) - 0.25 + _GAP))
    axes.set_facecolor("none")
    axes.grid(visible=False)
    axes.tick_params(length=0, labelbottom=False, labelleft=axes.get_subplotspec().is_first_col())  # type: ignore[union-attr]
    for side in axes.spines.values():
        side.set_visible(False)
    if not there:
        return
    middle = float(np.mean([e.values["share"].estimate for e in there]))
    axes.add_patch(
        Rectangle((0, 0), 1, 1, transform=axes.transAxes, color=colours(middle), alpha=0.16, lw=0)
    )
    axes.axhline(0.5, color=look.faint, lw=0.6, zorder=1)
    for e, x in zip(met, places([e.rtt if e else "" for e in met]), strict=True):
        if e is None:
            continue
        share = e.values["share"]
        axes.bar(
            x, share.estimate - 0.5, bottom=0.5, width=0.74, color=colours(share.estimate), zorder=2
        )
        low, high = (min(1.0, max(0.0, v)) for v in (share.low, share.high))
        if math.isfinite(low) and math.isfinite(high):
            axes.plot([x, x], [low, high], color=look.ink, lw=1.0, zorder=3, solid_capstyle="butt")
        if e.verdict == "harms more":
            axes.plot(x, 0.035, marker="v", ms=4.2, color=look.ink, mew=0, zorder=4)
    halo = [withStroke(linewidth=1.6, foreground=look.plate)]
    text: dict[str, Any] = {
        "transform": axes.transAxes,
        "fontsize": 6.3,
        "zorder": 5,
        "path_effects": halo,
    }
    above = middle <= 0.5
    axes.text(
        0.035, 0.965 if above else 0.13, f"{100 * middle:.0f} %", va="top" if above else "bottom",
        weight="bold", color=look.ink, **{**text, "fontsize": 8.5},
    )  # fmt: skip
    axes.text(
        0.965, 0.955 if above else 0.135, _delays(there), ha="right",
        va="top" if above else "bottom", color=look.faint, **text,
    )  # fmt: skip


def _delays(met: Sequence[Encounter]) -> str:
    """Returns the delays of rival and incumbent in ms, as medians over the round-trip times."""
    both = (
        float(np.median([e.values[name].estimate for e in met]))
        for name in ("rival_delay", "incumbent_delay")
    )
    return " | ".join(map(delay, both)) + " ms"


def _heads(row: Sequence[Axes], queues: Sequence[str], look: Theme) -> None:
    for axes, queue in zip(row, queues, strict=True):
        at: dict[str, Any] = {"transform": axes.transAxes, "ha": "center", "va": "bottom"}
        axes.text(0.5, 1.19, _short(queue), fontsize=10, weight="bold", color=look.ink, **at)
        axes.text(0.5, 1.05, KINDS.get(queue, ""), fontsize=7, color=look.faint, **at)


def _short(name: str, most: int = 16) -> str:
    return name if len(name) <= most else name[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _round_trips(axes: Axes, rtts: Sequence[str], look: Theme) -> None:
    names = [rtt.removesuffix(" ms") for rtt in rtts]
    axes.set_xticks(places(rtts), names, color=look.faint, fontsize=6.5)
    axes.tick_params(labelbottom=True)


def title(figure: Figure, seeds: int, mine: str, look: Theme) -> None:
    """Adds title, legend and explanations to the figure of the incumbent `mine`."""
    width, height = figure.get_size_inches()
    name = mine.upper() if mine == "cubic" else mine

    def put(x: float, y: float, text: str, size: float, colour: str, **how: str) -> None:
        figure.text(x / width, 1 - y / height, text, fontsize=size, color=colour, **how)  # type: ignore[arg-type]

    put(0.2, 0.36, f"Who shares a link with {name}, and who takes it?", 16, look.ink, weight="bold")
    put(
        0.2, 0.64,
        f"Share of the goodput that one flow of each control (rows) gets against one of {name} "
        "at each queue (columns), 40 Mbit/s.",
        9, look.faint,
    )  # fmt: skip
    swatches = (("the rival takes more", look.more), ("an equal share", look.equal))
    x = width - 4.55
    for text, colour in (*swatches, ("the rival takes less", look.less)):
        figure.add_artist(
            Rectangle(
                (x / width, 1 - 0.40 / height), 0.16 / width, 0.12 / height, color=colour,
                transform=figure.transFigure, lw=0,
            )
        )  # fmt: skip
        put(x + 0.22, 0.39, text, 8, look.ink)
        x += 0.36 + 0.068 * len(text)
    bars = (
        "One bar for each base RTT in ms; the last is 20 ms for the rival and 80 ms for "
        f"{name}. Bars start at the equal share. Lines: simultaneous 95 % intervals, {seeds} "
        "runs of one minute."
    )
    texts = (
        f"In each cell: the mean share, and the median queueing delays, rival | {name}. {HARM}: "
        f"the rival harms {name} more than {name} harms itself (Ware et al. 2019), by over a tenth "
        f"of {name}'s goodput alone."
    )
    for at, line in enumerate((bars, texts)):
        put(0.2, height - 0.42 + 0.2 * at, line, 8, look.faint)


def print_matrix(matrix: Coexistence, console: Console) -> None:
    """Prints a table for each incumbent, with the rivals' shares in percent."""
    for mine in matrix.incumbents:
        rows = [(rival, rtt) for rival in matrix.rivals(mine) for rtt in matrix.rtts]
        texts = {
            (rival, rtt, queue): _cell_text(matrix.of(mine, rival, queue, rtt))
            for rival, rtt in rows
            for queue in matrix.queues
        }
        heads = {queue: folded(queue) for queue in matrix.queues}
        widths = {
            queue: max(map(len, [*heads[queue], *(texts[*row, queue] for row in rows)]))
            for queue in matrix.queues
        }
        first = max(len(rival) for rival, _ in rows) + max(map(len, matrix.rtts)) + 3
        for at, group in enumerate(grouped(widths, console.width - first - 3)):
            view = tables.table(f"Share against {mine} in %" if at == 0 else None)
            view.add_column("rival", no_wrap=True)
            view.add_column("rtt", no_wrap=True)
            for queue in group:
                view.add_column("\n".join(heads[queue]), justify="right", no_wrap=True)
            for rival, rtt in rows:
                shown = rival if rtt == matrix.rtts[0] else ""
                view.add_row(shown, rtt, *(Text(texts[rival, rtt, queue]) for queue in group))
            console.print(view)
    console.print(
        f"Means of {matrix.seeds} runs ± half of their simultaneous 95 % intervals. *: the rival's "
        "harm to the incumbent exceeds the incumbent's harm to itself by more than a tenth.",
        style="dim",
    )


def _cell_text(e: Encounter | None) -> str:
    if e is None:
        return "- "
    share: Interval = e.values["share"]
    half = f"\N{PLUS-MINUS SIGN}{100 * share.half_width:.0f}" if share.n > 1 else ""
    return f"{100 * share.estimate:.0f}{half}" + ("*" if e.verdict == "harms more" else " ")
