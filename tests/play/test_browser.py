"""The page in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from sojourn.play.server import PlayServer
from sojourn.templates import TEMPLATES
from tests.browsers import Watched

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.timeout(600)]

PROBE = b"""
(async () => {
  const packed = Uint8Array.from(atob(SOJOURN_MODULE), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const engine = await Engine.load(await new Response(stream).arrayBuffer());
  const { first, scenarios } = SOJOURN_CATALOGUE;
  document.title = engine.run(scenarios[first].plan, 1).trace_hash;
})();
"""
"""A page without looks: the module is unpacked, and runs the first scenario of the catalogue."""
SCRIPTS = ("engine.js", "module.js", "catalogue.js", "page.js")


@pytest.fixture
def server(page: dict[str, bytes]) -> Iterator[PlayServer]:
    lines = "".join(f'<script src="{name}" defer></script>' for name in SCRIPTS)
    html = f'<!DOCTYPE html><title></title><link rel="icon" href="icon.svg">{lines}'
    with PlayServer({**page, "page.js": PROBE, "play.html": html.encode()}) as running:
        yield running


def test_the_engine_runs_under_the_server_s_policy(
    server: PlayServer, opened: Callable[..., Watched]
) -> None:
    watched = opened(server.url)
    shortened = TEMPLATES["home"].scenario().replace({"duration": "20s", "warmup": "3333ms"})
    expect(watched.page).to_have_title(shortened.run(1).trace_hash)
    assert all(url.startswith(server.url) for url in watched.loaded), watched.loaded
    assert not watched.complaints


def test_a_rebound_name_shows_no_page(server: PlayServer, opened: Callable[..., Watched]) -> None:
    page = opened(f"http://rebound.test:{server.port}/").page
    expect(page.locator("body")).to_have_text("this page cannot be opened under this host name")
