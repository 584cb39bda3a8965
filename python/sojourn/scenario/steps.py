"""The steps that configure a machine, in one of several forms."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Steps:
    """Files and commands that set up a queue, and their reversal."""

    commands: tuple[str, ...]
    undo: tuple[str, ...]
    notes: tuple[str, ...]
    device: str
    """The device whose queue `tc -s qdisc show` shows."""
    files: tuple[tuple[str, str], ...] = ()
    """Files to write before the commands run: path and content."""
