"""Results are frozen: the runs of a hundred scenarios are those that were recorded."""

from __future__ import annotations

import json

from tests.scenario import hashes


def test_no_result_has_changed() -> None:
    now, recorded = hashes.hashes(), json.loads(hashes.RECORDED.read_text(encoding="utf-8"))
    assert list(now) == list(recorded)
    assert [name for name in now if now[name] != recorded[name]] == []
    assert len(set(now.values())) == len(now) >= 100
