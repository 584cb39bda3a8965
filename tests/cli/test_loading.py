"""The modules that an import of the package and the help load.

Their times are measured by `make bench`: a test that measures time fails on a busy machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import SHORT

# The modules that `--help` needs: typer and typer's imports.
TYPER = {"annotated_doc", "shellingham", "typer"}

# typer checks the values of options by pydantic, and loads it once a command has such options.
TYPER_OPTIONS = TYPER | {
    *("annotated_types", "pydantic", "pydantic_core", "typing_extensions", "typing_inspection")
}

RICH = {"markdown_it", "mdurl", "pygments", "rich"}


def third_party(code: str) -> set[str]:
    """Packages that `code` loads in a fresh interpreter, beyond the standard library's."""
    script = (
        "import json, sys\n"
        "before = set(sys.modules)\n"
        "def loaded():\n"
        "    names = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "    others = {name for name in names - sys.stdlib_module_names if name[0] != '_'}\n"
        "    print(json.dumps(sorted(others)), file=sys.stderr)\n"
        f"{code}\n"
        "loaded()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1])) - {"sojourn"}


def test_an_import_loads_nothing_of_others() -> None:
    assert third_party("import sojourn; sojourn.__version__") == set()


def test_help_loads_only_typer() -> None:
    code = (
        "from sojourn.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as end:\n    assert not end.code\n"
    )
    assert third_party(code) <= TYPER


def test_help_of_any_command_loads_only_typer() -> None:
    code = (
        "import contextlib, io\n"
        "from typer.main import get_command\n"
        "from sojourn.cli import main\n"
        "from sojourn.cli.app import app\n"
        "def helps(command, path):\n"
        "    try:\n        main([*path, '--help'])\n"
        "    except SystemExit as end:\n        assert not end.code, path\n"
        "    for name, inner in getattr(command, 'commands', {}).items():\n"
        "        helps(inner, [*path, name])\n"
        "with contextlib.redirect_stdout(io.StringIO()) as out:\n"
        "    helps(get_command(app), [])\n"
        "assert out.getvalue().count('Usage: sojourn ') > 20\n"
    )
    assert third_party(code) <= TYPER_OPTIONS


def test_a_scenario_loads_no_tables_and_no_figures() -> None:
    """The resolution of a scenario needs pydantic and the engine."""
    code = "import sojourn\nfrom sojourn.scenario import Scenario"
    heavy = {"matplotlib", "numpy", "pandas", "pyarrow", "scipy", "statsmodels"}
    assert third_party(code) & (heavy | {"distributed", "optuna", "rich"}) == set()


def test_the_table_of_commands_says_what_the_commands_say() -> None:
    from typer.main import get_command

    from sojourn.cli.app import COMMANDS, app

    made: Any = get_command(app)
    for name, (_, summary) in COMMANDS.items():
        assert made.commands[name].short_help == summary


def test_a_command_imports_no_other() -> None:
    code = (
        "import sys\n"
        "from sojourn.cli import main\n"
        "try:\n    main(['run', '--help'])\nexcept SystemExit:\n    pass\n"
        "assert 'sojourn.cli.run' in sys.modules\n"
        "assert not {'sojourn.cli.compare', 'sojourn.cli.lb'} & set(sys.modules)\n"
    )
    third_party(code)


HEAVY = {"jinja2", "matplotlib", "pandas", "pyarrow", "scipy", "statsmodels"}


@pytest.mark.parametrize(
    ("words", "others"),
    [
        (["run"], {"numpy", "rich"}),
        (["run", "--json"], {"numpy", "rich"}),
        (["compare", "--queues", "codel", "pie", "--seeds", "2"], set()),
        (["compare", "--queues", "codel", "pie", "--seeds", "2", "--json"], {"rich"}),
        (["tc"], {"numpy", "rich"}),
    ],
)
def test_commands_load_no_data_frames_and_no_figures(
    words: list[str], others: set[str], tmp_path: Path
) -> None:
    """Also where nothing of that is installed: an import of it would be an error."""
    file = tmp_path / "home.toml"
    file.write_text(SHORT)
    command = [words[0], str(file), *words[1:]]
    code = (
        "import contextlib, io, sys\n"
        f"sys.modules |= dict.fromkeys({sorted(HEAVY | others)!r})\n"
        "before |= set(sys.modules)\n"
        "from sojourn.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()) as out:\n"
        f"    try:\n        main({command!r})\n"
        "    except SystemExit as end:\n        assert not end.code\n"
        "assert out.getvalue()\n"
    )
    assert third_party(code) <= TYPER_OPTIONS | RICH | {"numpy"}


def test_play_starts_without_data_frames_and_figures() -> None:
    code = (
        "import sys\n"
        f"sys.modules |= dict.fromkeys({sorted(HEAVY)!r})\n"
        "before |= set(sys.modules)\n"
        "import sojourn.play.server\n"
        "from sojourn.play.catalogue import catalogue\n"
        "assert catalogue()['scenarios']\n"
    )
    third_party(code)


LINUX_ONLY = ("fcntl", "grp", "pwd", "pyroute2", "pycurl", "resource", "termios", "tty")


def test_the_simulator_needs_no_module_that_only_linux_has(tmp_path: Path) -> None:
    """As on Windows: what is Linux's own is imported by the commands that use it."""
    file = tmp_path / "home.toml"
    file.write_text(SHORT)
    words = ["compare", str(file), "--queues", "codel", "pie", "--seeds", "2"]
    code = (
        "import contextlib, io, os, sys\n"
        "import numpy, pydantic.main, rich.console, rich.table, shutil, tempfile, typer.main\n"
        "sys.platform = 'win32'\n"
        "for name in ('geteuid', 'getuid', 'sched_getaffinity', 'mkfifo'):\n"
        "    delattr(os, name)\n"
        f"sys.modules |= dict.fromkeys({LINUX_ONLY!r})\n"
        "before |= set(sys.modules)\n"
        "import sojourn\n"
        "from sojourn.cli import main\n"
        "for name in sojourn.__all__:\n"
        "    getattr(sojourn, name)\n"
        "with contextlib.redirect_stdout(io.StringIO()) as out:\n"
        f"    for words in {[['--help'], ['run', str(file)], ['tc', str(file)], words]!r}:\n"
        "        try:\n            main(words)\n"
        "        except SystemExit as end:\n            assert not end.code, words\n"
        "assert 'Usage: sojourn' in out.getvalue()\n"
    )
    third_party(code)
