"""The time that work will still take, from how far it is."""

from __future__ import annotations

from collections import deque

SETTLED = 2.0
"""Seconds of progress before anything is said."""
WINDOW = 10.0
"""Seconds that count at least; of longer work its later half."""
STALLED = 20.0
"""Seconds without progress after which nothing is said."""
LONGEST = 100 * 3600.0
"""An estimate beyond this is none."""


class Remaining:
    """Estimates from the speed of late: neither the start nor a pause long past counts."""

    def __init__(self) -> None:
        self._told: deque[tuple[float, float]] = deque()
        self._begin: float | None = None
        """When the first progress was seen: before it, work may not have begun."""

    def tell(self, now: float, fraction: float) -> None:
        """Notes that `fraction` of the work is done at `now`, in seconds."""
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
        """Seconds that the rest takes at the speed of late; None if that cannot be said."""
        if len(self._told) < 2:
            return None
        (begin, first), (last, fraction) = self._told[0], self._told[-1]
        if last - begin < SETTLED or now - last > STALLED:
            return None
        left = (1 - fraction) * (last - begin) / (fraction - first) - (now - last)
        return max(left, 0.0) if left < LONGEST else None
