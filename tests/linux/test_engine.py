"""Runs on Linux's network code in virtual time: repeated, contained, compared."""

import functools
import json
import math
import multiprocessing
import os
import signal
import struct
import subprocess
import sys
import time
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest

from sojourn import temporary
from sojourn.lab.errors import LabError
from sojourn.lab.programs.errors import NotPossible
from sojourn.linux import layout
from sojourn.linux.engine import LinuxEngine
from sojourn.linux.guest import Guest
from sojourn.linux.kernels import Kernel
from sojourn.plan import Plan
from sojourn.scenario import Scenario
from sojourn.scenario.engine import Record

TEXT = """
name = "four flows"
duration = "4s"
warmup = "1s"

[links.line]
from = "a"
to = "b"
rate = "10mbit"
netem = "delay 10ms"
queue = "{queue}"

[[flows]]
from = "a"
to = "b"
app = "bulk"
tcp = "cubic"
count = 4

[[flows]]
from = "a"
to = "b"
app = "cbr rate 100kbit payload 200"
"""


def plan(tmp_path: Path, queue: str = "codel") -> str:
    file = tmp_path / "scenario.toml"
    file.write_text(TEXT.format(queue=queue), encoding="utf-8")
    return json.dumps(json.loads(Scenario.load(file).plan_json))


def row(record: Record, table: str = "summary") -> dict[str, float]:
    return {
        name: struct.unpack_from("<d" if dtype == "f8" else "<q", data)[0]
        for name, _, dtype, data in record.table(table)
        if not isinstance(data, list)
    }


@pytest.fixture(scope="module")
def engine(kernel: Kernel) -> LinuxEngine:
    return LinuxEngine(kernel)


def spin(stop: Event) -> None:
    while not stop.is_set():
        pass


def test_a_run_repeats_bit_for_bit_on_a_busy_machine(engine: LinuxEngine, tmp_path: Path) -> None:
    text = plan(tmp_path)
    first = engine.simulate(Plan.of(text), 1)
    stop = multiprocessing.Event()
    busy = [multiprocessing.Process(target=spin, args=(stop,)) for _ in range(4)]
    for process in busy:
        process.start()
    try:
        again = engine.simulate(Plan.of(text), 1)
    finally:
        stop.set()
        for process in busy:
            process.join()
    assert again.trace_hash == first.trace_hash
    assert again.tables == first.tables
    assert engine.simulate(Plan.of(text), 2).trace_hash != first.trace_hash


@pytest.mark.parametrize("queue", ["pfifo limit 100p", "codel", "fq_codel", "pie", "cake"])
def test_the_effects_of_a_queue_are_measured(
    engine: LinuxEngine, tmp_path: Path, queue: str
) -> None:
    record = engine.simulate(Plan.of(plan(tmp_path, queue)), 3)
    found = row(record)
    assert not record.violations
    assert found["goodput"] > 8e6
    assert found["utilisation"] == pytest.approx(1.0, abs=0.02)
    assert 0 < found["sojourn_mean"] < 0.2
    assert found["sojourn_p95"] >= found["sojourn_p50"]
    # Little's law: two measurements of the queue that share nothing.
    waiting = found["arrivals"] - found["drops"]
    assert found["queue_mean"] == pytest.approx(waiting / 3 * found["sojourn_mean"], rel=0.1)
    assert math.isnan(found["consecutive_loss_mean"])


def test_a_full_link_sends_at_its_rate(engine: LinuxEngine, tmp_path: Path) -> None:
    found = row(engine.simulate(Plan.of(plan(tmp_path, "pfifo limit 100p")), 1))
    # `cbs` counts in whole bytes.
    assert found["throughput"] == pytest.approx(10e6, rel=0.002)


