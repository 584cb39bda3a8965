"""Captures that a scenario replays: found beside it, and read into its plan."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from sojourn import _core
from sojourn.scenario import files, limits

Json = dict[str, Any]

_FILE = re.compile(rf"(?<=\sfile)(\s+){files.FILE}")


class CaptureProblem(Exception):
    """Why a capture cannot be replayed."""


def loaded(app: Json, folder: Path | None) -> Json:
    """A `replay` with the packets of the capture it names, found from `folder`."""
    try:
        data = files.read(folder, app["file"], limits.CAPTURE_BYTES)
        return dict(json.loads(_core.load_capture(json.dumps(app), data)))
    except OSError as error:
        raise CaptureProblem(f"`{app['file']}` cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise CaptureProblem(f"`{app['file']}`: {error}") from None


def place(text: str) -> tuple[int, int]:
    """Where in the text of a `replay` the capture's name stands."""
    return files.place(_FILE, text)


def anchored(text: str, folder: Path) -> str:
    """The text of a `replay` that names its capture from anywhere; other texts as they are."""
    return files.anchored(_FILE, text, folder) if text.split()[:1] == ["replay"] else text
