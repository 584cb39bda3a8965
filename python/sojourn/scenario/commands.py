"""Flows of the user's own programs: command lines are split into words for the plan."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Unpack

from sojourn import _core
from sojourn.scenario import reported

if TYPE_CHECKING:
    from sojourn.data import Object
    from sojourn.scenario.context import Context
    from sojourn.scenario.errors import Placed
    from sojourn.scenario.locate import Path
    from sojourn.scenario.models import Flow

APP = "command"
"""Name of the application whose flows run programs of the user."""
KEYS = ("client", "server", "folder", "metric")
"""Keys of a flow that only the application `command` allows."""
PLACEHOLDERS = {
    "from": "the client's address",
    "to": "the server's address",
    "port": "the flow's own port",
    "number": "the flow's number in its group, from 0",
    "seed": "the run's seed",
    "duration": "seconds from the flow's start to its stop",
}
"""Placeholders in command lines, with the meaning of the inserted value."""
OPERATORS = ("|", "||", "&", "&&", ";", ">", ">>", "<", "<<", "2>", "2>&1", "&>")
"""Operators that only a shell interprets; a program would receive them as arguments."""
LARGEST = 16 * 1024**2
"""Largest size in bytes of a file whose digest a plan contains; larger files have no digest."""
_FIELD = re.compile(r"\{\{|\}\}|\{(?P<name>[^{}]*)\}|[{}]")


class CommandError(Exception):
    """Reason why a text is not a command line; `details` are further arguments of the problem."""

    def __init__(self, message: str, **details: Unpack[Placed]) -> None:
        super().__init__(message)
        self.details = details


def is_command(app: str) -> bool:
    """Returns whether the text of an application selects programs of the user."""
    return app.split()[:1] == [APP]


def words_of(text: str) -> list[str]:
    """Splits a command line into words as a POSIX shell does; raises `CommandError`."""
    for field in _FIELD.finditer(text):
        _check(field)
    try:
        words = shlex.split(text)
        written = shlex.split(text, posix=False)
    except ValueError:
        at = max(text.rfind('"'), text.rfind("'"), text.rfind("\\"))
        raise CommandError(
            "a quote is not closed, or the line ends with `\\`", start=at, end=at + 1
        ) from None
    if not words:
        raise CommandError("the command line is empty: name a program and its arguments")
    if found := next((word for word in written if word in OPERATORS), None):
        at = text.index(found)
        raise CommandError(
            f"`{found}` would be passed as an argument, because no shell reads the line: quote "
            'it, or use sh -c "..."',
            start=at,
            end=at + len(found),
            found=found,
        )
    return words


def _check(field: re.Match[str]) -> None:
    if field[0] in ("{{", "}}") or field["name"] in PLACEHOLDERS:
        return
    start, end = field.span()
    if field["name"] is None:
        twice = 2 * field[0]
        raise CommandError(
            f"`{field[0]}` is no placeholder: write `{twice}` for a single brace",
            start=start,
            end=end,
            found=field[0],
        )
    names = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
    near = _core.nearest(field["name"], list(PLACEHOLDERS))
    raise CommandError(
        f"unknown placeholder `{field[0]}`; allowed: {names}; "
        "write `{{` and `}}` for single braces",
        start=start, end=end, found=field[0], allowed=tuple(PLACEHOLDERS), nearest=near,
    )  # fmt: skip


def filled(words: list[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the words of a command line, with each placeholder replaced by its value."""

    def value(field: re.Match[str]) -> str:
        return field[0][0] if field["name"] is None else values[field["name"]]

    return tuple(_FIELD.sub(value, word) for word in words)


def application(context: Context, at: Path, flow: Flow) -> Object:
    """Returns the plan's application of a flow that runs programs; adds problems to the context."""
    if context.source.handed is not None:
        context.complain(
            (*at, "app"),
            "a scenario from an address or from plain data runs no programs: use the scenario's "
            "own file with `sojourn lab run` or `--engine linux`",
        )
    lines = {"client": flow.client, "server": flow.server}
    if flow.client is None:
        text = f'`app = "{APP}"` needs `client`, such as "curl -s http://{{to}}:{{port}}/"'
        context.complain((*at, "app"), text)
    words: dict[str, list[str]] = {}
    for key, line in lines.items():
        try:
            words[key] = words_of(line) if line is not None else []
        except CommandError as error:
            context.complain((*at, key), str(error), **error.details)
            words[key] = ["true"]
    for name, pattern in (flow.metric or {}).items():
        if why := reported.problem(name, pattern):
            context.complain((*at, "metric", name), why)
    folder = (context.source.folder / (flow.folder or "")).resolve()
    arguments = {word for each in words.values() for word in each}
    return {
        "name": APP,
        "client": words["client"] or ["true"],
        "server": words["server"],
        "folder": str(folder),
        "files": {} if context.source.handed is not None else digests(folder, arguments),
        **({"metrics": dict(flow.metric)} if flow.metric else {}),
    }


def check_keys(context: Context, at: Path, flow: Flow) -> None:
    """Adds the problem of each key that the flow's application does not allow."""
    if is_command(flow.app):
        if flow.udp is not None:
            context.complain(
                (*at, "udp"),
                f"`{APP}` does not allow `udp`: its programs choose TCP or UDP themselves",
            )
        return
    for key in KEYS:
        if getattr(flow, key) is not None:
            context.complain((*at, key), f'`{key}` is only allowed with `app = "{APP}"`')


def digests(folder: FilePath, words: set[str]) -> dict[str, str]:
    """Returns the SHA-256 digests of files in `folder` whose names are among `words`.

    The digests are in the plan, because results depend on these files.
    """
    found = {}
    for word in sorted(words):
        try:
            path = (folder / word).resolve()
            if path.is_relative_to(folder) and path.is_file() and path.stat().st_size <= LARGEST:
                found[word] = hashlib.sha256(path.read_bytes()).hexdigest()
        except (OSError, ValueError):
            continue  # the word is no file name, or the file cannot be read
    return found
