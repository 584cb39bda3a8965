"""Messages between a sandbox and its init: one line of JSON each, with file descriptors.

The socket keeps messages separate (`SOCK_SEQPACKET`). Requests have an `id`, which the reply
repeats; init's own messages have an `event`. A message that is longer than `LIMIT` or has more than
`FDS` descriptors is refused before it is sent.
"""

from __future__ import annotations

import array
import json
import os
import socket
from collections.abc import Sequence
from typing import Any

LIMIT = 128 * 1024
"""Bytes of a message; below the default capacity of a socket's buffer."""
FDS = 64
"""Descriptors per message."""

Message = dict[str, Any]


class TooLong(ValueError):
    """A message that is too long or has too many descriptors."""


def send(control: socket.socket, message: Message, fds: Sequence[int] = ()) -> None:
    """Sends one message."""
    line = json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    if len(line) > LIMIT:
        raise TooLong(f"a message of {len(line)} bytes: at most {LIMIT}")
    if len(fds) > FDS:
        raise TooLong(f"a message with {len(fds)} descriptors: at most {FDS}")
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    control.sendmsg([line], rights, socket.MSG_NOSIGNAL)


def receive(control: socket.socket) -> tuple[Message, list[int]] | None:
    """Returns the next message with descriptors for the caller to close; `None` at the end."""
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
            raise ValueError("a message that was cut off")
        message = json.loads(line)
        if not isinstance(message, dict):
            raise TypeError("a message that is no object")
    except (ValueError, TypeError):
        close_all(fds)
        raise
    return message, fds


def close_all(fds: Sequence[int]) -> None:
    """Closes descriptors."""
    for fd in fds:
        os.close(fd)
