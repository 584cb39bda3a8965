"""Access to the controller, dry runs, and the page, on real Open vSwitch."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.outputs import agreeing
from tests.lb.bench import Bench

pytestmark = pytest.mark.slow


def test_a_dry_run_changes_nothing(fresh: Bench) -> None:
    before = [line.split(" actions=")[1] for line in fresh.rules("0x77")]
    process = fresh.start("--dry-run", ready=False)
    assert process.wait(40) == 0, process.errors()
    said = agreeing("lb serve", json.loads(process.output()))
    assert {"p-c1", "p-c2", "p-s1", "p-s2"} <= set(said["ports"])
    assert len(said["would_write"]) == 2 + 2 + 2
    assert not fresh.rules()
    assert [line.split(" actions=")[1] for line in fresh.rules("0x77")] == before


def test_rules_stay_until_they_are_removed(fresh: Bench, tmp_path: Path) -> None:
    before = [line.split(" actions=")[1] for line in fresh.rules("0x77")]
    state = ["--state", str(tmp_path / "flows")]
    fresh.start(*state)
    assert set(fresh.once(count=2)) == {"s1", "s2"}
    fresh.stop()
    assert len(fresh.rules()) >= 4, "those of flows go by themselves, when these are silent"
    # The wire that its backlogs were read from may be gone: that matters no more.
    gone = ["--backlog", "wire:/nowhere:a,b", "--remove"]
    process = fresh.start(*state, *gone, policy="iqlb", ready=False)
    assert process.wait(40) == 0, process.errors()
    assert agreeing("lb serve", json.loads(process.output()))["removed"] >= 4
    assert not fresh.rules()
    assert not (tmp_path / "flows").exists()
    assert [line.split(" actions=")[1] for line in fresh.rules("0x77")] == before


def test_the_page(fresh: Bench) -> None:
    fresh.start("--status", "8099")
    fresh.once(count=3)
    get = (
        "import sys, urllib.request as u\n"
        "for path in ('', 'status.json'):\n"
        "    print(u.urlopen('http://127.0.0.1:8099/' + path).read().decode())\n"
        "r = u.Request('http://127.0.0.1:8099/', headers={'Host': 'evil.example'})\n"
        "try: u.urlopen(r)\n"
        "except u.HTTPError as e: print(e.code)\n"
        "try: u.urlopen('http://127.0.0.1:8099/', data=b'x')\n"
        "except u.HTTPError as e: print(e.code)\n"
    )
    process = fresh.switch_host.spawn([sys.executable, "-c", get])
    assert process.wait(20) == 0, process.errors()
    *page_lines, status, first, second = process.output().decode().strip().splitlines()
    page, codes = "".join(page_lines), [first, second]
    assert "s1" in page
    assert "10.0.0.12" in page
    assert json.loads(status)["decisions"]["made"] == 3
    assert "backlog" not in page, "round-robin looks at none"
    assert 'class="wide"' in page
    assert codes == ["403", "501"], "by this machine's name only, and read-only"


def certificate(folder: Path, name: str, authority: str | None) -> None:
    """A key and a certificate, of an authority or of its own."""
    key, request, made = (str(folder / f"{name}.{end}") for end in ("key", "csr", "pem"))
    subject = ["-subj", f"/CN={name}"]
    new = ["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, *subject]
    if authority is None:
        command = [*new, "-x509", "-days", "2", "-out", made]
        subprocess.run(command, check=True, capture_output=True)
        return
    subprocess.run([*new, "-out", request], check=True, capture_output=True)
    by = ["-CA", str(folder / f"{authority}.pem"), "-CAkey", str(folder / f"{authority}.key")]
    sign = ["openssl", "x509", "-req", "-in", request, *by, "-CAcreateserial", "-days", "2"]
    subprocess.run([*sign, "-out", made], check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("not installed: openssl")
    folder = tmp_path_factory.mktemp("tls")
    for name, authority in (("ours", None), ("theirs", None)):
        certificate(folder, name, authority)
    for name, authority in (("controller", "ours"), ("switch", "ours"), ("stranger", "theirs")):
        certificate(folder, name, authority)
    return folder


def speaks_tls(bench: Bench, folder: Path, name: str) -> None:
    """Lets the switch connect by TLS, with this certificate."""
    files = [str(folder / f"{name}.key"), str(folder / f"{name}.pem"), str(folder / "ours.pem")]
    bench.switch.configure("set-ssl", *files)
    bench.switch.control("ssl:127.0.0.1:6653")


def test_beyond_this_machine(fresh: Bench, certificates: Path) -> None:
    tls = ["--listen", "0.0.0.0:6653"]
    for option, file in (("key", "controller.key"), ("cert", "controller.pem"), ("ca", "ours.pem")):
        tls += [f"--tls-{option}", str(certificates / file)]
    own = fresh.switch.configure("get", "bridge", "br0", "datapath_id").strip().strip('"')
    try:
        # A switch with another's certificate is not heard at all.
        speaks_tls(fresh, certificates, "stranger")
        controller = fresh.start(*tls, "--datapath", own, ready=False)
        fresh.until(lambda look: look["counts"]["connections"] == 0)
        controller.wait_output("a connection from 127.0.0.1 ended", 20, stream=1)
        speaks_tls(fresh, certificates, "switch")
        fresh.until(lambda look: look["ready"] and all(s["up"] for s in look["servers"]))
        assert set(fresh.once(count=2)) == {"s1", "s2"}
        fresh.stop()
        # One with the right certificate, but not on the list.
        controller = fresh.start(*tls, "--datapath", "00000000000000ff", ready=False)
        controller.wait_output("is not allowed to connect", 20, stream=1)
        look = fresh.until(lambda look: not look["ready"])
        assert look["switch"] is None
    finally:
        fresh.switch.configure("del-ssl")
        fresh.switch.control("tcp:127.0.0.1:6653")
