"""Test whether a text is a valid scenario, before any file is written."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from sojourn.scenario import Scenario


def check(text: str, others: Mapping[str, bytes]) -> Scenario:
    """Returns the scenario of a text; raises `ScenarioError` with all errors.

    `others` has the contents of files that the scenario names and that do not exist yet.
    """
    if not others:
        return Scenario.from_toml(text)
    with tempfile.TemporaryDirectory() as folder:
        for name, data in others.items():
            (Path(folder) / name).write_bytes(data)
        return Scenario.from_toml(text, file=str(Path(folder) / "scenario.toml"))
