"""Messages between a sandbox and its init: one line of JSON each, with file descriptors.

The socket preserves the boundaries of messages (`SOCK_SEQPACKET`). A request has an `id`, which the
reply repeats. A message that init sends without a request has an `event`. A message that is longer
than `LIMIT` or has more than `FDS` descriptors is not sent.
"""

from __future__ import annotations

import array
import json
import os
import socket
from collections.abc import Sequence
from typing import Any, Protocol

LIMIT = 128 * 1024
"""Maximum length of a message in bytes; it is below the default size of a socket's buffer."""
FDS = 64
"""Maximum number of descriptors of a message; the kernel permits 253."""

Message = dict[str, Any]
"""Content of a message, an object of JSON."""


REQUEST_SECONDS = 60.0
"""Default time limit for the reply to a request, in seconds."""


class Request(Protocol):
    """Function that sends requests to init."""

    def __call__(
        self,
        op: str,
        fds: Sequence[int] = (),
        seconds: float = REQUEST_SECONDS,
        **arguments: object,
    ) -> tuple[Message, list[int]]:
        """Sends the request `op`; returns the reply, and descriptors for the caller to close."""


class TooLong(ValueError):
    """A message is longer than `LIMIT` or has more than `FDS` descriptors."""


def send(control: socket.socket, message: Message, fds: Sequence[int] = ()) -> None:
    """Sends one message; raises `TooLong` if it exceeds a limit."""
    line = json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    if len(line) > LIMIT:
        raise TooLong(f"a message may have at most {LIMIT} bytes; it has {len(line)}")
    if len(fds) > FDS:
        raise TooLong(f"a message may have at most {FDS} descriptors; it has {len(fds)}")
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    control.sendmsg([line], rights, socket.MSG_NOSIGNAL)


def receive(control: socket.socket) -> tuple[Message, list[int]] | None:
    """Returns the next message and its descriptors, which the caller must close.

    Returns `None` if the peer has closed the connection.
    """
    descriptors = array.array("i")
    try:
        line, ancillary, flags, _ = control.recvmsg(
            LIMIT, socket.CMSG_SPACE(FDS * descriptors.itemsize), socket.MSG_CMSG_CLOEXEC
        )
    except ConnectionResetError:  # the peer ended with unread messages
        return None
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    fds = list(descriptors)
    if not line:
        close_all(fds)
        return None
    try:
        if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
            raise ValueError("a message was truncated")
        message = json.loads(line)
        if not isinstance(message, dict):
            raise TypeError("a message is not a JSON object")
    except (ValueError, TypeError):
        close_all(fds)
        raise
    return message, fds


def close_all(fds: Sequence[int]) -> None:
    """Closes all these descriptors."""
    for fd in fds:
        os.close(fd)
