"""Trace hashes of runs: every template, and drawn networks for every queue discipline.

`python -m tests.scenario.hashes` records them. A changed hash is a changed result: record it in a
commit of its own, which says which model changed and why.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

from sojourn import Scenario, _core
from sojourn.suites.disciplines import every
from sojourn.templates import TEMPLATES

RECORDED = Path(__file__).with_name("hashes.json")
RATES = (2_000_000, 10_000_000, 50_000_000)
NETEM = ("delay 5ms", "delay 20ms 2ms loss 0.5%", "delay 40ms duplicate 1%", "delay 80ms")
FLOWS = (
    "bulk",
    "web",
    "transfer size 100kb think exp(100ms) forever",
    "cbr rate 1mbit payload 1000",
)
ECN = ("off", "classic", "accurate", "l4s")
SECONDS = 4


def cases() -> Iterator[tuple[str, Scenario]]:
    """Yields the scenarios by name."""
    for name, template in TEMPLATES.items():
        short = {"duration": "50ms", "warmup": "10ms"} if name == "rack" else {"duration": "12s"}
        scenario = template.scenario()
        yield name, scenario if name == "edge" else scenario.replace({"warmup": "1s", **short})
    known = json.loads(_core.describe())
    controls, profiles = ([one["name"] for one in known[key]] for key in ("tcp", "profiles"))
    for discipline in every(RATES[0], 100):
        for number in range(3):
            draw = Random(f"{discipline} {number}")
            rate = RATES[number]
            line = {"from": "a", "to": "b", "rate": f"{rate}bit", "netem": draw.choice(NETEM)}
            flows = [
                {
                    "from": "a",
                    "to": "b",
                    "app": app,
                    "tcp": f"{draw.choice(controls)} profile {draw.choice(profiles)} "
                    f"ecn {draw.choice(ECN)}",
                    "count": draw.randint(1, 6),
                    "start": "uniform 0s 1s",
                }
                for app in (FLOWS[0], draw.choice(FLOWS[1:]))
            ]
            yield (
                f"{discipline} {number}",
                Scenario(
                    duration=f"{SECONDS}s",
                    links={"line": {**line, "queue": every(rate, 100)[discipline]}},
                    flows=[*flows, {"from": "a", "to": "b", "app": "voip"}],
                ),
            )


def hashes() -> dict[str, str]:
    """Returns the trace hashes by the scenario's name."""
    return {name: scenario.run(1).trace_hash for name, scenario in cases()}


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(hashes(), indent=0) + "\n", encoding="utf-8")
