"""Whole real runs: real programs, real packets, our links."""

from __future__ import annotations

import math
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sojourn.lab import Sandbox, Unavailable
from sojourn.lab.engine import WireEngine
from sojourn.lab.findings import UNSEEN
from sojourn.lab.programs import NotPossible
from sojourn.lab.record import LabRecord
from sojourn.lab.sandbox.modules import environment
from sojourn.metrics import base
from sojourn.scenario import Scenario
from sojourn.study import Results, Study
from tests.cli.test_commands import sojourn
from tests.lab.conftest import described, possible, started

pytestmark = pytest.mark.alone

SCENARIO = """
name = "real"
duration = "4s"
warmup = "1s"

[links.wire]
from = "a"
to = "b"
rate = "10mbit"
netem = "delay 10ms"
queue = "{queue}"

[[flows]]
from = "a"
to = "b"
app = "bulk"
tcp = "{tcp}"
count = {count}
"""


def scenario(queue: str = "codel", tcp: str = "cubic", count: int = 2) -> Scenario:
    return Scenario.from_toml(SCENARIO.format(queue=queue, tcp=tcp, count=count))


def run(wanted: Scenario, **how: Any) -> LabRecord:
    """Runs it for real; skipped where this machine or user cannot have a sandbox."""
    try:
        return WireEngine(**how).simulate(wanted.plan, 1)
    except Unavailable as error:
        if possible("auto"):
            raise
        pytest.skip(f"not installed: the permission ({error})")


def metrics(record: LabRecord, table: str = "summary") -> dict[str, float]:
    codes = {"f8": "<d", "i8": "<q", "?": "<?"}
    return {
        name: struct.unpack_from(codes[dtype], data)[0]
        for name, _, dtype, data in record.table(table)
        if not isinstance(data, list)
    }


@pytest.mark.needs("iperf3")
def test_a_real_run_has_the_tables_of_a_simulated_one() -> None:
    wanted = scenario()
    record = run(wanted, journals=True)
    simulated = wanted.run(1)
    for name in ("summary", "flows", "queues", "distributions"):
        mine, theirs = (
            # A count that real programs do not show is NaN, which no whole number is.
            [(c, unit, "f8" if base(c) in UNSEEN else kind) for c, unit, kind, _ in one.table(name)]
            for one in (record, simulated.record)
        )
        assert mine == theirs, name
    assert record.complete
    found = metrics(record)
    # Both senders fill the link: Ethernet frames of 1514 bytes carry 1448. A segment that began
    # before the three seconds measured may end in them, and iperf3's intervals begin late.
    assert 8e6 < found["bulk.goodput"] < 1.02 * 10e6 * 1448 / 1514
    assert found["wire.reverse.throughput"] < 1e6
    assert found["bulk.flows"] == 2
    assert 0.010 < found["bulk.delay_p50"] < 0.2
    assert 0.020 < found["bulk.rtt_p50"] < 0.4
    assert found["bulk.cwnd_mean"] > 2 * 1448
    assert described(record)["engine"] == "wire"
    assert described(record)["programs"]["iperf3"]
    assert {name.rpartition(".")[0] for name in described(record)["waits"]} == {
        "iperf3-client-bulk", "iperf3-server-bulk"
    }  # fmt: skip
    assert record.files["programs.zip"]


@pytest.mark.needs("iperf3")
@pytest.mark.parametrize("queue", ["codel", "red limit 100kb min 10kb max 30kb avpkt 1000"])
def test_a_fresh_queue_decides_the_same_on_the_same_arrivals(queue: str) -> None:
    record = run(scenario(queue, tcp="reno ecn classic"), journals=True)
    (found,) = described(record)["agreements"]
    assert found["agrees"], found["difference"]
    arrivals, drops, marks, entries = found["counts"]
    assert arrivals > 1000
    assert drops + marks > 0
    assert entries >= 2 * arrivals - drops - 200


@pytest.mark.needs("iperf3")
def test_a_study_is_made_for_real(tmp_path: Any) -> None:
    try:
        table = (
            Study(scenario())
            .vary(queue=["pfifo limit 50p", "codel"])
            .seeds(1)
            .run(tmp_path / "out", engine=WireEngine())
        )
    except Unavailable as error:
        if possible("auto"):
            raise
        pytest.skip(f"not installed: the permission ({error})")
    delays = table.frame.set_index("queue")["sojourn_mean"]
    assert delays["codel"] < delays["pfifo limit 50p"]
    runs = Results.open(tmp_path / "out").runs()
    assert {run.about.real["engine"] for run in runs} == {"wire"}
    # The next time nothing is run again.
    again = Study(scenario()).vary(queue=["pfifo limit 50p", "codel"]).seeds(1)
    assert again.run(tmp_path / "out", engine=WireEngine()).frame.equals(table.frame)


