"""Conversion of claims to and from plain data (dictionaries, JSON, TOML)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields
from difflib import get_close_matches
from typing import Any

from sojourn.stats.cells import ClaimError
from sojourn.stats.claims import KINDS, Claim
from sojourn.stats.estimate import Region


def claim_to_dict(claim: Claim) -> dict[str, object]:
    """Returns a claim as data for JSON, without fields that have their default."""
    out: dict[str, object] = {"kind": claim.kind}
    for f in fields(claim):
        value: Any = getattr(claim, f.name)
        default = f.default if f.default_factory is MISSING else f.default_factory()
        if value == default:
            continue
        if isinstance(value, Region):
            value = [x if math.isfinite(x) else None for x in (value.low, value.high)]
        elif f.name == "claims":
            value = [claim_to_dict(c) for c in value]
        elif isinstance(value, tuple):
            value = [dict(v) for v in value]
        out[f.name] = value
    return out


def _region(value: object, where: str) -> Region:
    match value:
        case Region():
            return value
        case [(int() | float() | None) as low, (int() | float() | None) as high]:
            return Region(-math.inf if low is None else low, math.inf if high is None else high)
    raise ClaimError(
        f"{where}: a region must be two numbers, or null for a missing limit, not {value!r}"
    )


def claim_from_dict(data: Mapping[str, object]) -> Claim:
    """Returns the claim that data describes; raises `ClaimError` for unknown or missing keys."""
    where = f"claim {data.get('id', '?')!r}"
    kind = data.get("kind")
    if kind not in KINDS:
        raise ClaimError(f"{where}: unknown kind {kind!r}; allowed: {', '.join(KINDS)}")
    cls = KINDS[kind]
    known = {f.name: f for f in fields(cls)}
    given: dict[str, Any] = {k: v for k, v in data.items() if k != "kind"}
    for key in given:
        if key not in known:
            close = get_close_matches(key, known, n=1)
            hint = f": did you mean `{close[0]}`?" if close else ""
            raise ClaimError(f"{where}: {kind} has no {key!r}{hint}")
    for name, f in known.items():
        if name not in given and f.default is MISSING and f.default_factory is MISSING:
            raise ClaimError(f"{where}: {kind} needs {name!r}")
    for name in ("region", "as_published"):
        if given.get(name) is not None:
            given[name] = _region(given[name], where)
    if "cells" in given:
        given["cells"] = tuple(given["cells"])
    if "claims" in given:
        given["claims"] = tuple(claim_from_dict(c) for c in given["claims"])
    return cls(**given)
