"""The fixture `link` of pytest: two hosts that an emulated link joins.

`@pytest.mark.link("rate 20mbit netem 'delay 15ms' queue codel")` describes the link of a test, with
the arguments of `sojourn.lab.LinkedHosts`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sojourn import lab


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker `link`."""
    text = 'link(words): link of the fixture `link`, such as "rate 20mbit queue codel" (sojourn)'
    config.addinivalue_line("markers", text)


@pytest.fixture
def link(request: pytest.FixtureRequest) -> Iterator[lab.LinkedHosts]:
    """Two hosts, `link.client` and `link.server`, that the link of the marker joins.

    If the machine has no sandboxes, or words are wrong, the test has an error, with the remedy.
    """
    marker = request.node.get_closest_marker("link")
    if marker is None:
        pytest.fail('the fixture `link` needs a link: @pytest.mark.link("rate 20mbit queue codel")')
    with lab.LinkedHosts(*marker.args, **marker.kwargs) as joined:
        yield joined
