"""Reads files of `tc`, and converts the reader's messages."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sojourn import _core
from sojourn.scenario.errors import Problem, ScenarioError

FILE_BYTES = 4 * 1024 * 1024
"""Largest size of a file in bytes."""
FILES = 100

Values = Mapping[str, str]
"""Values of script variables from the user, by name, and outputs of commands by their text."""
Texts = Sequence[tuple[str, str | bytes]]
"""Files as pairs of name and contents."""


def read_files(paths: Sequence[Path], given: Values, device: str | None = None) -> _core.TcReading:
    """Returns the contents of files of `tc` as one reading.

    `given` has values of script variables by name, and outputs of commands by the text of the
    command. `device` is the argument `devices` of `apply`: classes whose device `tc` does not print
    belong to this device. Raises `ScenarioError` for a file that is too large, and `OSError` for a
    missing file.
    """
    if len(paths) > FILES:
        raise ScenarioError([Problem(f"--tc takes at most {FILES} files")])
    texts = []
    for path in paths:
        data = _contents(path)
        if len(data) > FILE_BYTES:
            message = f"the file is larger than {FILE_BYTES // 1024**2} MiB"
            raise ScenarioError([Problem(message, file=str(path))])
        texts.append((str(path), data))
    _check_names(texts, given)
    return read(texts, given, device)


def variables(text: str) -> set[str]:
    """Returns the names of the variables that a script sets or uses."""
    found = re.findall(r"\$\{?[#!]?([A-Za-z_]\w*)|([A-Za-z_]\w*)\+?=|\$\(\((.*?)\)\)", text)
    names = {name for name, assigned, _ in found} | {assigned for _, assigned, _ in found}
    expressions = " ".join(expression for *_, expression in found)
    return (names | set(re.findall(r"[A-Za-z_]\w*", expressions))) - {""}


def _check_names(texts: Sequence[tuple[str, bytes]], given: Values) -> None:
    """Raises `ScenarioError` if a name in `given` is neither a variable nor a command of a text."""
    whole = " ".join(" ".join(data.decode("latin-1").split()) for _, data in texts)
    known = sorted(variables(whole))
    for name in given:
        if name.isdecimal() or name in (known if name.isidentifier() else whole):
            continue
        what = "variable" if name.isidentifier() else "command"
        message = f"--var: the files have no {what} `{name}`"
        nearest = _core.nearest(name, known)
        raise ScenarioError([Problem(message, found=name, allowed=tuple(known), nearest=nearest)])


def _contents(path: Path) -> bytes:
    """Returns at most `FILE_BYTES` + 1 bytes of a file; `-` is standard input."""
    if str(path) == "-":
        return sys.stdin.buffer.read(FILE_BYTES + 1)
    with path.open("rb") as file:
        return file.read(FILE_BYTES + 1)


def read(texts: Texts, given: Values, device: str | None = None) -> _core.TcReading:
    """Returns the contents of texts of `tc` as one reading; see `read_files`."""
    contents = [(name, text.encode() if isinstance(text, str) else text) for name, text in texts]
    return _core.read_tc(contents, dict(given), device.split(",") if device else [])


def problem(message: _core.TcMessage) -> Problem:
    """Returns a message of the reader as a problem with its place."""
    begin, end = message.columns
    if begin == end and message.found:
        begin = max(message.source.find(message.found), 0)
        end = begin + len(message.found) if message.found in message.source else begin
    is_part = begin < end
    return Problem(
        message.message,
        file=message.file,
        line=message.line,
        column=begin + 1 if is_part else None,
        end_column=end + 1 if is_part else None,
        source=message.source,
        found=message.found or None,
        allowed=tuple(message.allowed),
        nearest=message.nearest,
    )


def notice(message: _core.TcMessage) -> str:
    """Returns a message of the reader as a notice with its place."""
    if message.file is None:
        return message.message
    return f"{message.file}:{message.line}: {message.message}"
