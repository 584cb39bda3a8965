"""What this machine can do with Sojourn, and what would add the rest.

Everything is found by trying it, or where a try would change something, by reading. Nothing on the
machine is changed, and nothing that is started outlives the examination (`examination.examine`).
"""

from __future__ import annotations

from sojourn.doctor.finding import GROUPS, Finding, Group

__all__ = ["GROUPS", "Finding", "Group"]
