"""Runs a balancer until a signal stops it."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.logging import RichHandler

from sojourn.lab.errors import LabError
from sojourn.lab.machine.needs import require_package
from sojourn.lb.director import Director
from sojourn.lb.flows import Flow, FlowTable, Key, Notes
from sojourn.lb.service import Service
from sojourn.lb.settings import Showing
from sojourn.lb.status import Page, Status, render
from sojourn.stopping import stopped

if TYPE_CHECKING:
    from sojourn.lb.application import Connection
    from sojourn.lb.server import Controller

SAY_FIRST, SAY_EVERY = 0.1, 1.0
"""Seconds until the first display of the status, and longest time between later ones."""
DRY_RUN_SECONDS = 30.0
"""Time for which a dry run waits for a switch, in seconds."""


def serve(service: Service, showing: Showing) -> None:
    """Runs the balancer until SIGINT or SIGTERM; raises `LabError` if it cannot start."""
    require_package("os-ken", "os_ken", "openflow")
    from sojourn.lb.server import Controller

    with ExitStack() as stack:
        director = Director(service)
        if director.reader is not None:
            stack.callback(director.reader.close)
        notes = None
        if not service.session.dry_run and (file := service.state) is not None:
            notes = Notes(file)
            stack.callback(notes.close)
        flows = FlowTable(service.limits.remembered, notes)
        for name, mac in flows.restore().items():
            if name in director.numbers:
                director.seen[director.numbers[name]].mac = mac
        _log(showing)
        over = stack.enter_context(stopped())
        controller = stack.enter_context(Controller(service, director, flows))
        status = Status(controller.application)
        url = None
        if showing.status is not None:
            url = stack.enter_context(Page(status, showing.status)).url
        if showing.remove:
            _remove(controller, over, showing)
            return
        if service.session.dry_run:
            _dry_run(controller, over)
            return
        where = f"{service.listen.host}:{controller.port}"
        if showing.as_json:
            _line({"listening": where, "status": url})
        else:
            page = "" if url is None else f", status at {url}"
            print(f"waiting for a switch at {where}{page}; press Ctrl-C to end", file=sys.stderr)
        _show(status, showing, over, director)
        if controller.application.connection is not None and not showing.as_json:
            print(
                ("\n" if showing.watch else "")
                + "the rules stay in the switch: existing flows continue, and new flows wait "
                "for the next `sojourn lb serve`; the same command with --remove removes "
                "the rules",
                file=sys.stderr,
            )


def _log(showing: Showing) -> None:
    handler: logging.Handler
    if showing.watch:
        handler = RichHandler(console=Console(stderr=True), show_path=False, markup=False)
    else:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("sojourn.lb")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    # os-ken logs every malformed packet. The balancer counts these packets instead.
    for name in ("os_ken", "ofp_event", "LoadBalancer"):
        logging.getLogger(name).addHandler(logging.NullHandler())
        logging.getLogger(name).propagate = name == "LoadBalancer"
    logging.getLogger("LoadBalancer").addHandler(handler)
    logging.getLogger("LoadBalancer").propagate = False


def _line(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _show(status: Status, showing: Showing, over: threading.Event, director: Director) -> None:
    """Shows the status until `over` is set; raises the error of a user's policy."""
    if showing.as_json:
        _repeat(over, director, lambda: _line(asdict(status.look())))
        _line(asdict(status.look()))
    elif showing.watch:
        with Live(console=Console(stderr=True), auto_refresh=False) as live:
            _repeat(over, director, lambda: live.update(render(status.look()), refresh=True))
    else:
        _repeat(over, director, lambda: None)


def _repeat(over: threading.Event, director: Director, act: Callable[[], None]) -> None:
    every = SAY_FIRST
    while not over.wait(every):
        act()
        if director.fault is not None:
            raise director.fault
        every = min(2 * every, SAY_EVERY)


def _connected(controller: Controller, over: threading.Event, what: str) -> Connection | None:
    """Waits for the first switch; returns its connection, or None if `over` is set before."""
    application = controller.application
    where = f"{controller.service.listen.host}:{controller.port}"
    print(f"waiting for a switch at {where}; {what}", file=sys.stderr)
    deadline = time.monotonic() + DRY_RUN_SECONDS
    while (connection := application.connection) is None or not connection.ready:
        if over.wait(0.05):
            return None
        if time.monotonic() > deadline:
            raise LabError(f"no switch has connected to {where} in {DRY_RUN_SECONDS:g} s")
    return connection


def _remove(controller: Controller, over: threading.Event, showing: Showing) -> None:
    """Removes the balancer's rules from the first switch that connects; deletes the state file."""
    connection = _connected(controller, over, "only this balancer's rules will be removed")
    if connection is None:
        return
    application = controller.application
    found = len(connection.found)
    application.remove_all(connection)
    deadline = time.monotonic() + DRY_RUN_SECONDS
    while connection.removing is not None:
        if application.connection is not connection or time.monotonic() > deadline:
            raise LabError("the switch has not confirmed the removal of the rules: try again")
        if over.wait(0.05):
            return
    if (file := controller.service.state) is not None:
        file.unlink(missing_ok=True)
    if showing.as_json:
        _line({"switch": f"{connection.datapath.id:016x}", "removed": found})
    else:
        print(f"{found} rules removed from switch {connection.datapath.id:016x}", file=sys.stderr)


def _dry_run(controller: Controller, over: threading.Event) -> None:
    """Prints the rules that would be written to the first switch that connects."""
    connection = _connected(controller, over, "nothing will be changed")
    if connection is None:
        return
    service = controller.service
    key = Key(6, service.address, 12345, 80)
    example = Flow(key, service.servers[0].name, "02:00:00:00:00:01", 1)
    server, port = service.servers[0], connection.servers[0]
    mac = server.mac or "02:00:00:00:00:02"
    rules: list[Any] = [  # os-ken has no types
        *connection.rules.standing(connection.servers, connection.meters),
        connection.rules.forward(example, mac, server.address, port, service.affinity.idle),
        connection.rules.reverse(example, server.address, port, service.affinity.idle),
    ]
    _line(
        {
            "switch": f"{connection.datapath.id:016x}",
            "ports": connection.ports,
            "meters": vars(connection.meters),
            "own_rules_there": len(connection.found),
            "rules_of_others_above": connection.foreign,
            "would_write": [rule.to_jsondict() for rule in rules],
        }
    )
