"""`sojourn rcvbuf`: adaptation of the receive buffers of running UDP servers."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sojourn._core import parse_quantity
from sojourn.cli import exits, options, output
from sojourn.rcvbuf import POLICY
from sojourn.stopping import stopped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.rcvbuf import Tuner
    from sojourn.rcvbuf.advice import Seen

UNIT_FILE = "sojourn-rcvbuf@.service"
LOST = {
    "buffer": "buffer full",
    "memory": "no UDP memory",
    "checksum": "wrong checksum",
    "other": "filtered or unknown",
}
METRICS = "127.0.0.1:9441"
"""Default address of the exported metrics with `--all`."""
WORTH_SAYING = {
    "standing": "the server does not catch up, so its buffer is not enlarged",
    "pressure": "the machine is short of memory",
    "budget": "the budget does not allow a larger buffer",
}

State = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="DIR",
        help="Folder for the journal of original buffer sizes. By default /run/sojourn/rcvbuf "
        "for root, and sojourn/rcvbuf in $XDG_STATE_HOME (~/.local/state) for other users.",
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the family `sojourn rcvbuf` to `app`."""
    family = typer.Typer(
        help="Adapt the receive buffers of a running UDP server.",
        invoke_without_command=True,
        no_args_is_help=True,
    )
    family.callback(invoke_without_command=True)(rcvbuf)
    family.command("restore")(restore)
    family.command("unit")(unit)
    app.add_typer(family, name="rcvbuf")


@exits.command
def rcvbuf(
    context: typer.Context,
    pid: Annotated[
        int | None,
        typer.Option("--pid", metavar="PID", min=1, help="Follow a process and its descendants."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="PORT",
            min=1,
            max=65_535,
            help="Follow the process that owns this port. With --pid or --systemd, follow only "
            "sockets on this port.",
        ),
    ] = None,
    systemd: Annotated[
        str | None,
        typer.Option(
            "--systemd",
            metavar="UNIT",
            help="Follow all processes of a systemd unit, also after restarts.",
        ),
    ] = None,
    everybody: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Watch every UDP socket of this machine, including containers, and change none. "
            f"Unless --watch or --json is set, --metrics is {METRICS} by default.",
        ),
    ] = False,
    policy: Annotated[
        str,
        typer.Option("--policy", metavar="POLICY", help="Buffer policy (`sojourn list buffer`)."),
    ] = POLICY,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="SIZE",
            help="Limit on the total size of the followed receive buffers, in addition to --share.",
        ),
    ] = None,
    share: Annotated[
        float,
        typer.Option(
            "--share",
            metavar="SHARE",
            min=0.001,
            max=1.0,
            help="Limit on the total size of the followed receive buffers, as a share of the "
            "least of: available memory, available memory of the server's control group, and the "
            "kernel's UDP limit.",
        ),
    ] = 0.25,
    sockets: Annotated[
        int | None,
        typer.Option(
            "--sockets",
            min=1,
            max=65_536,
            help="Largest number of watched sockets. By default 1024; 65536 with --all.",
        ),
    ] = None,
    interval: Annotated[
        str | None,
        typer.Option(
            "--interval",
            metavar="TIME",
            help="Time between two samples of a socket. By default 10ms; 1s with --all.",
        ),
    ] = None,
    rescan: Annotated[
        str | None,
        typer.Option(
            "--rescan",
            metavar="TIME",
            help="Time between two searches for sockets. By default 1s; 5s with --all.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report intended changes without making them.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show a live view in the terminal.")
    ] = False,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            metavar="[ADDRESS:]PORT",
            help="Serve metrics for Prometheus at this port, or address and port. By default on "
            "localhost only.",
        ),
    ] = None,
    every: Annotated[
        float,
        typer.Option(
            "--every", metavar="SECONDS", min=0.1, max=3600, help="Time between two reports."
        ),
    ] = 1.0,
    duration: Annotated[
        str | None,
        typer.Option(
            "--duration",
            metavar="TIME",
            help="Stop after this time. By default run until interrupted.",
        ),
    ] = None,
    state: State = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON on standard output, one line per report.")
    ] = False,
) -> None:
    """Adapt the receive buffers of a running, unmodified UDP server, until Ctrl-C.

    A server's sockets are found by process, unit or port, and read every 10 ms. At the end each
    socket gets its original size back. With --all, the command watches every UDP socket of this
    machine and exports metrics without changes. If a change is not permitted, the command reports
    the missing permission and only watches. Changing other users' sockets requires CAP_SYS_PTRACE,
    and exceeding net.core.rmem_max requires CAP_NET_ADMIN.
    """
    if context.invoked_subcommand is not None:
        return
    if everybody and not (pid is None and port is None and systemd is None):
        exits.fail("--all cannot be combined with --pid, --port or --systemd", as_json=as_json)
    if not everybody and pid is None and port is None and systemd is None:
        exits.fail(
            "select sockets by --pid PID, --port PORT, --systemd UNIT or --all", as_json=as_json
        )
    if pid is not None and systemd is not None:
        exits.fail("--pid and --systemd exclude each other", as_json=as_json)
    if watch and as_json:
        exits.fail("--watch and --json exclude each other", as_json=as_json)
    from sojourn.rcvbuf import Tuner
    from sojourn.rcvbuf import metrics as prometheus
    from sojourn.rcvbuf.advice import Seen

    def seconds(text: str) -> float:
        return int(parse_quantity("time", text)) / 1e9

    with contextlib.ExitStack() as stack:
        stack.enter_context(_input(as_json))
        if everybody and metrics is None and not (watch or as_json):
            metrics = METRICS
        where = None if metrics is None else prometheus.address(metrics)
        length = None if duration is None else seconds(duration)
        stop = stack.enter_context(stopped())
        tuner = Tuner(
            policy,
            pid=pid,
            unit=systemd,
            port=port,
            everybody=everybody,
            interval=seconds(interval or ("1s" if everybody else "10ms")),
            rescan=seconds(rescan or ("5s" if everybody else "1s")),
            dry_run=dry_run or everybody,
            budget=None if budget is None else int(parse_quantity("size", budget)),
            share=share,
            sockets=sockets or (65_536 if everybody else 1024),
            state=state,
        )
        stack.callback(tuner.stop)
        # Another running tuner restores its sockets itself.
        recovered = [one for one in tuner.recovered if one["action"] != "in_use"]
        if recovered and not as_json:
            output.note("restored settings that a killed tuner had changed:")
            _tell_outcomes(recovered)
        if where is not None:
            try:
                server = stack.enter_context(prometheus.Server(where, tuner.snapshot))
            except prometheus.NoMetrics as error:
                exits.fail(str(error), as_json=as_json)
            output.note(f"metrics at http://{server.address}/metrics")
        title = systemd or (f"process {pid}" if pid is not None else f"port {port}")
        show = _watch if watch else _report
        if everybody:
            title = "this machine"
            show = show if watch or as_json else _export
        seen = Seen()
        show(_looks(tuner, stop, every, length, seen), title, dry_run or everybody, as_json)
        _end(tuner, seen, port, as_json)


