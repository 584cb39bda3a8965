"""A plugin of pytest that lists the dearest tests: `python -m pytest -n auto -p tests.costs`.

It counts the processor time of a test with its fixtures and ended children, which other programs on
a machine change less than the time that pytest's `--durations` shows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

SHOWN = 20
_BEGAN = pytest.StashKey[float]()
_SPENT: dict[str, float] = {}


def _now() -> float:
    return sum(os.times()[:4])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_BEGAN] = _now()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    yield
    item.user_properties.append(("processor", _now() - item.stash[_BEGAN]))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown":
        _SPENT[report.nodeid] = float(str(dict(report.user_properties)["processor"]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section(f"processor seconds: {sum(_SPENT.values()):.0f} in all")
    for test in sorted(_SPENT, key=_SPENT.__getitem__, reverse=True)[:SHOWN]:
        terminalreporter.write_line(f"{_SPENT[test]:7.1f}  {test}")
