"""Attributes of a stored run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from sojourn import encode
from sojourn.data import Json
from sojourn.study.cells import Level


@dataclass(frozen=True)
class About:
    """Attributes of a run, in addition to its plan and its tables."""

    seed: int
    factors: Mapping[str, Level]
    """Levels of the factors, by factor."""
    engine: str
    """Fingerprint of the engine."""
    trace_hash: str
    events: int
    version: str = "?"
    """Version of the engine."""
    seconds: float = 0.0
    """Wall-clock duration of the run."""
    made: str = ""
    """Time at which the run was made."""
    real: Mapping[str, Json] = field(default_factory=dict)
    """Environment and validity of a real run; empty for other runs."""
    kept: Mapping[str, list[str]] = field(default_factory=dict)
    """Selection of stored metrics and tables; empty if everything is stored."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Digests of captures and other files, by name."""

    @classmethod
    def parse(cls, text: str) -> About:
        """Returns the attributes from the JSON that `to_json` returns."""
        known, data = {field.name for field in fields(cls)}, json.loads(text)
        return cls(**{name: value for name, value in data.items() if name in known})

    def to_json(self) -> str:
        """Returns the attributes as JSON."""
        data = encode.fields(self.__dict__)
        return json.dumps({k: v for k, v in data.items() if v or k not in ("real", "kept")})
