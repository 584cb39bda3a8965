"""The page in a real browser."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from sojourn import Scenario
from sojourn.play.controls import Changes, apply
from sojourn.play.server import PlayServer
from sojourn.play.state import State
from sojourn.show.colours import COLOURS, QUEUES
from tests.browsers import Watched

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.timeout(600)]

STROKE = "curve => getComputedStyle(curve).stroke"


@pytest.fixture(scope="module")
def server() -> Iterator[PlayServer]:
    with PlayServer(State.home()) as running:
        yield running


def ready(page: Page) -> None:
    expect(page.locator("html")).to_have_attribute("data-state", "ready")


def shown(page: Page) -> State:
    """The state that the page's address tells."""
    ready(page)
    return State.read(page.evaluate("location.hash.slice(1)"))


def until(page: Page, met: Callable[[State], bool]) -> State:
    """Waits for a state: answers to earlier changes may come in between."""
    html = page.locator("html")
    for _ in range(1000):
        number = html.get_attribute("data-number") or ""
        state = shown(page)
        if met(state):
            return state
        expect(html).not_to_have_attribute("data-number", number)
    raise AssertionError("it never came")


def slide(page: Page, name: str, place: int) -> None:
    """Moves a slider, as a hand does."""
    page.get_by_role("slider", name=name, exact=True).evaluate(
        "(range, place) => { range.value = place;"
        " range.dispatchEvent(new Event('input', { bubbles: true })); }",
        place,
    )


def curves(page: Page) -> list[str | None]:
    return [curve.get_attribute("d") for curve in page.locator("#charts path.curve").all()]


def test_it_draws_two_queues(server: PlayServer, opened: Callable[..., Watched]) -> None:
    watched = opened(server.url)
    page = watched.page
    ready(page)
    assert page.locator("#charts figure").count() == 4
    for figure in page.locator("#charts figure").all():
        assert figure.locator("path.curve.run0:not(.marks)").count() == 1
        assert figure.locator("path.curve.run1:not(.marks)").count() == 1
    assert all(d and len(d) > 100 for d in curves(page))
    expect(page.locator("#drawing")).to_contain_text("20 Mbit/s · 15 ms")
    expect(page.locator("#drawing")).to_contain_text("4 × upload")
    expect(page.locator("#table")).to_contain_text("queueing delay, 95 %")
    expect(page.locator("#tc")).to_contain_text("tc qdisc replace dev eth0")
    assert page.evaluate("sessionStorage.getItem('token')") == server.token
    assert server.token not in page.url, "the address can be given away"
    assert shown(page) == State.home()
    origin = f"http://127.0.0.1:{server.port}/"
    assert all(url.startswith(origin) for url in watched.loaded), watched.loaded
    assert not watched.complaints


def test_every_change_is_simulated(server: PlayServer, opened: Callable[..., Watched]) -> None:
    watched = opened(server.url)
    page = watched.page
    ready(page)
    before = curves(page)
    for place in range(300, 420, 20):
        slide(page, "Rate", place)
    until(page, lambda s: s.scenario.bottleneck_rate == 10_000_000)
    assert curves(page) != before
    slide(page, "upload", 0)
    until(page, lambda s: s.scenario.model.flows[0].count == 1)
    page.locator("#slider-rtt").fill("100ms")
    page.locator("#slider-rtt").press("Enter")
    until(page, lambda s: s.scenario.plan()["links"][0]["params"]["delay"] == 50_000_000)
    page.locator("#discipline").select_option("codel")
    until(page, lambda s: s.scenario.queue == "codel")
    page.locator("#word-target").fill("20ms")
    page.locator("#word-target").press("Enter")
    until(page, lambda s: s.scenario.queue == "codel target 20ms")
    page.locator("#word-ecn").check()
    until(page, lambda s: s.scenario.queue == "codel target 20ms ecn")
    page.locator("#pin").click()
    until(page, lambda s: s.pinned == "codel target 20ms ecn")
    page.locator("#discipline").select_option("pie")
    until(page, lambda s: s.scenario.queue == "pie")
    page.locator("#swap").click()
    state = until(page, lambda s: s.pinned == "pie")
    assert state.scenario.queue == "codel target 20ms ecn"
    for run, queue in (("run0", "codel"), ("run1", "pie")):
        curve = page.locator(f"#charts .curve.{run}").first
        drawn = [int(part) for part in re.findall(r"\d+", curve.evaluate(STROKE))]
        assert "#" + bytes(drawn).hex().upper() == COLOURS[QUEUES[queue]], queue
    expect(page.locator("#discipline")).to_have_value("codel")
    page.locator("#again").click()
    until(page, lambda s: s.seed == 2)
    page.locator("#unpin").click()
    until(page, lambda s: s.pinned is None)
    assert page.locator("path.curve.run1").count() == 0
    assert not watched.complaints


def test_its_address_opens_again(server: PlayServer, opened: Callable[..., Watched]) -> None:
    state = apply(State.home(), Changes(rate="3mbit", queue="pie", pinned="codel", seed=4))
    watched = opened(f"{server.url}&{state.fragment}")
    page = watched.page
    assert shown(page) == state
    # The same page, once another address is pasted into it, and once it is loaded again.
    other = state.replace(seed=5)
    page.evaluate("f => { location.hash = f }", other.fragment)
    until(page, lambda s: s == other)
    page.reload()
    assert shown(page) == other
    page.locator("#reset").click()
    until(page, lambda s: s == State.home())
    # Without the token it says what to do.
    stranger = opened(f"http://127.0.0.1:{server.port}/#{state.fragment}").page
    expect(stranger.get_by_role("alert")).to_contain_text("`sojourn play`")


