"""The steps that configure a machine, as commands and files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Steps:
    """Files and commands that set up a queue, and the commands that undo it."""

    commands: tuple[str, ...]
    undo: tuple[str, ...]
    notes: tuple[str, ...]
    device: str
    """Device of the queue, for `tc -s qdisc show dev DEVICE`."""
    files: tuple[tuple[str, str], ...] = ()
    """Files to write before the commands run: path and content."""
