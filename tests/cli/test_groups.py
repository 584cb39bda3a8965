"""Settings as options: the parser sees their fields, the command gets the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from sojourn.cli import exits
from sojourn.settings import Option, Seconds, SettingError, settings


@dataclass(frozen=True)
class Inner:
    depth: int = 3
    """How deep."""
    pause: Seconds = 0.25
    """Time between
    two greetings.
    """


@settings
class Outer:
    name: Annotated[str, Option("WHO")]
    """Who."""
    inner: Inner = Inner()
    loud: bool = False
    """How."""
    strength: Annotated[int, Option(min=1, max=9)] = 5
    """How strongly."""


@exits.command
def greet(outer: Outer, times: Annotated[int, Option(help="How often.")] = 1) -> None:
    typer.echo(f"{outer.name} {outer.inner.depth} {outer.loud} {times}")


APP = typer.Typer(add_completion=False, rich_markup_mode=None)
APP.command()(greet)


def test_fields_of_groups_are_options_in_their_order() -> None:
    told = CliRunner().invoke(APP, ["--help"], env={"COLUMNS": "100"}).output
    places = [told.index(option) for option in ("--name", "--depth", "--loud", "--times")]
    assert places == sorted(places)


def test_a_command_gets_its_groups() -> None:
    run = CliRunner().invoke
    assert run(APP, ["--name", "a"]).output == "a 3 False 1\n"
    assert run(APP, ["--name", "a", "--depth", "7", "--loud"]).output == "a 7 True 1\n"
    assert run(APP, []).exit_code == 2


def test_a_field_is_declared_once_for_help_range_and_unit() -> None:
    told = CliRunner().invoke(APP, ["--help"], env={"COLUMNS": "100"}).output
    assert "--name WHO" in told
    assert "Time between two greetings.  [default: 250ms]" in told
    assert "How strongly.  [default: 5; 1<=x<=9]" in told
    assert CliRunner().invoke(APP, ["--name", "a", "--strength", "10"]).exit_code == 2
    with pytest.raises(SettingError, match="`strength` must be 1 to 9; found 10"):
        Outer("a", strength=10)


def test_a_quantity_is_read_in_the_unit_of_its_field() -> None:
    found: list[Outer] = []

    @exits.command
    def keep(outer: Outer) -> None:
        found.append(outer)

    app = typer.Typer(add_completion=False)
    app.command()(keep)
    assert CliRunner().invoke(app, ["--name", "a", "--pause", "20ms"]).exit_code == 0
    assert found == [Outer("a", Inner(pause=0.02))]
    wrong = CliRunner().invoke(app, ["--name", "a", "--pause", "20"])
    assert wrong.exit_code == 2
    assert wrong.stderr.startswith("--pause: a time needs its unit")
