"""Numbers that programs print: patterns, units, JSON, and what is refused."""

from __future__ import annotations

import pytest

from sojourn.scenario.reported import NotReported, number, problem


@pytest.mark.parametrize(
    ("source", "text", "unit", "value"),
    [
        ("goodput=([0-9.]+)Mbit/s", "goodput=1Mbit/s\ngoodput=6.5Mbit/s\n", "bit/s", 6.5e6),
        (r"([\d.]+) [KMG]bits/sec", "[ 5] 3.2 Gbits/sec receiver", "bit/s", 3.2e9),
        (r"([\d.]+) kB/s", "2 kB/s", "bit/s", 16e3),
        (r"took ([\d.]+)ms", "took 41.5ms", "s", 0.0415),
        (r"lat ([\d.]+) ?\S+s", "lat 250 \u03bcs", "s", 250e-6),
        (r"lat ([\d.]+) ?\S+s", "lat 250 \u00b5s", "s", 250e-6),
        (r"rss=(\d+) MB", "rss=3 MB", "B", 3e6),
        (r"loss ([\d.]+)%", "loss 2.5%", "1", 0.025),
        (r"score (\S+)", "score -1e3", "1", -1000.0),
        (r"rate (\S+) Mbit/s", "rate 7 Mbit/s", "", 7.0),
        (r"rate ([\d.]+) \S+", "rate 950 Kbit/s", "", 950e3),
        (r"rate ([\d.]+) (?:Kbit/s|Mbit/s)", "rate 1.0 Mbit/s", "1", 1e6),
        (r"took ([\d.]+)\s*m?s", "took 7ms", "", 0.007),
        (r"served ([\d.]+).*", "served 5 pages", "", 5.0),
        (r"([\d.]+) MBytes", "11.5 MBytes", "B", 11.5 * 2**20),
        (r"([\d.]+) [KMG]Bytes/sec", "2 GBytes/sec", "bit/s", 16 * 2**30),
        (r"([\d.]+) TB", "2 TB", "B", 2e12),
        ("end.rate", 'noise\n{"end": {"rate": 8.5}}\n\n', "bit/s", 8.5),
        ("x", '{"x": "12"}', "", 12.0),
    ],
)
def test_numbers_are_read_in_the_metrics_unit(
    source: str, text: str, unit: str, value: float
) -> None:
    assert number(source, ["other", text], unit) == pytest.approx(value)


@pytest.mark.parametrize(
    ("source", "text", "why"),
    [
        (r"x=(\d+)", "y=1", "no match of `x="),
        (r"x=(\S+)", "x=fast", "'fast' is no finite number"),
        (r"x=(\S+)", "x=nan", "no finite number"),
        (r"x=(\d+) (?:furlongs)", "x=3 furlongs", "`furlongs` in .* is no unit"),
        ("x", "no json", "the last line is no JSON with `x`: 'no json'"),
        ("x.y", '{"x": 3}', "has no key `x.y`"),
        ("x", '{"x": true}', "True is no finite number"),
        ("x", f'{{"x": {"1" * 400}}}', "1111 is no finite number"),
        ("x", "[" * 100_000, "no JSON"),
        ("x", "", "no JSON"),
    ],
)
def test_wrong_numbers_are_explained(source: str, text: str, why: str) -> None:
    with pytest.raises(NotReported, match=why):
        number(source, [text], "s")


@pytest.mark.parametrize(
    ("name", "source", "why"),
    [
        ("goodputt", "x", "did you mean `goodput`?"),
        ("speed", "x", "use `score` (more is better) or `cost`"),
        ("goodput", "(", "is no regular expression"),
        ("goodput", "(a)|(b)", "must have one group"),
        ("goodput", "a(?:b)", "has 0"),
        ("goodput", " ", "is empty"),
    ],
)
def test_wrong_declarations_are_explained(name: str, source: str, why: str) -> None:
    assert why in problem(name, source)


def test_right_declarations_are_accepted() -> None:
    assert not problem("goodput", "goodput=([0-9.]+)Mbit/s")
    assert not problem("score", "end.rate")
