"""The user's policies that a scenario names: reads them into the plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Unpack

from sojourn import _core
from sojourn.own import text as own_text
from sojourn.own.errors import OwnError
from sojourn.own.sources import is_own, place_of, renamed

if TYPE_CHECKING:
    from sojourn.data import Object
    from sojourn.scenario.errors import Placed
    from sojourn.scenario.source import Source

KEYS = ("queue", "queues", "tcp", "app", "policy")
"""Keys of a scenario whose texts may name a policy of the user."""


class Unusable(Exception):
    """Reason why a user's policy cannot be used; `details` are further arguments of the problem."""

    def __init__(self, message: str, **details: Unpack[Placed]) -> None:
        super().__init__(message)
        self.details = details


def entry(
    family: str, text: str, source: Source, *, here_first: bool
) -> tuple[Object, dict[str, dict[str, str]]]:
    """Returns a user's policy as it is in the plan, and its source texts by digest.

    With `here_first`, the working folder is searched before the scenario's folder. Raises
    `Unusable`.
    """
    place = place_of(text)
    try:
        found = own_text.own(family, text, reader(source, here_first=here_first))
        return own_text.FORMS[family](found), found.texts
    except _core.WordError as error:
        raise Unusable(
            error.message,
            start=error.start,
            end=error.end,
            found=error.found,
            allowed=tuple(error.allowed),
            nearest=error.nearest,
        ) from None
    except OwnError as error:
        raise Unusable(str(error), start=place.start, end=place.end, found=text) from None


def reader(source: Source, *, here_first: bool = False) -> Callable[[str], bytes]:
    """Returns a function that reads a policy's files from the scenario's or the working folder.

    With `here_first`, the working folder comes first. Scenarios with given files read only these.
    """
    if source.handed is not None:
        return lambda name: source.read(name, own_text.MOST_BYTES)
    folders = [source.folder, FilePath()]
    if here_first:
        folders.reverse()

    def read(name: str) -> bytes:
        path = next((f / name for f in folders if (f / name).exists()), folders[0] / name)
        return own_text.read_file(str(path))

    return read


def rename(data: Any, change: Callable[[str], str], key: str = "") -> None:
    """Renames the files of all policies of the user in `data`, in place."""
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for name, value in items:
        of = name if isinstance(name, str) and key != "queues" else key
        if isinstance(value, str):
            if of in KEYS and is_own(value):
                data[name] = renamed(value, change)
        elif isinstance(value, dict | list):
            rename(value, change, of)
