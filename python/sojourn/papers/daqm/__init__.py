"""The study of derivative-based queue management: `sojourn paper daqm`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.papers import doors

if TYPE_CHECKING:
    from sojourn.papers.daqm.report import show
    from sojourn.papers.daqm.study import run

__all__ = ["run", "show"]

__getattr__ = doors(__name__)