def test_a_discipline_is_asked_when_its_queue_is_empty(engine: LinuxEngine) -> None:
    """Below `htb`, RED takes idle times for a full queue, and drops all that comes later."""
    red = "red limit 1005296b min 83774b max 251324b avpkt 1000 burst 332 probability 0.1"
    scenario = Scenario.from_dict(
        {
            "duration": "10s",
            "warmup": "5s",
            "links": {
                "line": {
                    "from": "a", "to": "b", "rate": "50mbit", "netem": "delay 20ms",
                    "queue": f"{red} bandwidth 50mbit",
                }
            },
            "flows": [
                {
                    "from": "a", "to": "b", "app": "bulk", "tcp": "reno", "count": 8,
                    "start": "uniform 0s 1s",
                }
            ],
        }
    )  # fmt: skip
    assert row(engine.simulate(scenario.plan, 1))["utilisation"] > 0.8


def test_links_that_the_kernel_lacks_are_our_own(engine: LinuxEngine) -> None:
    link = {"from": "a", "to": "b", "rate": "10mbit"}
    flow = {"from": "a", "to": "b", "app": "bulk"}
    for change, why in (
        ({"overhead": 44}, "line: overhead"),
        ({"rate": "12345678bit"}, "line: a rate of 12345678 bit/s"),
        ({"rate": "40gbit"}, "line: a rate of 40000000000 bit/s"),
    ):
        scenario = Scenario(duration="1s", links={"line": link | change}, flows=[flow])
        prepared = engine.prepared(scenario.plan, 1)
        assert prepared.links is None
        assert why in prepared.why


def test_linux_and_the_simulator_agree_on_a_full_queue(engine: LinuxEngine, tmp_path: Path) -> None:
    from sojourn import _core

    text = plan(tmp_path, "pfifo limit 100p")
    real, simulated = row(engine.simulate(Plan.of(text), 1)), row(_core.simulate(text, 1))
    for name, margin in (("goodput", 0.03), ("sojourn_p50", 0.15), ("queue_mean", 0.15)):
        assert real[name] == pytest.approx(simulated[name], rel=margin), name


def test_an_impossible_plan_is_refused_before_a_guest_starts(
    engine: LinuxEngine, tmp_path: Path
) -> None:
    text = plan(tmp_path).replace('"count": 4', '"count": 20000')
    with pytest.raises(NotPossible, match="20001 flows"):
        engine.simulate(Plan.of(text), 1)


SHORT = {
    "duration": 1, "warmup": 0, "nodes": [], "links": [], "media": [], "groups": [],
    "observe": {
        "bottleneck": {"links": [], "name": ""}, "capture": [], "monitor": False,
        "per_flow_histograms": False, "series_interval": 0, "snaplen": 64, "trace_hash": False,
    },
}  # fmt: skip
"""A plan of a nanosecond without anything in it."""
LONG = SHORT | {"duration": 10**15}


def job(**changes: Any) -> dict[str, bytes]:
    told = {
        "seed": 1, "plan": SHORT, "hosts": [], "commands": [], "queues": [],
        "interval": 10_000_000, "folders": [],
    } | changes  # fmt: skip
    return {"job.json": json.dumps(told).encode()}


def error_of(kernel: Kernel, **changes: Any) -> str:
    with Guest(kernel, 1) as guest:
        guest.start(job(**changes))
        error: str | None = json.loads(guest.wait().files["done.json"])["error"]
        return error or ""


def tc(file: str | Path, text: str = "") -> dict[str, Any]:
    return {
        "host": None, "words": ["/programs/tc", "-batch", str(file)], "input": text, "early": True
    }  # fmt: skip


def test_root_inside_does_not_reach_the_user_s_files(kernel: Kernel, tmp_path: Path) -> None:
    # The same file can be read where the guest may read, and cannot elsewhere.
    (tmp_path / "secret").write_text("qdisc show dev lo\n", encoding="ascii")
    folders, commands = [str(tmp_path)], [tc(tmp_path / "secret")]
    with Guest(kernel, 1) as guest:
        guest.start(job(folders=folders, commands=commands), read=(str(tmp_path),))
        assert json.loads(guest.wait().files["done.json"])["error"] is None
    assert "Permission denied" in error_of(kernel, folders=folders, commands=commands)


def test_a_command_that_fails_is_shown(kernel: Kernel) -> None:
    error = error_of(kernel, commands=[tc("-", "qdisc add dev lo root wrong\n")])
    assert "/programs/tc -batch -" in error
    assert "Command failed -:1" in error


