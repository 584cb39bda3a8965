"""Real, unmodified servers: what they lose under bursts with a tuner, and without."""

from __future__ import annotations

import pytest

from .bursts import repetitions

pytestmark = pytest.mark.alone

CEILING = 16 << 20
"""Bytes, as the kernel counts them, that the policy may give: the memory's stated bound."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("rsyslog", marks=pytest.mark.needs("rsyslogd")),
        pytest.param("unbound", marks=pytest.mark.needs("unbound")),
    ],
)
@pytest.mark.slow
def test_a_tenth_of_the_drops(name: str) -> None:
    found = repetitions(name, 5)
    without = sum(one.dropped for one in found if not one.tuned)
    tuned = sum(one.dropped for one in found if one.tuned)
    assert without > 1000, f"the bursts are no load: {found}"
    assert tuned * 10 <= without, found
    for one in found:
        assert one.restored
        assert one.size <= CEILING
        # A socket takes one packet more than it has room for.
        assert one.occupied <= CEILING + (1 << 17)
