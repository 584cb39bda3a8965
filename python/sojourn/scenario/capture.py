"""Captured packets that a scenario's `replay` application sends: reads them into the plan."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from sojourn import _core
from sojourn.data import Object
from sojourn.scenario import files, limits

_FILE = re.compile(rf"(?<=\sfile)(\s+){files.FILE}")


class CaptureProblem(Exception):
    """Reason why a capture cannot be replayed."""


def loaded(app: Object, file: str, read: files.Read) -> Object:
    """Returns a plan's `replay` application with the packets of its capture `file`.

    Raises `CaptureProblem` if the file cannot be read or replayed.
    """
    try:
        data = read(file, limits.CAPTURE_BYTES)
        return dict(json.loads(_core.load_capture(json.dumps(app), data)))
    except OSError as error:
        raise CaptureProblem(f"`{file}` cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise CaptureProblem(f"`{file}`: {error}") from None


def place(text: str) -> tuple[int, int]:
    """Returns the start and end of the capture's file name in the text of a `replay`."""
    return files.place(_FILE, text)


def renamed(text: str, rename: Callable[[str], str]) -> str:
    """Returns the text of a `replay` with its capture file renamed, and other texts unchanged."""
    return files.renamed(_FILE, text, rename) if text.split()[:1] == ["replay"] else text
