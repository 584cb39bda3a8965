"""First looks at the page in a browser: mouse, touch and keyboard; wide, narrow, light and dark.

SOJOURN_LOOKS names a folder that gets a picture of each.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from sojourn import _core
from tests.browsers import Watched

pytestmark = pytest.mark.needs("chromium")

WIDE: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
NARROW: dict[str, Any] = {"viewport": {"width": 420, "height": 800}, "has_touch": True}
Opened = Callable[..., Watched]


@pytest.fixture(scope="module")
def address(page: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page as files, without a server."""
    folder = tmp_path_factory.mktemp("site")
    for name, content in page.items():
        (folder / name).write_bytes(content)
    return f"file://{folder}/play.html"


def look(page: Page, name: str) -> None:
    folder = os.environ.get("SOJOURN_LOOKS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder) / f"{name}.png")


def ready(page: Page) -> None:
    expect(page.locator(".sojourn-figure")).to_have_attribute("data-state", "ready")


def first(opened: Opened, address: str, scheme: str, **size: Any) -> Watched:
    """Opens the page and looks at its first figure."""
    watched = opened(address, color_scheme=scheme, **size)
    ready(watched.page)
    wide = "wide" if size == WIDE else "narrow"
    look(watched.page, f"{wide}-{scheme}-first")
    return watched


def after(page: Page, action: Callable[[], Any]) -> str:
    """The verdict of the run that an action starts."""
    page.evaluate("document.querySelector('.sojourn-figure').dataset.hashes = ''")
    action()
    page.wait_for_function("document.querySelector('.sojourn-figure').dataset.hashes !== ''")
    ready(page)
    return page.locator(".verdict").inner_text()


def moving(page: Page) -> bool:
    """Whether the picture of the second queue changes within some frames."""
    return bool(
        page.evaluate(
            """async () => {
              const canvas = document.querySelectorAll(".lane canvas")[1];
              const before = canvas.toDataURL();
              for (let i = 0; i < 30; i++) {
                await new Promise(requestAnimationFrame);
                if (canvas.toDataURL() !== before) return true;
              }
              return false;
            }"""
        )
    )


def within(page: Page, selector: str) -> bool:
    """Whether an element lies in the window."""
    return bool(
        page.evaluate(
            """(selector) => {
              const box = document.querySelector(selector).getBoundingClientRect();
              return box.top >= -1 && box.bottom <= innerHeight + 1 && box.width > 0;
            }""",
            selector,
        )
    )


def test_wide_light_with_a_mouse(opened: Opened, address: str) -> None:
    watched = first(opened, address, "light", **WIDE)
    page = watched.page
    assert moving(page)
    assert page.locator("h1").inner_text().endswith("?")
    before = page.locator(".verdict").inner_text()
    assert "fq_codel" in before
    assert "pfifo" in before
    for selector in ("h1", ".verdict", ".stage", ".controls .slider"):
        assert within(page, selector), selector
    slider = page.locator(".controls input[type=range]")
    box = slider.bounding_box()
    assert box is not None

    def drag() -> None:
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] - 3, box["y"] + box["height"] / 2, steps=4)
        page.mouse.up()

    assert after(page, drag) != before
    assert "rate=" in page.url
    # Several frames later a packet is still under the pointer, which is in a full queue.
    page.get_by_role("button", name="Reset").click()
    ready(page)
    page.get_by_role("button", name="Pause").click()
    canvas = page.locator(".lane canvas").nth(1).bounding_box()
    assert canvas is not None
    page.mouse.move(canvas["x"] + canvas["width"] * 0.62, canvas["y"] + canvas["height"] * 0.4)
    expect(page.locator(".tip")).to_contain_text("bytes")
    look(page, "wide-light-packet")
    page.locator("summary", has_text="More controls").click()
    page.locator("summary", has_text="All numbers").click()
    expect(page.locator("table")).to_contain_text("queueing delay")
    look(page, "wide-light-open")
    assert watched.complaints == []
    assert all(url.startswith("file:") for url in watched.loaded)


def test_a_new_question_clears_film_labels_chart_and_verdict(opened: Opened, address: str) -> None:
    page = opened(address, **WIDE).page
    ready(page)
    assert page.locator(".reasons").inner_text() != ""
    cleared = page.evaluate(
        """() => {
          document.querySelector(".card[data-scenario=rack]").click();
          const texts = [".verdict", ".reasons", ".now", ".clock"];
          const bar = document.querySelector("progress.computed");
          return [
            texts.map((name) => document.querySelector(name).textContent).join(""),
            document.querySelectorAll(".chart path").length,
            getComputedStyle(bar).display !== "none" && bar.value,
          ];
        }"""
    )
    assert cleared[:2] == ["", 0]
    assert cleared[2] is not False
    assert cleared[2] < 0.1
    ready(page)
    assert page.locator(".chart .film").first.inner_html() == "film"
    look(page, "wide-rack")


