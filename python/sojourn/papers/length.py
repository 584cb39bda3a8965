"""Lengths of a study's runs."""

from __future__ import annotations

from typing import Literal, get_args

Length = Literal["quick", "quarter", "full"]
"""Length of a study's runs: minutes on two cores, a quarter of the paper's, or the paper's."""
LENGTHS: tuple[Length, ...] = get_args(Length)
