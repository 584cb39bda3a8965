"""A line that simulated instruments measured is found again, and its advice comes true."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sojourn.cli.app import app
from sojourn.line.describe import known, scenario_text, worst
from sojourn.line.files import read
from sojourn.line.fit import Fit, fit
from sojourn.line.model import Line
from sojourn.scenario import Scenario
from sojourn.study.file import load
from tests.cli.outputs import agreeing
from tests.line import instruments
from tests.line.instruments import measured, planned, written

SESSION = planned(seconds=14)
FIFO = Line({"up": 3e6}, {"up": "fifo"}, {"up": 90_000.0}, 0.03, 0.0)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("line")
    return written(folder, "iperf3 and ping", SESSION, measured(SESSION, FIFO, 11))


@pytest.fixture(scope="module")
def found(files: list[Path]) -> Fit:
    return fit(read(files), runs=300)


def test_rate_delay_and_buffer_of_a_fifo_are_in_their_intervals(found: Fit) -> None:
    way = found.ways["up"]
    assert not found.outside
    assert "fifo" in way.likely
    assert not {"fq_codel", "fq_pie", "policer"} & set(way.likely)
    assert way.rate.value == pytest.approx(3e6, rel=0.03)
    assert found.base.value == pytest.approx(0.03, abs=1e-3)
    assert way.sizes["fifo"].low < 90_000 * 1.02
    assert way.sizes["fifo"].high > 90_000 * 0.98
    assert way.sizes["fifo"].high < 1.5 * way.sizes["fifo"].low


def test_an_unmeasured_direction_has_the_commands_that_measure_it(found: Fit) -> None:
    [download] = [one for one in known(found) if one.name == "download"]
    assert download.kind == "unknown"
    assert "iperf3 -c HOST -R" in download.measure[1]


def test_the_scenario_can_be_run_and_its_study_has_the_drawn_lines(
    found: Fit, tmp_path: Path
) -> None:
    file = tmp_path / "line.toml"
    file.write_text(scenario_text(found, worst(found)))
    assert Scenario.load(file).run(1).metrics["ping.delay_p95"] > 0.1
    assert len(load(file).cells) == 12


def test_fair_queueing_and_a_policer_are_distinguished_from_a_fifo(tmp_path: Path) -> None:
    for family, size in (("fq_codel", 0.005), ("policer", 40_000.0)):
        line = replace(FIFO, families={"up": family}, sizes={"up": size})
        course = measured(SESSION, line, 12)
        fitted = fit(read(written(tmp_path, "iperf3 and ping", SESSION, course)), runs=200)
        assert family in fitted.ways["up"].likely
        assert "fifo" not in fitted.ways["up"].likely


def test_loads_in_both_directions_at_once_exclude_no_rate_of_an_unequal_line(
    tmp_path: Path,
) -> None:
    line = Line(
        {"up": 2e6, "down": 2e7},
        {"up": "fifo", "down": "fifo"},
        {"up": 1e5, "down": 3e5},
        base=0.03,
        loss=0.0,
    )
    session = planned(("up", "down"), seconds=14)
    fitted = fit(read(written(tmp_path, "flent", session, measured(session, line, 7))), runs=200)
    for direction, way in fitted.ways.items():
        assert way.rate.low < line.rates[direction] < way.rate.high
        assert way.sizes["fifo"].low < line.sizes[direction]


BURSTS = Line({"up": 1e7}, {"up": "head-drop"}, {"up": 75_700.0}, 0.03, 0.0)


def bursts(folder: Path, line: Line, rates: Sequence[float]) -> Fit:
    """Returns the fit to bursts of UDP, each at a multiple of 10 Mbit/s, with irtt."""
    paths: list[Path] = []
    for number, offered in enumerate(1e7 * rate for rate in rates):
        session = planned(seconds=6, streams=1, interval=0.02, rounded=False, offered=offered)
        course, begin = measured(session, line, number), instruments.BEGIN + 30 * number
        texts = instruments.iperf3_udp(course, offered, begin), instruments.irtt(course, begin)
        for text in texts:
            paths.append(folder / str(len(paths)))
            paths[-1].write_text(text)
    return fit(read(paths), runs=200)


def test_bursts_show_a_fifo_that_drops_its_oldest_packet_without_fair_queueing(
    tmp_path: Path,
) -> None:
    """The method of Brunstrom, Garcia and Sundberg 2026 (arXiv 2605.27717) for Starlink's queue."""
    way = bursts(tmp_path, BURSTS, [1.3, 3.0]).ways["up"]
    assert way.likely == ["head-drop"]
    assert way.sizes["head-drop"].value == pytest.approx(75_700, rel=0.05)


@pytest.mark.parametrize(("family", "size"), [("head-drop", 75_700.0), ("codel", 0.005)])
def test_one_burst_does_not_exclude_the_true_queue(
    family: str, size: float, tmp_path: Path
) -> None:
    line = replace(BURSTS, families={"up": family}, sizes={"up": size})
    way = bursts(tmp_path, line, [3.0]).ways["up"]
    assert family in way.likely
    assert way.sizes[family].low <= size <= way.sizes[family].high


def test_a_rate_that_falls_is_outside_the_model(tmp_path: Path) -> None:
    falls = {"links.line.changes": [{"at": "9s", "forward": {"rate": "1200kbit"}}]}
    course = measured(SESSION, FIFO, 13, falls)
    paths = written(tmp_path, "iperf3 and ping", SESSION, course)
    result = CliRunner().invoke(app, ["fit", *map(str, paths), "--runs", "300", "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["outside"]


def test_the_commands_write_scenario_page_and_advice_that_comes_true(
    files: list[Path], tmp_path: Path
) -> None:
    names = [str(path) for path in files]
    out, page, saved = (tmp_path / n for n in ("line.toml", "line.html", "advice.json"))
    options = ["--runs", "300", "--out", str(out), "--page", str(page), "--json"]
    result = CliRunner().invoke(app, ["fit", *names, *options])
    assert result.exit_code == 0, result.output
    agreeing("fit", json.loads(result.stdout))
    assert "Measured and simulated" in page.read_text()
    result = CliRunner().invoke(app, ["advise", "line", *names, "--save", str(saved), "--json"])
    assert result.exit_code == 0, result.output
    advice = agreeing("advise line", json.loads(result.stdout))
    assert advice["queue"] != "present queue"
    assert any("tc qdisc" in command for command in advice["deployment"]["commands"])
    assert advice == json.loads(saved.read_text())
    queue = _installed(advice["deployment"]["commands"])
    missed = 0  # of five: a prediction of 90 % is missed by some measurements
    for seed in range(14, 19):
        course = measured(SESSION, FIFO, seed, {"links.line.queue": queue})
        after = [str(path) for path in written(tmp_path, "iperf3 and ping", SESSION, course)]
        result = CliRunner().invoke(app, ["advise", "check", str(saved), *after, "--json"])
        outcomes = agreeing("advise check", json.loads(result.stdout))
        assert result.exit_code == (0 if all(one["came_true"] for one in outcomes) else 1)
        missed += result.exit_code
    assert missed <= 2
    result = CliRunner().invoke(app, ["advise", "check", str(saved), *names])
    assert result.exit_code == 1
    assert "did not come true" in result.output


def _installed(commands: list[str]) -> str:
    return "\n".join(one for one in commands if one.startswith("tc ") and "replace" in one)


def test_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    result = CliRunner().invoke(app, ["fit", str(tmp_path / "x.json")])
    assert result.exit_code == 2
    assert "of no known instrument" in result.output
