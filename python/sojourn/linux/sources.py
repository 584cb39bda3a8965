"""Sources of kernels: known packages of Debian, archives, and folders of users.

A user's folder is only read. The build uses a copy of the files that User-Mode Linux needs.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import IO, cast

from sojourn.data import Object
from sojourn.lab import downloads
from sojourn.lab.errors import LabError, Unavailable
from sojourn.linux.settings import MIRROR

ARCHIVE = "https://snapshot.debian.org/file"
"""Archive of all files that Debian ever had, by SHA-1."""
DEFAULT = "7.3"
"""Default release of the kernel."""
IPROUTE2 = "iproute2"
"""Name of the source of `ip` and `tc`."""

Tell = Callable[[str, float], None]
"""Callback for the progress: a text, and the fraction from 0 to 1."""

_UNREADABLE: tuple[type[Exception], ...] = (
    tarfile.TarError,
    EOFError,
    ValueError,
    FileExistsError,
    NotADirectoryError,
    IsADirectoryError,
    RuntimeError,
)
"""Errors of a damaged archive, such as a member below a file or below a link to itself."""
with suppress(ImportError):  # some Pythons are built without lzma
    import lzma

    _UNREADABLE += (lzma.LZMAError,)
_ZSTD = b"\x28\xb5\x2f\xfd"
"""First bytes of a file that is compressed by zstd."""
_BULKY = (
    r"arch/(?!um/|x86/)[^/]+/.*|sound/.*"
    r"|drivers/(gpu|media|staging|infiniband|accel|scsi|iio|net/(ethernet|wireless|dsa))/.*"
    r"|tools/(testing|perf|power)/.*|Documentation/.*"
)
_NOT_NEEDED = re.compile(rf"(?!.*(Kconfig|Makefile|Kbuild)[^/]*$)({_BULKY})|\.git(/.*)?")
"""Paths of files that User-Mode Linux never needs, about half of a source."""
_BUILT = (".config", "include/config/auto.conf", "vmlinux.o", "scripts/basic/fixdep")
"""Files that exist only in a source in whose own folder a kernel was built."""


def needed(path: str) -> bool:
    """Returns whether the build needs the file with this path in the source."""
    return _NOT_NEEDED.fullmatch(path) is None


@dataclass(frozen=True)
class Pin:
    """A package of Debian, with its hashes."""

    path: str
    """Path in the mirror's folder `pool`."""
    sha256: str
    sha1: str
    """SHA-1 hash, by which the archive names the file."""

    @property
    def name(self) -> str:
        """File name of the package."""
        return self.path.rpartition("/")[2]

    def addresses(self, mirror: str = MIRROR) -> list[str]:
        """Returns the addresses: a mirror, which may have removed the package, and the archive."""
        return [f"{mirror.rstrip('/')}/pool/{self.path}", f"{ARCHIVE}/{self.sha1}"]


def pins() -> dict[str, Pin]:
    """Returns the known packages by name."""
    text = (resources.files(__package__) / "data" / "sources.json").read_text("utf-8")
    return {name: Pin(**fields) for name, fields in json.loads(text).items()}


def fetch(pin: Pin, folder: Path, mirror: str, tell: Tell) -> Path:
    """Returns the path of a package in `folder`, after a download if necessary.

    Raises `LabError` if the mirror's address is invalid, `Unavailable` if the download fails.
    """
    if not mirror.startswith(downloads.SCHEMES):
        raise LabError(f"{mirror}: a mirror must begin with https://, http:// or file://")
    path = folder / pin.name
    if downloads.matches(path, pin.sha256):
        return path
    folder.mkdir(parents=True, exist_ok=True)

    def progress(done: int, total: int) -> None:
        tell(f"{done / 1e6:.0f} of {total / 1e6:.0f} MB", done / total if total else 0.0)

    try:
        downloads.fetch(pin.addresses(mirror), path, pin.sha256, progress)
    except LabError as error:
        raise Unavailable(
            f"the source cannot be downloaded: {error}",
            "repeat the command to continue the download, use another mirror (--mirror), or use "
            "the folder or archive of a kernel from https://www.kernel.org or a distribution",
        ) from error
    return path


