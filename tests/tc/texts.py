"""Scenarios, and files of `tc`, for the tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sojourn import _core
from sojourn.scenario import Scenario, ScenarioError
from sojourn.tc import Applied, apply, read

HERE = Path(__file__).parent
SCRIPTS = HERE / "scripts"
SHOWN = HERE / "shown"
"""Folder with outputs of `tc` of iproute2 6.1 on Linux 7.3."""

HOME = """
duration = "2s"
[links.line]
from = "home"
to = "isp"
rate = "20mbit"
netem = "delay 10ms"
queue = "pfifo limit 100p"
[[flows]]
name = "bulk"
from = "home"
to = "isp"
app = "bulk"
"""
HOME_SCENARIO = Scenario.from_toml(HOME)


def applied(text: str, device: str | None = None, **options: Any) -> Applied:
    """A text of `tc` on the home's link."""
    given: dict[str, str] = options.pop("given", {})
    return apply(HOME_SCENARIO, read([("f", text)], given, device), device, **options)


def queue(text: str, device: str | None = None, **options: Any) -> Any:
    """The parameters of the queue that a text of `tc` gives the home's link."""
    found = applied(text, device, **options)
    return json.loads(_core.parse_queue(str(found.placed[0].queue)))


def parsed(text: str) -> object:
    return json.loads(_core.parse_queue(text))


def problems(text: str, device: str | None = None, **options: Any) -> list[tuple[int | None, str]]:
    """The lines of a text that cannot be read, and why."""
    try:
        applied(text, device, **options)
    except ScenarioError as error:
        return [(problem.line, problem.message) for problem in error.problems]
    return []