def _end(tuner: Tuner, seen: Seen, port: int | None, as_json: bool) -> None:
    """Restores the original buffer sizes, reports the results, and recommends settings."""
    from sojourn.rcvbuf.advice import rmem_max, tell

    last = tuner.snapshot()
    seen.update(last)
    if tuner.over and not as_json:
        output.note("the process has ended")
    outcomes = tuner.stop()
    if as_json:
        typer.echo(json.dumps({"restored": outcomes, "last": last, "advice": seen.as_json()}))
    else:
        _tell_outcomes(outcomes)
        lines = tell(seen, rmem_max())
        if lines:
            output.note(f"\nObserved in {last['seconds']:.0f} s:")
        for line in lines or [_nobody(port)]:
            output.note(line)
    if any(outcome["action"] == "failed" for outcome in outcomes):
        raise typer.Exit(exits.FINDINGS)


def _nobody(port: int | None) -> str:
    """Returns a message on why no socket was found, with a remedy."""
    if port is None:
        return (
            "no UDP socket with a port was found; `ss -ulpn` lists sockets with their processes. "
            "With --port PORT, watching needs no privileges."
        )
    return (
        f"no process had UDP port {port} in this network namespace; `ss -ulpn` lists ports with "
        "their processes. A container's server has its own namespace: select it by --pid."
    )


def _looks(
    tuner: Tuner, stop: threading.Event, every: float, length: float | None, seen: Seen
) -> Iterator[dict[str, Any]]:
    """Yields the tuner's state at intervals, until a stop, the process's end or `length`."""
    end = None if length is None else time.monotonic() + length
    while not stop.is_set() and not tuner.over:
        snapshot = tuner.snapshot()
        seen.update(snapshot)
        yield snapshot
        left = every if end is None else min(every, end - time.monotonic())
        if left <= 0:
            return
        stop.wait(left)