@dataclass(frozen=True)
class Archive:
    """A source in one file: a tar archive, or a package of Debian with a tar archive."""

    path: Path
    sha256: str
    pin: Pin | None = None
    """The package of Debian; `None` for a user's file."""

    @property
    def key(self) -> str:
        """Returns the key by which a repeated build finds its folder: the hash."""
        return self.sha256

    def described(self) -> Object:
        """Returns the description of the source for the kernel's description."""
        data: Object = {"file": self.path.name, "sha256": self.sha256}
        return data | ({"addresses": self.pin.addresses()} if self.pin else {})


@dataclass(frozen=True)
class Tree:
    """A source in a user's folder, which is only read."""

    path: Path
    commit: str = ""
    """Commit of git; empty if the folder is not a repository."""
    modified: bool = False
    """Whether files differ from the commit."""
    files: list[str] = field(default_factory=list, repr=False)
    """Paths of the needed files in the folder."""

    @property
    def key(self) -> str:
        """Returns the key by which a repeated build finds its folder: a hash of the path."""
        return hashlib.sha256(os.fsencode(self.path)).hexdigest()

    def described(self) -> Object:
        """Returns the description of the source for the kernel's description."""
        data: Object = {"folder": str(self.path)}
        return data | ({"commit": self.commit, "modified": self.modified} if self.commit else {})


def resolve(words: str | None, folder: Path) -> Archive | Tree:
    """Returns the source that `words` name: a folder, an archive, or a known release.

    The file of a known release is in `folder` after `fetch`. Raises `LabError` if there is no such
    source.
    """
    known = pins()
    releases = [name for name in known if name != IPROUTE2]
    path = Path(words or DEFAULT).expanduser()
    if path.is_dir():
        return tree(path.resolve())
    if path.is_file():
        return Archive(path.resolve(), downloads.digest(path))
    if (name := words or DEFAULT) in releases:
        pin = known[name]
        return Archive(folder / pin.name, pin.sha256, pin)
    raise LabError(
        f"{words} is not a folder, a file or a known release; known releases are "
        f"{', '.join(releases)}"
    )


def tree(path: Path) -> Tree:
    """Returns the source in a folder; raises `LabError` if no kernel can be built from it."""
    if not (path / "arch" / "um" / "Makefile").is_file():
        raise LabError(f"{path} is not a source of Linux: it has no arch/um/Makefile")
    listed = _git(path, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed is not None and (path / ".git").exists():
        commit = (_git(path, "rev-parse", "HEAD") or b"").decode("ascii").strip()
        modified = bool(_git(path, "status", "--porcelain", "--untracked-files=no"))
        files = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    else:
        commit, modified = "", False
        built = [name for name in _BUILT if (path / name).exists()]
        if built:
            # The copy would contain the files of that build.
            raise LabError(
                f"{path} was built in place (it has {built[0]}): run `make mrproper` there, or "
                "use the original archive"
            )
        files = [
            str((Path(folder) / name).relative_to(path))
            for folder, _, names in os.walk(path)
            for name in names
        ]
    wanted = sorted(name for name in files if needed(name) and os.path.lexists(path / name))
    return Tree(path, commit, modified, wanted)


def _git(path: Path, *words: str) -> bytes | None:
    command = ["git", "-C", str(path), "--no-optional-locks", *words]
    try:
        return subprocess.run(command, capture_output=True, check=True).stdout  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return None


def unpack(archive: Path, into: Path, tell: Tell) -> None:
    """Unpacks the needed files of an archive into a folder, without the archive's top folder."""
    into = into.resolve()
    size = archive.stat().st_size
    with archive.open("rb") as file:
        count = 0
        try:
            with _members(file) as members:
                for member, content in members:
                    count += _write(member, content, into)
                    if count % 500 == 0:
                        read = os.lseek(file.fileno(), 0, os.SEEK_CUR)
                        tell(f"{count} files", min(read / size, 1.0))
        except _UNREADABLE as error:
            raise LabError(f"{archive} cannot be unpacked: {error}") from error


Members = Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]


@contextmanager
def _members(file: IO[bytes]) -> Iterator[Members]:
    """Yields the members of a tar archive, or of the tar archive inside a package."""
    if file.read(8) == b"!<arch>\n":
        while head := file.read(60):
            length = int(head[48:58])
            if head.startswith(b"data.tar"):
                break
            file.seek(length + length % 2, os.SEEK_CUR)
        with _tar(file) as outer:
            for member in outer:
                inner = outer.extractfile(member)
                if inner is not None and re.search(r"/linux-source-[^/]*\.tar\.\w+$", member.name):
                    with _tar(inner) as tar:
                        yield _contents(tar)
                    return
        raise ValueError("the package has no source of a kernel (linux-source-*)")
    file.seek(0)
    with _tar(file) as tar:
        yield _contents(tar)


