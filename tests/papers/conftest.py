"""Fixtures of the studies' tests."""

from __future__ import annotations

from functools import partial

import pytest

from sojourn.papers import report
from sojourn.show import write_report


@pytest.fixture
def one_format(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports have their figures in one format; `test_plain.py` has all formats."""
    monkeypatch.setattr(report, "write_report", partial(write_report, formats=("png",)))