def test_it_saves_a_scenario(
    server: PlayServer, opened: Callable[..., Watched], tmp_path: Path
) -> None:
    page = opened(server.url).page
    ready(page)
    page.locator("#discipline").select_option("cake")
    state = until(page, lambda s: s.scenario.queue == "cake")
    with page.expect_download() as waited:
        page.locator("#save").click()
    assert waited.value.suggested_filename == "home-uplink.toml"
    file = tmp_path / "saved.toml"
    waited.value.save_as(file)
    assert Scenario.load(file).plan_json == state.scenario.plan_json
    assert tomllib.loads(file.read_text())["links"]["uplink"]["queue"] == "cake"


MARKUP = "<img src=x onerror=alert(1)></title><script>alert(2)</script>"


def test_markup_is_text(server: PlayServer, opened: Callable[..., Watched]) -> None:
    scenario = State.home().scenario.replace({"name": MARKUP, "description": MARKUP})
    watched = opened(f"{server.url}&{State.of(scenario).fragment}")
    page = watched.page
    ready(page)
    expect(page.locator("h1")).to_have_text(MARKUP)
    expect(page.locator("#description")).to_have_text(MARKUP)
    assert page.title().startswith(MARKUP)
    assert page.locator("img[src=x]").count() == 0
    assert page.locator("script").count() == 1
    page.locator("#text").fill("<b>codel</b>")
    page.locator("#text").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("unknown queue `<b>codel</b>`")
    assert page.get_by_role("alert").locator("b").count() == 0
    assert not watched.complaints


@pytest.mark.parametrize(
    "fragment", ["garbage", "1.", "1.%00%ff", "2.x", "__proto__", "1." + "A" * 70_000]
)
def test_garbage_gets_a_message(
    server: PlayServer, opened: Callable[..., Watched], fragment: str
) -> None:
    watched = opened(f"{server.url}&{fragment}")
    expect(watched.page.get_by_role("alert")).to_contain_text("address")
    watched.page.locator("#reset").click()
    assert shown(watched.page) == State.home()
    assert not watched.complaints


def test_too_much_gets_a_message(server: PlayServer, opened: Callable[..., Watched]) -> None:
    watched = opened(server.url)
    page = watched.page
    ready(page)
    page.locator("[id='slider-counts.0']").fill("10000")
    page.locator("[id='slider-counts.0']").press("Enter")
    page.locator("#slider-rate").fill("100gbit")
    page.locator("#slider-rate").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("million packets")
    # Where a page begins with too much, it can be made less.
    again = opened(f"{server.url}&{page.evaluate('location.hash.slice(1)')}").page
    expect(again.get_by_role("alert")).to_contain_text("million packets")
    for field, value in (("slider-counts.0", "1"), ("slider-rate", "1mbit")):
        again.locator(f"[id='{field}']").fill(value)
        again.locator(f"[id='{field}']").press("Enter")
    until(again, lambda s: s.scenario.bottleneck_rate == 1_000_000)
    page.locator("[id='slider-counts.0']").fill("2")
    page.locator("[id='slider-counts.0']").press("Enter")
    page.locator("#slider-rate").fill("10mbit")
    page.locator("#slider-rate").press("Enter")
    until(page, lambda s: s.scenario.bottleneck_rate == 10_000_000)
    expect(page.get_by_role("alert")).to_be_hidden()
    assert not watched.complaints


def test_a_rebound_name_shows_no_page(server: PlayServer, opened: Callable[..., Watched]) -> None:
    page = opened(f"http://rebound.test:{server.port}/").page
    assert page.locator("h1").count() == 0
    expect(page.locator("body")).to_contain_text("asked for by another name")


class _Foreign(BaseHTTPRequestHandler):
    """A page of somebody else's."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!DOCTYPE html><title>foreign</title><p>hello")

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


ATTACK = """async ([url, token]) => {
  const body = JSON.stringify({ page: "foreign", number: 1 });
  const tries = [
    { mode: "cors", headers: { "Content-Type": "application/json", "X-Sojourn-Token": token } },
    { mode: "cors", headers: { "Content-Type": "text/plain" } },
    { mode: "no-cors", headers: { "Content-Type": "text/plain" } },
  ];
  const found = [];
  for (const options of tries) {
    try {
      const response = await fetch(url, { method: "POST", body, ...options });
      found.push(`${response.type} ${response.status}`);
    } catch (error) {
      found.push(error.name);
    }
  }
  return found;
}"""


def test_a_foreign_page_gets_nothing(opened: Callable[..., Watched]) -> None:
    foreign = ThreadingHTTPServer(("127.0.0.1", 0), _Foreign)
    Thread(target=foreign.serve_forever, daemon=True).start()
    try:
        with PlayServer(State.home()) as server:
            page = opened(f"http://foreign.test:{foreign.server_address[1]}/").page
            url = f"http://127.0.0.1:{server.port}/simulate"
            # Even with the token, which it cannot know.
            found = page.evaluate(ATTACK, [url, server.token])
            assert found[:2] == ["TypeError", "TypeError"]
            assert found[2] in ("TypeError", "opaque 0")
            assert server.turns.seen == 0, "nothing was simulated"
    finally:
        foreign.shutdown()
        foreign.server_close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1400, 900), (420, 900)])
def test_it_fits(
    server: PlayServer, opened: Callable[..., Watched], size: tuple[int, int], scheme: str
) -> None:
    width, height = size
    options = {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
    watched = opened(server.url, **options)
    page = watched.page
    ready(page)
    page.locator("#discipline").select_option("red")
    until(page, lambda s: s.scenario.queue.startswith("red"))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for figure in page.locator("#charts figure").all():
        box = figure.bounding_box()
        assert box is not None
        assert box["width"] > 250
        assert 0 <= box["x"] <= box["x"] + box["width"] <= width
    assert not watched.complaints
