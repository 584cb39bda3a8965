"""Opens the sockets of a Web server with the options of its flows, then executes nginx.

Usage: `python -m ... PATH`. Descriptor 3 is nginx's configuration, descriptor 4 the served file,
descriptor 5 the list of sockets as JSON. nginx takes over open sockets through the environment
variable NGINX, as in an upgrade of a running nginx. nginx's configuration cannot set the congestion
control, MSS or type of service of a socket.
"""

from __future__ import annotations

import grp
import json
import os
import pwd
import resource
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

CONFIGURATION, CONTENT, SOCKETS = 3, 4, 5
"""Descriptors of the files."""
BACKLOG = 511
"""Maximum number of connections that wait for `accept`; nginx's default."""


def main(path: str) -> NoReturn:
    """Opens the sockets and executes the nginx at `path`."""
    with open(SOCKETS, encoding="utf-8") as file:
        wanted = json.load(file)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    opened = []
    for item in wanted:
        where = (item["address"], item["port"])
        try:
            opened.append(listener(where, item))
        except OSError as error:
            sys.exit(f"{where[0]}:{where[1]}: {error.strerror}")
    for fd in (CONFIGURATION, CONTENT, *opened):
        os.set_inheritable(fd, True)
    environment = dict(os.environ, NGINX="".join(f"{fd};" for fd in opened))
    words = ["nginx", "-p", f"{Path.cwd()}/", "-e", "stderr"]
    words += ["-c", f"/proc/self/fd/{CONFIGURATION}"]
    if os.geteuid() == 0 and (nobody := unprivileged()):
        words += ["-g", f"user {nobody};"]
    os.execve(path, words, environment)  # noqa: S606 - a program that was found


def listener(where: tuple[str, int], item: dict[str, int | str | None]) -> int:
    """Returns a listening socket; accepted connections inherit its options."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    set_options(made, item)
    made.setblocking(False)
    made.bind(where)
    made.listen(BACKLOG)
    return made.detach()


def set_options(made: socket.socket, item: dict[str, int | str | None]) -> None:
    """Sets a flow's options: `congestion`, `mss`, `tos`, and the pacing rate `paced` in bytes/s."""
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, str(item["congestion"]).encode())
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, int(item["mss"] or 0))
    made.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(item["tos"] or 0))
    if item["paced"]:
        made.setsockopt(socket.SOL_SOCKET, 47, int(item["paced"]))  # SO_MAX_PACING_RATE


def unprivileged() -> str:
    """Returns the user `nobody` and its group by name; empty if this user does not exist."""
    with suppress(KeyError):
        nobody = pwd.getpwnam("nobody")
        return f"nobody {grp.getgrgid(nobody.pw_gid).gr_name}"
    return ""


if __name__ == "__main__":
    main(sys.argv[1])
