"""Fixtures and markers of all tests."""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from sojourn.lab.errors import Unavailable
from sojourn.linux import kernels

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted(
    {
        path.resolve()  # some examples are templates
        for folder in (ROOT / "examples", ROOT / "python" / "sojourn" / "templates")
        for path in folder.glob("*.toml")
    }
)
"""All scenarios that are shown: examples and templates."""

settings.register_profile("default", deadline=None)
settings.register_profile("soak", deadline=None, max_examples=20_000)
settings.register_profile(
    "ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci" if os.environ.get("SOJOURN_CI") else "default")

_NOT_INSTALLED = "not installed: "


@pytest.fixture(autouse=True)
def _state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives each test a state folder of its own, in which commands keep answers."""
    name = f"state-{next(_STATES)}"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / name))


_STATES = itertools.count()


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts what it puts in the background with SIGINT ignored, nohup with SIGHUP, and that
    # is inherited: the tests of signals need them heard.
    for number, usual in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)
    for marker in (
        "needs(program): skipped where the program is not installed",
        "alone: measures real programs or packets; no other test runs at the same time",
    ):
        config.addinivalue_line("markers", marker)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts tests marked `alone` last: in between, each would wait for another worker's test."""
    items.sort(key=lambda item: item.get_closest_marker("alone") is not None)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Keeps other workers' tests away while a test marked `alone` runs.

    A waiting test holds the gate, so that a test marked `alone` waits for running tests only.
    """
    folder = item.config.cache.mkdir("locks")
    with (folder / "gate").open("w") as gate, (folder / "machine").open("w") as machine:
        fcntl.flock(gate, fcntl.LOCK_EX)
        alone = item.get_closest_marker("alone") is not None
        fcntl.flock(machine, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield
        # A child that a test left behind may hold the file open: closing it would not be enough.
        fcntl.flock(machine, fcntl.LOCK_UN)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        for program in mark.args:
            if shutil.which(program) is None:
                pytest.skip(_NOT_INSTALLED + program)


@pytest.fixture(scope="session")
def kernel() -> kernels.Kernel:
    """The kernel that runs in virtual time take by default."""
    try:
        return kernels.find()
    except Unavailable as error:
        pytest.skip(f"{_NOT_INSTALLED}{error}: `{kernels.REMEDY}`")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """In CI a test may only be skipped for want of a program that really is not there."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if not os.environ.get("SOJOURN_CI") or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if _NOT_INSTALLED not in reason:
        report.outcome = "failed"
        report.longrepr = f"skipped, although this machine could run it: {reason}"


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def examples() -> list[Path]:
    """All example scenarios, templates among them."""
    assert len(EXAMPLES) >= 13
    return EXAMPLES
