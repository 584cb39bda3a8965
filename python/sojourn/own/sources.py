"""The files of a policy: its own file and the local modules that it imports."""

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
"""Reads a file by name; raises `OSError`, or `ValueError` with the reason."""

MOST_FILES = 100
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
    start: int
    end: int

    @property
    def policy(self) -> str:
        """Name of the policy without the file's folder."""
        return f"{Path(self.file).name}:{self.name}"


def place_of(text: str) -> Place:
    """Returns the place of the policy that a text names."""
    match = _PLACE.match(text)
    if match is None:
        raise OwnError("a policy of your own is named by its file and class, such as mine.py:Mine")
    file, name = match[1] or match[3], match[2] or match[4]
    if name is None:
        raise OwnError(f"which class of {file}? Write {file}:NAME")
    start = match.start(1) if match[1] else match.start(3)
    return Place(file, name, start, match.end(2) if match[1] else match.end(4))


def renamed(text: str, rename: Callable[[str], str]) -> str:
    """Returns the text with a new file name; texts without a policy are unchanged."""
    match = _PLACE.match(text)
    if match is None:
        return text
    file, name = match[1] or match[3], match[2] or match[4]
    other = rename(file) + (f":{name}" if name else "")
    quoted = f'"{other}"' if re.search(r"\s", other) else other
    return quoted + text[match.end() :]


@dataclass(frozen=True)
class Sources:
    """Source texts of a policy, by their names relative to its file."""

    main: str
    files: tuple[tuple[str, str], ...]

    @cached_property
    def digest(self) -> str:
        """Hash of all sources; equal sources have equal digests, independently of their folder."""
        text = json.dumps([self.main, self.files], separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def as_dict(self) -> dict[str, str]:
        """Returns the files by name."""
        return dict(self.files)


def gather(file: str, read: Read) -> tuple[Sources, tuple[str, ...]]:
    """Reads a policy's file and its local imports; returns them and their names for `read`."""
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
    """Yields files that an import in `name` may mean, relative to the policy's folder."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return  # reported when the policy is loaded
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
    """Yields the files that the import of a local module executes, packages first."""
    parts = [part for part in module.parts if part]
    for count in range(1, len(parts)):
        yield str(PurePosixPath(*parts[:count], "__init__.py"))
    if parts:
        yield f"{PurePosixPath(*parts)}.py"
        yield str(PurePosixPath(*parts, "__init__.py"))
