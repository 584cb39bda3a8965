"""`sojourn wire`: an emulated link between existing namespaces or interfaces."""

from __future__ import annotations

import itertools
import json
import sys
from dataclasses import asdict, dataclass
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sojourn.arguments import hint
from sojourn.cli import exits, options, output
from sojourn.lab.wire.settings import Wire
from sojourn.settings import Option, settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from sojourn.lab.wire.join import Joined, Outcome, Wanted
    from sojourn.lab.wire.watch import View


def _way(way: str, key: str, metavar: str) -> Any:
    return typer.Option(
        f"--{way}.{key}", metavar=metavar, help=f"Value of --{key} for the {way} direction only."
    )


@settings
class Both:
    """Options for both directions of the link."""

    rate: Annotated[str | None, Option("RATE")] = None
    """Rate of both directions: 20mbit, or "trace FILE" in Mahimahi's format."""
    netem: Annotated[str | None, Option("WORDS")] = None
    """Delay and impairments of both directions, such as "delay 15ms loss 1%"."""
    queue: Annotated[str | None, Option("WORDS")] = None
    """Queue of the forward direction, such as "fq_codel" or "pfifo"."""
    overhead: Annotated[int, Option(min=0, max=256)] = 0
    """Number of bytes added to each packet's length on the link."""


@dataclass(frozen=True)
class Ways:
    """Options for a single direction."""

    forward_rate: Annotated[str | None, _way("forward", "rate", "RATE")] = None
    forward_netem: Annotated[str | None, _way("forward", "netem", "WORDS")] = None
    forward_queue: Annotated[str | None, _way("forward", "queue", "WORDS")] = None
    reverse_rate: Annotated[str | None, _way("reverse", "rate", "RATE")] = None
    reverse_netem: Annotated[str | None, _way("reverse", "netem", "WORDS")] = None
    reverse_queue: Annotated[str | None, _way("reverse", "queue", "WORDS")] = None


@exits.command
def run(
    between: Annotated[
        str,
        Option(
            "A,B",
            help="The two ends of the link: network namespaces (names in `ip netns`, paths or "
            "process identifiers), or interfaces (DEV or DEV@NAMESPACE).",
        ),
    ],
    both: Both,
    ways: Ways,
    wire: Wire,
    as_json: options.AsJson = False,
) -> None:
    """Join two namespaces or interfaces by an emulated link.

    The link exists until Ctrl-C or the end of --duration. Each namespace gets a device and an
    address, which are printed. The devices are removed when the process ends in any way. Existing
    interfaces are not changed. Without --rate the link's rate is unlimited.
    """
    from sojourn.lab.wire.join import Direction, Wanted, joined

    forward = Direction(
        ways.forward_rate or both.rate,
        ways.forward_netem or both.netem,
        ways.forward_queue or both.queue,
        both.overhead,
    )
    reverse = Direction(
        ways.reverse_rate or both.rate,
        ways.reverse_netem or both.netem,
        ways.reverse_queue,
        both.overhead,
    )
    wanted = Wanted(_pair(between), forward, reverse, wire)
    with joined(wanted) as link:
        _announce(link, as_json)
        with output.speaking():
            outcome = link.run()
    _report(outcome, wanted, as_json)


def _pair(between: str) -> tuple[str, str]:
    parts = [part.strip() for part in between.split(",")]
    if len(parts) != 2 or not all(parts):
        exits.fail(f"--between must be two ends separated by a comma; found {between!r}")
    return parts[0], parts[1]


def _announce(link: Joined, as_json: bool) -> None:
    ends = [
        {"end": end, "device": device, "address": address}
        for end, device, address in zip_longest(link.wanted.between, link.devices, link.addresses)
    ]
    if as_json:
        typer.echo(json.dumps({"wire": link.wanted.wire.name, "ends": ends}))
    else:
        for end in ends:
            typer.echo(f"{end['end']}: {end['device']} {end['address'] or ''}".rstrip())
    sys.stdout.flush()
    output.note(f"`{link.wanted.wire.name}` carries packets; press Ctrl-C to end")


def _report(outcome: Outcome, wanted: Wanted, as_json: bool) -> None:
    from sojourn.lab.wire.quantities import bits, duration, octets
    from sojourn.metrics import view

    if as_json:
        typer.echo(json.dumps({
            "wire": wanted.wire.name, "seconds": outcome.seconds, "links": outcome.links,
            "units": outcome.units, "health": asdict(outcome.health),
            "captures": [asdict(found) for found in outcome.captures],
        }))  # fmt: skip
        return
    forms = {"bit/s": bits, "s": duration, "B": octets}

    def shown(name: str, value: Any) -> str:
        if value is None:
            return ""
        form = forms.get(outcome.units[name])
        return form(value) if form else str(value)

    columns = ["link", *view("wire")]
    rows = [{name: shown(name, link[name]) for name in columns} for link in outcome.links]
    output.table(rows, columns, f"{wanted.wire.name}, {outcome.seconds:.1f} s")
    late = duration(outcome.health.lateness_p99 or 0.0)
    output.note(f"99th percentile of the delay of packets beyond their due time: {late}")
    for name, what in (
        ("refused", "packets rejected because a device's queue was full"),
        ("overflowed", "packets lost because the wire was full"),
        ("malformed", "super-packets that could not be split"),
    ):
        if count := getattr(outcome.health, name):
            output.note(f"{count} {what}")
    for found in outcome.captures:
        missed = sum(found.missed)
        output.note(f"capture of {found.link}: {sum(found.packets)} packets")
        if missed or found.error:
            output.note(
                "  incomplete: "
                f"{found.error or f'{missed} packets exceeded the capacity of the capture'}"
            )


