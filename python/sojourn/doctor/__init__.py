"""Features of Sojourn that work on this machine, and how to enable the others.

Each feature is tried. If a trial would change the machine, files of the kernel are read instead.
The examination (`examination.examine`) changes nothing and ends everything that it starts.
"""

from __future__ import annotations

from sojourn.doctor.finding import GROUPS, Finding, Group

__all__ = ["GROUPS", "Finding", "Group"]
