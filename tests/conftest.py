"""What all tests share."""

from __future__ import annotations

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


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts what it puts in the background with SIGINT ignored, nohup with SIGHUP, and that
    # is inherited: the tests of signals need them heard.
    for number, usual in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)
    config.addinivalue_line("markers", "needs(program): skipped where the program is not installed")


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
