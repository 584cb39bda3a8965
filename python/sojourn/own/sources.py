"""The source files of a policy: the file with its class, and imported local modules."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from sojourn.own.errors import OwnError

Read = Callable[[str], bytes]
"""Function that returns the content of a file by its name.

The function raises `OSError`, or `ValueError` with the reason.
"""

MOST_FILES = 100
"""Maximum number of source files of a policy."""
_PLACE = re.compile(
    r'\s*(?:"([^"]+\.py)(?::([A-Za-z_]\w*))?"|([^\s"]+\.py)(?::([A-Za-z_]\w*))?)(?=\s|$)'
)


def is_own(text: str) -> bool:
    """Returns whether a text names a user's own policy, such as `mine.py:Mine target 10ms`."""
    return _PLACE.match(text) is not None


@dataclass(frozen=True)
class Place:
    """File and class of a policy, and their position in a text."""

    file: str
    name: str
    """Name of the class."""
    start: int
    """Index of the first character."""
    end: int
    """Index after the last character."""

    @property
    def policy(self) -> str:
        """File name without its folder, and class, such as `mine.py:Mine`."""
        return f"{Path(self.file).name}:{self.name}"


def place_of(text: str) -> Place:
    """Returns file and class of the policy that a text names; raises `OwnError`."""
    match = _PLACE.match(text)
    if match is None:
        raise OwnError("name your own policy by its file and class, such as mine.py:Mine")
    file, name = match[1] or match[3], match[2] or match[4]
    if name is None:
        raise OwnError(f"the class is missing: write {file}:NAME")
    start = match.start(1) if match[1] else match.start(3)
    return Place(file, name, start, match.end(2) if match[1] else match.end(4))


def renamed(text: str, rename: Callable[[str], str]) -> str:
    """Returns the text with the file name that `rename` returns.

    A text that names no policy of the user is unchanged.
    """
    match = _PLACE.match(text)
    if match is None:
        return text
    file, name = match[1] or match[3], match[2] or match[4]
    other = rename(file) + (f":{name}" if name else "")
    quoted = f'"{other}"' if re.search(r"\s", other) else other
    return quoted + text[match.end() :]


@dataclass(frozen=True)
class Sources:
    """The source files of a policy."""

    main: str
    """Name of the file with the class."""
    files: tuple[tuple[str, str], ...]
    """Names, relative to the folder of the main file, and texts."""

    @cached_property
    def digest(self) -> str:
        """Hash of all names and texts, which does not depend on the folder."""
        text = json.dumps([self.main, self.files], separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def as_dict(self) -> dict[str, str]:
        """Returns the texts by name."""
        return dict(self.files)


def gather(file: str, read: Read) -> tuple[Sources, tuple[str, ...]]:
    """Reads a policy's file and all local modules that it imports.

    Returns the sources and the names of the files for `read`.
    """
    folder, main = PurePosixPath(Path(file).parent.as_posix()), Path(file).name
    texts: dict[str, str] = {main: _text(file, read)}
    waiting = [main]
    while waiting:
        name = waiting.pop()
        for candidate in _local_imports(name, texts[name]):
            if candidate in texts:
                continue
            try:
                texts[candidate] = _text(str(folder / candidate), read)
            except OwnError:
                raise
            except (OSError, ValueError):
                continue
            if len(texts) > MOST_FILES:
                raise OwnError(f"{file} imports more than {MOST_FILES} local modules")
            waiting.append(candidate)
    names = tuple(str(folder / name) for name in texts)
    return Sources(main, tuple(sorted(texts.items()))), (file, *names[1:])


def _text(name: str, read: Read) -> str:
    raw = read(name)
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise OwnError(f"{name} is not UTF-8 text") from None


def _local_imports(name: str, text: str) -> Iterator[str]:
    """Yields the files that imports in the file `name` may refer to.

    Names are relative to the folder of the policy's file. Some of the files do not exist.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return  # the error is reported when the policy is loaded
    package = PurePosixPath(name).parent
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files_of(PurePosixPath(*alias.name.split(".")))
        elif isinstance(node, ast.ImportFrom):
            base = PurePosixPath()
            if node.level:
                base = package
                for _ in range(node.level - 1):
                    base = base.parent
            module = base.joinpath(*(node.module or "").split("."))
            yield from _files_of(module)
            for alias in node.names:
                if alias.name != "*":
                    yield from _files_of(module / alias.name)


def _files_of(module: PurePosixPath) -> Iterator[str]:
    """Yields the files that the import of a module may execute, packages first."""
    parts = [part for part in module.parts if part]
    for count in range(1, len(parts)):
        yield str(PurePosixPath(*parts[:count], "__init__.py"))
    if parts:
        yield f"{PurePosixPath(*parts)}.py"
        yield str(PurePosixPath(*parts, "__init__.py"))
