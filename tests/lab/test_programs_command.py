"""Programs of one's own on hosts of this machine, over our links and the kernel's."""

from __future__ import annotations

import io
import math
import struct
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from sojourn.cli.real import description
from sojourn.lab import Unavailable
from sojourn.lab.engine import RealEngine, WireEngine
from sojourn.lab.findings import blanked, indistinct
from sojourn.lab.kernel.engine import KernelEngine
from sojourn.lab.programs import NotPossible
from sojourn.lab.record import LabRecord
from sojourn.plan import Group, Plan, Udp
from sojourn.plan.traffic.command import Command
from sojourn.scenario import Scenario
from tests.lab.conftest import described, possible
from tests.lab.plans import flow

pytestmark = pytest.mark.alone

HEAD = """
duration = "2s"

[links.uplink]
from = "a"
to = "b"
rate = "100mbit"
queue = "pfifo limit 100p"
"""
GET = """
import os, sys, time, urllib.request
assert sorted(os.listdir("."))[0] == "data", os.getcwd()
data = urllib.request.urlopen(f"http://{sys.argv[1]}:{sys.argv[2]}/data").read()
print(len(data), flush=True)
time.sleep(100)
"""


def scenario(folder: Path, *flows: str) -> Scenario:
    (folder / "data").write_bytes(bytes(300_000))
    (folder / "get.py").write_text(GET, encoding="utf-8")
    file = folder / "scenario.toml"
    file.write_text("\n".join([HEAD, *flows]), encoding="utf-8")
    return Scenario.load(file)


def python(line: str) -> str:
    return f"{sys.executable} -I {line}"


def run(engine: RealEngine, wanted: Scenario) -> LabRecord:
    try:
        return engine.simulate(wanted.plan, 1)
    except Unavailable as error:
        if possible("auto") and "qdisc" not in str(error):
            raise
        pytest.skip(f"not installed: the permission or the kernel's module ({error})")


def value(record: LabRecord, metric: str, table: str = "flows") -> float:
    [(dtype, data)] = [
        (dtype, data) for name, _, dtype, data in record.table(table) if name == metric
    ]
    assert isinstance(data, bytes)
    found: float = struct.unpack_from("<d" if dtype == "f8" else "<q", data)[0]
    return found


@pytest.mark.parametrize("kind", [WireEngine, KernelEngine])
def test_a_server_and_a_client_talk(kind: type[RealEngine], tmp_path: Path) -> None:
    server, client = python("-m http.server {port}"), python("get.py {to} {port}")
    wanted = scenario(
        tmp_path, flow("command", client=client, server=server, start="0.2s", stop="1.5s")
    )
    record = run(kind(), wanted)
    failed = [violation for violation in record.violations if "a program failed" in violation]
    assert not failed
    ends = {end["role"]: end for end in described(record)["own_programs"]}
    for end in ends.values():
        assert (end["stopped"], end["killed"], end["status"]) == (True, False, -15)
        assert 1.5e9 <= end["ended"] < 5e9
    assert ends["server"]["started"] < 0 < ends["client"]["started"]
    with zipfile.ZipFile(io.BytesIO(record.files["programs.zip"])) as archive:
        assert archive.read("command-client-command.0.out") == b"300000\n"
        assert b"GET /data" in archive.read("command-server-command.0.err")
    if kind is KernelEngine:
        assert math.isnan(value(record, "bytes"))
        assert math.isnan(value(record, "goodput"))
        assert math.isnan(value(record, "goodput", "summary"))
    else:
        assert 300_000 < value(record, "bytes") < 302_000
        assert value(record, "goodput", "summary") == value(record, "bytes") * 8 / 2


def test_a_run_ends_with_its_programs_and_has_the_numbers_that_they_print(tmp_path: Path) -> None:
    (tmp_path / "say.py").write_text("print('goodput=2.5Mbit/s')\nprint('{\"a\": {\"b\": 7}}')")
    told = {"goodput": "goodput=([0-9.]+)Mbit/s", "score": "a.b"}
    keys = ", ".join(f'{name} = "{source}"' for name, source in told.items())
    line = flow("command", client=python("say.py"), count=2) + f"\nmetric = {{ {keys} }}"
    record = run(WireEngine(), scenario(tmp_path, line).replace({"duration": "60s"}))
    assert record.complete
    assert record.reached < 30e9
    assert value(record, "command.goodput", "summary") == 5e6  # the sum of both flows
    assert value(record, "command.score", "summary") == 7
    assert 0 < value(record, "command.fct_mean", "summary") < 30
    assert value(record, "command.finished", "summary") == 2
    assert value(record, "goodput") == 2.5e6
    assert '\n    {"a": {"b": 7}}' in description(record)
    silent = scenario(tmp_path, line.replace("a.b", "a.c")).replace({"duration": "60s"})
    violation, _ = [v for v in run(WireEngine(), silent).violations if "a program failed" in v]
    assert "did not report score: " in violation
    assert "has no key `a.c`" in violation


def test_programs_that_fail_and_do_not_listen(tmp_path: Path) -> None:
    (tmp_path / "fail.py").write_text("raise SystemExit('no luck')", encoding="utf-8")
    failing = python("fail.py")
    record = run(WireEngine(), scenario(tmp_path, flow("command", client=failing)))
    [violation] = [violation for violation in record.violations if "a program failed" in violation]
    assert "command.0: client: " in violation
    assert "exit status 1: no luck" in violation
    silent = python("fail.py {port}")
    wanted = scenario(tmp_path, flow("command", client=failing, server=silent))
    with pytest.raises(NotPossible, match="ended without opening port 20000"):
        run(WireEngine(), wanted)


def groups(*lines: tuple[str, int, tuple[int, int]]) -> Plan:
    made = (
        Group(
            name=f"g{number}", pairs=(pair,), count=count, start=0, start_spread=0, dscp=0,
            transport=Udp(), app=Command(client=(word,), server=(), folder="", files={}),
        )
        for number, (word, count, pair) in enumerate(lines)
    )  # fmt: skip
    plan = Scenario.from_toml(HEAD + flow("bulk")).plan
    return replace(plan, groups=tuple(made))


def test_flows_that_are_indistinguishable_have_no_figures_of_their_own() -> None:
    assert indistinct(groups(("x", 1, (0, 1)))) == (set(), [])
    assert indistinct(groups(("x", 2, (0, 1)))) == ({0, 1}, [])
    assert indistinct(groups(("x", 1, (0, 1)), ("{port}", 3, (0, 1)))) == (set(), [])
    assert indistinct(groups(("x", 1, (0, 1)), ("y", 1, (1, 0)))) == ({0, 1}, ["g0", "g1"])
    table = [("sent", "1", "i8", struct.pack("<2q", 3, 4)), ("flow", "", "i8", bytes(16))]
    [(_, _, dtype, data), flows] = blanked(table, {1})
    assert (dtype, flows) == ("f8", table[1])
    assert isinstance(data, bytes)
    sent = struct.unpack("<2d", data)
    assert sent[0] == 3
    assert math.isnan(sent[1])