@settings
class Changed:
    """A link, and its changes."""

    link: Annotated[str, Option("LINK", positional=True)]
    """Name of the link; NAME.reverse is its other direction."""
    changes: Annotated[list[str], Option("KEY VALUE ...", positional=True)]
    """Keys to change (rate, netem or queue), each followed by its new value."""
    wire: Annotated[str | None, Option("NAME")] = None
    """Name of the wire; required if several wires have a link with this name."""


@exits.command
def set_(asked: Changed) -> None:
    """Change a running link, for example `sojourn wire set uplink rate 5mbit`.

    A changed queue keeps its packets and its discipline; only its parameters change.
    """
    from sojourn.lab.wire.control import Client, holding

    link, changes, keys = asked.link, asked.changes, ("rate", "netem", "queue")
    if len(changes) % 2:
        exits.fail(
            f"`{changes[-1]}` has no value: write KEY VALUE ..., with keys {', '.join(keys)}"
        )
    pairs = dict(zip(changes[::2], changes[1::2], strict=True))
    for key in pairs:
        if key not in keys:
            exits.fail(f"`{key}` cannot be set{hint(key, keys)}")
    if len(pairs) * 2 < len(changes):
        twice = next(key for key in pairs if changes[::2].count(key) > 1)
        exits.fail(f"`{twice}` is named twice: remove one")
    with Client(asked.wire or holding(link)) as client:
        client.set(link, **pairs)


@settings
class Samples:
    """Options of the samples of running links."""

    name: Annotated[str | None, Option("[NAME]", positional=True)] = None
    """Name of the wire; required if several wires run."""
    every: Annotated[float, Option("SECONDS", min=0.05, max=3600)] = 0.5
    """Time between samples."""
    once: bool = False
    """Print one sample and exit."""
    as_json: Annotated[bool, Option(flag="--json")] = False
    """Print JSON on standard output, one line per sample."""


@exits.command
def top(asked: Samples) -> None:
    """Show running links: rate, backlog, sojourn time, drops."""
    from sojourn.lab.wire import watch
    from sojourn.lab.wire.control import Client

    with Client(_one(asked.name)) as client, output.speaking():
        if not asked.once and not asked.as_json:
            watch.follow(client, output.console(), asked.every)
            output.note("the wire has ended")
            return
        # Rates require two samples.
        views = islice(watch.looks(client, asked.every), 1, 2 if asked.once else None)
        for view in views:
            if asked.as_json:
                _print_look(view)
            else:
                console = output.console()
                console.print(view.render(console.width, 1 << 30))


def _one(name: str | None) -> str:
    """Returns the wire that `name` selects; None selects the only running wire."""
    from sojourn.lab.wire import control

    if name is not None:
        return control.holding(name)
    running = control.names()
    if len(running) != 1:
        exits.fail(
            f"several wires run: name one of {', '.join(running)}" if running else control.NONE
        )
    return running[0]


def _print_look(view: View) -> None:
    look = {"wire": view.title, "time": view.time, "lateness": view.lateness}
    typer.echo(json.dumps({**look, "links": [asdict(row) for row in view.rows]}))
    sys.stdout.flush()


def trials(seconds: float) -> Callable[[str], None]:
    """Returns a function that announces a trial and the maximum remaining time."""
    from sojourn.lab.wire import selftest as tests
    from sojourn.study.progress import duration

    tried = itertools.count()

    def announce(what: str) -> None:
        left = max(len(tests.RATES) + 2 - next(tried), 1) * (seconds + tests.AROUND)
        output.note(f"trying: {what} (at most {duration(left)} left)")

    return announce


@exits.command
def selftest(
    seconds: Annotated[float, Option(help="Measured duration of each run.", min=0.5, max=60)] = 3.0,
    privilege: options.Privilege = "auto",
    as_json: options.AsJson = False,
) -> None:
    """Measure the highest rate at which real runs are valid here.

    The test makes about ten real runs in sequence: TCP without a rate limit, small packets, then
    TCP at increasing rates. Other work on the machine affects the results.
    """
    from sojourn.lab.wire import selftest as tests
    from sojourn.lab.wire.quantities import bits, duration

    report = tests.selftest(seconds, privilege, trials(seconds))
    if as_json:
        output.print_data(report.as_dict())
        return
    rows = tests.rows(report)
    output.table(rows, list(rows[0]))
    median, most, greatest = map(duration, report.lateness)
    typer.echo(f"TCP through one link: {bits(report.tcp)}")
    typer.echo(f"small packets: {report.packets_per_second:,.0f} a second")
    typer.echo(
        f"delay beyond the due time at 100 Mbit/s: median {median}, 99 % {most}, at most {greatest}"
    )
    typer.echo(report.words())


FAMILY = (run, set_, top, selftest)
"""The commands of `sojourn wire`."""
