"""The commands as a user meets them: output, exit status, JSON, and no traceback."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import lzma
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sojourn import _core
from sojourn.cli import main
from sojourn.cli.arguments import spread
from sojourn.cli.compare import default_queues, of_policies
from sojourn.cli.leaves import limit
from sojourn.cli.words import CONSISTENCY, COORDINATORS
from sojourn.judge.recordings import scenarios
from sojourn.scenario import Scenario
from sojourn.study.folder import ResultsFolder
from tests.cli.outputs import agreeing, commands
from tests.conftest import ROOT
from tests.scenario.texts import HOME

RECORDED = ("judge", "--level", "linux", "--recordings")
"""The command that compares our queues with recordings in a folder, which follows."""
SHORT = HOME.replace('"60s"', '"4s"').replace('"10s"', '"1s"')


@dataclass
class Result:
    status: int
    out: str
    err: str
    words: tuple[str, ...] = ()
    """The words of the command."""

    def json(self) -> Any:
        """The output, which agrees with its schema."""
        called = " ".join(self.words)
        [*_, name] = sorted((n for n in commands() if f"{called} ".startswith(f"{n} ")), key=len)
        return agreeing(name, json.loads(self.out))


def process(*arguments: str | Path, cwd: Path | None = None) -> Result:
    """Runs the command in a process of its own, as a shell would."""
    code = "from sojourn.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        timeout=240,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Result(done.returncode, done.stdout, done.stderr, tuple(map(str, arguments)))


def sojourn(*arguments: str | Path, cwd: Path | None = None) -> Result:
    """Runs the command here: what is not a clean exit is raised."""
    out, err = io.StringIO(), io.StringIO()
    status: Any = 0
    with (
        contextlib.chdir(cwd or Path.cwd()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = stop.code or 0
    return Result(status, out.getvalue(), err.getvalue(), tuple(map(str, arguments)))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home.toml"
    path.write_text(SHORT)
    return path


def test_values_of_an_option_are_all_words_up_to_the_next() -> None:
    assert spread(["compare", "f", "--queues", "a", "b c", "--seeds", "3"]) == [
        *["compare", "f", "--queues", "a", "--queues", "b c", "--seeds", "3"]
    ]
    assert spread(["compare", "--queues", "a", "--queues", "b"]) == [
        *["compare", "--queues", "a", "--queues", "b"]
    ]
    assert spread(["compare", "f", "--queues"]) == ["compare", "f", "--queues"]
    for after in (["--json"], ["--policies", "x"], ["--"]):
        assert spread(["compare", "f", "--queues", *after]) == ["compare", "f", "--queues"]
    assert spread(["run", "f", "--queues", "a", "b"]) == ["run", "f", "--queues", "a", "b"]
    assert spread(["compare", "--queues", "a", "--", "f"]) == [
        *["compare", "--queues", "a", "--", "f"]
    ]


def test_every_command_has_help() -> None:
    from typer.main import get_command

    from sojourn.cli.app import app

    def walk(command: Any, path: list[str]) -> None:
        assert command.help, path
        for parameter in command.params:
            assert parameter.help or parameter.name == "help", (path, parameter.name)
        for name, inner in getattr(command, "commands", {}).items():
            walk(inner, [*path, name])

    walk(get_command(app), [])


def test_summaries_fit_a_terminal() -> None:
    from typer.main import get_command

    from sojourn.cli.app import app

    def walk(command: Any) -> None:
        inner = getattr(command, "commands", {})
        longest = max(map(len, inner), default=0)
        for name, each in inner.items():
            # click's own room in 80 columns.
            short = each.get_short_help_str(78 - longest - 6)
            assert not short.endswith("..."), (name, short)
            walk(each)

    walk(get_command(app))


def test_run(home: Path) -> None:
    result = process("run", home)
    assert result.status == 0
    assert result.out.startswith("home: seed 1, 4 s")
    assert "codel limit 1000p" in result.out
    again = sojourn("run", home, "--json", "--seed", "7").json()
    assert again["seed"] == 7
    assert again["complete"] is True
    assert again["metrics"]["voip.mos"] > 1
    assert again["metrics"]["bulk.mos"] is None
    assert again["units"]["sojourn_p95"] == "s"
    assert sojourn("run", home, "--json", "--seed", "7").json()["trace_hash"] == again["trace_hash"]


def test_run_with_settings_and_a_folder(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = sojourn(
        "run",
        home,
        "--out",
        out,
        "--set",
        "links.uplink.queue=pfifo limit 9p",
        "--set",
        "flows.bulk.count=2",
        "--set",
        'observe.capture="uplink"',
    )
    assert result.status == 0
    assert "pfifo limit 9p" in result.out
    assert {p.name for p in out.glob("*.parquet")} >= {"summary.parquet", "flows.parquet"}
    assert list(out.glob("files/*/*.pcap"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "nowhere.toml"], "nowhere.toml: cannot be read"),
        (["run", "."], "cannot be read"),
        (["run", "FILE", "--set", "links.uplnk.rate=1mbit"], "did you mean `uplink`?"),
        (["run", "FILE", "--set", "rate"], "key=value"),
        (["run", "FILE", "--set", "duration=5"], "needs a time"),
        (["run", "FILE", "--seed", "-1"], "seed"),
        (["run", "FILE", "--seed", "x"], "seed"),
        (["run", "FILE", "--set", "bottleneck=radio"], "unknown link `radio`; known: uplink"),
        (["run", "FILE", "--set", "flows.bulk.tcp=reno mss 65100b"], "from 64 to 65000 bytes"),
        (["compare", "FILE", "--queues", "codle", "pie"], "did you mean `codel`?"),
        (["compare", "FILE", "--queues", "codel", "pie", "--by", "sojourn_p59"], "sojourn_p"),
        (["compare", "FILE", "--queues", "codel", "pie", "--subject-to", "goodput > 3"], "unit"),
        (["compare", "FILE", "--queues"], "queues"),
        (["compare", "FILE", "--policies", "iqlb", "jsq"], "this scenario has none"),
        (["compare", "FILE", "--vary", "links.uplink.rate"], "key=value,value"),
        (["compare", "FILE", "--vary", "links.uplink.rate=1mbit,1mbit"], "is listed twice"),
        (["compare", "FILE", "--vary", "links.uplink.rat=1mbit,2mbit"], "did you mean `rate`"),
        (["compare", "FILE", "--vary", "queue=codel,pie"], "`--queues`"),
        (["compare", "--queues", "codel", "FILE"], "FILE"),
        (["tc", "nowhere.toml"], "cannot be read"),
        (["tc", "FILE", "--interface", "a b"], "not a name of an interface"),
        (["tc", "FILE", "--interface", ""], "not a name of an interface"),
        ([*RECORDED, "nowhere"], "no such folder"),
        ([*RECORDED, "."], "no decision vectors"),
        (["list", "quee"], "did you mean `queue`?"),
        (["explain", "codle"], "did you mean `codel`?"),
        (["explain", "xyzzy"], "`sojourn list` shows all"),
        (["study", "run", "nowhere.toml"], "cannot be read"),
        (["study", "run", "FILE"], "[study]"),
        (["report", "nowhere"], "no such folder"),
        (["report", "."], ""),
        (["paper", "taildorp"], "did you mean `taildrop`?"),
        (["tune", "redopt", "--rate", "10", "--rtt", "1ms", "--flows", "3"], "needs its unit"),
        (["tune", "redopt", "--rate", "1mbit", "--rtt", "1ms", "--flows", "0"], "flows"),
        (
            [
                "tune",
                "redopt",
                *("--rate", "1mbit", "--rtt", "1ms", "--flows", "3", "--udp", "2mbit"),
            ],
            "`--udp` must be less",
        ),
        (["nonsense"], "nonsense"),
        (["run"], "FILE"),
        (["run", "FILE", "--nonsense"], "nonsense"),
    ],
)
def test_bad_input(arguments: list[str], words: str, home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    given = [str(home) if a == "FILE" else a for a in arguments]
    result = sojourn(*given, cwd=folder)
    assert result.status == 2
    assert result.out == ""
    assert words.lower() in result.err.lower()


def test_bad_input_for_machines(home: Path) -> None:
    result = sojourn("run", home, "--json", "--set", "links.uplink.queue=codle")
    assert result.status == 2
    (problem,) = result.json()["problems"]
    assert problem["key"] == "links.uplink.queue"
    assert problem["nearest"] == "codel"


def test_a_folder_that_cannot_be_written(home: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = sojourn("run", home, "--out", blocked)
    assert result.status == 2
    assert str(blocked) in result.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written(home: Path) -> None:
    code = "from sojourn.cli import main; main()"
    for arguments in (["run", str(home)], ["run", str(home), "--json"], ["list", "--json"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [sys.executable, "-c", code, *arguments],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert done.returncode == 2
        assert done.stderr.startswith("standard output: No space")


def test_words_of_stores_are_explained() -> None:
    assert set(CONSISTENCY) == set(_core.names("consistency"))
    assert set(COORDINATORS) == set(_core.names("coordinator"))
    assert "each data centre" in sojourn("explain", "each_quorum").out
    assert "95 % read, 5 % update" in sojourn("explain", "ycsb-b").out
    assert "Pydantic" not in sojourn("explain", "store").out


def test_compare(home: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    common = ["compare", str(home), "--queues", "pfifo limit 300p", "codel", "--out", out]
    common += ["--seeds", "3", "--set", "duration=12s", "--set", "warmup=4s"]
    result = process(*common)
    assert result.status == 0, result.err
    assert result.out.startswith("codel has the highest")
    assert "compared by voip.mos: the default" in result.err
    assert "tc qdisc replace dev eth0 parent 1:10 handle 10: codel" in result.out
    data = sojourn(*common, "--json", "--by", "voip.mos", "--subject-to", "").json()
    assert data["by"] == "voip.mos"
    assert {q["queue"] for q in data["queues"]} == {"pfifo limit 300p", "codel"}


def test_compare_policies() -> None:
    servers = Scenario.load(ROOT / "examples" / "servers.toml")
    kinds = {table["name"] for table in json.loads(_core.describe())["balancer"]}
    assert set(of_policies(servers, ["all"])["balancers.lb.policy"]) == kinds
    common = ["compare", "examples/servers.toml", "--set", "duration=1s", "--set", "warmup=0s"]
    common += ["--seeds", "2", "--subject-to", "", "--policies"]
    result = sojourn(*common, "jsq", "queue-delay", cwd=ROOT)
    assert result.status == 0, result.err
    assert "sojourn lb serve --policy" in result.out
    assert "--backlog netlink:INTERFACE1,INTERFACE2,INTERFACE3,INTERFACE4" in result.out
    assert "queue lengths, which OpenFlow" in result.out
    assert "server4=ADDRESS4@PORT4" in result.out
    wrong = sojourn(*common, "jqs", cwd=ROOT)
    assert wrong.status == 2
    assert "did you mean `jsq`?" in wrong.err


SERVERS = """
duration = "3s"
bottleneck = "servers"
topology = { template = "star", rate = "1gbit", clients.hosts = 6, servers.hosts = 3 }

