"""Check that a text is a valid scenario before any file is written."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from sojourn.scenario import Scenario


def check(text: str, others: Mapping[str, bytes]) -> Scenario:
    """Returns the scenario of a text; raises `ScenarioError` with every mistake.

    `others` are the files that it names, which are not in their place yet.
    """
    if not others:
        return Scenario.from_toml(text)
    with tempfile.TemporaryDirectory() as folder:
        for name, data in others.items():
            (Path(folder) / name).write_bytes(data)
        return Scenario.from_toml(text, file=str(Path(folder) / "scenario.toml"))
