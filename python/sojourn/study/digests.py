"""Digests of a folder's Parquet files, which the manifest lists.

A digest has three parts: the file's length, a hash of the file's end, which describes the columns,
and a hash of the whole file. A session writes the digest of a new file to the manifest before the
new file replaces the old one, and keeps the digest of the old file, or `ABSENT`, until then. So a
session that is killed at any moment leaves no file that seems damaged.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

Listed = Mapping[str, Sequence[str]]
"""Digests of files by name."""

ABSENT = "absent"
"""Entry of a file that may be missing, as it is written for the first time."""

_BITS = 128


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=_BITS // 8).hexdigest()


def ending(path: Path) -> str:
    """Returns the first two parts of a file's digest, for which only the file's end is read."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 8, 0))
        footer = int.from_bytes(file.read(4), "little") + 8  # the format of Parquet files
        file.seek(max(size - footer, 0))
        return f"{size}:{_hash(file.read())}:"


def digest(path: Path) -> str:
    """Returns the digest of a file."""
    with path.open("rb") as file:
        whole = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=_BITS // 8))
    return ending(path) + whole.hexdigest()


def followed(listed: Sequence[str], path: Path, new: Path) -> list[str]:
    """Returns the digests to list before the file `new` replaces the file `path`."""
    return [*(_present(listed, path) if path.exists() else [ABSENT]), digest(new)]


def settled(folder: Path, listed: Listed) -> dict[str, list[str]]:
    """Returns the digests of the files that have replaced others, without those of the others.

    A damaged or missing file keeps its digests, which describe what it was.
    """
    found = {}
    for name, digests in listed.items():
        with contextlib.suppress(FileNotFoundError):
            present = _present(digests, folder / name)
            if present and len(present) < len(digests):
                found[name] = present
    return found


def _present(listed: Sequence[str], path: Path) -> list[str]:
    """Returns the digests that agree with the file `path`."""
    now = ending(path)
    return [one for one in listed if one.startswith(now)]


def changed(folder: Path, listed: Listed, *, whole: bool) -> dict[str, str]:
    """Returns the listed files that are missing or not as they were written, with descriptions.

    Without `whole`, only the length and the end of each file are compared.
    """
    found = {}
    for name, digests in listed.items():
        path = folder / name
        try:
            now = digest(path) if whole else ending(path)
            if not any(one.startswith(now) for one in digests):
                found[name] = f"{path}: the content is not as it was written; restore the file"
        except FileNotFoundError:
            if ABSENT not in digests:
                found[name] = f"{path}: the file is missing; restore it"
    return found