[balancers.api]
servers = "servers"
policy = "round-robin"
service = ["exp(4ms)", "exp(4ms)", "exp(12ms)"]

[[flows]]
name = "requests"
from = "clients"
to = "api"
app = "transfer size 2kb forever think exp(20ms)"
count = 12
"""


def test_compare_policies_of_unequal_servers(tmp_path: Path) -> None:
    (tmp_path / "api.toml").write_text(SERVERS)
    common = ["compare", "api.toml", "--seeds", "2", "--policies", "round-robin"]
    result = sojourn(*common, "least-connections", cwd=tmp_path)
    assert result.status == 0, result.err
    assert "--set 'balancers.api.weights=[...]'" in result.err
    text = " ".join(result.out.split())
    assert "sojourn lb serve --policy least-connections" in text
    assert "switch, least-connections counts" in text
    weights = ["--set", "balancers.api.weights=[3,3,1]"]
    told = sojourn(*common, "weighted-round-robin", *weights, cwd=tmp_path)
    assert told.status == 0, told.err
    assert "but no weights" not in told.err
    assert "--server server1=ADDRESS1@PORT1,weight=3" in told.out
    assert "until it has been silent" not in told.out


def test_compare_has_queues_of_its_own(home: Path) -> None:
    data = sojourn("compare", home, "--seeds", "2", "--json", "--subject-to", "").json()
    names = {q["queue"].split()[0] for q in data["queues"]}
    assert names == {"pfifo", "red", "codel", "fq_codel", "pie", "cobalt", "cake"}
    assert data["folder"] is None


def test_study_and_report(home: Path, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(
        SHORT + '\n[study]\nname = "rates"\nseeds = 2\n'
        '[study.vary]\n"links.uplink.rate" = ["5mbit", "10mbit"]\n'
    )
    result = sojourn("study", "run", study, cwd=tmp_path)
    assert result.status == 0, result.err
    assert "4 runs in results/rates" in result.out
    data = sojourn("study", "run", study, "--json", cwd=tmp_path).json()
    assert len(data["rows"]) == 4
    assert {row["links.uplink.rate"] for row in data["rows"]} == {"5mbit", "10mbit"}
    written = sojourn("report", "results/rates", "--json", cwd=tmp_path)
    assert written.status == 0, written.err
    paths = [tmp_path / path for path in written.json()["written"]]
    assert any(path.suffix == ".html" for path in paths)
    assert all(path.stat().st_size > 0 for path in paths)


def test_tc(home: Path) -> None:
    result = sojourn("tc", home, "-i", "wan0", "--machine", "isp", "--ingress")
    assert result.status == 0
    assert "dev ifb-wan0 parent 1:10 handle 10: codel" in result.out
    assert sojourn("tc", home, "--json").json()["commands"][0].startswith("tc qdisc")
    none = sojourn("tc", home, "--set", "links.uplink.queue=blue", "--json")
    assert none.status == 1
    assert "blue" in none.json()["no_kernel_equivalent"]


def test_list_and_explain() -> None:
    everything = sojourn("list", "--json").json()
    assert {
        "queue",
        "tcp",
        "app",
        "netem",
        "medium",
        "host",
        "buffer",
        "balancer",
        "profile",
        "preset",
        "consistency",
        "coordinator",
        "workload",
        "metric",
        "template",
        "table",
    } == set(everything)
    assert sojourn("list").status == 0
    for kind, items in everything.items():
        assert items, kind
        name = items[0]["name"]
        assert sojourn("explain", name).status == 0
        assert sojourn("explain", name, "--json").json()[0]["name"] == name
    shown = sojourn("explain", "codel").out
    for words in ("limit", "1000p", "target", "5ms", "RFC 8289", "ecn"):
        assert words in shown
    assert "codec" in sojourn("explain", "voip").out
    assert "g711-noplc" in sojourn("explain", "voip").out
    assert "duration" in sojourn("explain", "scenario").out
    of_a_class = sojourn("explain", "htb").out.partition("words of a class")[2]
    for words in ("rate", "ceil", "burst", "cburst", "prio", "quantum"):
        assert f"\n {words} " in of_a_class
    assert {"rt", "ls", "ul"} <= {
        word["name"] for word in sojourn("explain", "hfsc", "--json").json()[0]["class_words"]
    }
    assert "words of a class" not in sojourn("explain", "prio").out
    shown = sojourn("explain", "daqm").out
    for part in ("s3-threshold", "names for preset", "f8", "names for published", "wall-clock"):
        assert part in shown
    assert "Unit: s" in sojourn("explain", "sojourn_p95").out
    assert sojourn("explain", "calls.delay_p99").out == sojourn("explain", "delay_p99").out
    assert sojourn("explain", "calls.codel").status == 2


def test_schema() -> None:
    assert sojourn("schema").json()["properties"]["links"]


def test_a_fault_of_the_program_has_its_own_status(monkeypatch: pytest.MonkeyPatch) -> None:
    import sojourn.cli.words as words

    def broken() -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(words, "catalogue", broken)
    result = sojourn("list")
    assert result.status == 70
    assert "bug in sojourn" in result.err


def test_version() -> None:
    from sojourn import _core

    assert _core.fingerprint() in sojourn("--version").out


def test_tune_redopt() -> None:
    arguments = ["tune", "redopt", "--rate", "10mbit", "--rtt", "140ms", "--flows", "32"]
    model = sojourn(*arguments, "--model-only", "--json").json()
    assert model["queue"].startswith("red unit packets")
    assert model["accepted"] is None


# verify


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three recorded scenarios from the project's own copy, unpacked."""
    folder = tmp_path_factory.mktemp("vectors")
    for name in ("codel", "pie", "fifo"):
        packed = ROOT / "crates" / "vectors" / "data" / f"{name}.jsonl.gz"
        with gzip.open(packed, "rt", encoding="utf-8") as file:
            (_, first), *_ = scenarios(file.read())
        (folder / f"{name}.jsonl").write_text(first)
    return folder


