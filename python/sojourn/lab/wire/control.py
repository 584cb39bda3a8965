"""Running wires: their control sockets, found by name, and the client for them.

A wire listens on `wire-NAME.sock` in a private folder of its user: /run/sojourn for root, `sojourn`
in $XDG_RUNTIME_DIR for other users. The protocol is JSON lines, see `control_server`. A socket of a
killed wire does not answer and is removed at the next listing.
"""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import re
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from sojourn import _core
from sojourn.lab.errors import LabError, Unavailable
from sojourn.lab.machine.journal import default_folder
from sojourn.own.sources import is_own
from sojourn.own.text import own, queue_params

PREFIX, SUFFIX = "wire-", ".sock"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,47}")
ANSWER_SECONDS = 10.0
ANSWER_BYTES = 64 << 20
"""Longest line in bytes: the counters of a hundred thousand links."""
BACKLOG = 100


def check_name(name: str) -> None:
    """Raises `LabError` if the name is invalid for a wire."""
    if not NAME.fullmatch(name):
        raise LabError(
            f"a wire cannot be called {name!r}: letters, digits, - and _, 48 at most, "
            "a letter or digit first"
        )


def folder() -> Path:
    """Returns the folder in which this user's wires listen."""
    return default_folder()


def path_of(name: str) -> Path:
    """Returns the socket's path of the wire with this name."""
    check_name(name)
    return folder() / f"{PREFIX}{name}{SUFFIX}"


NONE = "no wire is running: `sojourn wire run`, or `lab run --control NAME`, starts one"


@contextmanager
def listening(name: str) -> Iterator[socket.socket]:
    """A listening socket for the wire with this name; its path is removed at the end.

    Raises `LabError` if a wire of this name exists, `Unavailable` without a private folder.
    """
    path = path_of(name)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    with listener:
        with _locked(path.parent):
            if path.exists() and not _stale(path):
                raise LabError(f"a wire called `{name}` is running")
            before = os.umask(0o177)
            try:
                listener.bind(str(path))
            finally:
                os.umask(before)
            mine = path.lstat()
            listener.listen(BACKLOG)
        try:
            yield listener
        finally:
            with suppress(OSError, Unavailable), _locked(path.parent):
                if os.path.samestat(mine, path.lstat()):
                    path.unlink()


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    """Creates the private folder if necessary and locks it; removes it when it is empty."""
    while True:
        with suppress(FileExistsError):
            try:
                home.mkdir(mode=0o700)
            except FileNotFoundError as error:
                raise Unavailable(f"{home.parent} does not exist") from error
            except PermissionError as error:
                raise Unavailable(f"{home} cannot be made: {error.strerror}") from error
        try:
            fd = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue
        fcntl.flock(fd, fcntl.LOCK_EX)
        found = os.fstat(fd)
        with suppress(FileNotFoundError):
            if os.path.samestat(found, home.lstat()):
                break
        os.close(fd)
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        os.close(fd)
        raise Unavailable(
            f"{home} is not ours alone: it belongs to user {found.st_uid}, "
            f"mode {stat.S_IMODE(found.st_mode):o}"
        )
    try:
        yield
    finally:
        with suppress(OSError):
            home.rmdir()
        os.close(fd)


def _stale(path: Path) -> bool:
    """Returns whether no process listens there, and removes the path then; needs the lock."""
    if not stat.S_ISSOCK(path.lstat().st_mode):
        raise LabError(f"{path} is in the way: it is no socket; remove it, or choose another name")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(str(path))
        except BlockingIOError:
            return False  # its queue of connections is full
        except OSError as error:
            if error.errno not in (errno.ECONNREFUSED, errno.ENOENT):
                raise
            path.unlink(missing_ok=True)
            return True
    return False


def names() -> list[str]:
    """Returns the names of this user's running wires; removes the sockets of killed ones."""
    home = folder()
    if not home.is_dir():
        return []
    with _locked(home):
        alive = [path.name for path in home.glob(f"{PREFIX}*{SUFFIX}") if not _stale(path)]
    return sorted(name.removeprefix(PREFIX).removesuffix(SUFFIX) for name in alive)


