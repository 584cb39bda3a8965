"""`sojourn tc`, and the commands that `compare` prints: for the machine that is the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_commands import SHORT, sojourn
from tests.cli.test_new import Terminal

DOWN = SHORT.replace('queue = "', 'reverse.queue = "', 1).replace(
    'flows]]\nfrom = "home"\nto = "isp"', 'flows]]\nfrom = "isp"\nto = "home"'
)
"""The subject is the line towards the home, on which the flows send."""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "up.toml").write_text(SHORT)
    (tmp_path / "down.toml").write_text(DOWN)
    return tmp_path


def test_ingress_is_refused_on_an_uplink(files: Path) -> None:
    result = sojourn("tc", "up.toml", "--ingress", "--machine", "home", cwd=files)
    assert result.status == 2
    assert "`home` sends on `uplink`" in result.err
    assert "--set bottleneck=uplink.reverse" in result.err
    assert "ifb" not in result.out
    unknown = sojourn("tc", "up.toml", "--ingress", cwd=files)
    assert unknown.status == 2
    assert "--machine NODE; `home` sends on `uplink`" in unknown.err


def test_a_download_passes_an_ifb(files: Path) -> None:
    result = sojourn("tc", "down.toml", "--ingress", "--machine", "home", cwd=files)
    assert result.status == 0, result.err
    assert "redirect dev ifb-eth0" in result.out
    as_sqm = sojourn("tc", "down.toml", "-m", "home", "--format", "sqm", cwd=files)
    assert "uci set sqm.sojourn_eth0.download=" in as_sqm.out
    data = sojourn("tc", "down.toml", "-m", "home", "--format", "networkd", "--json", cwd=files)
    assert list(data.json()["files"]) == ["/etc/systemd/system/sojourn-ingress-eth0.service"]


def test_compare_prints_for_the_machine_of_the_file(files: Path) -> None:
    with (files / "down.toml").open("a") as file:
        file.write('\n[deploy]\nmachine = "home"\ninterface = "wan0"\n')
    result = sojourn("compare", "down.toml", "--queues", "codel", "--seeds", "2", cwd=files)
    assert result.status == 0, result.err
    assert "Where: on `home`," in result.out
    assert "towards `isp` (uplink.reverse)" in result.out
    assert "tc qdisc replace dev wan0 handle ffff: ingress" in result.out
    assert "# tc qdisc del dev wan0 ingress" in result.out
    assert "replace dev wan0 root" not in result.out


def test_a_terminal_asks_whose_machine_it_is(files: Path) -> None:
    it = Terminal(files, "tc", "down.toml")
    it.until("Which machine is yours at `uplink.reverse`, isp or home? [isp]:")
    it.type("router\n")
    assert "answer isp or home" in it.until("[isp]:")
    it.type("home\n")
    it.until("redirect dev ifb-eth0")
    assert it.end() == 0


PAGES = """
duration = "8s"
warmup = "2s"
links.line = { from = "isp", to = "home", rate = "5mbit", queue = "pfifo limit 100p" }

[[flows]]
name = "web"
from = "isp"
to = "home"
app = "web preset pareto-2"
count = 4

[[flows]]
from = "isp"
to = "home"
app = "bulk"
count = 2
"""
"""Pages with sizes of a heavy tail and downloads: two runs decide nothing."""


def test_where_nothing_is_decided_no_commands_are_printed(tmp_path: Path) -> None:
    (tmp_path / "pages.toml").write_text(PAGES)
    compared = ["compare", "pages.toml", "--queues", "pfifo limit 100p", "fq_codel", "--seeds", "2"]
    result = sojourn(*compared, "--out", "kept", cwd=tmp_path)
    assert result.status == 0, result.err
    assert "Inconclusive." in result.out
    assert "To use" not in result.out
    assert "tc qdisc replace" not in result.out
    text = " ".join(result.out.split())
    assert "as --seeds 8" in text
    assert "current queue, pfifo," in text
    assert not sojourn(*compared, "--json", cwd=tmp_path).json()["decided"]
    assert sojourn("report", "kept", cwd=tmp_path).status == 0
    page = (tmp_path / "kept" / "report.html").read_text()
    assert "No commands: with 2 seeds" in page
    assert "tc qdisc replace" not in page


def test_a_queue_that_is_as_good_may_stay(files: Path) -> None:
    compared = ["compare", "up.toml", "--queues", "codel", "codel limit 999p", "--seeds", "2"]
    told = set()
    for own in ("codel", "codel limit 999p"):
        result = sojourn(*compared, "--set", f"links.uplink.queue={own}", cwd=files)
        assert result.status == 0, result.err
        told.add(
            f"{own}, the current queue, performs equally well: no change is needed" in result.out
        )
    assert told == {True, False}  # one of the two is the best
    better = sojourn("compare", "up.toml", "--queues", "codel", "--seeds", "2", cwd=files)
    assert "the current queue" not in better.out