def test_verify_of_the_projects_own_copy() -> None:
    data = sojourn(*RECORDED, ROOT / "crates" / "vectors" / "data", "--json").json()
    assert data["agrees"] is True
    counts = {d["discipline"]: d["agree"] for d in data["disciplines"]}
    assert counts == {
        "cake": 23,
        "choke": 13,
        "cobalt": 14,
        "cobalt_queue": 15,
        "codel": 17,
        "drr": 10,
        "dualpi2": 15,
        "ets": 10,
        "fifo": 2,
        "fq": 22,
        "fq_codel": 18,
        "fq_pie": 13,
        "hfsc": 12,
        "htb": 13,
        "pie": 17,
        "prio": 8,
        "red": 16,
        "sfb": 13,
        "sfq": 13,
        "tbf": 13,
    }


def test_verify(vectors: Path, tmp_path: Path) -> None:
    result = process(*RECORDED, vectors)
    assert result.status == 0, result.out
    assert "agrees" in result.out
    data = sojourn(*RECORDED, vectors, "--json").json()
    assert data["agrees"] is True
    assert all(d["known"] for d in data["disciplines"])

    packed = tmp_path / "packed" / "deep"
    packed.mkdir(parents=True)
    for i, path in enumerate(sorted(vectors.iterdir())):
        opened: Any = (gzip.open, lzma.open)[i % 2]
        with opened(packed / f"{path.name}.{('gz', 'xz')[i % 2]}", "wb") as file:
            file.write(path.read_bytes())
    assert sojourn(*RECORDED, tmp_path / "packed").status == 0


