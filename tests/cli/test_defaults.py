"""Every default of every command is tried: without arguments, and with the required ones alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import SHORT, sojourn
from tests.cli.test_shared import leaves

SERVICES = {
    "play": "serves a page until it is stopped",
    "lab clean": "acts on the whole machine",
    "rcvbuf restore": "acts on the whole machine",
    "lab validate": "makes real runs for minutes",
    "linux build": "downloads and builds a kernel",
    "store fetch": "downloads a database",
    "study coexistence": "makes 2720 runs for minutes",
    "wire selftest": "measures the machine for a minute",
    "wire top": "follows a wire until it is stopped",
}
"""Commands that are not run here although they need no argument, and why; their own tests do."""

LEAVES = leaves()
NAMES = [name for name, _ in LEAVES]


def required(command: Any) -> list[Any]:
    return [parameter for parameter in command.params if parameter.required]


@pytest.mark.parametrize(("name", "command"), LEAVES, ids=NAMES)
def test_defaults_pass_their_own_checks(name: str, command: Any) -> None:
    """A default is not checked by the parser: it would be found out by the first user."""
    with command.make_context(name, [], resilient_parsing=True) as context:
        for parameter in command.params:
            default = parameter.get_default(context)
            if default in (None, "", [], ()) or isinstance(default, bool):
                continue
            values = default if isinstance(default, (list, tuple)) else [default]
            for value in values:
                assert parameter.help is not None
                text = str(value)
                arguments = (
                    [text] if parameter.param_type_name == "argument" else [parameter.opts[0], text]
                )
                with command.make_context(name, arguments, resilient_parsing=True) as given:
                    assert given.params[parameter.name] in (default, [default], [value]), (
                        parameter.name
                    )


@pytest.mark.parametrize(
    ("name", "command"), [leaf for leaf in LEAVES if required(leaf[1])],
    ids=[name for name, command in LEAVES if required(command)],
)  # fmt: skip
def test_without_arguments_the_missing_one_is_named(
    name: str, command: Any, tmp_path: Path
) -> None:
    done = sojourn(*name.split(), cwd=tmp_path)
    assert done.status == 2
    first = required(command)[0]
    assert "Missing" in done.err
    shown = first.metavar or first.opts[0]
    assert shown in done.err or first.opts[0] in done.err, done.err
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore:.* is deprecated:FutureWarning")
@pytest.mark.parametrize(
    "name", [n for n, command in LEAVES if not required(command) and n not in SERVICES]
)
def test_commands_that_need_no_argument_work_or_say_what_to_give(name: str, tmp_path: Path) -> None:
    done = sojourn(*name.split(), cwd=tmp_path)
    assert done.status in (0, 1, 2)
    assert done.out or done.err
    if done.status == 2:
        assert len(done.err.strip()) > 20, done.err


def test_services_are_commands() -> None:
    assert set(SERVICES) <= set(NAMES)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "home.toml"
    path.write_text(SHORT.replace('"4s"', '"2s"').replace('"1s"', '"200ms"', 1))
    return path


@pytest.mark.parametrize("name", ["run", "tc", "compare"])
def test_commands_of_a_scenario_take_it_alone(name: str, scenario: Path) -> None:
    done = sojourn(*name.split(), scenario, cwd=scenario.parent)
    assert done.status == 0, done.err
    assert done.out
