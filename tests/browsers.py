"""A real browser for tests of pages."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

PATIENCE = 120_000.0
"""Milliseconds after which a test has failed; nothing is waited for by time."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE)
    arguments = [
        "--disable-background-networking",
        "--disable-dev-shm-usage",
        "--host-resolver-rules=MAP *.test 127.0.0.1",
    ]
    with sync_playwright() as started:
        chromium = started.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=arguments,
            chromium_sandbox=False,
            timeout=PATIENCE,
        )
        yield chromium
        chromium.close()


class Watched:
    """A page, with what it said and loaded."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.loaded: list[str] = []
        page.on("console", lambda told: self._console(told.type, told.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.loaded.append(request.url))
        page.on("dialog", self._dialog)

    def _console(self, kind: str, text: str) -> None:
        # Chromium notes a refused request as an error too; Plotly warns with a trace.
        if kind in ("error", "warning", "trace") and "Failed to load resource" not in text:
            self.complaints.append(text)

    def _dialog(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[..., Watched]]:
    contexts = []

    def open_page(url: str, **options: Any) -> Watched:
        options = {"viewport": {"width": 1400, "height": 900}} | options
        context = browser.new_context(**options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        watched = Watched(context.new_page())
        watched.page.goto(url)
        return watched

    yield open_page
    for context in contexts:
        context.close()
