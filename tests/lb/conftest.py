"""A bench for each file of tests, where this machine has Open vSwitch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from sojourn.lab import Sandbox, Unavailable, openvswitch
from tests.lab.conftest import started
from tests.lb.bench import Bench


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """Two clients, two servers with a service at port 80, a switch; no controller yet."""
    try:
        openvswitch.require()
    except Unavailable as error:
        pytest.skip(f"not installed: {error}")
    with closing(started(Sandbox())) as sandbox:
        made = Bench(sandbox)
        made.serve()
        yield made


@pytest.fixture
def fresh(bench: Bench) -> Iterator[Bench]:
    """The bench, with no controller and no rules but another's."""
    bench.clear()
    yield bench
    bench.clear()
