"""The live view: what two looks at a wire's counters say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from sojourn.lab.wire.counters import Counters, LinkCounters
from sojourn.lab.wire.quantities import bits, duration, octets, sparkline
from sojourn.lab.wire.watch import View


def link(name: str, sent: int, **more: Any) -> LinkCounters:
    made = LinkCounters(
        link=name, rate=10_000_000, queue="codel", backlog_packets=0, backlog_bytes=0,
        sojourn=0.004, sent=(sent, sent * 1000), dropped={"early": 0, "overflow": 0}, marked=0,
        lost=0, offered=(0, 0), delivered=(0, 0), busy=0,
    )  # fmt: skip
    return replace(made, **more)


def counters(time: float, *links: LinkCounters, late: Any = (4e-5, 1e-4)) -> Counters:
    return Counters(time, 0, late, links)


def shown(view: View, width: int = 160, height: int = 40) -> str:
    console = Console(width=width, height=height, force_terminal=False)
    with console.capture() as captured:
        console.print(view.render(width, height))
    return captured.get()


def test_rates_are_of_the_time_between_two_looks() -> None:
    view = View("up")
    (first,) = view.update(counters(1.0, link("up", 100, dropped={"early": 7})))
    assert (first.throughput, first.drops, first.drops_per_second) == (0.0, 7, 0.0)
    now = link("up", 600, dropped={"early": 9}, marked=4, backlog_packets=3, backlog_bytes=3000)
    (row,) = view.update(counters(1.5, now))
    assert row.throughput == 500 * 1000 * 8 / 0.5
    assert row.utilisation == pytest.approx(0.8)
    assert (row.drops_per_second, row.marks_per_second) == (4.0, 8.0)
    text = shown(view)
    for word in ("codel", "10.0 Mbit/s", "8.0 Mbit/s", "3 p, 3.0 kB", "4.0 ms", "9 (4/s)", "40 µs"):
        assert word in text, word


def test_an_idle_queue_has_no_sojourn_time_and_a_new_wire_no_lateness() -> None:
    view = View("up")
    view.update(counters(0.0, link("up", 5), late=(None, None)))
    (row,) = view.update(counters(0.5, link("up", 5), late=(None, None)))
    assert row.sojourn is None
    assert "late" not in shown(view)


def test_counters_that_start_anew_after_the_warm_up() -> None:
    view = View("up")
    view.update(counters(1.0, link("up", 1000)))
    (row,) = view.update(counters(2.0, link("up", 10)))
    assert row.packets_per_second == 10.0


def test_of_many_links_those_with_the_longest_queues_are_shown() -> None:
    view = View("many")
    links = [link(f"l{n}", 0, backlog_bytes=n * 100 % 700) for n in range(30)]
    view.update(counters(1.0, *links))
    text = shown(view, height=16)
    assert "and 20 more links" in text
    assert "l6 " in text
    assert "l7 " not in text
    assert len(text.splitlines()) <= 16
    assert "more links" not in shown(view, height=60)


def test_one_sparkline_fits_a_narrow_terminal() -> None:
    view = View("up")
    view.update(counters(1.0, link("up", 0)))
    assert "sends over time" in shown(view, 120)
    assert "sends over time" not in shown(view, 100)


def test_bars() -> None:
    assert sparkline([]) == ""
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([0, 5, 10]) == "▁▅█"
    assert sparkline([5], top=10) == "▅"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (bits(0), "0 bit/s"),
        (bits(999), "999 bit/s"),
        (bits(19_437_280), "19.4 Mbit/s"),
        (bits(456_000_000), "456 Mbit/s"),
        (bits(5e9), "5.0 Gbit/s"),
        (bits(2e13), "20000 Gbit/s"),
        (octets(1514), "1.5 kB"),
        (duration(3.6e-5), "36 µs"),
        (duration(0.0042), "4.2 ms"),
        (duration(0.12), "120 ms"),
        (duration(2.5), "2.5 s"),
    ],
)
def test_figures_for_people(text: str, expected: str) -> None:
    assert text == expected
