"""The tables of faults and of exit codes are true: each fault has a test that exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.conftest import ROOT

FAULTS = ROOT / "docs" / "reference" / "faults.md"
TESTS = ROOT / "tests" / "faults" / "README.md"
CODES = ROOT / "docs" / "reference" / "exit-codes.md"
CLI = ROOT / "python" / "sojourn" / "cli"

_TEST = re.compile(r"\b((?:tests|crates)/[\w/.-]+?)::(\w+)")


def rows(page: Path) -> list[list[str]]:
    """Cells of all tables' rows, without heads."""
    found = []
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("| ") and not set(line) <= set("|- "):
            found.append(cells)
    return found


def test_every_test_named_exists() -> None:
    named = _TEST.findall(TESTS.read_text(encoding="utf-8"))
    assert len(named) > 40
    for place, name in named:
        text = (ROOT / place).read_text(encoding="utf-8")
        assert re.search(rf"^\s*(?:def|fn) {name}\(", text, flags=re.MULTILINE), (place, name)


def test_every_fault_has_a_test() -> None:
    faults = [cells[0] for cells in rows(FAULTS) if cells[0] != "Fault"]
    tested = dict(cells for cells in rows(TESTS) if cells[0] != "Fault")
    assert list(tested) == faults
    assert all(_TEST.search(tests) for tests in tested.values())


def test_every_test_of_faults_is_named() -> None:
    named = set(_TEST.findall(TESTS.read_text(encoding="utf-8")))
    for file in sorted((ROOT / "tests" / "faults").glob("test_*.py")):
        if file.name in ("test_documented.py", "test_exit_codes.py"):
            continue
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                assert (str(file.relative_to(ROOT)), node.name) in named, node.name


def test_commands_end_with_the_codes_that_are_documented() -> None:
    """No command ends with a number of its own."""
    codes = {"OK", "FINDINGS", "BAD_INPUT", "INCONCLUSIVE", "INTERRUPTED"}
    for file in sorted(CLI.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            if called == "typer.Exit":
                (code,) = node.args
                assert ast.unparse(code).removeprefix("exits.") in codes, (file, node.lineno)
            elif called in ("sys.exit", "exit", "os._exit"):
                # The parent of a command that runs a policy ends with the status of its child.
                assert file.name in ("__init__.py", "apart.py"), (file, node.lineno)
    from sojourn.cli import FAULT, exits

    known = {
        exits.OK,
        exits.FINDINGS,
        exits.BAD_INPUT,
        exits.INCONCLUSIVE,
        exits.INTERRUPTED,
        FAULT,
    }
    shown = {int(cells[0]) for cells in rows(CODES) if cells[0].isdecimal()}
    assert shown == known
