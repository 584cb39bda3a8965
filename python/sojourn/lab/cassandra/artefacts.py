"""Cassandra's jars from Maven Central, each downloaded once and checked by its SHA-256.

The file `cassandra-VERSION.sha256` in this folder lists the jars of a version. Each line has the
hash and the path of a jar in a Maven repository, in the format of `sha256sum`.
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
"""Default address of the Maven repository."""
AT_ONCE = 6
"""Number of simultaneous downloads."""
HALF = downloads.HALF
"""Suffix of incomplete files."""

Progress = Callable[[int, int], None]
"""Callback with the number of downloaded jars and the number of missing jars at the start."""

_PIN = re.compile(r"([0-9a-f]{64})  ([\w.+/-]+\.jar)")


@dataclass(frozen=True)
class Jar:
    """A file of a Maven repository."""

    path: str
    """Path in the repository."""
    sha256: str

    @property
    def name(self) -> str:
        """File name of the jar."""
        return self.path.rpartition("/")[2]


def pinned(version: str = VERSION) -> list[Jar]:
    """Returns the list of jars of a version of Cassandra."""
    text = (resources.files(__package__) / f"cassandra-{version}.sha256").read_text("ascii")
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _PIN.fullmatch(line)
        if match is None or ".." in match[2]:
            raise LabError(
                f"cassandra-{version}.sha256, line {number}: must be hash and path; found {line!r}"
            )
        found.append(Jar(match[2], match[1]))
    return found


def folder(version: str = VERSION) -> Path:
    """Returns the folder of the downloaded jars of a version, which may not exist yet."""
    return downloads.cache() / f"cassandra-{version}"


def missing(version: str = VERSION) -> list[Jar]:
    """Returns the jars that are not downloaded, or whose file has the wrong hash."""
    kept = folder(version)
    return [jar for jar in pinned(version) if not downloads.matches(kept / jar.name, jar.sha256)]


def class_path(version: str = VERSION) -> str:
    """Returns the class path of a version for Java; raises `Unavailable` if jars are missing."""
    if lacking := missing(version):
        what = f"{len(lacking)} jars of Cassandra {version} are missing in {folder(version)}"
        raise Unavailable(what, "download them by `sojourn store fetch`")
    return ":".join(str(folder(version) / jar.name) for jar in pinned(version))


def fetch(
    version: str = VERSION, repository: str = REPOSITORY, progress: Progress | None = None
) -> int:
    """Downloads the missing jars of a version; returns the number of downloaded jars.

    A jar gets its final name only after its hash has been checked. Raises `LabError` with the
    address if a download fails or a hash is wrong, and `OSError` if the disk is full.
    """
    kept = folder(version)
    if not missing(version):
        return 0
    kept.mkdir(parents=True, exist_ok=True)
    with downloads.alone(kept), ThreadPoolExecutor(AT_ONCE) as pool:
        for half in kept.glob(f".*{HALF}"):  # from killed processes
            half.unlink(missing_ok=True)
        lacking = missing(version)  # another process may have downloaded jars meanwhile
        made = pool.map(lambda jar: _fetch(jar, kept, repository.rstrip("/")), lacking)
        for done, _ in enumerate(made, 1):
            if progress is not None:
                progress(done, len(lacking))
    return len(lacking)


def _fetch(jar: Jar, kept: Path, repository: str) -> None:
    if not repository.startswith(downloads.SCHEMES):
        raise LabError(
            f"a repository must begin with https://, http:// or file://; found {repository}"
        )
    path = kept / jar.name
    try:
        downloads.fetch([f"{repository}/{jar.path}"], path, jar.sha256)
    except BaseException:
        downloads.half_of(path).unlink(missing_ok=True)
        raise
