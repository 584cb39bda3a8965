"""What plans say, found by kind: applications of a plan's own, beside the flows of its groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def store_in(plan: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a plan's store, if it has one."""
    return next((app for app in plan.get("apps", ()) if app["kind"] == "store"), None)


def the_store(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return the store of a plan that has one."""
    found = store_in(plan)
    if found is None:
        raise ValueError("the plan has no store")
    return found
