"""A scenario and an engine that replace the real ones: small, quick, deterministic."""

from __future__ import annotations

import hashlib
import json
import struct
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from sojourn.plan import Plan
from sojourn.scenario import Scenario
from sojourn.scenario.engine import ASKED
from sojourn.scenario.models import Question
from sojourn.study.together import Listed, one_by_one

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sojourn.scenario.engine import Column, Engine, RunProgress
    from sojourn.study.together import Wanted


class FakeScenario:
    """Anything with keys."""

    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        self.data = dict(data or {"name": "fake", "queue": "pfifo", "rate": 10})

    queue_name = "another"

    @property
    def name(self) -> str:
        return str(self.data.get("name", "fake"))

    @property
    def queue_keys(self) -> tuple[str, ...]:
        return ("queue",)

    @property
    def queue(self) -> str:
        return str(self.data["queue"])

    @property
    def question(self) -> Question:
        return Question()

    @property
    def bottleneck(self) -> str:
        return "uplink"

    def replace(self, changes: Mapping[str, Any]) -> FakeScenario:
        return FakeScenario({**self.data, **changes})

    def with_queue(self, queue: str) -> FakeScenario:
        return self.replace({"queue": queue})

    def has_modem(self) -> bool:
        return False

    def behind_modem(self, others: Sequence[FakeScenario]) -> list[FakeScenario]:
        return list(others)

    def as_dict(self) -> dict[str, Any]:
        return {"observe": {"series": "1s"}, **self.data}

    @property
    def plan(self) -> Plan:
        return real_plan()

    @property
    def plan_json(self) -> str:
        rest = {k: v for k, v in self.data.items() if k != "name"}
        links = [{"name": "uplink", "from": 0, "to": 1}]
        groups = [
            {"name": name, "app": {"name": app}, "pairs": [[0, 1]], "transport": {"protocol": how}}
            for name, app, how in (("call", "voip", "udp"), ("bulk", "bulk", "tcp"))
        ]
        observe = {"bottleneck": {"name": "uplink", "links": [0]}}
        return json.dumps({**rest, "links": links, "groups": groups, "observe": observe})


@cache
def real_plan() -> Plan:
    """A plan whose link and groups have the names of those in the results."""
    ends = {"from": "a", "to": "b"}
    return Scenario(
        duration="10s",
        links={"uplink": {**ends, "rate": "10mbit"}},
        flows=[
            {**ends, "name": "call", "app": "voip"},
            {**ends, "name": "bulk", "app": "bulk"},
        ],
    ).plan


def scenario(**data: Any) -> Scenario:
    base = {"name": "fake", "queue": "pfifo", "rate": 10}
    return cast("Scenario", FakeScenario({**base, **data}))


@dataclass
class FakeRecord:
    columns: dict[str, list[Column]]
    trace_hash: str
    events: int
    complete: bool
    captures: Sequence[bytes] = ()

    def table(self, name: str) -> list[Column]:
        return self.columns.get(name, []) if name in ASKED else self.columns[name]


def real(name: str, unit: str, *values: float) -> Column:
    return name, unit, "f8", struct.pack(f"<{len(values)}d", *values)


# Sojourn in seconds and goodput in bit/s of each queue.
QUEUES = {
    "pfifo": (0.2, 9.6e6),
    "codel": (0.02, 9.4e6),
    "fq_codel": (0.02, 9.45e6),
    "red": (0.08, 8e6),
}


class FakeEngine:
    """Results by a formula; counts what it ran; can be slow, or fail."""

    def __init__(self, mark: str = "engine-1", pause: float = 0.0, fail_at: int = 0) -> None:
        self.mark = mark
        self.pause = pause
        self.fail_at = fail_at
        self.ran: list[tuple[str, int]] = []

    def fingerprint(self) -> str:
        return hashlib.sha256(self.mark.encode()).hexdigest()[:32]

    def version(self) -> str:
        return "0.0"

    def simulate(self, plan: Plan, seed: int, progress: RunProgress | None = None) -> FakeRecord:
        self.ran.append((plan.text, seed))
        if self.fail_at and len(self.ran) >= self.fail_at:
            raise ValueError("the books do not balance")
        for step in range(5):
            time.sleep(self.pause / 5)
            if progress is not None and progress((step + 1) / 5, step * 100) is False:
                return FakeRecord({}, "", step, complete=False)
        told = json.loads(plan.text)
        queue = str(told["queue"]).split()[0]
        sojourn, goodput = QUEUES.get(queue, (0.1, 9e6))
        # The seed's part is the same for all queues (common random numbers), the rest is their own.
        common = _noise("seed", seed)
        own = _noise(plan.text, seed)
        delay = sojourn * (1 + 0.1 * common + 0.01 * own)
        rate = goodput * (1 + 0.01 * common + 0.001 * own) * float(told.get("rate", 10)) / 10
        mos = 4.4 - 5 * delay
        summary = [
            real("sojourn_p95", "s", delay),
            real("goodput", "bit/s", rate),
            real("uplink.sojourn_mean", "s", delay / 2),
            real("uplink.loss", "1", 0.01),
            real("call.mos", "1", mos),
            ("uplink.drops", "1", "i8", struct.pack("<q", int(1000 * delay))),
            ("kind", "", "text", [queue]),
        ]
        low = [delay * k / 10 for k in range(10)]
        times = [float(t) for t in range(20)]
        tables: dict[str, list[Column]] = {
            "summary": summary,
            "flows": [("group", "", "text", ["bulk", "call"]), real("goodput", "bit/s", rate, 1e5)],
            "queues": [("link", "", "text", ["uplink"]), real("loss", "1", 0.01)],
            "series": [
                real("time", "s", *times),
                real("uplink.last_sojourn", "s", *(delay * (0.5 + 0.02 * t) for t in times)),
                real("uplink.throughput", "bit/s", *(rate * (1 - 0.01 * t) for t in times)),
            ],
            "distributions": [
                ("place", "", "text", ["uplink"] * 10),
                ("metric", "", "text", ["sojourn"] * 10),
                real("low", "", *low),
                real("high", "", *(x + delay / 10 for x in low)),
                ("count", "1", "i8", struct.pack("<10q", *range(10, 0, -1))),
            ],
        }
        digest = hashlib.sha256(f"{plan.text}{seed}{self.mark}".encode()).hexdigest()
        return FakeRecord(tables, digest[:32], 1000, complete=True)


class ManyEngine(FakeEngine):
    """Makes several runs in one call; `calls` are their numbers."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.calls: list[int] = []

    def simulate_many(self, runs: Wanted, progress: RunProgress | None = None) -> Listed:
        self.calls.append(len(runs))
        return one_by_one(self, runs, progress)


def _noise(text: str, seed: int) -> float:
    """A deterministic value between -1 and 1."""
    data = hashlib.sha256(f"{text}|{seed}".encode()).digest()
    return int.from_bytes(data[:6], "little") / 2**47 - 1


def engine(**options: Any) -> Engine:
    return FakeEngine(**options)
