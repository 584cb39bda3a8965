"""Cassandra's jars from Maven Central: fetched once, each pinned by its SHA-256.

The list of a version stands beside this file, `cassandra-VERSION.sha256`: a hash and a path in a
Maven repository a line, as `sha256sum` writes them.
"""

from __future__ import annotations

import fcntl
import hashlib
import http.client
import os
import re
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from sojourn.lab.cassandra import VERSION
from sojourn.lab.errors import LabError, Unavailable

REPOSITORY = "https://repo1.maven.org/maven2"
LARGEST = 64 * 1024**2
"""Bytes of a jar at most."""
SECONDS = 60.0
AT_ONCE = 6
HALF = ".half"
"""How files end that are not whole yet."""

Progress = Callable[[int, int], None]
"""Is told how many jars of how many are there."""

_PIN = re.compile(r"([0-9a-f]{64})  ([\w.+/-]+\.jar)")


@dataclass(frozen=True)
class Jar:
    """A file of a Maven repository."""

    path: str
    sha256: str

    @property
    def name(self) -> str:
        """Its name without folders."""
        return self.path.rpartition("/")[2]


def pinned(version: str = VERSION) -> list[Jar]:
    """Jars that make a version."""
    text = (resources.files(__package__) / f"cassandra-{version}.sha256").read_text("ascii")
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _PIN.fullmatch(line)
        if match is None or ".." in match[2]:
            raise LabError(f"cassandra-{version}.sha256, line {number}: no hash and path: {line!r}")
        found.append(Jar(match[2], match[1]))
    return found


def folder(version: str = VERSION) -> Path:
    """Where a version's jars are kept, whether they are there or not."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    try:
        root = Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        raise Unavailable("this user has no home folder", "set XDG_CACHE_HOME") from None
    return root / "sojourn" / f"cassandra-{version}"


def missing(version: str = VERSION) -> list[Jar]:
    """Jars that are not there, or are not what they should be."""
    kept = folder(version)
    return [jar for jar in pinned(version) if not _is(kept / jar.name, jar.sha256)]


def class_path(version: str = VERSION) -> str:
    """Java's class path of a version; raises `Unavailable` where it has not been fetched."""
    if lacking := missing(version):
        what = f"{len(lacking)} jars of Cassandra {version} are missing in {folder(version)}"
        raise Unavailable(what, "sojourn store fetch")
    return ":".join(str(folder(version) / jar.name) for jar in pinned(version))


def fetch(
    version: str = VERSION, repository: str = REPOSITORY, progress: Progress | None = None
) -> int:
    """Fetches what is missing, and says how many jars that were.

    A jar appears under its name only when its hash is right. Raises `LabError` with the address if
    one cannot be had or is another, and `OSError` if there is no room for it.
    """
    kept = folder(version)
    if not missing(version):
        return 0
    kept.mkdir(parents=True, exist_ok=True)
    with _alone(kept), ThreadPoolExecutor(AT_ONCE) as pool:
        lacking = missing(version)  # somebody else may have fetched it meanwhile
        made = pool.map(lambda jar: _fetch(jar, kept, repository.rstrip("/")), lacking)
        for done, _ in enumerate(made, 1):
            if progress is not None:
                progress(done, len(lacking))
    return len(lacking)


@contextmanager
def _alone(kept: Path) -> Iterator[None]:
    """One process at a time, and what a killed one left half-written goes."""
    lock = os.open(kept, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for half in kept.glob(f".*{HALF}"):
            half.unlink(missing_ok=True)
        yield
    finally:
        os.close(lock)


def _fetch(jar: Jar, kept: Path, repository: str) -> None:
    address = f"{repository}/{jar.path}"
    if not address.startswith(("https://", "http://", "file://")):
        raise LabError(f"{repository}: a repository is https://..., http://... or file://...")
    try:
        with urllib.request.urlopen(address, timeout=SECONDS) as answer:  # noqa: S310 - checked above
            data = answer.read(LARGEST + 1)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise LabError(f"{address} cannot be fetched: {error or type(error).__name__}") from error
    found = hashlib.sha256(data).hexdigest()
    if found != jar.sha256:
        raise LabError(f"{address} is not the pinned file: SHA-256 {found}, not {jar.sha256}")
    half = kept / f".{jar.name}{HALF}"
    try:
        with half.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        half.replace(kept / jar.name)
    except BaseException as error:
        half.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = error.filename or str(kept)  # as a full disk says it
        raise


def _is(path: Path, sha256: str) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except OSError:
        return False