class Refused(LabError):
    """A wire refused a request; the text is the wire's."""


class Ended(LabError):
    """The wire has ended."""

    def __init__(self) -> None:
        super().__init__("the wire has ended")


class Client:
    """A connection to a wire."""

    def __init__(self, where: str | Path, patience: float = ANSWER_SECONDS) -> None:
        """Connects to the wire with this name, or with its socket at this path.

        Waits at most `patience` seconds for an answer.
        """
        self.patience = patience
        path = self._path = where if isinstance(where, Path) else path_of(where)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        # A blocking socket, since a non-blocking one fails at once if the queue of connections is
        # full.
        longest = struct.pack("@ll", math.ceil(patience), 0)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, longest)
        try:
            self._socket.connect(str(path))
            self._socket.settimeout(patience)
        except BlockingIOError as error:
            self._socket.close()
            raise LabError(f"the wire at {path} does not answer: try again, or end it") from error
        except OSError as error:
            self._socket.close()
            if error.errno in (errno.ECONNREFUSED, errno.ENOENT):
                raise LabError(f"no wire listens at {path}") from error
            raise LabError(f"{path}: {error.strerror}") from error
        self._lines = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection."""
        self._lines.close()
        self._socket.close()

    def interrupt(self) -> None:
        """Ends the wait for an answer in another thread, as if the wire had ended."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def ask(self, do: str, **more: Any) -> dict[str, Any]:
        """Sends a request and returns the answer; raises `Refused` or `Ended`."""
        try:
            self._socket.sendall(json.dumps({"do": do, **more}).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Ended from error
        return self.next()

    def next(self) -> dict[str, Any]:
        """Returns the wire's next line."""
        try:
            line = self._lines.readline(ANSWER_BYTES)
        except TimeoutError as error:
            told = f"the wire at {self._path} does not answer: try again, or end it"
            raise LabError(told) from error
        except ConnectionResetError as error:
            raise Ended from error
        if not line.endswith(b"\n"):
            raise Ended
        answer: dict[str, Any] = json.loads(line)
        if not answer.get("ok"):
            raise Refused(str(answer.get("error")))
        if answer.get("ended"):
            raise Ended
        return answer

    def about(self) -> dict[str, Any]:
        """Returns the wire's description of itself."""
        return self.ask("about")

    def counters(self) -> dict[str, Any]:
        """Returns the current values of all counters."""
        counters: dict[str, Any] = self.ask("counters")["counters"]
        return counters

    def watch(self, every: float) -> Iterator[dict[str, Any]]:
        """Yields the counters now and every `every` seconds, until the wire ends."""
        with suppress(Ended):
            answer = self.ask("watch", every=every)
            self._socket.settimeout(self.patience + every)
            while True:
                yield answer["counters"]
                answer = self.next()

    def set(self, link: str, **changes: Any) -> None:
        """Changes a link; the file of a user's own queue is read on this side."""
        if is_own(str(changes.get("queue", ""))):
            changes["params"] = queue_params(own("queue", changes.pop("queue")))
        self.ask("set", link=link, **changes)

    def stop(self) -> None:
        """Ends the wire's run."""
        self.ask("stop")


def holding(name: str) -> str:
    """Returns the wire `name`, or the one wire with a link of this name; raises `LabError`."""
    running = names()
    if name in running:
        return name
    if not running:
        raise LabError(NONE)
    links = {}
    for wire in running:
        with suppress(LabError), Client(wire) as client:
            links[wire] = [link["link"] for link in client.about()["links"]]
    having = [wire for wire, own in links.items() if name in own]
    if len(having) == 1:
        return having[0]
    if having:
        raise LabError(f"several wires have a link `{name}`: {', '.join(having)}; say which")
    known = [link for own in links.values() for link in own]
    near = _core.nearest(name, known)
    hint = f"did you mean `{near}`?" if near else f"there are {', '.join(known[:20])}"
    raise LabError(f"no running wire has a link `{name}`: {hint}")
