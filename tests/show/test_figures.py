"""Figures: valid files, honest contents, nothing in each other's way."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from sojourn.show import Losses, Over, figures, figures_of, labels, multipanel, plots, style
from sojourn.show.data import Distribution, distribution, thin
from sojourn.study import Results, Study, StudyError
from sojourn.study.names import short_names
from tests.study.fakes import FakeEngine, scenario

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from sojourn.study import Comparison


def texts_overlap(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of visible texts that cover each other."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    from matplotlib.text import Text

    # Labels of ticks beyond an axis' ends exist but are not drawn.
    hidden: set[int] = set()
    for axes in figure.axes:
        for axis, which in ((axes.xaxis, 0), (axes.yaxis, 1)):
            low, high = sorted(axis.get_view_interval())
            for label in axis.get_ticklabels(which="both"):
                at = label.get_position()[which]
                if not (axes.get_visible() and low <= at <= high):
                    hidden.add(id(label))
    found = []
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        if id(text) not in hidden and text.get_visible() and text.get_text().strip():
            box = text.get_window_extent(renderer)
            if box.width > 1 and box.height > 1:
                found.append((text.get_text(), box))
    bounds = figure.bbox
    hits = []
    for i, (a, box) in enumerate(found):
        for b, other in found[:i]:
            # A pixel of contact is no overlap.
            w = min(box.x1, other.x1) - max(box.x0, other.x0)
            h = min(box.y1, other.y1) - max(box.y0, other.y0)
            if w > 1 and h > 1 and a != b:
                hits.append((a, b))
        inside = min(box.x0, box.y0) >= -1 and box.x1 <= bounds.x1 + 1 and box.y1 <= bounds.y1 + 1
        if not inside:
            hits.append((a, "the figure's edge"))
    return hits


def test_all_figures_of_a_comparison(comparison: Comparison, tmp_path: Path) -> None:
    assert comparison.results is not None
    made = figures_of(comparison.results)
    assert {"cdf", "cdf-tail", "series", "delay-goodput"} - {"delay-goodput"} <= set(made)
    for name, figure in made.items():
        assert texts_overlap(figure) == [], name
    paths = style.save(made["cdf"], tmp_path / "deep" / "cdf")
    assert [p.suffix for p in paths] == [".png", ".svg", ".pdf"]
    assert paths[0].read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert ET.parse(paths[1]).getroot().tag.endswith("svg")
    pdf = paths[2].read_bytes()
    assert pdf.startswith(b"%PDF")
    assert b"/FontFile2" in pdf  # TrueType, embedded
    assert b"/Type3" not in pdf
    assert "<text" not in paths[1].read_text()  # outlines: no font is needed to show it


def test_equal_data_give_equal_files(swept: Results, tmp_path: Path) -> None:
    for kind in style.FORMATS:
        one, two = (
            style.save(
                figures.over(swept.table(), "sojourn_p95", "rate", "queue"),
                tmp_path / f"{n}.{kind}",
            )[0].read_bytes()
            for n in (1, 2)
        )
        assert one == two


def test_only_known_formats(swept: Results, tmp_path: Path) -> None:
    figure = figures.over(swept.table(), "goodput", "rate", "queue")
    assert [p.name for p in style.save(figure, tmp_path / "a.svg")] == ["a.svg"]
    with pytest.raises(ValueError, match="png, svg, pdf"):
        style.save(figure, tmp_path / "a", ("bmp",))


def test_a_box_plot_of_one_run_says_why_it_is_empty(swept: Results) -> None:
    table = swept.table()
    one = table.frame[table.frame["seed"] == 1]
    table.frame = one[one["rate"] == 10].reset_index(drop=True)
    figure = figures.box(table, "sojourn_p95", "queue")
    label = figure.get_supxlabel().replace("\n", " ")
    assert re.search("1 run each: .*box.* requires 5", label)
    assert figure.axes[0].lines  # the run itself is shown as a dot


def test_panels(swept: Results) -> None:
    contents: list[multipanel.Panel] = [
        Over("sojourn_p95", "rate", "queue", "Delay"),
        Over("goodput", "rate", "queue", "Goodput", label="Mbit/s"),
        Losses("queue", {"rate": 10}, "Losses in a row", metric="sojourn", most=1),
    ]
    figure = multipanel.panels(swept.table(), contents)
    titles = [a.get_title(loc="left") for a in figure.axes if a.get_visible()]
    assert titles == ["(a) Delay", "(b) Goodput", "(c) Losses in a row"]
    assert texts_overlap(figure) == []
    assert len(figure.legends) == 1


def test_plots_from_a_table(swept: Results) -> None:
    plot = plots(swept.table())
    assert plot.over("sojourn_p95", "rate").axes
    assert plot.bars("goodput", "queue").axes
    assert plot.box("goodput", "queue").axes
    assert plot.cdf(by="queue").axes
    assert plot.series(by="queue").axes
    with pytest.raises(StudyError, match="no distribution"):
        plot.cdf("fct", "queue")
    with pytest.raises(StudyError, match="no time series"):
        plot.series("cwnd", "queue")


def test_three_factors_have_a_figure_for_each_level_of_the_third(tmp_path: Path) -> None:
    study = Study(scenario(), "three").vary(
        queue=["pfifo", "codel"], rate=[5, 10, 20], rtt=["10ms", "80ms"]
    )
    study.seeds(2).run(tmp_path, engine=FakeEngine())
    drawn = figures_of(Results.open(tmp_path))
    first = [name for name in drawn if name.startswith("sojourn-p95")]
    assert first == ["sojourn-p95-10ms", "sojourn-p95-80ms"]
    assert drawn["sojourn-p95-80ms"].axes[0].get_title(loc="left") == "80ms"


def test_the_ellipse_covers(tmp_path: Path) -> None:
    """The 95 % confidence ellipse of a mean holds the true mean 95 times in 100."""
    rng = np.random.default_rng(1)
    covariance = np.array([[2.0, 1.2], [1.2, 1.0]])
    hits = 0
    for _ in range(1500):
        points = rng.multivariate_normal([5, 3], covariance, 9)
        width, height, angle = figures.ellipse(points)
        turn = np.radians(-angle)
        x, y = np.array([5, 3]) - points.mean(axis=0)
        u, v = x * np.cos(turn) - y * np.sin(turn), x * np.sin(turn) + y * np.cos(turn)
        hits += (2 * u / width) ** 2 + (2 * v / height) ** 2 <= 1
    assert 0.93 <= hits / 1500 <= 0.97


def test_short_names() -> None:
    queues = ["codel limit 1000p target 5ms ecn", "pfifo limit 100p", "pfifo limit 1000p"]
    assert list(short_names(queues).values()) == [
        "codel",
        "pfifo limit 100p",
        "pfifo limit 1000p",
    ]
    two = short_names(["codel target 5ms ecn", "codel target 5ms", "codel"])
    assert len(set(two.values())) == 3
    assert two["codel"] == "codel"
    assert short_names(["a a", "a  a"]) == {"a a": "a a", "a  a": "a  a"}


def test_names_in_figures_have_parameters() -> None:
    red = "red limit 300p min 45p max 195p probability"
    queues = ["pie target 10ms", "codel", f"{red} 0.1", f"{red} 0.2"]
    assert list(labels.names(queues).values()) == [
        "pie target 10ms",
        "codel",
        "red … probability 0.1",
        "red … probability 0.2",
    ]


def test_long_names_are_shortened_in_the_middle() -> None:
    red = "red limit 1514000 min 7570 max 22710 avpkt 1000 bandwidth 20mbit adaptive"
    assert labels.names([red]) == {red: "red (adaptive)"}
    one = "a-policy-whose-name-is-already-very-long"
    assert labels.names([one, "codel"]) == {one: one, "codel": "codel"}


def test_factors_are_words() -> None:
    assert labels.factor("queue") == "Queue"
    assert labels.factor("flows.uploads.count") == "Number of uploads"
    assert labels.factor("links.line.reverse.rate") == "Rate of line reverse"


def test_levels_lie_where_their_quantities_are() -> None:
    rates = labels.across("links.line.rate", ["5mbit", "10mbit", "20mbit", "100mbit"])
    assert list(rates.at.values()) == [5, 10, 20, 100]
    assert rates.title == "Rate of line (Mbit/s, log scale)"
    counts = labels.across("flows.calls.count", [10, 20, 30, 40, 50])
    assert counts.title == "Number of calls"
    assert not counts.log
    words = labels.across("queue", ["codel", "pie"])
    assert not words.numeric
    assert words.texts == ["codel", "pie"]


def test_call_quality_is_on_its_own_scale(swept: Results) -> None:
    table = swept.table()
    table.frame["call.mos"] = 4.4
    axes = figures.bars(table, "call.mos", "queue").axes[0]
    assert axes.get_xlim()[0] == 1
    assert [text.get_text() for text in axes.get_xticklabels()][-1] == "4\ngood"


def test_distributions_are_pooled(comparison: Comparison) -> None:
    assert comparison.results is not None
    runs = comparison.results.runs(queue="codel")
    pooled = distribution(runs, "sojourn", "uplink")
    assert pooled is not None
    assert pooled.total == 55 * 6
    assert pooled.runs == 6
    x, p = pooled.cdf()
    assert (np.diff(x) > 0).all()
    assert p[-1] == 1
    assert distribution(runs, "sojourn", "nowhere") is None


def test_thinning_keeps_what_is_seen() -> None:
    rng = np.random.default_rng(2)
    y = rng.normal(0, 1, 100_000)
    y[12345] = 50.0
    x2, y2 = thin(np.arange(100_000.0), y, 1000)
    assert y2.max() == 50.0
    assert x2.size <= 1000
    assert (np.diff(x2) > 0).all()
    d = Distribution(np.arange(10_000.0), np.ones(10_000), 1)
    xs, ps = d.thinned(300)
    assert xs.size <= 302
    assert np.abs(np.interp(xs, d.values, d.cdf()[1]) - ps).max() < 1e-12
    assert d.quantile(0.5) == 4999
