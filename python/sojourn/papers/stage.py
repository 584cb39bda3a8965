"""How a study tells what it is about to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn.study.progress import Report

Stage = Callable[[str], "Report | None"]
"""Told the name of each stage; gives what is to be told of its progress."""
