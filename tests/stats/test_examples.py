"""The examples in docstrings give what they show."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import shutil
from pathlib import Path

import pytest

import sojourn
from sojourn import stats

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MODULES = [f"sojourn.stats.{module.name}" for module in pkgutil.iter_modules(stats.__path__)]
MODULES += ["sojourn.scenario.scenario", "sojourn.study.comparing"]


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_run(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(EXAMPLES / "home.toml", tmp_path)
    found = importlib.import_module(module)
    examples = doctest.DocTestFinder().find(found, extraglobs={"stats": stats, "sojourn": sojourn})
    # Functions that check their arguments are wrapped: their docstrings are those of the module.
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert sum(runner.run(one).failed for one in examples) == 0


def test_most_statistics_have_an_example() -> None:
    functions = [getattr(stats, name) for name in dir(stats)]
    assert sum(">>>" in (one.__doc__ or "") for one in functions) >= 36
