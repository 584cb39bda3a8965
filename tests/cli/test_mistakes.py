"""Mistakes that people make, each with the words of the answer: what was found, what is allowed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sojourn
from sojourn.cli.app import app
from sojourn.lab.wire.watch import View
from sojourn.rcvbuf.advice import Seen, tell
from sojourn.study import Study, compare, load
from tests.cli.test_commands import SHORT
from tests.cli.test_commands import sojourn as command
from tests.lab.test_wire_watch import counters, link, shown
from tests.rcvbuf.test_advice import seen, snapshot

ONE_SEED = "must be at least 2; found 1"
SCENARIO = "must be a Scenario; found 'home.toml': write Scenario.load('home.toml')"
TREE = "links.uplink.queue=htb default 10"
STORE = "store={nodes=['isp'],clients='home',coordinator='nearest'}"
RED = "links.uplink.queue=red limit 400kb min 100kb max 50kb avpkt 1000 bandwidth 20mbit"
SEARCH = ("tune", "search", "home.toml", "--queue", "codel")
GIVEN = ("run", "home.toml", "--set")

COMMANDS: dict[str, tuple[tuple[str, ...], int, tuple[str, ...]]] = {
    "htb without classes": ((*GIVEN, TREE), 0, ("htb without classes limits no rate",)),
    "drr without classes": ((*GIVEN, "links.uplink.queue=drr"), 0, ("drops all packets",)),
    "one seed": (("compare", "home.toml", "--seeds", "1"), 2, (ONE_SEED,)),
    "no number": (("compare", "home.toml", "--seeds", "ten"), 2, ("a whole number, at least 2",)),
    "negative seed": (("run", "home.toml", "--seed", "-1"), 2, ("must be at least 0; found -1",)),
    "great port": (("rcvbuf", "--port", "99999"), 2, ("must be 1 to 65535; found 99999",)),
    "no port": (("rcvbuf", "--port", "80x"), 2, ("a whole number, 1 to 65535; found 80x",)),
    "no seconds": (("wire", "top", "--every", "soon"), 2, ("a number, 0.05 to 3600; found soon",)),
    "study of a file": (("study", "home.toml"), 2, ("`sojourn study run home.toml`",)),
    "lab of a file": (("lab", "home.toml"), 2, ("`sojourn lab run home.toml`",)),
    "command of a file": (("home.toml",), 2, ("`sojourn run home.toml`",)),
    "device": (("tc", "home.toml", "--dev", "eth0"), 2, ("--dev", "did you mean --interface?")),
    "rate": (("tc", "home.toml", "--rate", "5mbit"), 2, ("--set links.NAME.rate=VALUE",)),
    "queue": (("run", "home.toml", "--queue", "codel"), 2, ("--set links.NAME.queue=VALUE",)),
    "queue of tc": (("tc", "home.toml", "--queue", "codel"), 2, ("--set links.NAME.queue=VALUE",)),
    "duration": (("run", "home.toml", "--duration", "5s"), 2, ("--set duration=VALUE",)),
    "misspelt option": (("compare", "home.toml", "--sedes", "5"), 2, ("did you mean --seeds?",)),
    "long word": (("a." * 200,), 2, ("No such command",)),
    "long queue": (("compare", "home.toml", "--queues", "codel target 0.5ms " + "x" * 300), 2,
                   ("--queues: unknown word",)),
    "open quote": (("run", "bad.toml"), 2, ("column 12 has no closing quote", "bad.toml:1")),
    "exponent": ((*GIVEN, "duration=1e9s"), 2, ("write 1000000000s",)),
    "unit apart": ((*GIVEN, "links.uplink.queue=codel target 5 ms"), 2, ("write `5ms`",)),
    "distribution": ((*GIVEN, "links.uplink.netem=delay 9ms 5ms distribution gauss"), 2,
                     ("unknown distribution `gauss`", "known: uniform, normal, pareto")),
    "one letter": ((*GIVEN, "flows.bulk.to=c"), 2, ("unknown host `c`", "known: home, isp")),
    "queues": (("compare", "home.toml", "--queues", "fq_codle"), 2,
               ("--queues: unknown queue `fq_codle`: did you mean `fq_codel`?",)),
    "sizes": ((*GIVEN, RED), 2, ("`max` (50kb) must not be below `min` (100kb)",)),
    "no results": (("report", "."), 2, ("manifest.json is missing",)),
    "searched word": ((*SEARCH, "--vary", "targt 1ms..5ms"), 2,
                      ("vary: `codel` has no word `targt`: did you mean `target`?",)),
    "no kernel": (("run", "home.toml", "--engine", "linux"), 2,
                  ("build one with `sojourn linux build`", "without root")),
    "two meanings": (("new", "--down", "100mbit", "--up", "20Mbps"), 2, ("20mbit", "160mbit")),
    "key of a table": (("explain", "store.coordinator"), 0, ("[store]", "round-robin", "dc-aware")),
    "key": (("explain", "overhead"), 0, ("[links]", "cake")),
    "value of a key": (("explain", "sqm"), 0, ("[deploy]", "format", "networkd")),
    "word of a queue": (("explain", "docsis"), 0, ("cake", "conservative")),
    "misspelt key": (("explain", "overhed"), 2, ("did you mean `overhead`?",)),
    "coordinator": ((*GIVEN, STORE), 2, ('coordinator policy "nearest"; allowed: round-robin',)),
    "metric of stores": (("compare", "home.toml", "--by", "latency"), 2,
                         ("a metric of stores, but the scenario has none", "delay_p95")),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home.toml").write_text(SHORT)
    (tmp_path / "bad.toml").write_text('duration = "5s\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))


@pytest.mark.parametrize("case", COMMANDS)
def test_a_command_says_what_was_found_and_what_is_allowed(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sojourn.linux.kernels.kernels", list)
    arguments, status, parts = COMMANDS[case]
    result = command(*arguments)
    assert result.status == status, result.err
    text = " ".join((result.out + result.err).split())
    for part in parts:
        assert part in text
    assert "drawing" not in text
    assert "store_" not in text


CALLS: dict[str, tuple[Callable[[sojourn.Scenario], object], str]] = {
    "one queue": (lambda s: compare(s, "codel"), "`queues` must be a list of texts or classes"),
    "path": (lambda _: compare("home.toml", ["codel"]), SCENARIO),  # type: ignore[arg-type]
    "study of a path": (lambda _: Study("home.toml"), SCENARIO),  # type: ignore[arg-type]
    "one seed": (lambda s: compare(s, ["codel"], seeds=1), ONE_SEED),
    "misspelt metric": (lambda s: s.run().metrics["voip.moss"], "did you mean `voip.mos`?"),
    "misspelt unit": (lambda s: s.run().units["goodpt"], "did you mean `goodput`?"),
    "misspelt engine": (lambda s: s.run(engine="wir"), "did you mean `wire`?"),
    "two engines": (lambda s: s.run(engine="sim,linux"), "one engine makes a run"),
    "misspelt argument": (lambda s: compare(s, ["codel"], sedes=3), "did you mean `seeds`?"),  # type: ignore[call-arg]
    "misspelt format": (lambda s: s.to_tc(form="sqn"), "did you mean 'sqm'?"),  # type: ignore[arg-type]
    "text for a number": (lambda s: s.run("1"), "`seed` must be a whole number; found '1'"),  # type: ignore[arg-type]
    "undeclared class": (lambda s: s.with_queue(int), "int is not declared as a policy"),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_call_says_what_was_found_and_what_is_allowed(case: str) -> None:
    call, words = CALLS[case]
    with pytest.raises((ValueError, TypeError)) as caught:
        call(sojourn.Scenario.load("home.toml"))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert type(caught.value).__module__.startswith("sojourn.")


Ranged = tuple[tuple[str, ...], str, float | None, float | None, bool]


def options() -> Iterator[Ranged]:
    """Yields command, option, least and greatest value of each option with a number."""
    from typer.main import get_command

    def walk(group: Any, path: tuple[str, ...]) -> Iterator[Ranged]:
        for name, inner in getattr(group, "commands", {}).items():
            yield from walk(inner, (*path, name))
        for one in getattr(group, "params", ()):
            kind = getattr(one, "type_descriptor", None)
            if kind is not None and kind.annotation in (int, float) and one.opts[0].startswith("-"):
                info = kind.parameter_info
                yield path, one.opts[0], info.min, info.max, kind.annotation is int

    yield from walk(get_command(app), ())


def test_every_option_with_a_number_says_its_range() -> None:
    found = list(options())
    assert len(found) > 40
    for path, option, least, most, whole in found:
        wrong = {"x1": "a whole number" if whole else "a number"}
        if least is not None:
            wrong[f"{least - 1}"] = f"{least:g}"
        if most is not None:
            wrong[f"{most + 1}"] = f" to {most:g}" if most < 1e6 else " to "
        for value, part in wrong.items():
            result = command(*path, f"{option}={value}")
            last = result.err.strip().splitlines()[-1]
            assert result.status == 2
            assert option in last
            assert part in last
            assert last.endswith(f"found {value}")


def test_a_file_with_a_study_is_a_scenario_too(tmp_path: Path) -> None:
    study = '\n[study]\nseeds = 2\n[study.vary]\nqueue = ["codel", "pie"]\n'
    (tmp_path / "both.toml").write_text(SHORT + study)
    (tmp_path / "named.toml").write_text('scenario = "home.toml"\n' + study)
    for file in ("both.toml", "named.toml"):
        assert "goodput" in command("run", file).out
        assert "codel" in command("compare", file, "--queues", "codel", "pie", "--seeds", "2").out
        assert sojourn.Scenario.load(file).plan == sojourn.Scenario.load("home.toml").plan
    assert "[study] is ignored here" in command("run", "both.toml").err
    changed = command(
        "study",
        "run",
        "both.toml",
        "--set",
        "study.seeds=3",
        "--set",
        "links.uplink.rate=5mbit",
        "--json",
    )
    assert changed.json()["runs"] == 6
    assert load("both.toml", {"links.uplink.rate": "5mbit"}).scenario.bottleneck_rate == 5_000_000
    refused = command("study", "run", "both.toml", "--set", "links.uplink.queue=codel")
    assert refused.status == 2
    assert "the study varies links.uplink.queue" in refused.err


@pytest.mark.parametrize("width", [60, 80, 110, 160])
def test_a_live_view_of_80_columns_shows_whole_values(width: int) -> None:
    view = View("link")
    busy = {
        "queue": "fq_codel limit 10240p target 5ms",
        "backlog_packets": 124,
        "backlog_bytes": 187_240,
    }
    dropped = {"early": 123_456}
    view.update(counters(1.0, link("uplink", 100, **busy, dropped=dropped, sojourn=0.0523)))
    text = shown(view, width)
    assert max(map(len, text.splitlines())) <= width
    for part in ("uplink", "fq_codel", "backlog", "sojourn", "124 p", "52.3 ms", "sends"):
        assert part in text
    assert ("lost" in text) == (width >= 110)


def test_advice_from_sparse_samples_names_the_interval() -> None:
    lost = seen(drops={"buffer": 500, "memory": 0, "checksum": 0, "other": 0}, bursts=1, worst=500)
    for period, named in ((0.01, False), (1.0, True)):
        known = Seen()
        known.update(snapshot(lost) | {"seconds": 100 * period, "looks": 100})
        assert any("--port PORT samples every 10 ms" in line for line in tell(known, None)) == named


CELL = """
import sojourn
from sojourn.study import compare
LIMIT = 20
def full(queue): return len(queue) > LIMIT
@sojourn.queue("mine")
class Mine:
    def __init__(self, params, draws): pass
    def enqueue(self, now, packet, queue):
        return sojourn.DROP if full(queue) else sojourn.ACCEPT
    def dequeue(self, now, queue): return queue.pop()
scenario = sojourn.Scenario.load("home.toml")
found = compare(scenario, [Mine, "codel"], seeds=2)
print(found.choices)
"""


def test_a_class_of_a_script_or_notebook_is_compared(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(CELL)
    done = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, check=True)
    assert done.stdout == "['Mine', 'codel']\n"
    shell = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        f"assert InteractiveShell.instance().run_cell({CELL!r}).success"
    )
    done = subprocess.run([sys.executable, "-c", shell], capture_output=True, text=True, check=True)
    assert "['Mine', 'codel']" in done.stdout
    kept = list((tmp_path / "sojourn" / "own").glob("*/mine.py"))
    assert len(kept) == 1
    assert "LIMIT = 20" in kept[0].read_text()
    typed = CELL.partition("found =")[0] + "scenario.with_queue(Mine)\n"
    done = subprocess.run(
        [sys.executable, "-c", typed], capture_output=True, text=True, check=False
    )
    assert "the source of `Mine` is not available here" in done.stderr
