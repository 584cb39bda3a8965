"""The browser in which the page is opened."""

from tests.browsers import browser, opened

__all__ = ["browser", "opened"]
