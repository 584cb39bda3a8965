"""`sojourn rcvbuf`: reports, the live view, metrics, the systemd unit, fake systemd."""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from rich.console import Console

from sojourn import rcvbuf, serving
from sojourn.rcvbuf import metrics, service
from sojourn.rcvbuf.view import View
from tests.cli.outputs import agreeing
from tests.waiting import until

from .test_tuner import DEFAULT, POLICY
from .tools import MAIN, Server, free_port, of

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        yield made


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MAIN, "rcvbuf", *words], capture_output=True, text=True, check=False, timeout=60
    )


def test_json_reports_and_a_clean_end(server: Server, tmp_path: Path) -> None:
    words = ["--port", str(server.port), "--policy", POLICY, "--state", str(tmp_path)]
    running = subprocess.Popen(
        [*MAIN, "rcvbuf", *words, "--json", "--every", "0.1"], stdout=subprocess.PIPE, text=True
    )
    assert running.stdout
    try:
        while True:
            server.burst(200)
            now = agreeing("rcvbuf", json.loads(running.stdout.readline()))
            found = of(now, server.inode)
            if found and found["before"] == DEFAULT:
                break
        running.send_signal(signal.SIGTERM)
        rest = running.stdout.read().splitlines()
        assert running.wait() == 0
    finally:
        running.kill()
        running.wait()
        running.stdout.close()
    last = agreeing("rcvbuf", json.loads(rest[-1]))
    assert [outcome["action"] for outcome in last["restored"]] == ["restored"]
    assert server.ask()[0]["size"] == DEFAULT


def test_words_that_cannot_be_used(tmp_path: Path) -> None:
    state = ["--state", str(tmp_path)]
    for words, what in (
        ([], "Usage"),
        (["--dry-run"], "--pid PID"),
        (["--pid", "1", "--systemd", "x"], "exclude each other"),
        (["--all", "--port", "9"], "cannot be combined"),
        (["--pid", str(2**22 + 1), *state], "no process"),
        (["--port", "9", "--policy", "elastik", *state], "did you mean `elastic`"),
        (["--port", "9", "--interval", "2s", *state], "interval"),
        (["--port", "9", "--metrics", "x:9", *state], "127.0.0.1:9441"),
        (["--systemd", "a b", *state], "is not a unit"),
    ):
        done = command(*words)
        assert done.returncode == 2, (words, done)
        assert what in done.stderr + done.stdout, (words, done)
        assert "Traceback" not in done.stderr


def test_a_unit_without_systemd_is_refused(tmp_path: Path) -> None:
    if Path("/run/systemd/system").exists():
        pytest.skip("not installed: a machine without systemd")
    done = command("--systemd", "rsyslog.service", "--state", str(tmp_path))
    assert done.returncode == 2
    assert "systemd" in done.stderr


