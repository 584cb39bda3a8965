"""Remaining time of work, estimated from its recent speed."""

from __future__ import annotations

from collections import deque

SETTLED = 2.0
"""Seconds of progress that the first estimate requires."""
WINDOW = 10.0
"""Period, in seconds, over which the recent speed is measured. If half of the time since the first
progress is longer, the period is this half."""
STALLED = 20.0
"""Seconds without progress after which there is no estimate."""
LONGEST = 100 * 3600.0
"""Longest estimate in seconds; longer ones are not shown."""


class Remaining:
    """Estimates the remaining time from recent speed. The start and earlier pauses do not count."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, float]] = deque()
        self._begin: float | None = None
        """Time of the first progress, in seconds; before it the work may not have begun."""

    def tell(self, now: float, fraction: float) -> None:
        """Records that `fraction` of the work is done at `now`, in seconds."""
        points = self._points
        if points and fraction < points[-1][1]:  # less than before: other work has begun
            points.clear()
            self._begin = None
        if points and fraction == points[-1][1]:
            return
        if points and self._begin is None:
            points.clear()
            self._begin = now
        points.append((now, fraction))
        if self._begin is not None:
            window = max(WINDOW, (now - self._begin) / 2)
            while len(points) > 2 and points[1][0] <= now - window:
                points.popleft()

    def left(self, now: float) -> float | None:
        """Returns the remaining seconds at recent speed; None if unknown or above `LONGEST`."""
        if len(self._points) < 2:
            return None
        (begin, first), (last, fraction) = self._points[0], self._points[-1]
        if last - begin < SETTLED or now - last > STALLED:
            return None
        left = (1 - fraction) * (last - begin) / (fraction - first) - (now - last)
        return max(left, 0.0) if left < LONGEST else None
