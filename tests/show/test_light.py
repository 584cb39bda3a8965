"""Importing is cheap; colours have contrast."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sojourn.show.colours import COLOURS, DARK

HEAVY = ("pandas", "scipy", "matplotlib", "pyarrow", "statsmodels", "jinja2")
CSS = Path(__file__).parents[2] / "python/sojourn/show/html/page.css"


def test_the_rooms_are_light_until_used() -> None:
    code = (
        "import sys, sojourn, sojourn.study, sojourn.stats, sojourn.show, sojourn.study.errors\n"
        "import sojourn.study.progress, sojourn.study.metrics, sojourn.scenario.condition\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_contrast(scheme: int) -> None:
    """WCAG AA: 4.5 for text, 3 for what is drawn."""
    blocks = re.findall(r":root \{(.*?)\}", CSS.read_text(encoding="utf-8"), flags=re.DOTALL)
    names = dict(re.findall(r"--(\S+): (#[0-9a-f]{6});", blocks[scheme]))
    for ink in ("ink", "faint", "accent"):
        for back in ("page", "soft"):
            assert contrast(names[ink], names[back]) >= 4.5, (ink, back)
    for badge in ("good", "bad", "open"):
        assert contrast(names[badge], names[f"{badge}-back"]) >= 4.5, badge
    # Okabe and Ito's lighter colours reach 2; they also differ by markers and line styles.
    for colour in (COLOURS, DARK)[scheme]:
        assert contrast(colour, names["page"]) >= 2.0, colour