@pytest.mark.needs("iperf3")
def test_a_real_run_has_the_metrics_of_a_simulated_one() -> None:
    """The same names, units and measured time; metrics that real programs do not show are NaN."""
    asked = scenario("pfifo limit 20p", count=1).replace({"duration": "3s"})
    simulated = asked.run(1)
    try:
        real = asked.run(1, engine="wire")
    except Unavailable as error:
        if possible("auto"):
            raise
        pytest.skip(f"not installed: the permission ({error})")
    assert list(real.metrics) == list(simulated.metrics)
    assert real.units == simulated.units
    assert real.metrics["measured"] == simulated.metrics["measured"] == 2.0
    assert real.metrics["goodput"] == pytest.approx(simulated.metrics["goodput"], rel=0.2)
    assert simulated.metrics["recoveries"] > 0 < real.metrics["retransmissions"]
    assert math.isnan(real.metrics["recoveries"])
    assert math.isnan(real.metrics["timeouts"])
    assert real.as_dict()["violations"] == real.violations
    assert "violations" not in simulated.as_dict()


@pytest.mark.needs("iperf3")
def test_a_file_with_a_study_is_run_for_real(tmp_path: Path) -> None:
    if not possible("auto"):
        pytest.skip("not installed: the permission")
    file = tmp_path / "both.toml"
    study = '[study]\nseeds = 2\n[study.vary]\nqueue = ["codel", "pie"]\n'
    file.write_text(SCENARIO.format(queue="codel", tcp="cubic", count=1) + study)
    found = sojourn("lab", "run", "both.toml", "--set", "duration=2s", cwd=tmp_path)
    assert found.status in (0, 1), found.err  # 1 if the machine was too busy
    assert "goodput" in found.out
    assert "[study] is ignored here" in found.err


def test_features_that_the_kernel_lacks_are_refused_before_the_start() -> None:
    with pytest.raises(NotPossible, match="tcp prague"):
        WireEngine().simulate(scenario(tcp="prague").plan, 1)


@pytest.mark.needs("iperf3")
@pytest.mark.parametrize("moment", [0.3, 1.0, 2.5])
def test_nothing_is_left_of_a_killed_run(tmp_path: Path, moment: float) -> None:
    started(Sandbox()).close()
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO.format(queue="codel", tcp="cubic", count=2))
    command = [sys.executable, "-m", "sojourn.cli", "lab", "run", str(file)]
    own = os.environ | environment()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=own
    ) as process:
        # The moment counts from when programs are running, so that there is something to leave.
        family = wait_for_family(process)
        with suppress(subprocess.TimeoutExpired):
            process.wait(moment)
        family |= descendants(process.pid)
        handles = {os.pidfd_open(pid): pid for pid in family if Path(f"/proc/{pid}").exists()}
        process.kill()
        poll = select.poll()
        for handle in handles:
            poll.register(handle, select.POLLIN)
        deadline = time.monotonic() + 60
        while handles:
            ended = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
            assert ended, f"still there: {sorted(handles.values())}"
            for handle, _ in ended:
                poll.unregister(handle)
                del handles[handle]
                os.close(handle)


def wait_for_family(process: subprocess.Popen[bytes]) -> set[int]:
    """All processes below a run, once its programs are there."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stdout and process.stdout.read()
        family = descendants(process.pid)
        if any(name_of(pid) == "iperf3" for pid in family):
            return family
    raise AssertionError("no program was started")


def descendants(pid: int) -> set[int]:
    """All processes below a process."""
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        path = Path(f"/proc/{waiting.pop()}/task")
        with suppress(FileNotFoundError, ProcessLookupError):
            for task in path.iterdir():
                fresh = {int(n) for n in (task / "children").read_text().split()} - found
                found |= fresh
                waiting += fresh
    return found


def name_of(pid: int) -> str:
    """The name of a process, empty if it has gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


@pytest.mark.needs("iperf3")
def test_a_real_run_is_watched_changed_and_captured(tmp_path: Path) -> None:
    from sojourn.lab.wire.control import Client
    from sojourn.lab.wire.counters import Counters
    from sojourn.study.attached import PCAPNG

    wanted = scenario(count=1).replace({"observe.capture": ["wire"]})
    path = tmp_path / "control"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        seen: list[Counters] = []

        def look() -> None:
            with Client(path, 120) as client:
                for counters in client.watch(0.1):
                    if not seen:
                        client_2.set("wire.reverse", rate="20mbit")
                    seen.append(counters)

        with Client(path, 120) as client_2:
            thread = threading.Thread(target=look, daemon=True)
            thread.start()
            record = run(wanted, control=listener.fileno())
            thread.join(60)
    assert [link.link for link in seen[0].links] == ["wire", "wire.reverse"]
    assert seen[-1].links[1].rate == 20_000_000
    assert seen[-1].links[0].sent[0] > 100
    (capture,) = record.captures
    assert capture.startswith(PCAPNG)
    (about,) = described(record)["captures"]
    assert about["link"] == "wire"
    assert about["missed"] == [0, 0, 0]
    assert about["packets"][0] >= metrics(record)["departures"] > 100
