"""The steps that configure a machine, in one of several forms."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Steps:
    """Files and commands that set up a queue, and the commands that undo it."""

    commands: tuple[str, ...]
    undo: tuple[str, ...]
    notes: tuple[str, ...]
    device: str
    """The device for `tc -s qdisc show`."""
    files: tuple[tuple[str, str], ...] = ()
    """Files to write before the commands run: path and content."""
