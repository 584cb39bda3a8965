"""The first figure of the README and of the documentation: how a call sounds behind each queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import sojourn
from sojourn.show import colours, labels, style
from sojourn.templates import template

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

QUEUES = {
    "pfifo limit 1000p": "one plain queue",
    "pie": "one short queue",
    "cobalt": "one short queue",
    "codel": "one short queue",
    "cake": "a queue for each flow",
    "fq_codel": "a queue for each flow",
}
"""In what order, and what each is, for somebody who has not met it."""
PLAIN = next(iter(QUEUES))
OPINIONS = {**labels.OPINIONS, 5: "excellent"}
THEMES = {
    "hero": ("#ffffff", "#1d2329", "#59636e", colours.COLOURS),
    "hero-dark": ("none", "#e4e8ec", "#a3adb7", colours.DARK),
}
"""Plate, ink, faint ink, and colours of each file."""
SIZE = (7.0, 4.3)
"""In inches, of which a page shows each as 100 dots. Texts stay readable at half of that."""


def write(folder: Path) -> None:
    """Draws the figure for light and for dark pages."""
    by, delay = "voip.mos", "voip.delay_p50"
    compared = sojourn.compare(template("home").scenario(), queues=list(QUEUES), seeds=10, by=by)
    quality, late = (
        {queue: float(np.mean(values)) for queue, values in compared.values(metric).items()}
        for metric in (by, delay)
    )
    for name, theme in THEMES.items():
        figure = _draw(quality, late, *theme)
        style.save(figure, folder / f"{name}.svg")


def _draw(
    quality: dict[str, float],
    late: dict[str, float],
    plate: str,
    ink: str,
    faint: str,
    palette: tuple[str, ...],
) -> Figure:
    with style.styled():
        figure = style.figure(*SIZE)
        figure.set_facecolor(plate)
        axes = figure.add_subplot(facecolor="none")
        for row, queue in enumerate(QUEUES):
            mos = quality[queue]
            colour = palette[1] if queue == PLAIN else palette[0]
            axes.barh(row, mos - 1, left=1, height=0.6, color=colour)
            inside = {"va": "center", "color": "#ffffff" if plate != "none" else "#15191d"}
            axes.text(1.07, row, QUEUES[queue], fontsize=12, **inside)
            text = f"{mos:.1f}"
            if queue == PLAIN:
                text += f": words are {late[queue]:.1f} s late"
            axes.text(mos + 0.06, row, text, va="center", fontsize=13, color=ink, weight="bold")
        _axes(axes, ink, faint)
    return figure


def _axes(axes: Axes, ink: str, faint: str) -> None:
    names: Any = [queue.split()[0] for queue in QUEUES]
    axes.set_yticks(range(len(names)), names, fontsize=14, color=ink)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xticks([*OPINIONS], [f"{n}\n{word}" for n, word in OPINIONS.items()], fontsize=12)
    axes.set_xlim(1, 5.2)
    axes.set_xlabel("call quality (mean opinion score, 1 to 5)", fontsize=12, color=faint)
    axes.set_title("A call while four files upload", fontsize=16, color=ink, pad=10)
    axes.tick_params(axis="both", length=0, colors=ink)
    axes.grid(visible=True, axis="x", color=faint, alpha=0.35)
    axes.grid(visible=False, axis="y")
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
