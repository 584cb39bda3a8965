"""Commands with the engine of Linux's network code in virtual time, and with the simulator."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sojourn.linux.kernels import Kernel
from sojourn.study import AcrossEngines, Results
from tests.cli.test_commands import Result, sojourn
from tests.conftest import ROOT

HOME = ROOT / "examples" / "home.toml"
SHORT = ("--set", "duration=5s", "--set", "warmup=1s")


def ok(*arguments: str | Path) -> Result:
    result = sojourn(*arguments)
    assert result.status == 0, result.err
    return result


@pytest.mark.usefixtures("kernel")
def test_compare_prints_both_engines_and_keeps_both(tmp_path: Path) -> None:
    out = tmp_path / "out"
    two = ("--engine", "sim,linux", "--seeds", "2", "--queues", "pfifo", "codel")
    result = ok("compare", HOME, *SHORT, *two, "--out", out)
    lines = [line.split() for line in result.out.splitlines()]
    named = [[word for word in line[:2] if word in ("sim", "linux")] for line in lines]
    assert [one[0] for one in named if one] == ["sim", "linux", "sim", "linux"]
    assert result.out.count("Limits of the engine linux: one processor") == 1
    summary = pq.read_table(out / "summary.parquet")
    assert sorted(set(summary.column("engine").to_pylist())) == ["linux", "sim"]
    found = AcrossEngines.open(out)
    assert list(found.engines) == ["sim", "linux"]
    for comparison in found.engines.values():
        assert comparison.winners[0].choice == "codel"
    assert all(run.about.real["valid"] for run in Results.open(out).runs(engine="linux"))
    again = ok("compare", HOME, *SHORT, *two, "--out", out, "--json")
    data = again.json()
    assert {(q["queue"], q["engine"]) for q in data["queues"]} == {
        (queue, engine) for queue in ("pfifo", "codel") for engine in ("sim", "linux")
    }
    assert data["engines"][1]["limits"].startswith("one processor")


@pytest.mark.usefixtures("kernel")
def test_one_run_by_both_and_by_linux_alone(tmp_path: Path) -> None:
    both = ok("run", HOME, *SHORT, "--engine", "sim,linux", "--json").json()
    sim, linux = (run["metrics"] for run in both["runs"])
    assert [run["engine"] for run in both["runs"]] == ["sim", "linux"]
    assert linux["sojourn_p95"] == pytest.approx(sim["sojourn_p95"], rel=0.3)
    assert linux["goodput"] == pytest.approx(sim["goodput"], rel=0.1)
    alone = ok("run", HOME, *SHORT, "--engine", "linux", "--out", tmp_path / "run")
    assert "in virtual time" in alone.out
    assert alone.out.count("Limits of the engine linux") == 1
    ok("report", tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert page.count("Limits of the engine linux") == 1


@pytest.mark.usefixtures("kernel")
def test_the_laboratory_has_it_too() -> None:
    result = ok("lab", "run", HOME, *SHORT, "--engine", "linux", "--json")
    real = result.json()["real"]
    assert (real["engine"], real["valid"]) == ("linux", True)
    refused = sojourn("lab", "run", HOME, "--engine", "linux", "--journal")
    assert refused.status == 2
    assert "`--journal` requires `--engine wire`" in refused.err


@pytest.mark.usefixtures("kernel")
def test_a_run_says_which_links_it_had() -> None:
    lossy = ("--set", "links.uplink.netem=delay 15ms loss 1% duplicate 1%")
    result = ok("lab", "run", HOME, *SHORT, *lossy, "--engine", "linux")
    words = "Sojourn's links, because the kernel's links lack uplink: loss, uplink: duplicate"
    assert words in result.out
    assert "the kernel's links" in ok("lab", "run", HOME, *SHORT, "--engine", "linux").out
    two = ("--engine", "linux,linux-wire", "--queues", "pie", "--seeds", "2")
    both = ok("compare", HOME, *SHORT, *two, "--json")
    named = [engine["engine"] for engine in both.json()["engines"]]
    assert named == ["linux", "linux-wire"]


@pytest.mark.usefixtures("kernel")
def test_a_study_is_one_table(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    text = f"scenario = {json.dumps(str(HOME))}\n[study]\nseeds = 1\n"
    file.write_text(text + '[study.vary]\nqueue = ["codel", "pie"]\nduration = ["3s"]\n')
    short = (
        text + '[study.vary]\nqueue = ["codel"]\nlength.short = {duration = "3s", warmup = "1s"}\n'
    )
    file.write_text(short)
    arguments = ("study", "run", file, "--engine", "sim,linux", "--out", tmp_path / "out", "--json")
    data = ok(*arguments).json()
    assert data["runs"] == 2
    assert data["factors"] == ["queue", "length", "engine"]
    assert [row["engine"] for row in data["rows"]] == ["sim", "linux"]
    assert list(data["limits"]) == ["linux"]


@pytest.mark.usefixtures("kernel")
def test_an_impossible_scenario_is_refused_before_any_run(tmp_path: Path) -> None:
    out = tmp_path / "out"
    changes = ("flows.0.tcp=prague", "flows.1.app=web", "question.by=goodput")
    other = [word for change in changes for word in ("--set", change)]
    result = sojourn("compare", HOME, *other, "--engine", "sim,linux", "--out", out)
    assert result.status == 2
    assert "`tcp prague`: this" in result.err
    assert "engine `linux` cannot" in result.err
    assert "`--engine sim`" in result.err.splitlines()[-1]
    assert not out.exists()


@pytest.mark.usefixtures("kernel")
def test_ctrl_c_ends_guests_and_keeps_finished_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders, out = tmp_path / "guests", tmp_path / "out"
    folders.mkdir()
    monkeypatch.setenv("TMPDIR", str(folders))
    code = "from sojourn.cli import bars, main\n"
    code += "bars.LINE_FIRST = bars.LINE_EVERY = 0.2; main()"
    two = ("--engine", "linux", "--seeds", "200", "--queues", "codel", "--out", str(out))
    process = subprocess.Popen(
        [sys.executable, "-c", code, "compare", str(HOME), *SHORT, *two],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if " 2/200 runs" in line or " 3/200 runs" in line:
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "stopped after" in err
    assert len(Results.open(out).runs()) >= 2
    assert not list(folders.iterdir())


def test_a_kernel_is_chosen_by_its_name(kernel: Kernel) -> None:
    named = f"linux:{kernel.name}"
    both = ok("run", HOME, *SHORT, "--engine", f"linux,{named}", "--json").json()
    assert [run["engine"] for run in both["runs"]] == ["linux", named]
    usual, chosen = (run["metrics"] for run in both["runs"])
    assert usual == chosen
    for engine, message in (
        ("linux:none", f"no kernel 'none'; existing kernels: {kernel.name}"),
        ("sim:none", "`sim:none`: only linux and linux-wire have kernels to select, not sim"),
        ("linus:none", "no engine `linus:none`: did you mean `linux`?"),
    ):
        result = sojourn("run", HOME, "--engine", engine)
        assert result.status != 0
        assert message in result.err


def test_a_wrong_engine_is_answered_with_those_there_are() -> None:
    for command in (["run"], ["compare"], ["lab", "run"]):
        result = sojourn(*command, HOME, "--engine", "lnux")
        assert result.status == 2
        assert "no engine `lnux`: did" in result.err
        assert "you mean `linux`?" in result.err
        assert "wire, kernel" in result.err
    result = sojourn("run", HOME, "--engine", "lnux", "--json")
    assert result.json()["error"].startswith("no engine `lnux`")


def test_options_that_exclude_each_other() -> None:
    result = sojourn("compare", HOME, "--engine", "linux", "--real")
    assert result.status == 2
    assert "`--real` means `--engine wire`" in result.err
    result = sojourn("compare", HOME, "--real", "--on", "tcp://nowhere:1")
    assert "`--real` and `--on`" in result.err
