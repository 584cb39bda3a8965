"""`sojourn rcvbuf`: adaptation of the receive buffers of running UDP servers."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn.cli import exits, options, output
from sojourn.rcvbuf import Settings, State, Tuner
from sojourn.rcvbuf.advice import Seen
from sojourn.settings import Option, Seconds, settings
from sojourn.stopping import stopped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.rcvbuf.state import Outcome, Snapshot, SocketState

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


@settings
class Reports:
    """Options for the reports of a tuner."""

    watch: bool = False
    """Show a live view in the terminal."""
    metrics: Annotated[
        str | None,
        Option(
            "[ADDRESS:]PORT",
            help="Serve metrics for Prometheus at this port, or address and port. By default on "
            f"localhost only. With --all, {METRICS} is the default unless --watch or --json is "
            "set.",
        ),
    ] = None
    every: Annotated[float, Option("SECONDS", min=0.1, max=3600)] = 1.0
    """Time between two reports."""
    duration: Seconds | None = None
    """Stop after this time. By default run until interrupted."""
    as_json: Annotated[bool, Option(flag="--json")] = False
    """Print JSON on standard output, one line per report."""


@exits.command
def rcvbuf(context: typer.Context, chosen: Settings, reports: Reports) -> None:
    """Adapt the receive buffers of a running, unmodified UDP server, until Ctrl-C.

    A server's sockets are found by process, unit or port, and read every 10 ms. At the end each
    socket gets its original size back. With --all, the command watches every UDP socket of this
    machine and exports metrics without changes. If a change is not permitted, the command reports
    the missing permission and only watches. Changing other users' sockets requires CAP_SYS_PTRACE,
    and exceeding net.core.rmem_max requires CAP_NET_ADMIN.
    """
    if context.invoked_subcommand is not None:
        return
    as_json, metrics = reports.as_json, reports.metrics
    if problem := _contradiction(chosen, reports):
        exits.fail(problem)
    from sojourn.rcvbuf import metrics as prometheus

    if chosen.everybody:
        chosen = replace(chosen, dry_run=True)
        if metrics is None and not (reports.watch or as_json):
            metrics = METRICS
    with contextlib.ExitStack() as stack:
        stack.enter_context(exits.refusals())
        where = None if metrics is None else prometheus.address(metrics)
        stop = stack.enter_context(stopped())
        tuner = Tuner(chosen)
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
                exits.fail(str(error))
            output.note(f"metrics at http://{server.address}/metrics")
        session = Session(tuner, chosen, reports, stop)
        if reports.watch:
            session.watch()
        elif as_json:
            session.print_json()
        elif chosen.everybody:
            session.export()
        else:
            session.report()
        session.end()


def _contradiction(chosen: Settings, reports: Reports) -> str | None:
    """Returns an error of the user about options that exclude each other; None without one."""
    selected = chosen.pid is not None or chosen.port is not None or chosen.unit is not None
    if chosen.everybody and selected:
        return "--all cannot be combined with --pid, --port or --systemd"
    if not chosen.everybody and not selected:
        return "select sockets by --pid PID, --port PORT, --systemd UNIT or --all"
    if chosen.pid is not None and chosen.unit is not None:
        return "--pid and --systemd exclude each other"
    if reports.watch and reports.as_json:
        return "--watch and --json exclude each other"
    return None


@dataclass
class Session:
    """A running tuner and its reports."""

    tuner: Tuner
    chosen: Settings
    reports: Reports
    stop: threading.Event
    seen: Seen = field(default_factory=Seen)
    said: dict[object, str] = field(default_factory=dict)
    """The last message about each subject."""

    @property
    def title(self) -> str:
        """Returns the sockets that are followed, as a text."""
        if self.chosen.everybody:
            return "this machine"
        if self.chosen.unit is not None:
            return self.chosen.unit
        pid, port = self.chosen.pid, self.chosen.port
        return f"port {port}" if pid is None else f"process {pid}"

    def snapshots(self) -> Iterator[Snapshot]:
        """Yields the tuner's state at intervals, until a stop, the process's end or a duration."""
        length, every = self.reports.duration, self.reports.every
        end = None if length is None else time.monotonic() + length
        while not self.stop.is_set() and not self.tuner.over:
            snapshot = self.tuner.snapshot()
            self.seen.update(snapshot)
            yield snapshot
            left = every if end is None else min(every, end - time.monotonic())
            if left <= 0:
                return
            self.stop.wait(left)

    def watch(self) -> None:
        """Shows the sockets in the terminal."""
        from rich.live import Live

        from sojourn.rcvbuf.view import View

        console = output.console()
        view = View(self.title, dry_run=self.chosen.dry_run)
        with Live(console=console, auto_refresh=False, transient=False) as live:
            for snapshot in self.snapshots():
                live.update(view.render(snapshot, *console.size), refresh=True)

    def print_json(self) -> None:
        """Prints a line for each sample."""
        for snapshot in self.snapshots():
            typer.echo(json.dumps(snapshot))
            sys.stdout.flush()

    def export(self) -> None:
        """Prints missing permissions only; all results are exported as metrics."""
        output.note(f"{self.title}: watching; press Ctrl-C to end")
        for snapshot in self.snapshots():
            for missing in snapshot["notes"]:
                self._say(missing["missing"], missing["text"])

    def report(self) -> None:
        """Prints a line for each change."""
        from sojourn.rcvbuf.view import lines

        doing = "watching" if self.chosen.dry_run else "tuning"
        output.note(f"{self.title}: {doing}; press Ctrl-C to end")
        for snapshot in self.snapshots():
            for text in lines({**snapshot, "softnet_drops": 0, "device_drops": 0}):
                self._say(text, text)
            if not snapshot["sockets"]:
                self._say("none", "no UDP sockets yet")
            for socket in snapshot["sockets"]:
                self._say(socket["inode"], _line(socket, self.chosen.dry_run))
                if socket["refusal"] is not None:
                    text = f"  watched only: {socket['refusal']['text']}"
                    self._say((socket["inode"], "refusal"), text)
            known = {socket["inode"] for socket in snapshot["sockets"]}
            for inode in [key for key in self.said if isinstance(key, int) and key not in known]:
                del self.said[inode]
                self.said.pop((inode, "refusal"), None)

    def _say(self, subject: object, text: str) -> None:
        if self.said.get(subject) != text:
            self.said[subject] = text
            output.note(text)

    def end(self) -> None:
        """Restores the original buffer sizes, reports the results, and recommends settings."""
        from sojourn.rcvbuf.advice import rmem_max, tell

        last = self.tuner.snapshot()
        self.seen.update(last)
        as_json = self.reports.as_json
        if self.tuner.over and not as_json:
            output.note("the process has ended")
        outcomes = self.tuner.stop()
        if as_json:
            advice = self.seen.as_json()
            typer.echo(json.dumps({"restored": outcomes, "last": last, "advice": advice}))
        else:
            _tell_outcomes(outcomes)
            lines = tell(self.seen, rmem_max())
            if lines:
                output.note(f"\nObserved in {last['seconds']:.0f} s:")
            for line in lines or [_nobody(self.chosen.port)]:
                output.note(line)
        selected = self.chosen.port is not None or self.chosen.pid is not None
        if selected and not self.seen.advice():
            raise typer.Exit(exits.BAD_INPUT)
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


def _line(socket: SocketState, dry_run: bool) -> str:
    from sojourn.lab.wire.quantities import octets

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

    with exits.refusals():
        outcomes = put_back(state)
    if as_json:
        output.print_data(outcomes)
    elif outcomes:
        _tell_outcomes(outcomes)
    else:
        output.note("nothing to restore")
    if any(outcome["action"] in ("failed", "in_use") for outcome in outcomes):
        raise typer.Exit(exits.FINDINGS)


def _tell_outcomes(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        action = str(outcome["action"]).replace("_", " ")
        output.note(f"{outcome['local']}: {action}: {outcome['text']}")


@exits.command
def unit() -> None:
    """Print a systemd unit that adapts the sockets of another unit."""
    from sojourn.rcvbuf import service

    text = service.unit(*service.installed())
    if "DynamicUser=yes" not in text.splitlines():
        user = next(line for line in text.splitlines() if line.startswith("User="))
        output.note(
            f"other users cannot read this installation, so the unit runs with {user}; with an "
            "installation that all users can read, it has a user of its own"
        )
    typer.echo(text, nl=False)


@exits.command
def alerts() -> None:
    """Print alert rules for Prometheus."""
    from sojourn.rcvbuf import service

    typer.echo(service.text(service.ALERTS), nl=False)


@exits.command
def dashboard() -> None:
    """Print a dashboard for Grafana, to be imported."""
    from sojourn.rcvbuf import service

    typer.echo(service.text(service.DASHBOARD), nl=False)


FAMILY = (rcvbuf, restore, unit, alerts, dashboard)
"""The commands of `sojourn rcvbuf`."""
