"""`sojourn play`: a page with controls that simulates a scenario in the browser."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn import former
from sojourn.cli import exits, options, output
from sojourn.settings import Option, settings
from sojourn.stopping import stopped

if TYPE_CHECKING:
    from sojourn.play.catalogue import Entry


@settings
class Played:
    """The scenario of the page, and its server."""

    what: Annotated[str | None, Option("FILE|URL", positional=True)] = None
    """Scenario file, or address of a playground page. By default the template `home`."""
    settings: options.Settings = None
    port: Annotated[int, Option(min=0, max=65535)] = 0
    """Port on 127.0.0.1; 0 selects any free port."""
    browser: Annotated[bool, Option(flag="--browser/--no-browser")] = True
    """Open the page in a browser."""


@exits.command
def play(asked: Played) -> None:
    """Open a page that simulates a scenario after every change of a setting.

    The simulation runs in the browser. The page is served to this machine only, until Ctrl-C. The
    page's address contains all settings: `sojourn play 'URL'` opens the same page on any machine.
    """
    from sojourn.play import files
    from sojourn.play.address import AddressError
    from sojourn.play.catalogue import CatalogueError, catalogue
    from sojourn.play.server import PlayServer
    from sojourn.wasm import ModuleMissing

    try:
        own, fragment = _start(asked.what, asked.settings or [])
        server = PlayServer(files.page(catalogue(own)), asked.port)
    except (AddressError, CatalogueError, ModuleMissing) as error:
        exits.fail(str(error))
    except OSError as error:
        exits.fail(f"127.0.0.1, port {asked.port}: {error.strerror or error}")
    url = f"{server.url}#{fragment}" if fragment else server.url
    with stopped() as over, server:
        typer.echo(url)
        sys.stdout.flush()
        output.note("press Ctrl-C to end")
        if asked.browser:
            _open(url)
        over.wait()


def _start(what: str | None, settings: list[str]) -> tuple[Entry | None, str]:
    """Returns the user's scenario, if any, and the part after `#` of the page's address."""
    from sojourn.play import address
    from sojourn.play.catalogue import FIRST, entry
    from sojourn.templates import template

    whole = any(text.partition("=")[0].strip() == "duration" for text in settings)
    if what is None:
        if not settings:
            return None, ""
        scenario = options.changed(template(FIRST).scenario(), settings)
        return {**entry(scenario, settings, whole=whole), "template": FIRST}, ""
    if not what.startswith(("http://", "https://")):
        return entry(options.load(what, settings), settings, whole=whole), ""
    if settings:
        exits.fail("--set requires a FILE; an address has the values of its page")
    if address.is_packed(what):
        former.warn("an address of this form", "the address that the page now has")
        scenario, state = address.unpacked(what)
        return entry(scenario, whole=True), address.fragment(state)
    return None, address.fragment(address.state(what))


def _open(url: str) -> None:
    """Opens the page in the default browser, unless the system has no graphical screen.

    Without a graphical screen, a text browser would take over this terminal.
    """
    screens = ("DISPLAY", "WAYLAND_DISPLAY")
    if sys.platform == "linux" and not any(os.environ.get(name) for name in screens):
        return
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
