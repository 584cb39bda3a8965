"""What is loaded by those who only import the package, or only ask for help.

Their times are measured by `make bench`: a test that measures time fails on a busy machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

# What `--help` cannot do without: typer and what typer itself imports.
TYPER = {"annotated_doc", "shellingham", "typer"}

# typer checks the values of options by pydantic, and loads it once a command has such options.
TYPER_OPTIONS = TYPER | {
    *("annotated_types", "pydantic", "pydantic_core", "typing_extensions", "typing_inspection")
}


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
    return set(json.loads(done.stderr)) - {"sojourn"}


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
    """What resolves a scenario needs pydantic and the engine."""
    code = "import sojourn\nfrom sojourn.scenario import Scenario"
    heavy = {"matplotlib", "numpy", "pandas", "plotly", "pyarrow", "scipy", "statsmodels"}
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
