"""The status of a balancer as plain data, as a table for terminals, and as a page for browsers."""

from __future__ import annotations

import html
import json
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from sojourn.lab.balancer_status import ChoiceLook, Decisions, Flows, Look, ServerLook
from sojourn.lab.errors import LabError
from sojourn.lab.wire.quantities import bits, duration, octets
from sojourn.serving import PageServer

if TYPE_CHECKING:
    from sojourn.lb.application import LoadBalancer

SHOWN = 12
"""Number of latest choices on the page."""


class Status:
    """Collects the status of a balancer."""

    def __init__(self, application: LoadBalancer) -> None:
        self.application = application
        self._lock = threading.Lock()
        self._before: tuple[float, list[int | None]] = (0.0, [])
        self._rates: list[float | None] = []

    def look(self) -> Look:
        """Returns the complete current status."""
        application = self.application
        director, service = application.director, application.service
        connection = application.connection
        now = time.monotonic_ns()
        reader = director.reader
        rates = self._sends(time.monotonic())
        open_flows = director.policy.open
        servers: list[ServerLook] = []
        for number, (server, seen) in enumerate(zip(service.servers, director.seen, strict=True)):
            one = reader.latest[number] if reader is not None else None
            servers.append(
                ServerLook(
                    name=server.name,
                    address=str(server.address),
                    port=connection.servers[number]
                    if connection is not None and connection.servers
                    else server.port,
                    mac=seen.mac or server.mac,
                    up=seen.up,
                    why=seen.why,
                    port_dropped=seen.dropped,
                    chosen=seen.chosen,
                    open=open_flows[number],
                    sends=rates[number] if number < len(rates) else None,
                    backlog_packets=None if one is None else one.packets,
                    backlog_bytes=None if one is None else one.bytes,
                    backlog_age=None if one is None else one.age(now),
                    remembers={
                        name: values[number]
                        for name, values in director.policy.state.items()
                        if number in values and values[number] == values[number]
                    },
                )
            )
        times = sorted(director.times)
        return Look(
            address=str(service.address),
            policy=director.policy.text,
            affinity=service.affinity.kind,
            switch=None if connection is None else f"{connection.datapath.id:016x}",
            ready=connection is not None and connection.ready,
            meters=connection is not None and connection.meters.packets is not None,
            blind=director.blind,
            servers=servers,
            flows=Flows(
                installed=application.flows.installed,
                remembered=len(application.flows),
                pending=application.flows.pending,
            ),
            counts=replace(application.counts),
            decisions=Decisions(
                made=director.decided,
                followed=director.followed,
                by_turns=director.fallen_back,
                seconds_p50=_percentile(times, 0.5),
                seconds_p95=_percentile(times, 0.95),
            ),
            choices=[
                ChoiceLook(
                    ago=(now - choice.at) / 1e9,
                    client=f"{choice.key.client}:{choice.key.client_port}",
                    protocol={6: "tcp", 17: "udp"}.get(choice.key.protocol),
                    to=choice.key.port,
                    server=service.servers[choice.server].name,
                    reason=choice.reason,
                    age=choice.age,
                )
                for choice in list(director.choices)
            ],
        )

    def _sends(self, now: float) -> list[float | None]:
        """Returns the sending rate of each port in bit/s from two readings; None if unknown."""
        with self._lock:
            counts = [seen.tx_bytes for seen in self.application.director.seen]
            then, before = self._before
            if len(before) != len(counts):
                self._before = (now, counts)
                self._rates = [None] * len(counts)
            elif counts != before or now - then > 3.0:
                self._rates = [
                    None if b is None or c is None or c < b else (c - b) * 8 / (now - then)
                    for b, c in zip(before, counts, strict=True)
                ]
                self._before = (now, counts)
            return self._rates


def _percentile(values: list[float], share: float) -> float | None:
    return values[min(int(share * len(values)), len(values) - 1)] if values else None


COLUMNS = ("server", "address", "port", "state", "chosen", "open", "sends", "backlog", "age", "why")
NUMBERS = ("port", "chosen", "open", "sends", "backlog", "age")


def rows(look: Look) -> list[list[str]]:
    """Returns a row of texts for each server, in the order of `COLUMNS`."""
    out = []
    for server in look.servers:
        packets, size, age = server.backlog_packets, server.backlog_bytes, server.backlog_age
        out.append(
            [
                server.name,
                server.address,
                str(server.port),
                "up" if server.up else "DOWN",
                str(server.chosen),
                str(server.open),
                "" if server.sends is None else bits(server.sends),
                "" if packets is None or size is None else f"{packets} p, {octets(size)}",
                "" if age is None else duration(age),
                server.why,
            ]
        )
    return out


def columns(look: Look) -> list[str]:
    """Returns the names of the shown columns; those of backlogs are omitted if none is read."""
    reads = any(server.backlog_packets is not None for server in look.servers)
    return [column for column in COLUMNS if reads or column not in ("backlog", "age")]


