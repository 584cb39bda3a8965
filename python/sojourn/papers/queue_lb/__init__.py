"""The study of balancing by queue length: `sojourn paper queue-lb`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.papers import doors

if TYPE_CHECKING:
    from sojourn.papers.queue_lb import real
    from sojourn.papers.queue_lb.report import show
    from sojourn.papers.queue_lb.study import run

__all__ = ["real", "run", "show"]

__getattr__ = doors(__name__)
