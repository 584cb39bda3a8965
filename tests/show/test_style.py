"""Colours, markers and lines: the same for a queue everywhere, and different for every reader."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest

from sojourn import _core
from sojourn.show import colours, style
from sojourn.show.colours import COLOURS, DARK
from sojourn.show.html import plots
from tests.show.test_light import luminance

Array = np.ndarray[Any, np.dtype[np.float64]]

# Machado, Oliveira, Fernandes: A Physiologically-based Model for Simulation of Color Vision
# Deficiency (2009), severity 1, for linear RGB.
VISIONS = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
LOOKS = range(max(colours.QUEUES.values()) + 1)


def linear(colour: str) -> Array:
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb: Array) -> Array:
    """CIELAB of linear RGB, seen under D65."""
    t = TO_XYZ @ np.clip(rgb, 0, 1) / (TO_XYZ @ np.ones(3))
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def nearest(colours: tuple[str, ...], vision: Array) -> float:
    seen = [lab(vision @ linear(colour)) for colour in colours]
    return min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2))


@pytest.mark.parametrize("vision", VISIONS)
def test_colours_differ_for_every_kind_of_vision(vision: str) -> None:
    """2.3 is a difference just noticed side by side; on a page far more is needed."""
    assert nearest(COLOURS, VISIONS[vision]) >= 15
    # The same colours on a dark page, where markers and lines help more.
    assert nearest(DARK, VISIONS[vision]) >= 11


def test_the_simulation_of_visions_is_right() -> None:
    """Greys look grey to everybody; red and green of equal lightness are one to a deuteranope."""
    for vision in VISIONS.values():
        assert vision @ np.ones(3) == pytest.approx(np.ones(3), abs=1e-5)
    assert nearest(("#b04040", "#737331"), VISIONS["usual"]) > 40
    assert nearest(("#b04040", "#737331"), VISIONS["deuteranopia"]) < 15


def test_looks_differ_without_colours() -> None:
    """By their marker or their line, and where one of them is the same, by the other."""
    for a, b in itertools.combinations(LOOKS, 2):
        pairs = {(style.marker(x), str(style.line(x))) for x in (a, b)}
        assert len(pairs) == 2, (a, b)
        html = {(plots._mark(x)["symbol"], plots._line(x)["dash"]) for x in (a, b)}
        assert len(html) == 2, (a, b)
    first = LOOKS[: len(COLOURS)]
    assert len({style.marker(x) for x in first}) == len({str(style.line(x)) for x in first}) == 8
    assert max(map(luminance, COLOURS)) < 0.5  # none is lost on white paper


def test_every_discipline_has_a_look_of_its_own() -> None:
    names = {table["name"] for table in json.loads(_core.describe())["queue"]}
    assert set(colours.QUEUES) == names
    assert len(set(colours.QUEUES.values())) == len(names)


def test_a_queue_looks_the_same_everywhere() -> None:
    figures = [
        ["codel limit 1000p target 5ms", "pfifo limit 300p", "fq_codel"],
        ["fq_codel limit 10240p", "CoDel"],
        ["RED", "PIE", "CoDel", "FQ-CoDel", "COBALT"],
        ["TD", "REDstd", "GREDstd", "REDopt"],
    ]
    seen: dict[str, set[int]] = {}
    for names in figures:
        looks = colours.slots(names)
        assert len(set(looks)) == len(names)
        for name, look in zip(names, looks, strict=True):
            seen.setdefault(colours._discipline(name), set()).add(look)
    assert all(len(looks) == 1 for looks in seen.values()), seen
    assert seen["td" if "td" in seen else "pfifo"] == {colours.QUEUES["pfifo"]}


def test_other_names_take_the_colours_in_turn() -> None:
    assert colours.slots(["a", "b", "c"]) == [0, 1, 2]
    assert colours.slots([str(n) for n in range(20)]) == list(range(20))
    two = colours.slots(["pfifo limit 100p", "codel", "pfifo limit 1000p"])
    assert two[:2] == [colours.QUEUES["pfifo"], colours.QUEUES["codel"]]
    assert two[2] not in two[:2]
    # fq_cobalt's colour is cobalt's, and no other name has it.
    beside = colours.slots(["fq_cobalt", "pfifo", "uploads", "flood", "call"])
    assert len({style.colour(look) for look in beside}) == 5
    assert colours.slots([]) == []
