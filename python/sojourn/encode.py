"""Values as plain data for JSON."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from sojourn.data import Json


def plain(value: object) -> Json:
    """Returns a value as plain data; `None` for a number that is not finite.

    A dataclass is the table of its fields. Raises `TypeError` for a value of another type.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return fields(value)
    if isinstance(value, Sequence | AbstractSet):
        return [plain(part) for part in value]
    if isinstance(value, Path):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if hasattr(value, "item"):  # a number of NumPy
        return plain(value.item())
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def fields(values: Mapping[str, object]) -> dict[str, Json]:
    """Returns a table of values as plain data."""
    return {str(name): plain(value) for name, value in values.items()}
