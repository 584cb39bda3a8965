"""Rates, sizes, times and series as short texts, without the libraries that draw tables."""

from __future__ import annotations

from collections.abc import Iterable

BARS = "▁▂▃▄▅▆▇█"
"""Characters of a sparkline, from the lowest to the highest value."""


def sparkline(values: Iterable[float], top: float | None = None) -> str:
    """Returns values as bars; the highest bar is the larger of `top` and the largest value."""
    found = list(values)
    top = max([top or 0.0, *found])
    if top <= 0:
        return BARS[0] * len(found)
    return "".join(BARS[min(int(value / top * len(BARS)), len(BARS) - 1)] for value in found)


def _scaled(value: float, units: tuple[str, ...]) -> str:
    step = 0
    while abs(value) >= 999.5 and step < len(units) - 1:
        value /= 1000
        step += 1
    places = 0 if value >= 99.95 or step == 0 else 1
    return f"{value:.{places}f} {units[step]}"


def bits(rate: float) -> str:
    """Formats a rate in bit/s with a fitting unit."""
    return _scaled(rate, ("bit/s", "kbit/s", "Mbit/s", "Gbit/s"))


def octets(size: float) -> str:
    """Formats a size in bytes with a fitting unit."""
    return _scaled(size, ("B", "kB", "MB", "GB"))


def duration(seconds: float) -> str:
    """Formats a time in seconds with a fitting unit, from µs to s."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.{0 if seconds >= 0.0995 else 1}f} ms"
    return f"{seconds:.1f} s"