def _watch(looks: Iterator[dict[str, Any]], title: str, dry_run: bool, as_json: bool) -> None:
    del as_json
    from rich.live import Live

    from sojourn.rcvbuf.view import View

    console = output.console()
    view = View(title, dry_run=dry_run)
    with Live(console=console, auto_refresh=False, transient=False) as live:
        for snapshot in looks:
            view.update(snapshot)
            live.update(view.render(*console.size), refresh=True)


def _report(looks: Iterator[dict[str, Any]], title: str, dry_run: bool, as_json: bool) -> None:
    """Prints a line for each change; with JSON, a line for each sample."""
    from sojourn.rcvbuf.view import lines

    said: dict[Any, str] = {}

    def say(key: Any, text: str) -> None:
        if said.get(key) != text:
            said[key] = text
            output.note(text)

    if not as_json:
        output.note(f"{title}: {'watching' if dry_run else 'tuning'}; press Ctrl-C to end")
    for snapshot in looks:
        if as_json:
            typer.echo(json.dumps(snapshot))
            sys.stdout.flush()
            continue
        for text in lines({**snapshot, "softnet_drops": 0, "device_drops": 0}):
            say(text, text)
        if not snapshot["sockets"]:
            say("none", "no UDP sockets yet")
        for socket in snapshot["sockets"]:
            say(socket["inode"], _line(socket, dry_run))
            if socket["refusal"] is not None:
                text = f"  watched only: {socket['refusal']['text']}"
                say((socket["inode"], "refusal"), text)
        known = {socket["inode"] for socket in snapshot["sockets"]}
        for inode in [key for key in said if isinstance(key, int) and key not in known]:
            del said[inode]
            said.pop((inode, "refusal"), None)


def _export(looks: Iterator[dict[str, Any]], title: str, dry_run: bool, as_json: bool) -> None:
    """Prints a first line and missing permissions only; all results are exported as metrics."""
    del dry_run, as_json
    output.note(f"{title}: watching; press Ctrl-C to end")
    said = set()
    for snapshot in looks:
        for missing in snapshot["notes"]:
            if missing["missing"] not in said:
                said.add(missing["missing"])
                output.note(missing["text"])


def _line(socket: dict[str, Any], dry_run: bool) -> str:
    from sojourn.lab.wire.watch import octets

    size = "unknown size" if socket["size"] is None else octets(socket["size"])
    parts = [f"{socket['local']} ({socket['process'] or 'unknown process'}): {size}"]
    if socket["before"] is not None:
        parts.append(f"was {octets(socket['before'])}")
    if dry_run and socket["wanted"] != socket["size"]:
        parts.append(f"would be {octets(socket['wanted'])}")
    drops = {reason: count for reason, count in socket["drops"].items() if count}
    if drops:
        counts = ", ".join(f"{count} ({LOST[reason]})" for reason, count in drops.items())
        parts.append(f"packets lost {counts}")
    if socket["reason"] in WORTH_SAYING:
        parts.append(WORTH_SAYING[socket["reason"]])
    return "; ".join(parts)


@exits.command
def restore(state: State = None, as_json: options.AsJson = False) -> None:
    """Restore the buffer sizes that killed tuners had changed.

    Each socket is recognised by a number that the kernel assigns only once until a restart, so that
    no other socket is changed.
    """
    from sojourn.rcvbuf import restore as put_back

    with _input(as_json):
        outcomes = put_back(state)
    if as_json:
        output.print_data(outcomes)
    elif outcomes:
        _tell_outcomes(outcomes)
    else:
        output.note("nothing to restore")
    if any(outcome["action"] in ("failed", "in_use") for outcome in outcomes):
        raise typer.Exit(exits.FINDINGS)


def _tell_outcomes(outcomes: list[dict[str, Any]]) -> None:
    for outcome in outcomes:
        action = str(outcome["action"]).replace("_", " ")
        output.note(f"{outcome['local']}: {action}: {outcome['text']}")


@exits.command
def unit() -> None:
    """Print a systemd unit that adapts the sockets of another unit."""
    from importlib.resources import files

    text = files("sojourn.rcvbuf").joinpath(UNIT_FILE).read_text(encoding="utf-8")
    program = shutil.which("sojourn") or str(Path(sys.executable).parent / "sojourn")
    typer.echo(text.replace("@SOJOURN@", program), nl=False)


@contextlib.contextmanager
def _input(as_json: bool) -> Iterator[None]:
    """Turns values that the tuner rejects into errors of the user."""
    try:
        yield
    except ValueError as error:
        exits.fail(str(error), as_json=as_json)
