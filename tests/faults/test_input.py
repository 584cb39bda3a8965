"""Users may write anything: the message names the place, and nothing is begun."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sojourn.scenario import Scenario, ScenarioError
from sojourn.study import StudyError, load
from tests.cli.test_commands import sojourn
from tests.faults.tools import SHORT, STUDY

HUGE = "1" + "0" * 30


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("duration", "0s"),
        ("duration", "-1s"),
        ("duration", f"{HUGE}s"),
        ("duration", "1e400s"),
        ("duration", "nans"),
        ("duration", 5),
        ("duration", True),
        ("warmup", "5s"),
        ("links.uplink.rate", "0mbit"),
        ("links.uplink.rate", "-1mbit"),
        ("links.uplink.rate", f"{HUGE}mbit"),
        ("links.uplink.rate", "20"),
        ("links.uplink.rate", "mbit"),
        ("links.uplink.rate", float("inf")),
        ("links.uplink.netem", "delay -5ms"),
        ("links.uplink.netem", f"delay {HUGE}s"),
        ("links.uplink.netem", "loss 101%"),
        ("links.uplink.netem", "loss -1%"),
        ("links.uplink.netem", "lose 1%"),
        ("links.uplink.queue", "codle"),
        ("links.uplink.queue", "codel target -5ms"),
        ("links.uplink.queue", "codel limit -1p"),
        ("links.uplink.queue", f"codel limit {HUGE}p"),
        ("links.uplink.queue", "codel target"),
        ("links.uplink.queue", "red min 9p"),
        ("links.uplink.queue", ""),
        ("links.uplink.speed", "1mbit"),
        ("flows.bulk.count", 0),
        ("flows.bulk.count", -1),
        ("flows.bulk.count", 10**12),
        ("flows.bulk.count", 2**70),
        ("flows.bulk.tcp", "cubik"),
        ("flows.bulk.app", "bulc"),
        ("flows.bulk.start", "99s"),
        ("flows.bulk.start", "uniform 2s 1s"),
        ("flows.bulk.to", "nowhere"),
        ("nonsense", "x"),
        ("observe.series", "-1s"),
    ],
)
def test_numbers_and_words_that_cannot_be(key: str, value: Any) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_toml(SHORT).replace({key: value})
    text = str(caught.value)
    parts = [part for part in key.split(".") if part not in ("bulk", "links")]
    assert any(part in text for part in parts), text
    assert len(text) < 2000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "FILE", "--seed", HUGE], "from 0 to 2^64 - 1"),
        (["run", "FILE", "--seed", "-1"], "--seed"),
        (["run", "FILE", "--seed", "1.5"], "--seed"),
        (["compare", "FILE", "--seeds", "1"], "--seeds"),
        (["compare", "FILE", "--seeds", HUGE], "at most 1000000 seeds"),
        (["compare", "FILE", "--workers", "0"], "--workers"),
        (["compare", "FILE", "--by", "x" * 5000], "no metric"),
        (["compare", "FILE", "--subject-to", "goodput >= " + "9" * 5000], "is longer than"),
        (["tune", "search", "FILE", "--trials", "0"], "--trials"),
        (["tune", "search", "FILE", "--time", "-1s"], "-1s"),
        (["tune", "redopt", "--rate", "0mbit", "--rtt", "1ms", "--flows", "3"], "rate"),
        (["tune", "redopt", "--rate", "1mbit", "--rtt", "1ms", "--flows", "nan"], "flows"),
        (["tune", "redopt", "--rate", "1mbit", "--rtt", "1ms", "--flows", "inf"], "flows"),
        (["advise", "store", "FILE"], "no [store]"),
        (["store", "measure", "FILE", "--contact-points", "127.0.0.1:x"], "no [store]"),
        (["wire", "run", "--between", "a"], "--between"),
        (["wire", "run", "--between", "a,b", "--mtu", "-1"], "must be 68 to 9000 bytes"),
        (["wire", "run", "--between", "a,b", "--duration", f"{HUGE}s"], "time"),
        (["wire", "set", "uplink", "rate", "1mbit", "rate", "2mbit"], "`rate` is named twice"),
        (["lb", "serve", "--policy", "x", "--address", "1", "--server", "y"], "x"),
        (["rcvbuf", "--port", "99999"], "--port"),
        (["udp", "serve", "--dir", ".", "--quota", "-1mb"], "-1mb"),
        (["udp", "send", "nowhere"], "nowhere"),
        (["paper", "rrda", "--on", "tcp://127.0.0.1:1"], "omit --on"),
        (["paper", "taildrop", "--quick", "--full"], "exclude each other"),
        (["study", "suite", "rfc7982"], "did you mean"),
    ],
)
def test_options_that_cannot_be(arguments: list[str], words: str, tmp_path: Path) -> None:
    file = tmp_path / "home.toml"
    file.write_text(SHORT)
    (tmp_path / "here").mkdir()
    given_ = [str(file) if a == "FILE" else a for a in arguments]
    result = sojourn(*given_, cwd=tmp_path / "here")
    assert result.status == 2, result.err
    assert result.out == ""
    assert words in " ".join(result.err.split())
    assert list((tmp_path / "here").iterdir()) == []


BROKEN = [
    "",
    "[study",
    "[study]\nname = 3",
    "[study]\nseeds = -1",
    "[study]\nseeds = " + HUGE,
    "[study]\nseeds = [1, 1]",
    "[study]\nwhen = 1979-05-27",
    "a = " + "[" * 5000,
    "a." * 200 + "b = 1",
    "[[study]]",
    'scenario = "\\u0000"\n[study]',
    'scenario = "."\n[study]',
    'x = """\n[study]\n"""\n[study]\n',
    "[study.vary]\n" + "\n".join(f'"k{i}" = [{i}]' for i in range(300)),
    "\ufeff[study]",
]


@settings(max_examples=60)
@given(st.one_of(st.sampled_from(BROKEN), st.text(max_size=60), st.integers(0, len(STUDY))))
@example("[study]\nname = '''\n[x]\n'''\n")
def test_any_study_file(tmp_path_factory: pytest.TempPathFactory, text: str | int) -> None:
    """Any text, and a study truncated or altered anywhere, is a study or is refused."""
    file = tmp_path_factory.getbasetemp() / "any.toml"
    broken = text if isinstance(text, str) else STUDY[:text] + "\x00\xff]"[text % 3] + STUDY[text:]
    file.write_text(broken, encoding="utf-8", errors="surrogatepass")
    try:
        load(file)
    except (ScenarioError, StudyError) as error:
        assert str(error)


def test_study_files_that_are_no_text(tmp_path: Path) -> None:
    for content in (b"\xff\xfe\x00", b"\x80", b"x" * 300_000):
        (tmp_path / "study.toml").write_bytes(content)
        with pytest.raises(ScenarioError, match=r"study\.toml"):
            load(tmp_path / "study.toml")
