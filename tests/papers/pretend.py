"""An engine that claims to be real: the simulator, with what real runs say of themselves."""

from __future__ import annotations

from typing import Any

from sojourn import _core
from sojourn.plan import Plan


class Record:
    """A simulated run with notes on how it was made."""

    def __init__(self, record: Any, violations: list[dict[str, str]], key: str) -> None:
        self._record = record
        self.real = {
            "engine": "pretended",
            "kernel": "0.0",
            "programs": {"program": "1.0"},
            "privilege": "none",
            "switch": {"name": "switch", "version": "1.0"},
            key: violations,
            "load": 1.5,
        }

    def __getattr__(self, name: str) -> Any:
        return getattr(self._record, name)


class Engine:
    """Runs plans with the simulator; runs with seed 1, or with the seeds `invalid`, are not valid.

    `key` is the key of the violations in the records.
    """

    slots = 1

    def __init__(self, invalid: frozenset[int] = frozenset({1}), key: str = "violations") -> None:
        self.invalid = invalid
        self.key = key
        self.checked: set[str] = set()
        self.made = 0

    def fingerprint(self) -> str:
        """Returns another one than the simulator's."""
        return "pretended"

    def version(self) -> str:
        """Returns the version."""
        return "0"

    def check(self, plan: Plan, seed: int) -> None:
        """Keeps the plans that were checked before anything was run."""
        assert self.made == 0
        self.checked.add(plan.text)

    def simulate(self, plan: Plan, seed: int, progress: Any = None) -> Any:
        """Runs a plan with a seed."""
        self.made += 1
        late = {"what": "packets late", "found": "3 ms", "limit": "at most 1 ms"}
        record = _core.simulate(plan.text, seed, progress)
        return Record(record, [late] if seed in self.invalid else [], self.key)
