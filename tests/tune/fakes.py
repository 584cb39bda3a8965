"""A scenario and an engine for searches: quick, with a best setting that is known."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sojourn import _core
from sojourn.plan import Plan
from sojourn.scenario import Problem, ScenarioError
from tests.study.fakes import FakeEngine, FakeRecord, FakeScenario, real

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sojourn.scenario import Scenario
    from sojourn.scenario.engine import RunProgress

BEST = 12.0
"""Target in ms at which the delay is least."""


class SearchScenario(FakeScenario):
    """One whose queues are read by the engine."""

    def replace(self, changes: Mapping[str, Any]) -> SearchScenario:
        made = SearchScenario({**self.data, **changes})
        try:
            _core.parse_queue(made.queue)
        except _core.WordError as error:
            raise ScenarioError([Problem(str(error))]) from error
        return made

    def with_queue(self, queue: str) -> SearchScenario:
        return self.replace({"queue": queue})

    def policy_reader(self) -> Callable[[str], bytes]:
        return lambda name: Path(name).read_bytes()

    @property
    def plan_json(self) -> str:
        params = json.loads(_core.parse_queue(self.queue))
        return json.dumps(json.loads(super().plan_json) | {"queue": params})

    def digest(self) -> str:
        return hashlib.sha256(self.plan_json.encode()).hexdigest()


class Landscape(FakeEngine):
    """Delay by CoDel's target: least at `BEST`, with noise; goodput suffers from small targets."""

    def __init__(self, noise: float = 0.02, depth: float = 1.0, pause: float = 0.0) -> None:
        super().__init__(pause=pause)
        self.noise = noise
        self.depth = depth

    def simulate(self, plan: Plan, seed: int, progress: RunProgress | None = None) -> FakeRecord:
        record = super().simulate(plan, seed, progress)
        if not record.complete:
            return record
        queue = json.loads(plan.text)["queue"]
        target = queue.get("target_us", 200_000) / 1000
        away = math.log(target / BEST)
        delay = 0.01 * (1 + self.depth * away**2)
        delay += 0.01 * (_normal(f"common {seed}") + self.noise * _normal(f"{queue} {seed}"))
        goodput = 9.5e6 * min(1.0, 0.7 + 0.05 * target)
        record.columns["summary"] = [
            real("sojourn_p95", "s", delay),
            real("goodput", "bit/s", goodput * (1 + 0.001 * _normal(f"goodput {queue} {seed}"))),
        ]
        return record


def _normal(text: str) -> float:
    """Return a deterministic draw that is roughly normal: the sum of twelve uniform ones."""
    data = hashlib.sha512(text.encode()).digest()
    parts = (int.from_bytes(data[4 * i : 4 * i + 4], "little") / 2**32 for i in range(12))
    return sum(parts) - 6.0


def scenario(queue: str = "codel") -> Scenario:
    return cast("Scenario", SearchScenario({"name": "fake", "queue": queue, "rate": 10}))
