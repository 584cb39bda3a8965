"""Congestion controls of one's own, through the public interfaces."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sojourn import Scenario, ScenarioError, Study, udp
from sojourn._core import PolicyError
from sojourn.cli.app import app
from sojourn.lab.programs import NotPossible, prepare
from sojourn.study import Results, StudyError
from tests.lab.plans import flow, plan
from tests.lab.test_programs_stack import KERNEL
from tests.own.commands import invoke

POLICIES = Path(__file__).parents[2] / "examples" / "policies"
AIMD = f"{POLICIES}/aimd.py:Aimd"

Write = Callable[..., Path]


def scenario(tcp: str, queue: str = "pfifo limit 60p", duration: str = "5s") -> Scenario:
    """Transfers in both directions over one link with losses of its own."""
    return Scenario(
        duration=duration,
        links={
            "up": {
                "from": "a",
                "to": "b",
                "rate": "20mbit",
                "netem": "delay 15ms loss 0.1%",
                "queue": queue,
            }
        },
        flows=[
            {"from": "a", "to": "b", "app": "bulk", "count": 3, "tcp": tcp},
            {"from": "b", "to": "a", "app": "bulk", "tcp": tcp},
        ],
    )


def control(
    on_ack: str = "pass", reduce: str = "return max(flight // 2, 2 * window.mss)", words: str = ""
) -> str:
    """A file with a class of these two methods."""
    return f"""import sojourn


@sojourn.congestion("mine"{words})
class Mine:
    def __init__(self, params, draws):
        self.draws, self.n = draws, 0

    def on_ack(self, now, ack, window):
        self.n += 1
        {on_ack}

    def reduce(self, now, cause, flight, window):
        {reduce}
"""


GROW = "if ack.may_grow and ack.cwnd_limited: window.cwnd += window.mss * ack.acked / window.cwnd"


@pytest.mark.parametrize(
    ("words", "queue"),
    [
        ("profile linux-6", "pfifo limit 60p"),
        ("profile linux-6 ecn classic", "codel target 2ms ecn"),
        ("profile linux-6 sack off timestamps off recovery newreno", "pfifo limit 20p"),
        ("profile rfc", "pfifo limit 60p"),
    ],
)
def test_reno_in_python_equals_reno(words: str, queue: str) -> None:
    mine, ours = scenario(f"{AIMD} {words}", queue), scenario(f"reno {words}", queue)
    for seed in (1, 2):
        run = mine.run(seed)
        assert run.trace_hash == ours.run(seed).trace_hash
        assert run.metrics["drops"] + run.metrics["marks"] > 0


def test_its_words_may_be_mixed_with_those_of_tcp() -> None:
    made = json.loads(scenario(f"{AIMD} decrease 0.7 iw 3 ecn classic").plan_json)
    tcp = made["groups"][0]["transport"]
    assert tcp["congestion"]["spec"]["params"] == {"increase": 1.0, "decrease": 0.7}
    assert (tcp["initial_window"], tcp["ecn"]) == (3, "classic")
    assert list(made["sources"]) == [tcp["congestion"]["spec"]["source"]]
    for words, message in (
        ("decreese 0.7", "did you mean `decrease`"),
        ("mss 10", "`mss` must be from 64"),
        ("decrease 5ms", "needs a number"),
    ):
        with pytest.raises(ScenarioError, match=message) as raised:
            scenario(f"{AIMD} {words}")
        assert raised.value.problems[0].key == "flows.0.tcp"
    assert "decrease" in invoke("explain", AIMD)


def test_a_class_of_another_family_is_refused(write: Write) -> None:
    message = "aimd.py:Aimd must be a queue discipline here; it is a congestion control"
    with pytest.raises(ScenarioError, match=message):
        scenario("reno", queue=AIMD)
    queue = f"{POLICIES}/codel.py:Codel"
    with pytest.raises(ScenarioError, match="congestion control here"):
        scenario(queue)
    write(control(words=", mss=1"))
    with pytest.raises(ScenarioError, match="`mss` is a"):
        scenario("mine.py:Mine")
    write(control().replace("cause, flight, window", "flight"))
    with pytest.raises(ScenarioError, match=r"must be reduce\(self, now, cause, flight, window\)"):
        scenario("mine.py:Mine")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (control("1 // (self.n < 50)"), r"in on_ack of ACK 49: mine.py, line 11 .*ZeroDivision"),
        (control("window.cwnd = 0"), r"line 11 .*cwnd must be a number from 1448 to \d+, found 0"),
        (control("window.cwnd = float('nan')"), r"cwnd must be .* found nan"),
        (control("window.cwnd = None"), r"cwnd must be .* found None"),
        (control("window.ssthresh = 1"), r"ssthresh must be a number from 2896 to \d+, found 1"),
        (control("window.pacing_rate = 0"), r"pacing_rate must be .* found 0"),
        (control("window.mss = 1"), r"line 11 .*mss"),
        (control(GROW, "return None"), r"reduce after ACK \d+: the new ssthresh .* None"),
        (
            control(GROW, "return 5"),
            r"`reduce` returned 5 bytes; the new ssthresh must be at least two",
        ),
        (control("window.cwnd += window.mss"), r"cwnd was raised from .*cwnd_limited|may_grow"),
        (
            control(GROW + "\n        if ack.in_recovery: window.cwnd = window.mss"),
            r"cwnd was lowered from .* while it recovers from losses",
        ),
    ],
)
def test_a_fault_stops_the_run_and_says_where(write: Write, text: str, message: str) -> None:
    write(text)
    with pytest.raises(PolicyError, match=message) as raised:
        scenario("mine.py:Mine").run(1)
    assert str(raised.value).startswith("mine.py:Mine failed at ")


def test_a_control_that_models_the_path_sets_its_window(write: Write) -> None:
    fixed = "window.cwnd = 20 * window.mss"
    write(control(fixed, "return 2 * window.mss", ", owns_window=True"))
    run = scenario("mine.py:Mine", "pfifo limit 1000p").run(1)
    # Three times 20 segments in flight, 30 ms round trip and their own queue.
    assert 0.9 < run.metrics["utilisation"] <= 1
    assert run.metrics["drops"] == 0


def test_marks_and_rates_and_pacing(write: Write) -> None:
    write(
        control(
            "self.rate = ack.rate or self.rate\n"
            "        if ack.marked: window.cwnd = max(window.cwnd - ack.marked // 2, window.mss)\n"
            f"        {GROW}",
            words=", answers_marks=True",
        )
        + """
    rate = 0

    def on_start(self, window):
        window.pacing_rate = 125_000

    def on_recovery_exit(self, window):
        window.cwnd = window.ssthresh

    def on_undo(self):
        pass

    def on_restart(self, now, idle, window):
        self.n = 0

    def state(self):
        return {"acks": self.n}
