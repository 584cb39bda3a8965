"""Cassandra's jars from Maven Central, each downloaded once and pinned by its SHA-256.

This folder contains a list for the version, `cassandra-VERSION.sha256`: one line per jar with its
hash and its path in a Maven repository, in the format of `sha256sum`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from sojourn.lab import downloads
from sojourn.lab.cassandra import VERSION
from sojourn.lab.errors import LabError, Unavailable

REPOSITORY = "https://repo1.maven.org/maven2"
AT_ONCE = 6
HALF = downloads.HALF

Progress = Callable[[int, int], None]
"""Callback with the number of complete jars and the number of all jars."""

_PIN = re.compile(r"([0-9a-f]{64})  ([\w.+/-]+\.jar)")


@dataclass(frozen=True)
class Jar:
    """A file of a Maven repository."""

    path: str
    sha256: str

    @property
    def name(self) -> str:
        """File name of the jar."""
        return self.path.rpartition("/")[2]


def pinned(version: str = VERSION) -> list[Jar]:
    """Returns the jars of a version."""
    text = (resources.files(__package__) / f"cassandra-{version}.sha256").read_text("ascii")
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _PIN.fullmatch(line)
        if match is None or ".." in match[2]:
            raise LabError(f"cassandra-{version}.sha256, line {number}: no hash and path: {line!r}")
        found.append(Jar(match[2], match[1]))
    return found


def folder(version: str = VERSION) -> Path:
    """Returns the folder of a version's jars, whether it exists or not."""
    return downloads.cache() / f"cassandra-{version}"


def missing(version: str = VERSION) -> list[Jar]:
    """Returns the jars that are missing or have the wrong hash."""
    kept = folder(version)
    return [jar for jar in pinned(version) if not downloads.matches(kept / jar.name, jar.sha256)]


def class_path(version: str = VERSION) -> str:
    """Returns Java's class path of a version; raises `Unavailable` if jars are missing."""
    if lacking := missing(version):
        what = f"{len(lacking)} jars of Cassandra {version} are missing in {folder(version)}"
        raise Unavailable(what, "sojourn store fetch")
    return ":".join(str(folder(version) / jar.name) for jar in pinned(version))


def fetch(
    version: str = VERSION, repository: str = REPOSITORY, progress: Progress | None = None
) -> int:
    """Downloads the missing jars; returns their number.

    A jar gets its final name only after its hash has been checked. Raises `LabError` with the
    address if a download fails or has the wrong hash, and `OSError` if the disk is full.
    """
    kept = folder(version)
    if not missing(version):
        return 0
    kept.mkdir(parents=True, exist_ok=True)
    with downloads.alone(kept), ThreadPoolExecutor(AT_ONCE) as pool:
        for half in kept.glob(f".*{HALF}"):  # left by a process that was killed
            half.unlink(missing_ok=True)
        lacking = missing(version)  # another process may have fetched it meanwhile
        made = pool.map(lambda jar: _fetch(jar, kept, repository.rstrip("/")), lacking)
        for done, _ in enumerate(made, 1):
            if progress is not None:
                progress(done, len(lacking))
    return len(lacking)


def _fetch(jar: Jar, kept: Path, repository: str) -> None:
    if not repository.startswith(downloads.SCHEMES):
        raise LabError(f"{repository}: a repository is https://..., http://... or file://...")
    path = kept / jar.name
    try:
        downloads.fetch([f"{repository}/{jar.path}"], path, jar.sha256)
    except BaseException:
        downloads.half_of(path).unlink(missing_ok=True)
        raise
