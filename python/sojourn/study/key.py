"""The key of a run: a hash of its plan, seed and engine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from sojourn.plan.decoding import data_of


def canonical(plan: str | Mapping[str, object]) -> str:
    """Returns a plan as canonical JSON: equal plans give equal texts."""
    data = data_of(plan) if isinstance(plan, str) else plan
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def plan_hash(plan_json: str) -> str:
    """Returns the hash of a plan, given as JSON in any form."""
    return canonical_hash(canonical(plan_json))


def canonical_hash(plan: str) -> str:
    """Returns the hash of a plan in canonical form."""
    return hashlib.sha256(plan.encode()).hexdigest()


def run_key(plan: str, seed: int, fingerprint: str) -> str:
    """Returns the key of a run; `plan` is the hash of its plan."""
    return hashlib.sha256(f"{plan}\0{seed}\0{fingerprint}".encode()).hexdigest()[:32]


def short(data: object) -> str:
    """Returns a hash of JSON-compatible data, with 32 hexadecimal digits."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
