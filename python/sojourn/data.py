"""Data without types of their own, as JSON and TOML files contain them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A value of a JSON text."""
Object: TypeAlias = "dict[str, Json]"
"""An object of a JSON text, or a table of a TOML text."""
