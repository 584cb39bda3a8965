"""Imports go down only: statistics know no study, a study knows no figures."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOMS = Path(__file__).parents[2] / "python" / "sojourn"
ALLOWED = {
    "lab": {"lab", "stats", "scenario", "_core"},
    "lb": {"lb", "lab", "_core"},
    "stats": {"stats"},
    "study": {"stats", "study", "scenario", "_core"},
    "show": {"stats", "study", "scenario", "show", "_core"},
}


def imported(file: Path) -> set[str]:
    """Rooms that a file imports, other than for its annotations."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names: set[str] = set()
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and node.module == "sojourn":
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sojourn."):
            names.add((node.module or "").split(".")[1])
    return names


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_imports_go_down(room: str) -> None:
    for file in (ROOMS / room).rglob("*.py"):
        assert imported(file) <= ALLOWED[room], file
