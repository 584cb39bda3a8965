"""Results for display, made once by the fake engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sojourn.study import Comparison, Results, Study, compare
from tests.browsers import browser, opened
from tests.study.fakes import FakeEngine, scenario

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["browser", "opened"]

HOSTILE = 'red <script>alert(1)</script> & "quotes" </script>'


@pytest.fixture(scope="session")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    out = tmp_path_factory.mktemp("compared")
    queues = ["pfifo limit 1000p", "codel", "fq_codel", HOSTILE]
    return compare(
        scenario(name="<b>home</b>"), queues, 6, "sojourn_p95", out=out, engine=FakeEngine()
    )


@pytest.fixture(scope="session")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Results:
    out: Path = tmp_path_factory.mktemp("swept")
    study = Study(scenario(), "sweep").vary(queue=["pfifo", "codel"], rate=[5, 10, 20, 40])
    study.seeds(4).run(out, engine=FakeEngine())
    return Results.open(out)


@pytest.fixture(scope="session")
def single(tmp_path_factory: pytest.TempPathFactory) -> Results:
    out: Path = tmp_path_factory.mktemp("single")
    Study(scenario(), "once").seeds([7]).run(out, engine=FakeEngine())
    return Results.open(out)
