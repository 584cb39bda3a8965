"""Captures that a scenario replays: found beside it, and read into its plan."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from sojourn import _core
from sojourn.scenario import files, limits

Json = dict[str, Any]

_FILE = re.compile(rf"(?<=\sfile)(\s+){files.FILE}")


class CaptureProblem(Exception):
    """Why a capture cannot be replayed."""


def loaded(app: Json, read: files.Read) -> Json:
    """A `replay` with the packets of the capture it names; raises `CaptureProblem`."""
    try:
        data = read(app["file"], limits.CAPTURE_BYTES)
        return dict(json.loads(_core.load_capture(json.dumps(app), data)))
    except OSError as error:
        raise CaptureProblem(f"`{app['file']}` cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise CaptureProblem(f"`{app['file']}`: {error}") from None


def place(text: str) -> tuple[int, int]:
    """Where in the text of a `replay` the capture's name stands."""
    return files.place(_FILE, text)


def renamed(text: str, rename: Callable[[str], str]) -> str:
    """The text of a `replay` with another name for its capture; other texts as they are."""
    return files.renamed(_FILE, text, rename) if text.split()[:1] == ["replay"] else text
