"""The name of a run: what it is made from, hashed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def canonical(plan: str | Mapping[str, Any]) -> str:
    """Return a plan as JSON in one fixed form, so that equal plans are equal texts."""
    data = json.loads(plan) if isinstance(plan, str) else plan
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def plan_hash(plan_json: str) -> str:
    """Return the hash of a plan."""
    return canonical_hash(canonical(plan_json))


def canonical_hash(plan: str) -> str:
    """Return the hash of a plan that is in its fixed form."""
    return hashlib.sha256(plan.encode()).hexdigest()


def run_key(plan: str, seed: int, fingerprint: str) -> str:
    """Return the key of a run from its plan's hash: equal plan, seed and engine, equal key."""
    return hashlib.sha256(f"{plan}\0{seed}\0{fingerprint}".encode()).hexdigest()[:32]


def short(data: Any) -> str:
    """Return a hash of any JSON data."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
