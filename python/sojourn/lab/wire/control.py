"""The control channels of running wires: sockets by name, and a client.

A wire listens on `wire-NAME.sock` in a private folder of its user: /run/sojourn for root, `sojourn`
in $XDG_RUNTIME_DIR for other users. `control_server` describes the protocol. The socket file of a
killed wire is removed when the running wires are listed.
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self, TypeVar

from sojourn.arguments import hint
from sojourn.data import Json, Object
from sojourn.lab.errors import LabError, Unavailable
from sojourn.lab.machine.journal import default_folder
from sojourn.lab.typed import of_json
from sojourn.lab.wire.counters import About, Counters
from sojourn.own.sources import is_own
from sojourn.own.text import own, queue_params

T = TypeVar("T")

PREFIX, SUFFIX = "wire-", ".sock"
"""Beginning and end of the names of socket files."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,47}")
"""Valid names of wires."""
ANSWER_SECONDS = 10.0
"""Default time limit for an answer of the wire, in seconds."""
ANSWER_BYTES = 64 << 20
"""Longest answer in bytes, enough for the counters of a hundred thousand links."""
BACKLOG = 100
"""Maximum number of connections that wait for `accept`."""


def check_name(name: str) -> None:
    """Raises `LabError` if the name of a wire is invalid."""
    if not NAME.fullmatch(name):
        raise LabError(
            "the name of a wire must be letters, digits, - and _, with a letter or digit first, "
            f"and at most 48 characters; found {name!r}"
        )


def folder() -> Path:
    """Returns the folder of this user's control sockets."""
    return default_folder()


def path_of(name: str) -> Path:
    """Returns the path of a wire's control socket; raises `LabError` for an invalid name."""
    check_name(name)
    return folder() / f"{PREFIX}{name}{SUFFIX}"


NONE = "no wire is running: start one by `sojourn wire run` or `sojourn lab run --control NAME`"
"""Error message if no wire is running."""


@contextmanager
def listening(name: str) -> Iterator[socket.socket]:
    """Gives a listening socket for a wire with this name; removes the socket file at the end.

    Raises `LabError` if a wire with this name is running, and `Unavailable` if there is no private
    folder.
    """
    path = path_of(name)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    with listener:
        with _locked(path.parent):
            if path.exists() and not _stale(path):
                raise LabError(f"a wire with the name `{name}` is running: choose another name")
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
    """Creates and locks the private folder; at the end, removes the folder if it is empty."""
    while True:
        with suppress(FileExistsError):
            try:
                home.mkdir(mode=0o700)
            except FileNotFoundError as error:
                raise Unavailable(f"{home.parent} does not exist") from error
            except PermissionError as error:
                raise Unavailable(f"{home} cannot be created: {error.strerror}") from error
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
            f"{home} is not private to this user: it belongs to user {found.st_uid}, "
            f"mode {stat.S_IMODE(found.st_mode):o}"
        )
    try:
        yield
    finally:
        with suppress(OSError):
            home.rmdir()
        os.close(fd)


def _stale(path: Path) -> bool:
    """Removes a socket file if no process listens; returns whether it was removed.

    The caller must hold the lock.
    """
    if not stat.S_ISSOCK(path.lstat().st_mode):
        raise LabError(f"{path} is not a socket: remove the file, or choose another name")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(str(path))
        except BlockingIOError:
            return False  # a process listens, with a full queue of connections
        except OSError as error:
            if error.errno not in (errno.ECONNREFUSED, errno.ENOENT):
                raise
            path.unlink(missing_ok=True)
            return True
    return False


def names() -> list[str]:
    """Returns the names of this user's running wires; removes socket files of killed wires."""
    home = folder()
    if not home.is_dir():
        return []
    with _locked(home):
        alive = [path.name for path in home.glob(f"{PREFIX}*{SUFFIX}") if not _stale(path)]
    return sorted(name.removeprefix(PREFIX).removesuffix(SUFFIX) for name in alive)


class Refused(LabError):
    """A wire refused a request; the message is the wire's error."""


class Ended(LabError):
    """The wire has ended."""

    def __init__(self) -> None:
        super().__init__("the wire has ended")