def test_a_program_that_spins_is_named(kernel: Kernel) -> None:
    folders = [name for name in ("/usr", "/lib", "/lib64") if Path(name).exists()]
    words = ["/usr/bin/sh", "-c", "while :; do :; done"]
    spins = {"host": None, "words": words, "input": "", "early": True}
    with Guest(kernel, 1) as guest:
        guest.start(job(folders=folders, commands=[spins]), read=tuple(folders))
        with pytest.raises(LabError, match=r"0 s: `/usr/bin/sh.*do :; done`"):
            guest.wait()


DEEP = """
duration = "3s"
links.line = {from = "a", to = "b", rate = "40mbit", netem = "delay 2ms", queue = "QUEUE"}
[[flows]]
from = "a"
to = "b"
app = "bulk"
tcp = "reno"
count = 3
""".replace("QUEUE", "fq_codel limit 3000p target 10s interval 10s")


def test_the_sockets_of_hosts_have_memory(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the queue drops packets; a guest whose sockets are short of memory has no result."""
    deep = Scenario.from_toml(DEEP)
    metrics = deep.run(1, engine=LinuxEngine(kernel)).metrics
    assert 0 < metrics["retransmissions"] <= metrics["drops"]
    assert metrics["timeouts"] == 0
    monkeypatch.setattr("sojourn.linux.engine.Guest", functools.partial(Guest, memory=48))
    with pytest.raises(LabError, match="guest's memory"):
        deep.run(1, engine=LinuxEngine(kernel))


@pytest.mark.parametrize(
    "words", ["reno sndbuf 256kb", "cubic sndbuf 64kb", "cubic sndbuf 150kb", "bbr sndbuf 256kb"]
)
def test_the_send_buffer_limits_a_flow(kernel: Kernel, words: str) -> None:
    """As in the simulator; Linux looks at the buffer only when it begins a super-packet."""
    line = {"from": "a", "to": "b", "rate": "100mbit", "netem": "delay 20ms"}
    bulk = {"from": "a", "to": "b", "app": "bulk", "tcp": words}
    made = Scenario.from_dict({"duration": "4s", "links": {"line": line}, "flows": [bulk]})
    linux = LinuxEngine(kernel)
    simulated = made.with_stack(linux.tcp_words(made.plan)).run(1).metrics["goodput"]
    assert made.run(1, engine=linux).metrics["goodput"] == pytest.approx(simulated, rel=0.03)


def test_a_kernel_that_ends_at_once_is_an_error(kernel: Kernel) -> None:
    with Guest(kernel, 1, memory=4) as guest:
        guest.start(job())
        with pytest.raises(LabError, match="wrote no results"):
            guest.wait()
        folder = guest.folder
    assert not folder.exists()


def test_a_kernel_that_is_killed_is_an_error(kernel: Kernel) -> None:
    with Guest(kernel, 1) as guest:
        guest.start(job(plan=LONG))
        pid = guest.pid
        assert pid is not None

        def kill(now: int) -> bool:
            if now > 0:
                os.kill(pid, signal.SIGKILL)
            return True

        with pytest.raises(LabError, match="ended by SIGKILL"):
            guest.wait(kill)


START = """
import json, sys
from sojourn.linux.guest import Guest
from sojourn.linux.kernels import find

guest = Guest(find(), 1)
guest.start({"job.json": sys.stdin.buffer.read()})
guest.wait(lambda now: now == 0 or print(guest.pid, guest.folder, flush=True) is None)
"""


@pytest.mark.usefixtures("kernel")
def test_nothing_is_left_of_a_guest_whose_parent_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with subprocess.Popen(
        [sys.executable, "-c", START], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        parent.stdin.write(job(plan=LONG)["job.json"])
        parent.stdin.close()
        pid, folder = parent.stdout.readline().decode().split()
        parent.kill()
    assert Path(folder).is_dir()
    while Path("/proc", pid).exists():
        time.sleep(0.01)
    # The next process that needs a folder removes those of processes that are gone.
    assert temporary.sweep() == 1
    assert not Path(folder).exists()


def test_the_delay_line_is_no_queue() -> None:
    assert layout.AHEAD > 1