"""
    )
    paced = scenario("mine.py:Mine", "codel target 1ms ecn")
    assert json.loads(paced.plan_json)["groups"][0]["transport"]["ecn"] == "accurate"
    # Three flows of 1 Mbit/s payload each on 20 Mbit/s.
    assert 0.14 < paced.run(1).metrics["utilisation"] < 0.17
    free = scenario("mine.py:Mine pacing off", "codel target 1ms ecn").run(1)
    assert free.metrics["marks"] > 0
    assert free.metrics["utilisation"] > 0.5


def test_a_fault_loses_no_other_run(write: Write, tmp_path: Path) -> None:
    write(control("1 // (self.n < 50)"))
    study = Study(scenario("reno")).vary({"flows.0.tcp": ["mine.py:Mine", "reno"]}).seeds(2)
    with pytest.raises(StudyError, match=r"seed 1 failed: mine.py:Mine(.|\n)*2 runs failed"):
        study.run(tmp_path / "out", workers=1)
    assert len(Results.open(tmp_path / "out").runs()) == 2


def test_results_are_keyed_by_the_file(write: Write) -> None:
    write(control())
    first = scenario("mine.py:Mine")
    write(control(GROW))
    assert scenario("mine.py:Mine").digest() != first.digest()


def test_draws_are_of_the_run_and_the_connection(write: Write) -> None:
    write(control("if ack.may_grow and ack.cwnd_limited and self.draws.uniform() < 0.5: "
                  "window.cwnd += window.mss"))  # fmt: skip
    hashes = [scenario("mine.py:Mine").run(seed).trace_hash for seed in (1, 1, 2)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_compare_varies_it(write: Write) -> None:
    write(
        'duration = "2s"\n[links.up]\nfrom = "a"\nto = "b"\nrate = "5mbit"\nqueue = "pfifo"\n'
        '[[flows]]\nfrom = "a"\nto = "b"\napp = "bulk"\n',
        "home.toml",
    )
    write(control(GROW))
    text = invoke("compare", "home.toml", "--vary", "flows.0.tcp=reno,mine.py:Mine iw 4",
                  "--queues", "codel", "--seeds", "2", "--json")  # fmt: skip
    assert "mine.py:Mine iw 4" in text


def test_check_finds_shortens_and_shows(write: Write) -> None:
    assert "keeps its contract" in invoke("check", AIMD, "--schedules", "60")
    write(control("if ack.may_grow: window.cwnd += window.mss"))
    text = invoke("check", "mine.py:Mine", status=1)
    assert "shortened to 1:" in text
    assert "(`ack.cwnd_limited` is false, RFC 7661)" in text
    write(control(GROW, "return max(window.cwnd // 2, 0)"))
    text = invoke("check", "mine.py:Mine", status=1)
    assert "least two segments" in text
    write(
        control(GROW + " * random.random()").replace("import sojourn\n", "import random, sojourn\n")
    )
    assert "draw from `draws`" in invoke("check", "mine.py:Mine", status=1)
    write(control("self.held = (n for n in ())"))
    assert "copy.deepcopy" in invoke("check", "mine.py:Mine", status=1)


def test_the_kernel_takes_none() -> None:
    with pytest.raises(NotPossible) as raised:
        prepare(plan(flow("bulk", tcp=AIMD, name="up")), 1, kernel=KERNEL)
    refusal = str(raised.value.problems[0])
    assert re.search("simulation .*`sojourn udp`, not .*kernel", refusal)


def test_files_move_under_it(write: Write, tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    (tmp_path / "data.bin").write_bytes(data)
    folder = tmp_path / "in"
    folder.mkdir()
    server = udp.serve(udp.Serving(folder, "127.0.0.1:0", quota=1 << 30, connections=4))
    send = ["udp", "send", str(tmp_path / "data.bin"), server.address, "--congestion"]
    try:
        sent = json.loads(invoke(*send, f"{AIMD} decrease 0.7", "--json"))
        assert sent["bytes"] == len(data)
        assert (folder / "data.bin").read_bytes() == data
        write(control("1 // (self.n < 5)"))
        failed = CliRunner().invoke(app, [*send, "mine.py:Mine", "--name", "other"])
        assert failed.exit_code == 2
        assert "in on_ack of ACK 4: mine.py, line 11" in failed.output
        for text, message in (
            ("mine.py:Mine iw 3", "iw"),
            (f"{POLICIES}/codel.py:Codel", "must be a congestion control here"),
            ("vegas", "use cubic, reno, bbr, or a class of your own"),
        ):
            refused = CliRunner().invoke(app, [*send, text])
            assert refused.exit_code == 2
            assert message in refused.output
    finally:
        server.stop()
