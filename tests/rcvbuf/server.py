"""A UDP server that knows nothing of tuners, and does on its standard input's word what is asked.

Words, each answered by a line of JSON: `ask` (size, lock, inode, next datagram), `set N`
(SO_RCVBUF), `read` (all waiting packets), `open` (a second socket on the port, SO_REUSEPORT),
`fork` (a child with the same sockets, which only waits), `fill N` (packets from itself),
`corrupt N` (with wrong checksums). Options: `--own-network` (a network namespace of its own),
`--user N`, `--undumpable`, `--inherit N` (a socket that another process has opened).
"""

from __future__ import annotations

import array
import contextlib
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
    # A process that changes its user is not dumpable either.
    dumpable = int("--undumpable" not in sys.argv)
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0)


def read(sockets: list[socket.socket]) -> int:
    count = 0
    while ready := select.select(sockets, [], [], 0)[0]:
        for one in ready:
            # A packet that is ready may have a wrong checksum.
            with contextlib.suppress(BlockingIOError):
                one.recv(65536)
                count += 1
    return count


def corrupt(port: int, count: int) -> None:
    datagram = struct.pack("!HHHH", 9, port, 8 + 1000, 0xBAD) + bytes(1000)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) as sender:
        for _ in range(count):
            sender.sendto(datagram, ("127.0.0.1", 0))


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
        case ["corrupt", count]:
            corrupt(sockets[0].getsockname()[1], int(count))
        case _:
            raise SystemExit(f"unknown words: {words}")
    return True


def main() -> None:
    address, port = sys.argv[1], int(sys.argv[2])
    prepare()
    if "--inherit" in sys.argv:
        sockets = [socket.socket(fileno=int(sys.argv[sys.argv.index("--inherit") + 1]))]
    else:
        sockets = [opened(address, port)]
    port = sockets[0].getsockname()[1]
    print(json.dumps({"port": port, "pid": os.getpid(), **told(sockets[0])}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(line.split(), sockets)), flush=True)


if __name__ == "__main__":
    main()