def headline(look: Look) -> str:
    """Returns a summary of the status in one line."""
    switch = "no switch" if look.switch is None else f"switch {look.switch}"
    flows = look.flows
    p50 = look.decisions.seconds_p50
    decided = "" if p50 is None else f", {duration(p50)} each"
    return (
        f"{look.address} · {look.policy} · {switch} · {flows.installed} flows, "
        f"{flows.pending} pending · {look.decisions.made} choices{decided}"
    )


def notes(look: Look) -> list[str]:
    """Returns notes on rejected flows and messages, and on a fallback to round robin."""
    counts = look.counts
    texts = [
        f"{count} {text}"
        for count, text in (
            (counts.refused, "new flows rejected"),
            (counts.limited, "packets of clients ignored: more than the limit per second"),
            (counts.unreadable, "packets that cannot be read"),
            (counts.full, "rules rejected because the switch's table was full"),
            (counts.errors, "other rejections by the switch"),
        )
        if count
    ]
    if look.blind:
        texts.insert(0, f"ROUND ROBIN INSTEAD OF THE POLICY: {look.blind}")
    return texts


def choice_text(choice: ChoiceLook) -> str:
    """Returns a choice as one line of text."""
    age = f", with a reading {duration(choice.age)} old" if choice.age else ""
    seconds = choice.ago
    ago = duration(seconds) if seconds < 100 else f"{seconds / 60:.0f} min"
    return (
        f"{ago} ago: {choice.protocol} {choice.client} to port {choice.to} → "
        f"{choice.server} ({choice.reason}{age})"
    )


def render(look: Look) -> Group:
    """Returns the status for display in a terminal."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    shown = columns(look)
    for column in shown:
        table.add_column(column, justify="right" if column in NUMBERS else "left", no_wrap=True)
    for server, row in zip(look.servers, rows(look), strict=True):
        cells = [row[COLUMNS.index(column)] for column in shown]
        table.add_row(*map(Text, cells), style="" if server.up else "red")
    foot = [Text(text, style="yellow") for text in notes(look)]
    last = [Text(choice_text(choice), style="dim") for choice in reversed(look.choices[-6:])]
    return Group(Text(headline(look), style="bold"), table, *foot, *last)


STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem;
  color: #1b2330; background: #fff; }
h1 { font-size: 1.25rem; } h2 { font-size: 1rem; margin-top: 1.6rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid #d9dee7;
  font-variant-numeric: tabular-nums; }
th.n, td.n { text-align: right; } td { white-space: nowrap; } .wide { overflow-x: auto; }
.down { color: #a31621; } .note { color: #8a4b00; } li { font-variant-numeric: tabular-nums; }
@media (prefers-color-scheme: dark) { body { color: #e6e9ef; background: #14171c; }
  th, td { border-color: #333a45; } .down { color: #ff8a8a; } .note { color: #ffc46b; } }
"""


def page(look: Look) -> str:
    """Returns the status as an HTML page."""
    shown = columns(look)

    def cells(texts: Sequence[str], tag: str = "td") -> str:
        kinds = (' class="n"' if column in NUMBERS else "" for column in shown)
        pairs = zip(kinds, (texts[COLUMNS.index(column)] for column in shown), strict=True)
        return "".join(f"<{tag}{kind}>{html.escape(text)}</{tag}>" for kind, text in pairs)

    body = "".join(
        f'<tr class="{"" if server.up else "down"}">{cells(row)}</tr>'
        for server, row in zip(look.servers, rows(look), strict=True)
    )
    paragraphs = "".join(f'<p class="note">{html.escape(text)}</p>' for text in notes(look))
    choices = "".join(
        f"<li>{html.escape(choice_text(choice))}</li>" for choice in reversed(look.choices[-SHOWN:])
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta http-equiv="refresh" content="2"><title>sojourn lb</title>'
        f"<style>{STYLE}</style></head><body><h1>Balancer</h1>"
        f"<p>{html.escape(headline(look))}</p>{paragraphs}"
        f'<div class="wide"><table><thead><tr>{cells(COLUMNS, "th")}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
        f"<h2>Last choices</h2><ul>{choices or '<li>none yet</li>'}</ul>"
        "</body></html>"
    )


class Page(PageServer):
    """Serves the status on this machine, read-only: `/` as a page and `/status.json` as data."""

    policy = "default-src 'none'; style-src 'unsafe-inline'"

    def __init__(self, status: Status, port: int) -> None:
        self.status = status
        try:
            super().__init__(("127.0.0.1", port))
        except OSError as error:
            raise LabError(f"127.0.0.1, port {port}: {error.strerror or error}") from error

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Returns type and content of the page or of the data."""
        match path:
            case "":
                return "text/html; charset=utf-8", page(self.status.look()).encode()
            case "status.json":
                return "application/json", json.dumps(asdict(self.status.look())).encode()
        return None
