"""Whether a text is a scenario that runs, before anything is written."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from sojourn.scenario import Scenario


def check(text: str, others: Mapping[str, bytes]) -> Scenario:
    """The scenario of a text; raises `ScenarioError` with all that is wrong with it.

    `others` are the files that it names, which are not where they will be yet.
    """
    if not others:
        return Scenario.from_toml(text)
    with tempfile.TemporaryDirectory() as folder:
        for name, data in others.items():
            (Path(folder) / name).write_bytes(data)
        return Scenario.from_toml(text, file=str(Path(folder) / "scenario.toml"))
