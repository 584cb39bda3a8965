"""Plans for the tests of real programs."""

from __future__ import annotations

from typing import Any

from sojourn.plan import Plan
from sojourn.scenario import Scenario

SECOND = 1_000_000_000
HEAD = """
name = "two hosts"
duration = "{duration}"
warmup = "0.5s"

[links.uplink]
from = "a"
to = "b"
rate = "100mbit"
queue = "fq_codel"
"""


def flow(app: str, **keys: Any) -> str:
    """One group of flows from a to b, as TOML."""
    keys = {"from": "a", "to": "b", "app": app, **keys}
    lines = [f"{key} = {value!r}" for key, value in keys.items()]
    return "\n".join(["[[flows]]", *lines])


def plan(*flows: str, duration: str = "2s", head: str = HEAD) -> Plan:
    """The plan of two hosts with these flows."""
    text = "\n".join([head.format(duration=duration), *flows])
    return Scenario.from_toml(text).plan
