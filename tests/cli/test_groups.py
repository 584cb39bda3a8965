"""Options in groups: the parser sees their fields, the command gets the groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from sojourn.cli import exits


@dataclass(frozen=True)
class Inner:
    depth: Annotated[int, typer.Option("--depth", help="How deep.")] = 3


@dataclass(frozen=True)
class Outer:
    name: Annotated[str, typer.Option("--name", help="Who.")]
    inner: Inner = Inner()
    loud: Annotated[bool, typer.Option("--loud", help="How.")] = False


@exits.command
def greet(outer: Outer, times: Annotated[int, typer.Option("--times")] = 1) -> None:
    typer.echo(f"{outer.name} {outer.inner.depth} {outer.loud} {times}")


APP = typer.Typer(add_completion=False)
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
