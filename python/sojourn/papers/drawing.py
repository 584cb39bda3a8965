"""Functions that the figures of several studies use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from sojourn.show import style
from sojourn.stats import Interval


def whiskers(
    axes: Axes, x: Sequence[float], spans: Sequence[Interval], number: int, **how: Any
) -> None:
    """Draws estimates at `x` with their intervals as error bars, in the colour of series `number`.

    An estimate without an interval, from a single run, has no error bar. `how` has further
    arguments of matplotlib's `errorbar`.
    """

    def known(value: float) -> float:
        return max(0.0, value) if math.isfinite(value) else 0.0

    below = [known(s.estimate - s.low) for s in spans]
    above = [known(s.high - s.estimate) for s in spans]
    axes.errorbar(
        x, [s.estimate for s in spans], yerr=[below, above], color=style.colour(number), **how
    )
