"""Captures that a scenario replays: found beside it, and read into its plan."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from sojourn import _core
from sojourn.scenario import limits

Json = dict[str, Any]

_FILE = re.compile(r'(?<=\sfile)(\s+)("[^"]*"|\S+)')


class CaptureProblem(Exception):
    """Why a capture cannot be replayed."""


def loaded(app: Json, folder: Path) -> Json:
    """A `replay` with the packets of the capture it names, found from `folder`."""
    try:
        return dict(json.loads(_core.load_capture(json.dumps(app), _read(folder / app["file"]))))
    except OSError as error:
        raise CaptureProblem(f"`{app['file']}` cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise CaptureProblem(f"`{app['file']}`: {error}") from None


def _read(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise ValueError("no file")
    with path.open("rb") as file:
        data = file.read(limits.CAPTURE_BYTES + 1)
    if len(data) > limits.CAPTURE_BYTES:
        raise ValueError(f"larger than {limits.CAPTURE_BYTES // 1024**2} MiB")
    return data


def place(text: str) -> tuple[int, int]:
    """Where in the text of a `replay` the capture's name stands."""
    match = _FILE.search(text)
    return match.span(2) if match else (0, len(text))


def anchored(text: str, folder: Path) -> str:
    """The text of a `replay` that names its capture from anywhere; other texts as they are."""
    if text.split()[:1] != ["replay"]:
        return text

    def absolute(match: re.Match[str]) -> str:
        path = str((folder / match[2].strip('"')).absolute())
        return match[1] + (f'"{path}"' if re.search(r"\s", path) else path)

    return _FILE.sub(absolute, text, count=1)
