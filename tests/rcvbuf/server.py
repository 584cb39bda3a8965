"""A UDP server that knows nothing of tuners, and does on its standard input's word what is asked.

Words, each answered by a line of JSON: `ask` (size, lock, inode, next datagram), `set N`
(SO_RCVBUF), `read` (all that is there), `open` (a second socket beside the first, SO_REUSEPORT),
`fork` (a child with the same sockets, which only waits), `fill N` (packets from itself). Options:
`--own-network` (a network namespace of its own), `--user N`, `--undumpable`.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import termios

SO_BUF_LOCK = 72
CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 1
PR_SET_DUMPABLE = 4


def opened(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind((address, port))
    made.setblocking(False)
    return made


def told(one: socket.socket) -> dict[str, int]:
    held = array.array("i", [0])
    fcntl.ioctl(one, termios.FIONREAD, held)
    return {
        "size": one.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
        "lock": one.getsockopt(socket.SOL_SOCKET, SO_BUF_LOCK),
        "inode": os.fstat(one.fileno()).st_ino,
        "next": held[0],
    }


def own_network() -> None:
    if ctypes.CDLL(None).unshare(CLONE_NEWNET):
        raise OSError("no network namespace")
    with socket.socket() as any_socket:
        request = struct.pack("16sh14x", b"lo", IFF_UP)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, request)


def prepare() -> None:
    if "--own-network" in sys.argv:
        own_network()
    if "--user" in sys.argv:
        os.setgroups([])
        user = int(sys.argv[sys.argv.index("--user") + 1])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    # Whoever changes his user is not dumpable either.
    dumpable = int("--undumpable" not in sys.argv)
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0)


def read(sockets: list[socket.socket]) -> int:
    count = 0
    while ready := select.select(sockets, [], [], 0)[0]:
        for one in ready:
            one.recv(65536)
            count += 1
    return count


def fork() -> int:
    child = os.fork()
    if not child:
        signal.alarm(60)
        signal.pause()
    return child


def answer(words: list[str], sockets: list[socket.socket]) -> object:
    address, port = sockets[0].getsockname()[:2]
    match words:
        case ["ask"]:
            return [told(one) for one in sockets]
        case ["set", size]:
            for one in sockets:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(size))
        case ["read"]:
            return read(sockets)
        case ["open"]:
            sockets.append(opened(address, port))
            return told(sockets[-1])
        case ["fork"]:
            return fork()
        case ["fill", count]:
            with socket.socket(sockets[0].family, socket.SOCK_DGRAM) as sender:
                for _ in range(int(count)):
                    sender.sendto(bytes(1000), (address, port))
        case _:
            raise SystemExit(f"unknown words: {words}")
    return True


def main() -> None:
    address, port = sys.argv[1], int(sys.argv[2])
    prepare()
    sockets = [opened(address, port)]
    port = sockets[0].getsockname()[1]
    print(json.dumps({"port": port, "pid": os.getpid(), **told(sockets[0])}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(line.split(), sockets)), flush=True)


if __name__ == "__main__":
    main()