@contextmanager
def _tar(file: IO[bytes]) -> Iterator[tarfile.TarFile]:
    """Opens a tar archive at the current position of a file; supports zstd."""
    peeked = file.read(4)
    joined = cast("IO[bytes]", _Joined(peeked, file))
    if peeked != _ZSTD:
        with tarfile.open(fileobj=joined, mode="r|*") as tar:
            yield tar
        return
    # The `tarfile` of older Pythons cannot read zstd.
    with subprocess.Popen(
        ["zstd", "-dcq"],  # noqa: S607 - the first in PATH
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        feeder = threading.Thread(target=_feed, args=(joined, process.stdin), daemon=True)
        feeder.start()
        try:
            with tarfile.open(fileobj=process.stdout, mode="r|") as tar:
                yield tar
        finally:
            process.kill()
            feeder.join()


def _feed(source: IO[bytes], sink: IO[bytes]) -> None:
    try:
        with sink:
            shutil.copyfileobj(source, sink)
    except (OSError, ValueError):  # zstd has ended
        pass


class _Joined:
    """A file of bytes that were already read, followed by the rest of another file."""

    def __init__(self, first: bytes, rest: IO[bytes]) -> None:
        self._first = first
        self._rest = rest

    def read(self, size: int = -1) -> bytes:
        first, self._first = self._first, b""
        return first + self._rest.read(size if size < 0 else max(size - len(first), 0))


def _contents(tar: tarfile.TarFile) -> Members:
    for member in tar:
        yield member, tar.extractfile(member) if member.isreg() else None


def _write(member: tarfile.TarInfo, content: IO[bytes] | None, into: Path) -> int:
    """Writes a member into a folder if it is needed and safe; returns the number of files."""
    parts = [part for part in PurePosixPath(member.name).parts if part != "."][1:]
    if not parts or ".." in parts or not needed("/".join(parts)):
        return 0
    path = into.joinpath(*parts)
    if path.parent.resolve() != path.parent:  # a link of the archive leads elsewhere
        return 0
    if content is None and not (member.issym() and _is_within(path.parent / member.linkname, into)):
        return 0
    path.parent.mkdir(parents=True, exist_ok=True)
    # A link of this name would lead the content elsewhere.
    if path.is_symlink() or path.is_file():
        path.unlink()
    if content is not None:
        path.write_bytes(content.read())
        path.chmod(0o755 if member.mode & 0o100 else 0o644)
    else:
        path.symlink_to(member.linkname)
    return 1


def _is_within(path: Path, folder: Path) -> bool:
    """Returns whether a path is in a folder when its links are followed."""
    try:
        return path.resolve().is_relative_to(folder)
    except (OSError, RuntimeError):  # links in a circle
        return False


def copy(source: Tree, into: Path, changed: Mapping[str, str], tell: Tell) -> str:
    """Copies a source into a folder; returns the hash of the unchanged source.

    `changed` has the texts of changed files by path. Files that are already equal are not written,
    so that `make` does not compile them again.
    """
    hasher = hashlib.sha256()
    there = {
        str((Path(folder) / name).relative_to(into))
        for folder, _, names in os.walk(into)
        for name in names
    }
    for number, name in enumerate(source.files):
        if number % 500 == 0:
            tell(f"{number} files", number / len(source.files))
        path, target = source.path / name, into / name
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            content = os.fsencode(path.readlink())
        elif stat.S_ISREG(mode):
            content = path.read_bytes()
        else:
            continue
        runs = bool(mode & 0o100)
        hasher.update(
            f"{name}\0{stat.S_IFMT(mode)} {runs} {len(content)}\n".encode(errors="surrogateescape")
        )
        hasher.update(content)
        there.discard(name)
        if name in changed:
            content = changed[name].encode()
        if stat.S_ISLNK(mode):
            if not target.is_symlink() or os.fsencode(target.readlink()) != content:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.unlink(missing_ok=True)
                target.symlink_to(os.fsdecode(content))
        elif target.is_symlink() or not target.is_file() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            target.write_bytes(content)
        if stat.S_ISREG(mode):
            target.chmod(0o755 if runs else 0o644)
    for name in there:
        (into / name).unlink()
    return hasher.hexdigest()