class Client:
    """A connection to the control channel of a wire."""

    def __init__(self, where: str | Path, patience: float = ANSWER_SECONDS) -> None:
        """Connects to a wire, given by its name (text) or by its socket file (`Path`).

        `patience` is the time limit for each answer, in seconds.
        """
        self.patience = patience
        path = self._path = where if isinstance(where, Path) else path_of(where)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        # The socket is blocking, because `connect` of a non-blocking socket fails at once if the
        # queue of connections is full.
        longest = struct.pack("@ll", math.ceil(patience), 0)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, longest)
        try:
            self._socket.connect(str(path))
            self._socket.settimeout(patience)
        except BlockingIOError as error:
            self._socket.close()
            raise LabError(
                f"the wire at {path} does not answer: try again, or end the wire"
            ) from error
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
        """Closes the connection."""
        self._lines.close()
        self._socket.close()

    def interrupt(self) -> None:
        """Ends the connection from another thread; a waiting request raises `Ended`."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def ask(self, do: str, **more: Json) -> Object:
        """Sends the request `do` and returns the answer; raises `Refused` or `Ended`."""
        try:
            self._socket.sendall(json.dumps({"do": do, **more}).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Ended from error
        return self.next()

    def next(self) -> Object:
        """Returns the next answer; raises `Refused`, `Ended`, or `LabError` after a timeout."""
        try:
            line = self._lines.readline(ANSWER_BYTES)
        except TimeoutError as error:
            message = f"the wire at {self._path} does not answer: try again, or end the wire"
            raise LabError(message) from error
        except ConnectionResetError as error:
            raise Ended from error
        if not line.endswith(b"\n"):
            raise Ended
        answer: Object = json.loads(line)
        if not answer.get("ok"):
            raise Refused(str(answer.get("error")))
        if answer.get("ended"):
            raise Ended
        return answer

    def _read(self, kind: type[T], value: Json) -> T:
        try:
            return of_json(kind, value)
        except ValueError as error:
            message = f"the wire at {self._path} is of another version of Sojourn: {error}"
            raise LabError(message) from error

    def about(self) -> About:
        """Returns the wire's name, process and links."""
        return self._read(About, self.ask("about"))

    def counters(self, links: Sequence[str] | None = None) -> Counters:
        """Returns the current counters of these links, by default of all."""
        wanted = {} if links is None else {"links": list(links)}
        return self._read(Counters, self.ask("counters", **wanted).get("counters"))

    def watch(self, every: float) -> Iterator[Counters]:
        """Yields the counters at once and then every `every` seconds, until the wire ends."""
        with suppress(Ended):
            answer = self.ask("watch", every=every)
            self._socket.settimeout(self.patience + every)
            while True:
                yield self._read(Counters, answer.get("counters"))
                answer = self.next()

    def set(self, link: str, **changes: Json) -> None:
        """Changes a link; the file of a user's own queue is read by this process."""
        if is_own(str(changes.get("queue", ""))):
            found = own("queue", str(changes.pop("queue")))
            if not found.declaration.can_change:
                raise LabError(
                    f"{found.policy} has no method `change`, so its parameters cannot be changed "
                    "while it runs: add change(self, params), or start the wire again"
                )
            changes["params"] = queue_params(found)
        self.ask("set", link=link, **changes)

    def stop(self) -> None:
        """Ends the wire."""
        self.ask("stop")


def holding(name: str) -> str:
    """Returns the name of the wire that has this name or a link with this name.

    Raises `LabError` if there is no such wire, or if several wires have such a link.
    """
    running = names()
    if name in running:
        return name
    if not running:
        raise LabError(NONE)
    links = {}
    for wire in running:
        with suppress(LabError), Client(wire) as client:
            links[wire] = [link.link for link in client.about().links]
    having = [wire for wire, own in links.items() if name in own]
    if len(having) == 1:
        return having[0]
    if having:
        raise LabError(f"several wires have a link `{name}`: choose one of {', '.join(having)}")
    known = [link for own in links.values() for link in own]
    raise LabError(f"no running wire has a link `{name}`{hint(name, known, 'existing')}")
