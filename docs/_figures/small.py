"""Pictures of few colours, hence small, in which every colour of a figure is still itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from sojourn.show import colours

if TYPE_CHECKING:
    from pathlib import Path

LARGEST = 150_000
"""Bytes of a picture on a page, at most."""
SHADES = 14
GREYS = 256 - len(colours.COLOURS) * SHADES


def _palette() -> np.ndarray:
    """Our colours, each with its shades towards white (edges, tints), and all greys.

    A palette made from a picture's own dots may leave out a colour that has few of them.
    """
    dots = []
    for colour in colours.COLOURS:
        rgb = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
        dots += [[c + (255 - c) * shade / SHADES for c in rgb] for shade in range(SHADES)]
    dots += [[grey] * 3 for grey in np.linspace(0, 255, GREYS)]
    return np.array(dots).round().astype(np.uint8)


def save(drawn: Image.Image, path: Path) -> None:
    """Writes a PNG."""
    palette = _palette()
    dots = np.asarray(drawn.convert("RGB")).astype(np.uint32)
    packed = dots[..., 0] << 16 | dots[..., 1] << 8 | dots[..., 2]
    found, where = np.unique(packed, return_inverse=True)
    seen = np.stack([found >> 16, found >> 8 & 255, found & 255], axis=1).astype(int)
    far = ((seen[:, None] - palette.astype(int)) ** 2).sum(axis=2)
    few = Image.fromarray(far.argmin(axis=1).astype(np.uint8)[where].reshape(packed.shape), "P")
    few.putpalette(palette.tobytes())
    path.parent.mkdir(parents=True, exist_ok=True)
    few.save(path, optimize=True)
