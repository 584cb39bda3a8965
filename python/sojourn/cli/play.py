"""`sojourn play`: a scenario under sliders, in the browser."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn.cli import exits, options, output
from sojourn.stopping import stopped

if TYPE_CHECKING:
    from sojourn.play.state import State


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(play)


@exits.command
def play(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE|URL",
            help="A scenario, or the address of such a page; a home uplink without it.",
        ),
    ] = None,
    settings: options.Settings = None,
    port: Annotated[
        int,
        typer.Option(
            "--port", min=0, max=65535, help="Port on 127.0.0.1; 0 takes any that is free."
        ),
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Play with a scenario: a page that simulates at every change.

    The page is served to this machine only, until Ctrl-C. What it shows stands in its address,
    which `sojourn play 'URL'` opens anywhere.
    """
    from sojourn.play.server import PlayServer

    start = _start(what, settings)
    try:
        server = PlayServer(start, port)
    except OSError as error:
        exits.fail(f"127.0.0.1, port {port}: {error.strerror or error}")
    with stopped() as over, server:
        typer.echo(server.url)
        sys.stdout.flush()
        output.note("Ctrl-C ends it")
        if browser:
            _open(server.url)
        over.wait()


def _start(what: str | None, settings: list[str] | None) -> State:
    from sojourn.play.state import State, StateError, fragment_of

    try:
        if what is None:
            state = State.home()
        elif what.startswith(("http://", "https://")):
            state = State.read(fragment_of(what))
        else:
            return State.of(options.load(what, settings))
        return state.replace(scenario=options.changed(state.scenario, settings))
    except StateError as error:
        exits.fail(str(error))


def _open(url: str) -> None:
    """Opens the page where there is a screen; a browser in this terminal would not do."""
    screens = ("DISPLAY", "WAYLAND_DISPLAY")
    if sys.platform == "linux" and not any(os.environ.get(name) for name in screens):
        return
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
