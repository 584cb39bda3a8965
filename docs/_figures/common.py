"""What all figures of the reference share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import sojourn
from sojourn.show import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 5.0
GREY = "#9a9a9a"


def simulate(text: str, seed: int = 1) -> sojourn.Run:
    return sojourn.Scenario.from_toml(text).run(seed=seed)


def stacked(heights: list[float]) -> tuple[Figure, list[Axes]]:
    """An empty figure with panels below each other on one time axis."""
    figure = style.figure(WIDTH, 0.45 + sum(heights))
    panels = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[
        :, 0
    ]
    return figure, list(panels)


def column(run: sojourn.Run, name: str, width: int = 1) -> tuple[Any, Any]:
    """Times and values of a time series, the mean of each `width` samples."""
    frame = run.series
    x, y = frame["time"].to_numpy(dtype=float), frame[name].to_numpy(dtype=float)
    if width > 1:
        n = len(y) // width
        x = x[: n * width].reshape(n, width).mean(axis=1)
        y = np.nanmean(y[: n * width].reshape(n, width), axis=1)
    return x, y


def legend(axes: Axes, columns: int = 3, **more: Any) -> None:
    """Above the panel, clear of what is drawn."""
    axes.legend(loc="lower right", bbox_to_anchor=(1, 0.97), ncols=columns, borderpad=0.1, **more)
