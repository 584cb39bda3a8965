"""Tables in the terminal line up."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from rich.console import Console

from sojourn.show import print_claims, print_comparison, tables
from sojourn.show.terminal import aligned, ci
from sojourn.stats import Interval, MeanIn, Ratio, Region, judge

if TYPE_CHECKING:
    from sojourn.study import Comparison, Results


MEANS = "Sojourn time above which every ECN-capable packet is marked; off by default."


def printed(width: int = 120) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=width, color_system=None), out


def test_comparison_lines_up(comparison: Comparison) -> None:
    console, out = printed()
    print_comparison(comparison, console)
    lines = out.getvalue().splitlines()
    rows = [line for line in lines if "±" in line and " of " not in line and "Mean" not in line]
    assert len(rows) == 4
    places = {tuple(i for i, c in enumerate(row) if c == "±") for row in rows}
    assert len(places) == 1  # every column's signs are aligned
    points = {tuple(i for i, c in enumerate(row[30:]) if c == ".") for row in rows}
    assert len(points) == 1  # and so do the decimal points
    assert any("sojourn_p95 ↓" in line for line in lines)
    assert any("ms" in line and "Mbit/s" in line for line in lines)


def test_snapshot() -> None:
    found = [
        Interval(0.0123, 0.0121, 0.0125, 0.95, 9),
        Interval(0.5907, 0.5900, 0.5914, 0.95, 9),
        Interval(float("nan"), float("nan"), float("nan"), 0.95, 0),
    ]
    scale, texts = aligned(found, "s")
    assert scale.unit == "ms"
    assert texts == [" 12.30 ± 0.20", "590.7  ± 0.7 ", "  –          "]


def test_narrow_terminals_drop_columns_not_digits(comparison: Comparison) -> None:
    for width in (60, 80, 100):
        console, out = printed(width)
        print_comparison(comparison, console)
        lines = out.getvalue().splitlines()
        assert all(len(line) <= width for line in lines)
        assert "sojourn_p95" in out.getvalue()
        assert "…" not in out.getvalue()


def test_hostile_names_are_text(comparison: Comparison) -> None:
    console, out = printed(200)
    print_comparison(comparison, console)
    assert "red <script>alert(1)</script>" in out.getvalue()


def test_means_by_factor(swept: Results) -> None:
    console, out = printed()
    console.print(ci(swept.table(), ["sojourn_p95", "goodput"]))
    lines = [line for line in out.getvalue().splitlines() if "±" in line]
    assert len(lines) == 8
    assert len({line.index("±") for line in lines}) == 1


def test_claims() -> None:
    rows = [
        {"q": q, "seed": s, "delay": m + 0.0001 * s}
        for q, m in (("a", 0.010), ("b", 0.020))
        for s in range(8)
    ]
    claims = [
        MeanIn(id="m", text="a waits 10 ms", metric="delay", cell={"q": "a"},
               region=Region(0.009, 0.012), published="10 ms"),
        Ratio(id="r", text="b waits less", metric="delay", a={"q": "b"}, b={"q": "a"},
              region=Region(high=0.9)),
    ]  # fmt: skip
    console, out = printed(140)
    print_claims(judge(claims, pd.DataFrame(rows)), {"delay": "s"}, console)
    text = out.getvalue()
    assert "10.35 [" in text
    assert "ms" in text
    assert "does not hold" in text
    assert "2 claims: 1 holds, 1 does not hold, 0 cannot be told." in text


@pytest.mark.parametrize("width", [30, 40, 80, 160])
def test_no_word_is_broken_to_fit(width: int) -> None:
    rows = [
        {"parameter": "ce_threshold", "takes": "time, such as 5ms", "default": "", "meaning": MEANS}
    ]
    out = io.StringIO()
    console = Console(file=out, width=width)
    console.print(tables.fitting(rows, list(rows[0]), None, console))
    shown = out.getvalue().split()
    assert all(word in shown for row in rows for text in row.values() for word in text.split())
    assert max(map(len, out.getvalue().splitlines())) <= width
    assert "default:" not in shown, "it has none"
    assert ("takes:" in shown) == (width < 80)
