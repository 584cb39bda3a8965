"""Remaining time of work, estimated from its progress."""

from __future__ import annotations

from collections import deque

SETTLED = 2.0
"""Seconds of progress before the first estimate."""
WINDOW = 10.0
"""Seconds that an estimate is based on, at least; for longer work its later half."""
STALLED = 20.0
"""Seconds without progress after which there is no estimate."""
LONGEST = 100 * 3600.0
"""Longest estimate in seconds; longer ones are not shown."""


class Remaining:
    """Estimates from recent speed: the start and earlier pauses do not count."""

    def __init__(self) -> None:
        self._told: deque[tuple[float, float]] = deque()
        self._begin: float | None = None
        """Time of the first progress, before which work may not have begun."""

    def tell(self, now: float, fraction: float) -> None:
        """Records that `fraction` of the work is done at `now`, in seconds."""
        told = self._told
        if told and fraction < told[-1][1]:  # other work has begun
            told.clear()
            self._begin = None
        if told and fraction == told[-1][1]:
            return
        if told and self._begin is None:
            told.clear()
            self._begin = now
        told.append((now, fraction))
        if self._begin is not None:
            window = max(WINDOW, (now - self._begin) / 2)
            while len(told) > 2 and told[1][0] <= now - window:
                told.popleft()

    def left(self, now: float) -> float | None:
        """Returns the remaining seconds at recent speed; None if unknown."""
        if len(self._told) < 2:
            return None
        (begin, first), (last, fraction) = self._told[0], self._told[-1]
        if last - begin < SETTLED or now - last > STALLED:
            return None
        left = (1 - fraction) * (last - begin) / (fraction - first) - (now - last)
        return max(left, 0.0) if left < LONGEST else None
