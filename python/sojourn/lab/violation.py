"""Violations, which make a real run invalid, and their entries in JSON data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from sojourn.data import Json, Object
from sojourn.lab.typed import of_json

FORMER = "doubts"
"""Key of the violations in JSON data up to version 0.1.0; deprecated."""


@dataclass(frozen=True)
class Violation:
    """A violated condition of valid runs, such as an exceeded limit of lateness."""

    what: str
    """Measured quantity, or the event."""
    found: str
    """Measured value with its unit, or the number of events."""
    limit: str
    """Allowed values."""
    advice: str
    """Remedy for the next run."""

    def __str__(self) -> str:
        return f"{self.what}: {self.found} ({self.limit}); {self.advice}"

    def as_dict(self) -> dict[str, str]:
        """Returns the fields as a dictionary."""
        return asdict(self)


def violations_in(data: Mapping[str, Json]) -> list[dict[str, str]]:
    """Returns the violations in a real run's record; also reads records of earlier versions."""
    found = data["violations" if "violations" in data else FORMER]
    return of_json(list[dict[str, str]], found)


def with_former_key(data: Mapping[str, Json]) -> Object:
    """Returns JSON data with its `violations` also under the deprecated key `doubts`."""
    return {**data, FORMER: data["violations"]}
