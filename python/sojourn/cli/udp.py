"""`sojourn udp`: file transfer by the UDP transport with an adaptive receive buffer."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import IO, Annotated

import typer

from sojourn import udp
from sojourn.cli import bars, exits, options, output
from sojourn.settings import Option, settings
from sojourn.stopping import stopped
from sojourn.udp import PORT, Sending, Serving, UdpServer, udp_kept


@exits.command
def serve(
    serving: Serving,
    files: Annotated[
        int | None,
        Option(min=1, help="Stop after this number of files. By default run until interrupted."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Receive files into a folder.

    A file is stored under its name without folders, only when it is complete, and never replaces an
    existing file. Its checksum is computed from the stored file. Ctrl-C ends the server and removes
    incomplete files. `--json` prints one line for each file, and one with all counters at the end.
    """
    if not serving.folder.is_dir():
        exits.fail(f"{serving.folder}: no such folder; create it first")
    with exits.refusals():
        server = udp.serve(serving)
    with contextlib.ExitStack() as stack:
        stack.callback(_end, server, as_json)
        over = stack.enter_context(stopped())
        _warn(server.address)
        _say({"listening": server.address}, f"listening on {server.address}", as_json)
        left = files
        while (left is None or left > 0) and not over.is_set():
            for name, length, digest in server.received():
                left = None if left is None else left - 1
                row = {"file": name, "bytes": length, "sha256": digest}
                _say(row, f"{digest}  {name}  ({length} bytes)", as_json)
            if server.failure:
                raise OSError(server.failure)
            if left != 0:
                over.wait(0.1)
        # The last client needs time to receive its confirmation.
        over.wait(0.5)


def _end(server: UdpServer, as_json: bool) -> None:
    """Ends the server and prints its counters."""
    stats = udp.stats(server)
    server.stop()
    _say(stats, _summary(stats), as_json)


def _say(row: Mapping[str, object], text: str, as_json: bool) -> None:
    typer.echo(json.dumps(row) if as_json else text)
    sys.stdout.flush()


def _summary(stats: udp.Stats) -> str:
    def mb(value: float) -> str:
        return f"{value / 1e6:.1f} MB"

    p99 = stats["sojourn_p99"]
    waited = "none" if p99 is None else f"{p99 * 1e3:.1f} ms"
    return (
        f"messages: {stats['arrived']['messages']} arrived, {stats['discarded']['messages']} "
        f"discarded, {stats['processed']['messages']} processed; buffer: largest size "
        f"{mb(stats['peak_size'])}, largest occupancy {mb(stats['peak_occupied'])}; 99th "
        f"percentile of the waiting time: {waited}; CPU time: {stats['cpu_receive']:.2f} s for "
        f"receiving, {stats['cpu_handle']:.2f} s for handling"
    )


@settings
class Sent:
    """A file to send."""

    file: Annotated[str, Option("FILE", positional=True)]
    """File to send; - is standard input."""
    to: Annotated[str, Option("ADDRESS", positional=True)] = f"127.0.0.1:{PORT}"
    """Address and port of the server."""
    name: Annotated[str | None, Option("NAME")] = None
    """Name of the stored file. By default the name of the sent file."""


@exits.command
def send(asked: Sent, sending: Sending, as_json: options.AsJson = False) -> None:
    """Send a file, or standard input, to a server.

    The server's checksum is compared with the checksum of the sent data. If the server has a part
    of the file from an interrupted transfer, only the rest is sent.
    """
    file, to = asked.file, asked.to
    called = asked.name or ("" if file == "-" else Path(file).name)
    if not called:
        exits.fail("standard input has no file name: give --name")
    sum_ = hashlib.sha256()
    with _opened(file) as source:
        length = None
        if file != "-":
            length = os.fstat(source.fileno()).st_size

        def read(most: int) -> bytes:
            data = source.read(most)
            sum_.update(data)
            return data

        _warn(to)
        begun = time.monotonic()
        offset = 0
        with exits.refusals():
            if length:
                offset, sum_ = _known(source, *udp_kept(to, called, length))
        if offset:
            output.note(f"{called}: continuing after {offset} of {length} bytes")
        with _bar(length, offset) as progress, exits.refusals():
            sent = udp.send(
                to, called, read, sending, length=length, offset=offset, progress=progress
            )
        took = max(time.monotonic() - begun, 1e-9)
    rate = (sent["bytes"] - offset) * 8 / took
    if sent["sha256"] != sum_.hexdigest():
        exits.fail(
            f"{called}: the server's checksum differs, so its copy is damaged: remove it there, "
            "and send again"
        )
    _say(
        {**sent, "seconds": took, "offset": offset, "rate": rate},
        f"{sent['sha256']}  {called}\n{sent['bytes']} bytes in {took:.2f} s, "
        f"{rate / 1e6:.1f} Mbit/s, {sent['repeated']} of {sent['datagrams']} "
        "datagrams retransmitted",
        as_json,
    )


def _known(source: IO[bytes], offset: int, digest: str) -> tuple[int, hashlib._Hash]:
    """Returns the number of bytes that the server already has, and their checksum.

    These bytes are skipped in `source`. The number is 0 if the server's bytes differ from the file.
    """
    mine, left = hashlib.sha256(), offset
    while left and (data := source.read(min(left, 1 << 20))):
        mine.update(data)
        left -= len(data)
    if left or mine.hexdigest()[: len(digest)] != digest:
        source.seek(0)
        return 0, hashlib.sha256()
    return offset, mine


def _warn(address: str) -> None:
    """Warns that transfers are not protected, if packets leave this machine."""
    host = address.rpartition(":")[0].strip("[]")
    with contextlib.suppress(ValueError):
        if ip_address(host).is_loopback:
            return
    output.note(
        "warning: transfers are neither encrypted nor authenticated: files can be read and "
        "changed in transit, and any host that reaches the server can send. Use a trusted "
        "network or a tunnel such as WireGuard."
    )


@contextlib.contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    if file == "-":
        yield sys.stdin.buffer
        return
    with Path(file).open("rb") as source:
        yield source


@contextlib.contextmanager
def _bar(length: int | None, offset: int) -> Iterator[Callable[[int, float, int], None]]:
    """Yields a function that shows the progress from the number of sent bytes.

    The function also takes the round-trip time and the congestion window, which are not shown.
    """
    if not sys.stderr.isatty():
        with bars.working("sending") as tell:

            def show(done: int, rtt: float, cwnd: int) -> None:
                del rtt, cwnd
                of = f" of {length / 1e6:.1f}" if length else ""
                done += offset
                tell(f"{done / 1e6:.1f}{of} MB", done / length if length else 0.0)

            yield show
        return
    from rich.console import Console
    from rich.progress import DownloadColumn, Progress, TransferSpeedColumn

    columns = (*Progress.get_default_columns(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("sending", total=length)

        def progress(done: int, rtt: float, cwnd: int) -> None:
            del rtt, cwnd
            done += offset
            bar.update(task, completed=min(done, length) if length is not None else done)

        yield progress


FAMILY = (serve, send)
"""The commands of `sojourn udp`."""
