"""Suites: every scenario can be run, every discipline takes part, one table comes of it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from sojourn import _core, suites
from sojourn.show.suite import best, delay, print_suite
from sojourn.study import Table
from sojourn.suites.disciplines import buffered, every


@pytest.mark.parametrize("name", suites.NAMES)
def test_every_scenario_is_whole(name: str) -> None:
    """Each file and each variant is a scenario; names are short and differ."""
    suite = suites.load(name)
    assert len({entry.short for entry in suite.entries}) == len(suite.entries)
    listed = {Path(str(f)).name for f in suite.folder.iterdir() if str(f).endswith(".toml")}
    assert {entry.file for entry in suite.entries} == listed - {"suite.toml"}
    for entry in suite.entries:
        for scenario in suite.scenarios(entry).values():
            rate = scenario.bottleneck_rate
            limit = json.loads(_core.parse_queue(f"pfifo limit {entry.limit}p"))["limit"]
            assert getattr(scenario.bottleneck_link.params.queue, "limit", None) == limit, (
                entry.file
            )
            assert set(suite.queues(scenario, entry)) == set(every(rate, entry.limit))


def test_every_discipline_takes_part() -> None:
    """All disciplines of the engine are in the table, except the pfifo that counts bytes."""
    known = {table["name"] for table in json.loads(_core.describe())["queue"]}
    used = {text.split()[0] for text in every(10_000_000, 400).values()}
    assert known - used == {"bfifo"}


def test_all_have_one_buffer() -> None:
    """Where packets are counted, as many; where memory is, that of as many full frames."""
    for name, text in every(10_000_000, 400).items():
        params = json.loads(_core.parse_queue(text))
        count = params.get("limit", 0)
        if tree := params.get("tree"):  # drr and mq share the buffer among their classes
            is_shared = name in ("drr", "mq")
            shares = len(tree["classes"]) if is_shared else 1
            count = (tree["txqueuelen"] - is_shared) * shares
        memory = params.get("memlimit", params.get("memory_limit", 0))
        sizes = {400, 400 * 1514}
        assert count in sizes or memory == 400 * 2304, (name, params)


def test_a_queue_in_words_has_the_same_buffer() -> None:
    """Unless it says itself what fits: a default limit would be another buffer than the others'."""
    for text, size, value in (
        ("codel target 2ms interval 40ms", "limit", 400),
        ("cobalt target 2ms", "memlimit", 400 * 2304),
        ("fq_codel memory_limit 64kb", "memory_limit", 65_536),
        ("codel limit 50p", "limit", 50),
    ):
        assert json.loads(_core.parse_queue(buffered(text, 10_000_000, 400)))[size] == value, text
    with pytest.raises(_core.WordError, match="did you mean `codel`"):
        buffered("codle target 2ms", 10_000_000, 400)


@pytest.mark.parametrize("width", [40, 80, 400])
def test_a_suites_table_is_whole_in_any_terminal(width: int) -> None:
    """Columns that do not fit come below; no figure is cut."""
    queues = [*every(10_000_000, 400), "codel target 2ms interval 40ms limit 100p"]
    frame = pd.DataFrame(
        {"scenario": "udp", "variant": "", "queue": q, "seed": 1, "sojourn_p95": 0.1234}
        | {"utilisation": 0.999, "loss": 0.0, "goodput": 1e7}
        for q in queues
    )
    chosen = suites.load("rfc7928").only(["udp"])
    found = suites.Outcome(chosen, Table(frame, ("scenario", "variant", "queue")))
    console = Console(width=width, record=True, file=io.StringIO())
    print_suite(found, console)
    text = console.export_text()
    assert text.count("123/100*") == len(queues)
    assert max(map(len, text.splitlines())) <= width


def test_a_suite_runs_into_one_table(tmp_path: Path) -> None:
    """Scenario x variant x queue x seed; the terminal table has a column a queue."""
    suite = suites.load("rfc7928").only(["udp", "both"])
    queues = ["pfifo", "codel", "fq_codel limit 50p"]
    found = suite.run(2, tmp_path, queues)
    assert len(found.table) == 2 * len(queues) * 2
    assert found.queues == queues
    console = Console(width=120, record=True, file=io.StringIO())
    print_suite(found, console)
    text = console.export_text()
    assert all(queue.split()[0] in text for queue in queues)
    assert "fq_codel limit 50p" not in best(found, "udp") or "codel" not in best(found, "udp")
    rows = json.loads(json.dumps(found.as_dict(), allow_nan=False))["rows"]
    assert {row["scenario"] for row in rows} == {"udp", "both"}
    # Both ends have the queue under test: what pfifo's buffer lets wait, CoDel does not.
    both = found.frame[found.frame["scenario"] == "both"].set_index("queue")["sojourn_p95"]
    assert both["codel"] < both["pfifo"]


def test_unknown_names_are_refused_with_the_nearest_one() -> None:
    """With the nearest known one."""
    with pytest.raises(suites.SuiteError, match="did you mean `rfc7928`"):
        suites.load("rfc792")
    with pytest.raises(suites.SuiteError, match="did you mean `heavy`"):
        suites.load("rfc7928").only(["heavyy"])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0000123, "0.01"), (0.00123, "1.2"), (0.0456, "46"), (float("nan"), "-")],
)
def test_delays_are_short(seconds: float, text: str) -> None:
    """Two digits that matter."""
    assert delay(seconds) == text
