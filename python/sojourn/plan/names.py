"""The names by which plans select variants, such as `cubic` for `Cubic`."""

from __future__ import annotations

from functools import cache

from sojourn.plan.shapes import UNIONS


def name_of(value: object) -> str:
    """Returns the name of a variant: of a queue discipline, congestion control or application."""
    return _name(type(value).__module__.removeprefix("sojourn.plan."), type(value).__name__)


@cache
def _name(module: str, kind: str) -> str:
    place = f"{module}.{kind}"
    return next(
        name
        for tag, members in UNIONS.values()
        for name, member in members.items()
        if tag and member == place
    )
