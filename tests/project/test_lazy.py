"""Packages that import their names late offer all that their stubs state."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path

import pytest

import sojourn

ROOT = Path(sojourn.__file__).parent
STUBS = sorted(ROOT.rglob("__init__.pyi"))
NAMES = [".".join(("sojourn", *stub.parent.relative_to(ROOT).parts)) for stub in STUBS]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_a_stub_is_there(name: str) -> None:
    package = import_module(name)
    stub = Path(str(package.__file__)).with_suffix(".pyi").read_text(encoding="utf-8")
    homes: dict[str, str] = {}
    stated: set[str] = set()
    for node in ast.parse(stub).body:
        if isinstance(node, ast.ImportFrom):
            homes |= {str(alias.asname): str(node.module) for alias in node.names}
        elif isinstance(node, ast.AnnAssign):
            stated.add(ast.unparse(node.target))
    assert sorted(package.__all__) == sorted({*homes, *stated})
    assert set(dir(package)) == set(homes)
    for inner, module in homes.items():
        offered, stated_there = (getattr(at, inner) for at in (package, import_module(module)))
        # Functions are offered with a check of their arguments.
        assert inspect.unwrap(offered) is inspect.unwrap(stated_there)


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_name_is_an_error(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        _ = import_module(name).nothing
