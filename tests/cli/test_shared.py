"""Options that all commands have: --quiet and --output."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer

from sojourn.cli import output
from tests.cli.test_commands import SHORT, process, sojourn


def leaves() -> list[tuple[str, Any]]:
    """Every command with its name."""
    from sojourn.cli.app import app

    def walk(command: Any, path: list[str]) -> list[tuple[str, Any]]:
        inner = getattr(command, "commands", {})
        if not inner:
            return [(" ".join(path), command)]
        return [leaf for name, one in inner.items() for leaf in walk(one, [*path, name])]

    return walk(typer.main.get_command(app), [])


def test_every_command_can_be_quiet_and_every_result_has_formats() -> None:
    for name, command in leaves():
        options = {option for parameter in command.params for option in parameter.opts}
        assert {"--quiet", "-q"} <= options, name
        assert ("--output" in options) == ("--json" in options), name


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "home.toml"
    path.write_text(SHORT.replace("codel limit 1000p target 5ms", "cake nat"))
    return path


def untimed(text: str) -> str:
    """Returns an output without the wall-clock time that it states."""
    found, count = re.subn(r" in [0-9.]+ s, trace", ", trace", text)
    assert count == 1
    return found


def test_quiet_leaves_out_notes_and_progress(scenario: Path) -> None:
    loud = sojourn("run", scenario)
    quiet = sojourn("run", scenario, "--quiet")
    assert "`nat` has no effect" in loud.err
    assert (quiet.status, quiet.err) == (0, "")
    assert untimed(quiet.out) == untimed(loud.out)
    wrong = sojourn("run", "nowhere.toml", "-q")
    assert wrong.status == 2
    assert "nowhere.toml" in wrong.err


def test_a_result_is_the_same_in_every_format() -> None:
    rows = json.loads(sojourn("list", "queue", "--output", "json").out)["queue"]
    assert json.loads(sojourn("list", "queue", "--json").out)["queue"] == rows
    text = sojourn("list", "queue", "--output", "csv").out
    assert list(csv.DictReader(io.StringIO(text))) == rows
    lines = sojourn("list", "queue", "--output", "md").out.splitlines()
    assert lines[:2] == ["| name | summary |", "| --- | --- |"]
    assert len(lines) == 2 + len(rows)
    assert lines[2] == f"| {rows[0]['name']} | {rows[0]['summary']} |"


def test_a_comparison_is_a_table(scenario: Path) -> None:
    given = ("compare", scenario, "--queues", "codel", "pie", "--seeds", "2")
    text = process(*given, "--output", "csv", "--quiet")
    assert text.err == ""
    rows = list(csv.DictReader(io.StringIO(text.out)))
    choices = json.loads(process(*given, "--json").out)["queues"]
    assert [row["queue"] for row in rows] == [entry["queue"] for entry in choices]
    assert [row["letters"] for row in rows] == [entry["letters"] for entry in choices]


def test_formats_that_exclude_each_other_and_unknown_ones_are_refused() -> None:
    both = sojourn("list", "--json", "--output", "csv")
    assert both.status == 2
    assert "--output" in both.err
    assert sojourn("list", "--output", "xml").status == 2
    error = sojourn("explain", "nothing-like-this", "--output", "csv")
    assert (error.status, error.out) == (2, "")
    assert "unknown name" in error.err


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ({"a": 1, "b": {"c": True, "d": None}},
         [["name", "value"], ["a", "1"], ["b.c", "true"], ["b.d", ""]]),
        ({"rows": [{"x": 1, "y": [1, 2]}], "unit": "s"}, [["x", "y"], ["1", "1; 2"]]),
        ({"p": [{"x": 1}], "q": [{"x": 2}]}, [["kind", "x"], ["p", "1"], ["q", "2"]]),
        ([{"m": "a", "rows": [{"x": 1}, {"x": 2}]}], [["m", "x"], ["a", "1"], ["a", "2"]]),
        ([], [["value"], [""]]),
        (3, [["value"], ["3"]]),
    ],
)  # fmt: skip
def test_rows_of_a_result(value: Any, lines: list[list[str]]) -> None:
    assert output._lines(value) == lines


def test_a_markdown_cell_holds_what_would_end_it(capsys: pytest.CaptureFixture[str]) -> None:
    output.take_shared({"output_format": "md"})
    output.print_data([{"a": "x|y\nz"}])
    assert capsys.readouterr().out == "| a |\n| --- |\n| x\\|y z |\n"
