"""A source of backlogs that stops, hangs and comes back while flows arrive: a real wire's."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sojourn.lab.balancer_status import Look
from sojourn.lab.sandbox.process import Process
from sojourn.lab.typed import of_json
from sojourn.lb.status import notes
from tests.lb.bench import Bench

pytestmark = [pytest.mark.slow, pytest.mark.alone]


@contextmanager
def wire(bench: Bench, name: str, rate: str = "50mbit") -> Iterator[Process]:
    """A wire between two hosts of the bench, whose two links represent the servers' ports."""
    ends = ",".join(f"path:{host.path}" for host in bench.servers)
    command = [sys.executable, "-m", "sojourn.cli", "wire", "run", "--between", ends]
    process = bench.switch_host.spawn([*command, "--name", name, "--rate", rate, "--json"])
    try:
        process.wait_output('"ends"', 60)
        yield process
    finally:
        if process.running:
            process.signal(signal.SIGCONT)
            process.stop()


def test_choices_go_by_turns_while_a_wire_says_nothing(fresh: Bench) -> None:
    name = f"stale-{os.getpid()}"
    with wire(fresh, name) as first:
        backlog = ["--backlog", f"wire:{name}:{name},{name}.reverse", "--stale", "1s"]
        fresh.start(*backlog, policy="jsq")
        assert set(fresh.once(count=4)) <= {"s1", "s2"}
        look = fresh.until(lambda look: look["decisions"]["made"] >= 4)
        assert look["decisions"]["by_turns"] == 0
        assert {choice["reason"] for choice in look["choices"]} <= {"least", "tie"}
        # It hangs: connected, and without an answer.
        first.signal(signal.SIGSTOP)
        look = fresh.until(lambda look: bool(look["blind"]))
        assert notes(of_json(Look, look))[0].startswith("ROUND ROBIN INSTEAD OF THE POLICY: ")
        answers = fresh.once(count=4)
        assert sorted(answers) == ["s1", "s1", "s2", "s2"], "one after the other"
        look = fresh.until(lambda look: look["decisions"]["by_turns"] >= 4)
        assert look["choices"][-1]["reason"] == "blind"
        first.signal(signal.SIGCONT)
        fresh.until(lambda look: not look["blind"])
        before = look["decisions"]["by_turns"]
        fresh.once(count=2)
        look = fresh.until(lambda look: look["decisions"]["made"] >= 10)
        assert look["decisions"]["by_turns"] == before
        assert look["choices"][-1]["reason"] in ("least", "tie")
        # It is gone, with its socket.
        first.signal(signal.SIGKILL)
        first.wait(10)
        look = fresh.until(lambda look: bool(look["blind"]))
        assert name in look["blind"]
        assert fresh.controller is not None
        fresh.controller.wait_output("flows are assigned by round robin", 20, stream=1)
        assert sorted(fresh.once(count=2)) == ["s1", "s2"]
    with wire(fresh, name):
        fresh.until(lambda look: not look["blind"])
        fresh.controller.wait_output("are up to date again", 20, stream=1)
        fresh.once(count=1)
        look = fresh.until(lambda look: look["decisions"]["made"] >= 13)
        assert look["choices"][-1]["reason"] in ("least", "tie")
        assert look["counts"]["errors"] == 0