def test_verify_reports_the_difference(vectors: Path, tmp_path: Path) -> None:
    folder = tmp_path / "v"
    shutil.copytree(vectors, folder)
    path = next(folder.glob("codel*"))
    lines = path.read_text().splitlines()
    number = next(i for i, line in enumerate(lines) if i > 20 and '"v"' in line)
    row = json.loads(lines[number])
    row["v"] = 1 - row["v"] if "e" in row else (row["v"] or 0) + 1
    lines[number] = json.dumps(row)
    path.write_text("\n".join(lines) + "\n")
    result = process(*RECORDED, folder)
    assert result.status == 1
    assert f"{path.name}, line {number + 1}" in result.out
    assert sojourn(*RECORDED, folder, "--json").json()["agrees"] is False


def test_a_former_command_does_the_same_with_a_warning(vectors: Path) -> None:
    former = process("verify", vectors, "--json")
    assert former.err == (
        "`sojourn verify` is deprecated, and the next version may remove it: use "
        "`sojourn judge --level linux`\n"
    )
    assert former.out == sojourn(*RECORDED, vectors, "--json").out


def test_verify_lists_what_it_does_not_know(vectors: Path, tmp_path: Path) -> None:
    folder = tmp_path / "v"
    folder.mkdir()
    text = next(vectors.glob("codel*")).read_text().replace('"codel"', '"qfq"', 1)
    (folder / "qfq.jsonl").write_text(text)
    alone = sojourn(*RECORDED, folder)
    assert alone.status == 1
    assert "unknown, not counted" in alone.out
    shutil.copy(next(vectors.glob("codel*")), folder)
    assert sojourn(*RECORDED, folder).status == 0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", b""),
        ("a.jsonl", b"\xff\xfe"),
        ("a.jsonl", b"{}\n"),
        ("a.jsonl", b"[" * 100_000),
        ("a.jsonl", b'{"discipline": "codel"}\n'),
        ("a.jsonl.gz", b"not gzip"),
        ("a.jsonl.xz", b"not xz"),
        ("a.jsonl.gz", gzip.compress(b"{}", mtime=0)[:-3]),
    ],
)
def test_verify_counts_what_cannot_be_read_as_a_failure(
    name: str, content: bytes, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    result = sojourn(*RECORDED, tmp_path)
    assert result.status == 1
    assert name in result.out


def test_verify_of_a_cut_file(vectors: Path, tmp_path: Path) -> None:
    lines = next(vectors.glob("codel*")).read_text().splitlines()
    (tmp_path / "codel.jsonl").write_text("\n".join(lines[: len(lines) // 2]) + "\n")
    assert sojourn(*RECORDED, tmp_path).status == 1


def test_verify_counts_the_operations_that_are_listed(tmp_path: Path) -> None:
    packed = ROOT / "crates" / "vectors" / "data" / "cobalt.jsonl.gz"
    with gzip.open(packed, "rt", encoding="utf-8") as file:
        (_, text), *_ = scenarios(file.read())
    lines = text.splitlines(keepends=True)
    path = tmp_path / "cobalt" / "a.jsonl"
    path.parent.mkdir()
    path.write_text("".join(lines[:100]))
    assert sojourn(*RECORDED, tmp_path).status == 0
    for manifest in ("[", "{}", '[{"file": 1}]', '[{"file": "cobalt/a.jsonl", "ops": 99}]'):
        (tmp_path / "manifest.json").write_text(manifest)
        assert sojourn(*RECORDED, tmp_path).status == 0
    path.write_text("".join(lines[:90]))
    result = sojourn(*RECORDED, tmp_path)
    assert result.status == 1
    words = "a.jsonl, line 90: number of operations in manifest.json: recorded 99, found 89"
    assert words in result.out.replace("\\", "/")


# Interruption


def interrupted(arguments: list[str], meanwhile: str) -> Result:
    """Ctrl-C after a line of progress."""
    code = "from sojourn.cli import bars, main\n"
    code += "bars.LINE_FIRST = bars.LINE_EVERY = 0.2; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    told = ""
    while not re.search(meanwhile, told):
        line = process.stderr.readline()
        assert line, told
        told += line
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=240)
    assert "Traceback" not in err
    return Result(process.returncode, out, told + err, tuple(arguments))


def test_an_interrupted_run_keeps_what_was_measured(home: Path) -> None:
    settings = ["--set", "duration=20000s", "--set", "links.uplink.rate=1gbit"]
    result = interrupted(["run", str(home), "--json", *settings], " left")
    assert result.status == 130
    assert result.json()["complete"] is False


def test_an_interrupted_comparison_goes_on_where_it_stopped(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["compare", str(home), "--out", str(out), "--queues", "codel", "pie"]
    result = interrupted(
        [*arguments, "--seeds", "500", "--set", "duration=30s"], r"[1-9]\d*/\d+ runs"
    )
    assert result.status == 130
    assert "stopped after" in result.err
    kept = len(ResultsFolder(out).refreshed().keys)
    assert kept > 0
    again = sojourn(*arguments, "--seeds", "2", "--set", "duration=30s")
    assert again.status == 0
    assert len(ResultsFolder(out).refreshed().keys) <= kept + 4


@pytest.mark.parametrize("name", ["mqprio", "qfq", "gred"])
def test_a_discipline_that_is_not_modelled_is_no_misspelling(name: str, home: Path) -> None:
    for arguments in (["explain", name], ["compare", home, "--queues", name, "codel"]):
        done = sojourn(*arguments)
        assert done.status == 2
        assert f"`{name}` is not modelled" in done.err
        assert "did you mean" not in done.err


def test_verify_takes_the_vectors_of_a_clone(tmp_path: Path) -> None:
    done = sojourn("judge", "--level", "linux", cwd=tmp_path)
    assert done.status == 2
    assert "crates/vectors/data" in done.err
    (tmp_path / "crates/vectors/data").mkdir(parents=True)
    assert "no decision vectors" in sojourn("judge", "--level", "linux", cwd=tmp_path).err


def test_queues_without_quotes_get_a_hint(home: Path) -> None:
    done = sojourn("compare", home, "--queues", "codel", "target", "5ms")
    assert done.status == 2
    assert '--queues "codel target 5ms"' in done.err


GATEWAY = """\
duration = "20s"
warmup = "10s"
bottleneck = "line"
flows = [
{ name = "phones", from = "office", to = "isp", app = "voip", dscp = "EF" },
{ name = "guests", from = "office", to = "isp", app = "bulk", count = 2, start = "uniform 0s 1s" },
]

[links.line]
from = "office"
to = "isp"
rate = "20mbit"
netem = "delay 5ms"
queue = '''htb default 40; class 1:1 rate 18mbit; class 1:10 parent 1:1 rate 2mbit ceil 18mbit;
class 1:40 parent 1:1 rate 4mbit; qdisc parent 1:10 pfifo limit 50; filter dscp EF to 1:10'''
"""


def test_compare_proposes_another_queue_for_a_class_with_a_long_fifo(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(GATEWAY)
    found = sojourn("compare", file, "--seeds", "2")
    assert "Class 1:40 holds packets for" in found.out
    assert "Class 1:10" not in found.out
    commands = [line for line in found.out.splitlines() if line.startswith("  tc ")]
    assert len(commands) == 1
    assert "parent 1:40 handle 40: fq_codel" in commands[0]


def test_a_tree_in_front_of_a_modem_is_shaped_below_its_line(tmp_path: Path) -> None:
    """A changed class would not act: packets wait in the modem. A tree below the line is kept."""
    file = tmp_path / "gateway.toml"
    shared = GATEWAY.replace("rate 4mbit;", "rate 4mbit ceil 18mbit;") + "[deploy]\nmodem = true\n"
    file.write_text(shared.replace("18mbit", "30mbit"))
    found = sojourn("compare", file, "--seeds", "2")
    assert "and nothing else" not in found.out
    deployed = [line for line in found.out.splitlines() if line.startswith("tc ")]
    assert any("parent 10:40" in line and "fq_codel" in line for line in deployed)
    assert any("rate 19000kbit" in line for line in deployed)
    file.write_text(shared.replace("18mbit", "19mbit"))
    found = sojourn("compare", file, "--seeds", "2")
    assert "To change this class and nothing else" in found.out
    assert not [line for line in found.out.splitlines() if line.startswith("tc ")]


def test_default_queues_do_not_lift_a_limit(tmp_path: Path) -> None:
    """On a port that is faster than the limit of its users, other queues get the same limit."""
    fast = GATEWAY.replace("rate 4mbit;", "rate 4mbit ceil 18mbit;").replace("20mbit", "1gbit")
    (tmp_path / "tree.toml").write_text(fast)
    found = sojourn("compare", "tree.toml", "--seeds", "2", "--json", cwd=tmp_path).json()
    assert {row["queue"] for row in found["queues"]} == {"present", "fq_codel-in-1-40"}
    for own in ("tbf rate 5mbit burst 20kb latency 25ms", "cake bandwidth 5mbit"):
        scenario = Scenario.from_toml(fast).with_queue(own)
        for queue in default_queues(scenario):
            assert limit(scenario.with_queue(queue)) == 5_000_000
    assert limit(Scenario.from_toml(SHORT)) is None


def test_queues_that_lift_the_limit_are_named(tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text(SHORT)
    own = ("--tc", "own.tc", "--seeds", "2")
    bucket = "tc qdisc add dev eth0 root tbf rate 2mbit burst 5kb limit 9k\n"
    (tmp_path / "own.tc").write_text(bucket)
    found = sojourn("compare", "short.toml", *own, "--queues", "cake", "fq_codel", cwd=tmp_path)
    assert "limits the rate to 2mbit, and these do not: cake, fq_codel. They send" in found.err
    found = sojourn("compare", "short.toml", *own, "--queues", "cake bandwidth 2mbit", cwd=tmp_path)
    assert "limits the rate" not in found.err


def test_a_command_that_needs_linux_states_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from typer import Exit

    from sojourn.cli import app

    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(Exit) as stop:
        app._made("wire", *app.COMMANDS["wire"])
    assert stop.value.exit_code == 2
    assert "`sojourn wire` needs Linux; this system is darwin" in capsys.readouterr().err
