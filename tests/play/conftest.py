"""Fixtures of the tests of the page: the browser in which it is opened, and its files."""

from __future__ import annotations

import pytest

from sojourn import wasm
from sojourn.play import files
from sojourn.play.catalogue import catalogue
from tests.browsers import browser, opened

__all__ = ["browser", "opened"]


@pytest.fixture(scope="session")
def engine() -> None:
    """The engine for browsers, which not every installation has."""
    try:
        wasm.module()
    except wasm.ModuleMissing as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def page(engine: None) -> dict[str, bytes]:
    """The files of a page with the templates."""
    return files.page(catalogue())
