"""Reads files of `tc`: detects the form of each file and combines their contents."""

from __future__ import annotations

import sys
from pathlib import Path

from sojourn.scenario.errors import Problem, ScenarioError
from sojourn.tc.dumps import Dumps, is_dump
from sojourn.tc.json_dumps import JsonDumps, is_json
from sojourn.tc.model import Place, Reading, Texts, Values
from sojourn.tc.scripts import Scripts, has_commands

FILE_BYTES = 4 * 1024 * 1024
"""Largest size of a file in bytes."""
FILES = 100


def read_files(paths: list[Path], given: Values, device: str | None = None) -> Reading:
    """Returns the contents of files of `tc` as one `Reading`.

    `given` has values of script variables by name, and outputs of commands by the text of the
    command. `device` is the argument `devices` of `apply`: classes whose device `tc` does not print
    belong to this device. Raises `ScenarioError` for a file that is not text or too large, and
    `OSError` for a missing file.
    """
    if len(paths) > FILES:
        raise ScenarioError([Problem(f"--tc takes at most {FILES} files")])
    texts = []
    for path in paths:
        data = _contents(path)
        if len(data) > FILE_BYTES:
            message = f"the file is larger than {FILE_BYTES // 1024**2} MiB"
            raise ScenarioError([Problem(message, file=str(path))])
        try:
            texts.append((str(path), data.decode("utf-8")))
        except UnicodeDecodeError:
            raise ScenarioError([Problem("the file is not UTF-8 text", file=str(path))]) from None
    return read(texts, given, device)


def _contents(path: Path) -> bytes:
    """Returns at most `FILE_BYTES` + 1 bytes of a file; `-` is standard input."""
    if str(path) == "-":
        return sys.stdin.buffer.read(FILE_BYTES + 1)
    with path.open("rb") as file:
        return file.read(FILE_BYTES + 1)


def read(texts: Texts, given: Values, device: str | None = None) -> Reading:
    """Returns the contents of texts of `tc` as one `Reading`; see `read_files`."""
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
                        "the commands in this file are read, and the printed output of `tc` is "
                        "ignored"
                    )
                )
            scripts.read(name, text)
    dumps.end()
    scripts.end()
    return reading
