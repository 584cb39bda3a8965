"""Features of Sojourn that work on this machine, and how to enable the others.

Each feature is found by trying it or, where a trial would change something, by reading. Nothing on
the machine is changed, and everything that is started ends with the examination
(`examination.examine`).
"""

from __future__ import annotations

from sojourn.doctor.finding import GROUPS, Finding, Group

__all__ = ["GROUPS", "Finding", "Group"]
