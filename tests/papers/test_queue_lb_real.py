"""The queue-lb study for real: what may be judged, and a small run on Open vSwitch."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("os_ken")

from sojourn.lab import Unavailable, openvswitch
from sojourn.lab.engine import WireEngine
from sojourn.papers.bench import Making, levels_of, split
from sojourn.papers.queue_lb import study
from sojourn.papers.queue_lb.paper import PAPER
from sojourn.papers.report import rows as means_rows
from sojourn.papers.report import show
from tests.lab.conftest import possible
from tests.papers import pretend

SMALL = study.BalancerSize(
    seconds=5, seeds=1, clients=(4,), rounds=1, transports=("UDP",), policies=("random", "IQLB")
)


def judged(size: study.BalancerSize) -> set[str]:
    """The claims whose levels are all run."""
    (part,) = study.parts(size)
    return {claim.id for claim in split(part.claims, levels_of(part))[0]}


def test_quick_takes_minutes_and_announces_it() -> None:
    assert re.fullmatch("24 real runs, .*: about 12 minutes", study.lasting(study.REAL_QUICK))
    assert study.lasting(study.REAL_FULL).endswith(" hours")


def test_a_claim_is_judged_only_if_all_it_names_is_run() -> None:
    few = {"iqlb-four", "qtm-four", "qtm-five", "rank-random"}
    assert judged(study.REAL_QUICK) == few
    assert not judged(SMALL)
    assert judged(study.REAL_FULL) == few | {"qtm-share", "rank-lbw", "rank-gap"}


def check(outcome: study.Results) -> None:
    """Two policies, four clients, one round."""
    assert [row["policy"] for row in means_rows(outcome)] == ["random", "IQLB"]
    assert [row["paper"] for row in means_rows(outcome)] == ["28.5 Mbit/s", "39.4 Mbit/s"]
    told = json.loads(json.dumps(outcome.as_dict()))
    assert len(told["not_judged"]) == 7
    for world, column in outcome.columns.items():
        pooled = column.frames["iperf"]["pooled"]
        assert len(pooled) == 2 * 4, world
        assert (pooled["throughput"] > 1e6).all(), world
    assert show(outcome)[0].is_file()


def test_the_real_part_shows_what_an_engine_gives(tmp_path: Path) -> None:
    outcome = PAPER.run(tmp_path, True, size=SMALL, engine=pretend.Engine())
    check(outcome)
    assert {row["real / simulated"] for row in means_rows(outcome)} == {"1.00"}


@pytest.mark.alone
@pytest.mark.slow
def test_a_small_run(tmp_path: Path) -> None:
    try:
        openvswitch.require()
    except Unavailable as error:
        pytest.skip(f"not installed: {error}")
    if not possible("auto") or not Path("/dev/net/tun").exists():
        pytest.skip("not installed: the permission, or /dev/net/tun")
    outcome = PAPER.run(tmp_path, True, Making(workers=1), size=SMALL, engine=WireEngine())
    check(outcome)
    assert outcome.about["switch"]["name"] == "openvswitch"