def test_wide_dark_with_the_keyboard_alone(opened: Opened, address: str) -> None:
    watched = first(opened, address, "dark", **WIDE)
    page = watched.page

    def reach(selector: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("(s) => document.activeElement.matches(s)", selector):
                return
        pytest.fail(f"{selector} is not reached by Tab")

    reach(".card[data-scenario=isp]")
    after(page, lambda: page.keyboard.press("Enter"))
    assert "game" in page.locator("h1").inner_text()
    reach(".play")
    page.keyboard.press("Space")
    assert not moving(page)
    page.keyboard.press("Space")
    assert moving(page)
    reach(".controls input[type=range]")
    before = page.locator(".controls input[type=text]").input_value()
    after(page, lambda: page.keyboard.press("ArrowLeft"))
    assert page.locator(".controls input[type=text]").input_value() != before
    reach(".controls select")
    after(page, lambda: page.keyboard.press("p"))
    assert page.locator(".controls select").first.input_value().startswith("p")
    reach(".chart svg[role=slider]")
    at = page.locator(".chart svg").first.get_attribute("aria-valuenow")
    page.keyboard.press("End")
    assert page.locator(".chart svg").first.get_attribute("aria-valuenow") != at
    look(page, "wide-dark-keyboard")
    assert watched.complaints == []


def test_narrow_light_with_a_finger(opened: Opened, address: str) -> None:
    watched = first(opened, address, "light", **NARROW)
    page = watched.page
    assert moving(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 420
    after(page, lambda: page.locator(".card[data-scenario=office]").tap())
    slider = page.locator(".controls input[type=range]")
    slider.scroll_into_view_if_needed()
    page.evaluate("scrollBy(0, 250)")
    # The picture stays in sight above the slider.
    assert within(page, ".stage")
    box, stage = slider.bounding_box(), page.locator(".stage").bounding_box()
    assert box is not None
    assert stage is not None
    assert box["y"] >= stage["y"] + stage["height"] - 1

    def tap() -> None:
        page.touchscreen.tap(box["x"] + 30, box["y"] + box["height"] / 2)

    after(page, tap)
    look(page, "narrow-light-slider")
    assert watched.complaints == []


def test_narrow_dark_with_mistakes(opened: Opened, address: str) -> None:
    watched = first(opened, address, "dark", **NARROW)
    page = watched.page
    field = page.locator(".controls input[type=text]")
    field.fill("20 apples")
    field.press("Enter")
    error = page.locator(".controls .slider .error")
    expect(error).to_contain_text("apples")
    look(page, "narrow-dark-mistake")
    assert within(page, ".controls .slider .error")
    page.locator("summary", has_text="More controls").tap()
    look(page, "narrow-dark-error")
    text = page.locator(".columns .field.run0 input")

    def mend() -> None:
        field.fill("10mbit")
        field.press("Enter")

    after(page, mend)
    expect(error).to_be_hidden()
    text.fill("codel target soon")
    text.press("Enter")
    wrong = page.locator(".columns .field.run0 .error")
    expect(wrong).to_contain_text("soon")
    near = page.evaluate(
        """() => {
          const box = (part) =>
            document.querySelector(`.columns .field.run0 ${part}`).getBoundingClientRect();
          return Math.abs(box(".error").top - box("input").bottom);
        }"""
    )
    assert near < 30
    assert watched.complaints == []


def test_without_motion_by_an_address(opened: Opened, address: str, page: dict[str, bytes]) -> None:
    fragment = "#scenario=home&queue=codel&against=pie&rate=5mbit&seed=3&count.0=2"
    watched = opened(address + fragment, reduced_motion="reduce", **WIDE)
    tab = watched.page
    ready(tab)
    assert not moving(tab)
    assert "codel and pie alike" in tab.locator(".verdict").inner_text()
    look(tab, "wide-address")
    # The same plans in the native engine have the same traces.
    tab.evaluate(
        """() => {
          globalThis.plans = [];
          const open = Engine.prototype.open;
          Engine.prototype.open = function (plan, seed) {
            plans.push(plan);
            open.call(this, plan, seed);
          };
        }"""
    )
    after(tab, lambda: tab.evaluate("location.hash += '&'"))
    plans = tab.evaluate("plans")
    hashes = [_core.simulate(json.dumps(plan), 3).trace_hash for plan in plans]
    assert tab.locator(".sojourn-figure").get_attribute("data-hashes") == " ".join(hashes)
    assert json.dumps(plans[0]["groups"][0]["count"]) == "2"
    tab.evaluate("location.hash = 'scenario=nowhere'")
    expect(tab.locator("#missing")).to_contain_text("nowhere")
    assert watched.complaints == []
