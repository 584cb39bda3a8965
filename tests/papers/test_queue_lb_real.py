"""The queue-lb study for real: what may be judged, and a small run on Open vSwitch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("os_ken")

from sojourn.lab import Unavailable, openvswitch
from sojourn.lab.engine import WireEngine
from sojourn.papers.queue_lb import real
from sojourn.papers.queue_lb.claims import CLAIMS
from tests.lab.conftest import possible

SMALL = real.Size(("unequal",), (4,), 1, 2, 1, ("UDP",), ("random", "IQLB"))


def test_quick_takes_minutes_and_says_so() -> None:
    assert real.estimate(real.QUICK) == "24 real runs, one after the other: about 8 minutes"
    assert real.estimate(real.FULL).endswith(" hours")


def test_a_claim_is_judged_only_if_all_it_names_is_run() -> None:
    judged = {claim.id for claim in CLAIMS if real.suffices(claim, real.QUICK)}
    assert judged == {"iqlb-unequal-tcp", "iqlb-unequal-udp", "qtm-unequal-tcp", "qtm-unequal-udp"}
    assert not [claim for claim in CLAIMS if real.suffices(claim, SMALL)]
    assert all(real.suffices(claim, real.FULL) for claim in CLAIMS)


@pytest.mark.slow
def test_a_small_run(tmp_path: Path) -> None:
    try:
        openvswitch.require()
    except Unavailable as error:
        pytest.skip(f"not installed: {error}")
    if not possible("auto") or not Path("/dev/net/tun").exists():
        pytest.skip("not installed: the permission, or /dev/net/tun")
    outcome = real.run(tmp_path, WireEngine(), SMALL, workers=1)
    rows = real.rows(outcome)
    assert [row["policy"] for row in rows] == ["random", "IQLB"]
    told = json.loads(json.dumps(outcome.as_dict()))
    assert told["switch"]["name"] == "openvswitch"
    assert len(told["not_judged"]) == len(CLAIMS)
    for world, pooled in outcome.pooled.items():
        assert len(pooled) == 2 * 4, world
        assert (pooled["throughput"] > 1e6).all(), world
    assert real.show(outcome)[0].is_file()
