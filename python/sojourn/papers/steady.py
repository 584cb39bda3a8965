"""Verdicts of quick runs, which contradict no recorded verdict of the whole study.

Quick runs are shorter, and some findings depend on the length of the runs. A quick verdict that
differs from the recorded one is therefore no verdict.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from sojourn.papers.rule import rule

FOLDER = Path(__file__).parent / "recorded"
"""Folder of the recorded results of all studies."""


def unjudged(name: str, quick: Mapping[str, str]) -> dict[str, str]:
    """Returns the claims of a study that quick runs cannot judge, each with the reason.

    `quick` has the verdicts of the quick runs by claim. A claim that the record lacks is judged.
    """
    file = FOLDER / f"{name}.json"
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if "--quick" in kept.get("command", "--quick"):
        return {}
    # A recorded contrast without a condition is one in our network.
    whole = {one["id"]: one.get("ruling", rule(one["verdict"], None)) for one in kept["claims"]}
    return {
        claim: f"not judged by --quick: shorter runs say *{verdict}*, the whole study *{known}*"
        for claim, verdict in quick.items()
        if verdict not in ("cannot be told", known := whole.get(claim, verdict))
    }
