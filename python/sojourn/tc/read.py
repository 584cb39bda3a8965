"""Files of `tc`: which form each has, and what all of them together say."""

from __future__ import annotations

import sys
from pathlib import Path

from sojourn.scenario.errors import Problem, ScenarioError
from sojourn.tc.dumps import Dumps, is_dump
from sojourn.tc.json_dumps import JsonDumps, is_json
from sojourn.tc.model import Place, Reading, Texts, Values
from sojourn.tc.scripts import Scripts, has_commands

FILE_BYTES = 4 * 1024 * 1024
"""Of one file."""
FILES = 100


def read_files(paths: list[Path], given: Values, device: str | None = None) -> Reading:
    """Reads files; raises `ScenarioError` if one cannot be read at all, `OSError` if none is there.

    `given` are values of scripts' variables, and outputs of commands by their text. `device` is
    as for `apply`: classes belong to it if `tc` does not print whose they are.
    """
    if len(paths) > FILES:
        raise ScenarioError([Problem(f"more than {FILES} files are given by --tc")])
    texts = []
    for path in paths:
        data = _contents(path)
        if len(data) > FILE_BYTES:
            told = f"is larger than {FILE_BYTES // 1024**2} MiB"
            raise ScenarioError([Problem(told, file=str(path))])
        try:
            texts.append((str(path), data.decode("utf-8")))
        except UnicodeDecodeError:
            raise ScenarioError([Problem("is no text in UTF-8", file=str(path))]) from None
    return read(texts, given, device)


def _contents(path: Path) -> bytes:
    """The beginning of a file, a little more than is allowed; `-` is standard input."""
    if str(path) == "-":
        return sys.stdin.buffer.read(FILE_BYTES + 1)
    with path.open("rb") as file:
        return file.read(FILE_BYTES + 1)


def read(texts: Texts, given: Values, device: str | None = None) -> Reading:
    """Reads texts; see `read_files`."""
    reading = Reading()
    dumps = Dumps(reading, device.split(",") if device else [])
    lists = JsonDumps(dumps)
    others = {name.rpartition("/")[2]: text for name, text in texts}
    scripts = Scripts(reading, given, others)
    for name, raw in texts:
        text = raw.replace("\r\n", "\n").replace("\xa0", " ").removeprefix("\ufeff")
        if is_json(text):
            lists.read(name, text)
        elif is_dump(text) and not has_commands(text):
            dumps.read(name, text)
        else:
            if is_dump(text):
                reading.notices.append(
                    Place(name, 1, "").note(
                        "commands are read; what `tc` printed beside them is not"
                    )
                )
            scripts.read(name, text)
    dumps.end()
    scripts.end()
    return reading
