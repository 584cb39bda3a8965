"""Scripts of `tc` on the command line: as trees, varied, compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_commands import SHORT, sojourn

SCRIPT = """\
UPLINK=${UPLINK:-900}
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:20 htb rate ${UPLINK}kbit
tc qdisc add dev eth0 parent 1:20 handle 20: sfq perturb 10
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 192.0.2.1 flowid 1:20
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "up.toml").write_text(SHORT)
    (tmp_path / "old.sh").write_text(SCRIPT)
    (tmp_path / "new.sh").write_text(SCRIPT.replace("sfq perturb 10", "codel"))
    return tmp_path


def test_queues_are_shown_as_trees_in_the_words_of_the_file(files: Path) -> None:
    result = sojourn("tc", "old.sh", "--show", "--var", "UPLINK=700", cwd=files)
    assert result.out == (
        "eth0:\n"
        "  htb default 20\n"
        "    1:20  rate 700kbit; sfq perturb 10\n"
        "        from protocol ip pref 1 u32 match ip dst 192.0.2.1\n"
        "        from all other packets\n"
    )


def test_an_unknown_variable_is_an_error_with_the_nearest(files: Path) -> None:
    result = sojourn("run", "up.toml", "--tc", "old.sh", "--var", "UPLIN=5", cwd=files)
    assert result.status == 2
    assert "no variable `UPLIN`" in result.err
    assert "`UPLINK`?" in result.err


def test_a_variable_of_a_script_is_varied(files: Path) -> None:
    options = ("--tc", "old.sh", "--seeds", "2", "--by", "goodput")
    result = sojourn("compare", "up.toml", *options, "--vary", "UPLINK=300,600", cwd=files)
    assert result.status == 0
    assert "UPLINK 600 has" in result.out
    assert "UPLINK 300" in result.out


def test_two_scripts_are_compared(files: Path) -> None:
    options = ("--tc", "old.sh", "--seeds", "2", "--by", "goodput", "--json")
    result = sojourn("compare", "up.toml", *options, "--queues", "new.sh", cwd=files)
    assert [one["queue"].split(" ; ")[2] for one in result.json()["queues"]] in (
        ["qdisc parent 1:20 codel", "qdisc parent 1:20 sfq perturb 10"],
        ["qdisc parent 1:20 sfq perturb 10", "qdisc parent 1:20 codel"],
    )


def test_filters_of_a_discipline_without_classes_are_not_shown_as_classes(files: Path) -> None:
    (files / "cake.sh").write_text(
        "tc qdisc add dev eth0 root handle 1: cake bandwidth 10mbit\n"
        "tc filter add dev eth0 parent 1: u32 match ip dport 22 0xffff flowid 1:4\n"
    )
    result = sojourn("tc", "cake.sh", "--show", cwd=files)
    assert result.out == "eth0:\n  cake bandwidth 10mbit\n"


def test_a_compared_file_with_netem_says_why_it_is_no_queue(files: Path) -> None:
    (files / "wan.sh").write_text("tc qdisc add dev eth0 root netem delay 9ms\n")
    result = sojourn("compare", "up.toml", "--queues", "wan.sh", "codel", cwd=files)
    assert result.status == 2
    assert "All compared queues have the same path: give the file by --tc" in result.err
