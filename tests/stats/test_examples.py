"""The examples in docstrings give what they show."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

from sojourn import stats

MODULES = [module.name for module in pkgutil.iter_modules(stats.__path__)]


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_statistics_run(module: str) -> None:
    found = importlib.import_module(f"sojourn.stats.{module}")
    examples = doctest.DocTestFinder().find(found, extraglobs={"stats": stats})
    # Functions that check their arguments are wrapped: their docstrings are those of the module.
    runner = doctest.DocTestRunner()
    assert sum(runner.run(one).failed for one in examples) == 0


def test_most_statistics_have_an_example() -> None:
    functions = [getattr(stats, name) for name in dir(stats)]
    assert sum(">>>" in (one.__doc__ or "") for one in functions) >= 36
