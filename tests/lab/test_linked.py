"""Two hosts joined by a link in words, and the fixture of pytest."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from sojourn.lab import LabError, LinkedHosts
from sojourn.lab.errors import DeadlinePassed
from sojourn.scenario import ScenarioError
from tests.conftest import ROOT
from tests.lab.conftest import possible

PING = ["ping", "-n", "-c", "3", "-i", "0.2"]


@pytest.fixture
def hosts() -> LinkedHosts:
    return LinkedHosts("rate 20mbit netem 'delay 15ms' queue codel")


@pytest.mark.alone
@pytest.mark.needs("ping")
def test_packets_take_the_links_delay_in_both_directions(hosts: LinkedHosts) -> None:
    if not possible("user"):
        pytest.skip("not installed: the permission to make user namespaces")
    with hosts:
        said = hosts.client.run([*PING, hosts.server.address])
        times = [
            float(line.split("time=")[1].split()[0])
            for line in said.splitlines()
            if "time=" in line
        ]
        assert len(times) == 3
        assert min(times) >= 30.0
        assert hosts.server.run(["true"]) == ""
        with pytest.raises(LabError, match=r"failed .status 3.: no luck"):
            hosts.client.run(["sh", "-c", "echo no luck >&2; exit 3"])
        with pytest.raises(DeadlinePassed):
            hosts.client.run(["sleep", "60"], timeout=0.1)


@pytest.mark.parametrize(
    ("words", "error", "why"),
    [
        ("rate 20mbit speed 3", LabError, "unknown word `speed`; allowed: rate, netem, queue"),
        ("rate", LabError, "`rate` has no value"),
        ("rate 1mbit rate 2mbit", LabError, "given twice"),
        ("queue codel", ScenarioError, "rate"),
        ("rate 1mbit queue codell", ScenarioError, "did you mean `codel`"),
        ("rate '1mbit", LabError, "No closing quotation"),
    ],
)
def test_wrong_words_are_explained(words: str, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        LinkedHosts(words)


def test_words_of_each_direction() -> None:
    plan = LinkedHosts("rate 20mbit queue codel reverse.rate 2mbit reverse.queue pie")._plan
    there, back = plan.links
    assert (there.params.rate, back.params.rate) == (20_000_000, 2_000_000)
    assert (there.params.queue.TAG, back.params.queue.TAG) == ("codel", "pie")


@pytest.mark.alone
def test_the_fixture_joins_two_hosts_in_a_users_tests(tmp_path: Path) -> None:
    if not possible("user"):
        pytest.skip("not installed: the permission to make user namespaces")
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent(
            """
            import pytest

            @pytest.mark.link("rate 20mbit netem 'delay 15ms' queue codel")
            def test_route(link):
                assert link.client.run(["cat", "/proc/net/dev"]).count("eth0") == 1
                assert (link.client.address, link.server.address) == ("10.0.0.1", "10.0.0.2")

            def test_without_a_link(link):
                pass

            @pytest.mark.link("rate 20mbit speed 3")
            def test_wrong(link):
                pass
            """
        ),
        encoding="utf-8",
    )
    plugin = ["-p", "no:cacheprovider", "--strict-markers"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugin, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "PYTEST_PLUGINS": ""},
    )
    assert "1 passed, 2 errors" in done.stdout, done.stdout
    assert "needs a link: @pytest.mark.link(" in done.stdout
    assert "unknown word `speed`" in done.stdout