def test_follows_a_unit_to_a_new_main_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`systemctl` is played by a script: the unit has no group here, so its main process counts."""
    script = tmp_path / "systemctl"
    script.write_text(
        "#!/bin/sh\necho LoadState=loaded\necho ControlGroup=\n"
        f"echo MainPID=$(cat {tmp_path}/main)\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with Server() as first:
        (tmp_path / "main").write_text(str(first.pid))
        tuner = rcvbuf.Tuner(
            rcvbuf.Settings(unit="x.service", rescan=0.1, state=tmp_path / "state")
        )
        with tuner, Server() as second:
            until(lambda: of(tuner.snapshot(), first.inode))
            (tmp_path / "main").write_text(str(second.pid))
            first.process.kill()
            first.process.wait()
            until(lambda: of(tuner.snapshot(), second.inode))
            assert not tuner.over


def _scrape(address: str) -> dict[tuple[str, str], float]:
    from prometheus_client.parser import text_string_to_metric_families

    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as page:
        text = page.read().decode()
    return {
        (sample.name, sample.labels.get("reason", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics(server: Server, tmp_path: Path) -> None:
    with rcvbuf.Tuner(rcvbuf.Settings(policy=POLICY, pid=server.pid, state=tmp_path)) as tuner:
        until(lambda: of(tuner.snapshot(), server.inode))
        with metrics.Server(("127.0.0.1", 0), tuner.snapshot) as listener:

            def dropped() -> Any:
                server.burst(300)
                return _scrape(listener.address)["sojourn_rcvbuf_drops_total", "buffer"]

            until(dropped)
            found = _scrape(listener.address)
            assert found["sojourn_rcvbuf_sockets", ""] == 1
            assert found["sojourn_rcvbuf_tunable", ""] == 1
            assert found["sojourn_rcvbuf_size_bytes", ""] > DEFAULT
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://{listener.address}/")
            assert _status(listener.address, "evil.example") == 403
            assert _status(listener.address, "") == 403
            # Clients that ask nothing take the places; the next is turned away.
            host, _, port = listener.address.rpartition(":")
            idle = [
                socket.create_connection((host, int(port)))
                for _ in range(metrics.Server.connections)
            ]
            try:
                until(lambda: not _let_in(listener.address))
            finally:
                for one in idle:
                    one.close()
            until(lambda: _let_in(listener.address))


def _status(address: str, host: str) -> int:
    connection = HTTPConnection(address, timeout=10)
    connection.request("GET", "/metrics", headers={"Host": host})
    return connection.getresponse().status


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1:9441", True),
        ("[::1]:9441", True),
        ("localhost", True),
        ("server:9441", True),
        ("192.0.2.1", True),
        ("evil.example:9441", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False),
        ("server.evil.example", False),
        ("evil.example#@127.0.0.1", False),
        ("[::1", False),
        ("", False),
    ],
)
def test_names_of_other_sites_are_refused(host: str, own: bool) -> None:
    """A page of another site reaches this machine by a name that resolves to it."""
    assert serving.is_own(host, {"server"}) == own


def test_all_sockets_of_the_machine_are_exported(tmp_path: Path) -> None:
    words = ["--all", "--metrics", "127.0.0.1:0", "--interval", "50ms", "--rescan", "100ms"]
    with (
        Server("127.0.0.1", free_port()) as server,
        subprocess.Popen(
            [*MAIN, "rcvbuf", *words, "--state", str(tmp_path)], stderr=subprocess.PIPE, text=True
        ) as running,
    ):
        assert running.stderr is not None
        address = running.stderr.readline().strip().removeprefix("metrics at http://")
        address = address.removesuffix("/metrics")
        assert address.startswith("127.0.0.1:")

        def exported() -> bool:
            server.burst(400)
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as page:
                lines = page.read().decode().splitlines()
            own = [line for line in lines if f'local="127.0.0.1:{server.port}"' in line]
            lost = [one for one in own if "drops_total" in one and 'reason="buffer"' in one]
            return any(
                f'pid="{server.pid}"' in one and 'unit="' in one and 'container="' in one
                and float(one.rpartition(" ")[2]) > 0
                for one in lost
            )  # fmt: skip

        until(exported)
        running.send_signal(signal.SIGINT)
        running.communicate()
        assert server.ask()[0]["size"] == DEFAULT


def _let_in(address: str) -> bool:
    try:
        return bool(_scrape(address))
    except OSError:
        return False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9441", ("127.0.0.1", 9441)),
        ("0.0.0.0:1", ("0.0.0.0", 1)),
        ("[::1]:9441", ("::1", 9441)),
    ],
)
def test_addresses(text: str, expected: tuple[str, int]) -> None:
    assert metrics.address(text) == expected
    for wrong in ("", "x", "1.2.3.4:", "host:1", "70000", "1:2:3", "-1", "1.2.3.4:+5"):
        with pytest.raises(ValueError, match="ADDRESS:PORT"):
            metrics.address(wrong)


def test_the_view(server: Server, tmp_path: Path) -> None:
    view = View(f"port {server.port}")
    with rcvbuf.Tuner(rcvbuf.Settings(policy=POLICY, pid=server.pid, state=tmp_path)) as tuner:

        def drawn(width: int = 140) -> str:
            server.burst(100)
            now = tuner.snapshot()
            console = Console(width=width, record=True, file=open(os.devnull, "w"))  # noqa: PTH123, SIM115
            console.print(view.render(now, width, 20))
            console.file.close()
            return console.export_text()

        until(lambda: "213 kB" in drawn() and "█" in drawn())
        text = drawn()
        assert f"127.0.0.1:{server.port}" in text
        assert "CPU" in text
        assert re.search(r"[▁▂▃▄▅▆▇█]{2}", text)
        # In a narrow terminal the numbers are what is left.
        rows = drawn(60).splitlines()
        (row,) = [row for row in rows if f"127.0.0.1:{server.port} " in row]
        assert "MB" in row
        assert "213 kB" in row
        assert "…" not in row


def test_the_unit_file(tmp_path: Path) -> None:
    done = command("unit")
    assert done.returncode == 0
    text = done.stdout
    assert "@SOJOURN@" not in text
    for line in (
        "AmbientCapabilities=CAP_SYS_PTRACE CAP_NET_ADMIN",
        "CapabilityBoundingSet=CAP_SYS_PTRACE CAP_NET_ADMIN",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
    ):
        assert line in text.splitlines()
    # This installation may be in a home folder, which no other user can read.
    assert re.search(r"^(DynamicUser=yes|User=\w+)$", text, re.MULTILINE)
    assert "DynamicUser=yes" in service.unit(Path("/bin/true"), []).splitlines()


def test_the_unit_runs_from_a_closed_virtual_environment(tmp_path: Path) -> None:
    """A program that only its user can read is run as this user, in /tmp without a private one."""
    home = tmp_path / "home"
    program = home / "venv" / "bin" / "sojourn"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    opened = service.unit(program, [])
    assert "DynamicUser=yes" in opened.splitlines() or not _is_open(tmp_path)
    home.chmod(0o700)
    user = pwd.getpwuid(os.getuid()).pw_name
    for closed in (service.unit(program, []), service.unit(Path("/bin/true"), [program])):
        assert f"User={user}" in closed.splitlines()
        assert "DynamicUser=yes" not in closed.splitlines()
        assert ("PrivateTmp=no" in closed) == str(program).startswith(("/tmp/", "/var/tmp/"))
    assert "DynamicUser=yes" in service.unit(Path("/bin/true"), []).splitlines()


def _is_open(path: Path) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in [path, *path.parents])


def test_the_rules_and_the_panel_use_exported_metrics(server: Server, tmp_path: Path) -> None:
    with rcvbuf.Tuner(rcvbuf.Settings(policy=POLICY, pid=server.pid, state=tmp_path)) as tuner:
        until(lambda: of(tuner.snapshot(), server.inode))
        text = metrics.page(tuner.snapshot()).decode()
    exported = set(re.findall(r"^(sojourn_rcvbuf_\w+)", text, re.MULTILINE))
    exported.add("sojourn_rcvbuf_memory_pressure_ratio")
    rules = command("alerts").stdout
    panel = json.loads(command("dashboard").stdout)
    alerts = [line for line in rules.splitlines() if line.strip().startswith("- alert:")]
    assert len(alerts) >= 4
    assert len(panel["panels"]) >= 6
    for words in (rules, json.dumps(panel)):
        used = set(re.findall(r"sojourn_rcvbuf_\w+", words))
        assert used <= exported, used - exported
    (group,) = yaml.safe_load(rules)["groups"]
    assert all({"alert", "expr", "labels", "annotations"} <= rule.keys() for rule in group["rules"])


@pytest.mark.needs("systemd-analyze")
def test_systemd_understands_the_unit_file(tmp_path: Path) -> None:
    text = command("unit").stdout
    # The program need not be on root's path here; what matters is that each line is understood.
    text = re.sub(r"^(Exec\w+=)\S+", r"\1/bin/true", text, flags=re.MULTILINE)
    instance = tmp_path / "sojourn-rcvbuf@x.service"
    instance.write_text(text)
    (tmp_path / "x.service").write_text("[Service]\nExecStart=/bin/true\n")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(instance)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
    )
    ours = [line for line in done.stderr.splitlines() if "sojourn-rcvbuf" in line]
    assert ours == [], done.stderr


def test_help_names_what_there_is() -> None:
    done = command("--help")
    assert done.returncode == 0
    for word in ("--pid", "--port", "--systemd", "--dry-run", "--watch", "restore", "unit"):
        assert word in done.stdout
