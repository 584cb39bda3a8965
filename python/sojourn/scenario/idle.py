"""Keys of a scenario that have no effect, because others override them or nothing reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sojourn.scenario.models import Change, ChangedDirection, LinkKeys
from sojourn.scenario.models.common import Acts, Part
from sojourn.scenario.source import dotted
from sojourn.scenario.topology import links_of

if TYPE_CHECKING:
    from sojourn.scenario.locate import Path
    from sojourn.scenario.models import Model

OF_LINKS = (LinkKeys, Change, ChangedDirection)
"""Tables whose keys give values to the directions of links."""
VALUES = {*LinkKeys.model_fields, "rate", "netem"}
"""Keys of these tables with such values."""


def idle_keys(model: Model) -> list[str]:
    """Returns a notice for each key of the scenario that is set and has no effect."""
    used = {path for link in links_of(model) for path in link.used}
    return [f"{dotted(path)}: has no effect: {why}" for path, why in _idle(model, (), used)]


def _idle(part: Part, at: Path, used: set[Path]) -> Iterator[tuple[Path, str]]:
    for name in part.model_fields_set:
        field, value = type(part).model_fields[name], getattr(part, name)
        path: Path = (*at, field.alias or name)
        of_link = isinstance(part, OF_LINKS) and name in VALUES
        if of_link and not field.is_required() and value is not None:
            paths = [path]
            if isinstance(value, list) and len(value) > 1:
                paths = [(*path, i) for i in range(len(value))]
            unused = [one for one in paths if one not in used]
            if unused == paths:
                yield path, "each direction of these links has a value from a more specific key"
            else:
                yield from ((one, "there are fewer hosts than values") for one in unused)
        for acts in field.metadata:
            if isinstance(acts, Acts) and value != field.default and not acts.when(part):
                yield path, acts.otherwise
        for key, inner in _parts(value):
            yield from _idle(inner, (*path, *key), used)


def _parts(value: object) -> Iterator[tuple[Path, Part]]:
    """Yields the tables in a value, with their paths there."""
    if isinstance(value, Part):
        yield (), value
    elif isinstance(value, list | dict):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        yield from (((key,), inner) for key, inner in items if isinstance(inner, Part))
