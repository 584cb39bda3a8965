"""Programs of one's own in a guest: they talk, fail, spin, and reach nothing else."""

import io
import json
import struct
import zipfile
from pathlib import Path

import pytest

from sojourn.lab.errors import LabError
from sojourn.lab.programs.errors import MissingProgram, NotPossible
from sojourn.lab.record import LabRecord
from sojourn.linux.engine import LinuxEngine
from sojourn.linux.kernels import Kernel
from sojourn.scenario import Scenario
from tests.cli.test_commands import sojourn
from tests.lab.conftest import described

TEXT = """
duration = "5s"

[links.line]
from = "laptop"
to = "server"
rate = "10mbit"
netem = "delay 10ms"
queue = "codel"

[[flows]]
name = "own"
from = "laptop"
to = "server"
app = "command"
"""
GET = """
import sys, urllib.request
for _ in range(3):
    data = urllib.request.urlopen(f"http://{sys.argv[1]}:{sys.argv[2]}/data").read()
    print(len(data))
"""
ECHO = """
import socket, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("", int(sys.argv[1])))
while True:
    data, client = server.recvfrom(2000)
    server.sendto(data, client)
"""
ASK = """
import os, socket, sys, tempfile, time
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.settimeout(1)
for number in range(100):
    client.sendto(bytes(100), (sys.argv[1], int(sys.argv[2])))
    assert len(client.recv(2000)) == 100
    time.sleep(0.01)
print(os.getcwd(), tempfile.gettempdir(), sorted(os.environ))
"""

pytestmark = pytest.mark.skipif(
    not Path("/usr/bin/python3").exists(), reason="not installed: /usr/bin/python3"
)


@pytest.fixture(scope="module", params=["linux", "linux-wire"])
def engine(kernel: Kernel, request: pytest.FixtureRequest) -> LinuxEngine:
    return LinuxEngine(kernel, wire=request.param == "linux-wire")


@pytest.fixture(scope="module")
def linux(kernel: Kernel) -> LinuxEngine:
    return LinuxEngine(kernel)


def scenario(folder: Path, *lines: str, more: str = "", **files: str) -> Scenario:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    file = folder / "scenario.toml"
    file.write_text(TEXT + "\n".join(lines) + f"\n{more}", encoding="utf-8")
    return Scenario.load(file)


def values(record: LabRecord, table: str = "flows") -> dict[str, list[float]]:
    return {
        name: list(struct.unpack(f"<{len(data) // 8}{'d' if dtype == 'f8' else 'q'}", data))
        for name, _, dtype, data in record.table(table)
        if not isinstance(data, list)
    }


def outputs(record: LabRecord) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(record.files["programs.zip"])) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_a_server_and_a_client_talk_and_are_measured(engine: LinuxEngine, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(500_000))
    made = scenario(
        tmp_path, 'client = "python3 get.py {to} {port}"',
        'server = "python3 -m http.server {port}"', 'start = "1s"', get=GET,
    )  # fmt: skip
    record = engine.simulate(made.plan, 1)
    assert not record.violations
    server, client = described(record)["own_programs"]
    assert (server["stopped"], server["killed"]) == (True, False)
    assert (client["status"], client["stopped"]) == (0, False)
    assert client["started"] == pytest.approx(1e9, rel=0.01)
    assert 2.3e9 < client["ended"] < 2.7e9
    assert outputs(record)["command-client-own.0.out"] == "500000\n" * 3
    flow = values(record)
    assert 1_500_000 < flow["bytes"][0] < 1_502_000
    assert flow["goodput"][0] == pytest.approx(flow["bytes"][0] * 8 / 5)
    assert (flow["retransmissions"], flow["packet_loss"]) == ([0], [0.0])
    assert flow["start"][0] == pytest.approx(1, rel=0.01)
    # Its packets wait in the queue of the way back, and take 11.2 ms from host to host.
    waited = values(record, "queues")["sojourn_mean"][1]
    assert flow["delay_mean"][0] == pytest.approx(waited + 0.0112, rel=0.15)
    again = engine.simulate(made.plan, 1)
    assert again.trace_hash == record.trace_hash


def test_datagrams_are_measured_too(engine: LinuxEngine, tmp_path: Path) -> None:
    made = scenario(
        tmp_path, 'client = "python3 ask.py {to} {port}"', 'server = "python3 echo.py {port}"',
        ask=ASK, echo=ECHO,
    )  # fmt: skip
    record = engine.simulate(made.plan, 1)
    assert not record.violations
    flow = values(record)
    assert (flow["sent"], flow["received"], flow["goodput"]) == ([200], [200], [0.0])
    assert flow["udp_goodput"][0] == pytest.approx(200 * 100 * 8 / 5)
    # The folder is the scenario's, the environment the same everywhere.
    folder, temporary, names = outputs(record)["command-client-own.0.out"].split(" ", 2)
    assert (folder, temporary) == (str(tmp_path), "/tmp")
    assert "'PYTHONHASHSEED'" in names
    assert "USER" not in names


def test_flows_without_a_port_between_the_same_hosts_are_measured_together(
    engine: LinuxEngine, tmp_path: Path
) -> None:
    made = scenario(
        tmp_path, 'client = "python3 ask.py {to} 7000"', 'server = "python3 echo.py 7000"',
        ask=ASK, echo=ECHO,
        more='[[flows]]\nfrom = "laptop"\nto = "server"\napp = "command"\nname = "other"\n'
        'client = "python3 -c 1"',
    )  # fmt: skip
    record = engine.simulate(made.plan, 1)
    flow = values(record)
    assert all(value != value for value in flow["received"])
    assert values(record, "summary")["udp_goodput"] == [pytest.approx(200 * 100 * 8 / 5)]


def test_iperf3_measures_what_we_measure(engine: LinuxEngine, tmp_path: Path) -> None:
    if not Path("/usr/bin/iperf3").exists():
        pytest.skip("not installed: iperf3")
    made = scenario(
        tmp_path, 'client = "iperf3 -J -c {to} -p {port} -t 3"',
        'server = "iperf3 -s -1 -p {port}"', 'tcp = "reno"',
    )  # fmt: skip
    record = engine.simulate(made.plan, 1)
    assert not record.violations
    told = json.loads(outputs(record)["command-client-own.0.out"])
    assert told["end"]["sender_tcp_congestion"] == "reno"
    # Ours has the connection on which the two iperf3 speak about the test, too.
    received = values(record)["bytes"][0]
    assert received == pytest.approx(told["end"]["sum_received"]["bytes"], rel=0.01)
    assert values(record)["retransmissions"] == [told["end"]["sum_sent"]["retransmits"]]
    assert received * 8 / 3 > 8.5e6


@pytest.mark.parametrize("control", ["bbr", "reno"])
def test_the_kernel_s_control_is_the_flow_s(
    linux: LinuxEngine, tmp_path: Path, control: str
) -> None:
    if control not in linux.kernel.abilities().controls:
        pytest.skip(f"not installed: {control}")
    ask = (
        "import socket, sys\n"
        "s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "print(s.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(bytes(1)))\n"
    )
    made = scenario(
        tmp_path, f'tcp = "{control}"', 'client = "python3 ask.py {to} {port}"',
        'server = "python3 -m http.server {port}"', ask=ask,
    )  # fmt: skip
    record = linux.simulate(made.plan, 1)
    assert outputs(record)["command-client-own.0.out"] == f"b'{control}'\n"


def test_options_of_sockets_are_refused(linux: LinuxEngine, tmp_path: Path) -> None:
    made = scenario(tmp_path, 'tcp = "cubic mss 1000"', 'client = "python3 -c 1"')
    with pytest.raises(NotPossible, match=r"own.0: `mss`: only"):
        linux.check(made.plan, 1)


def test_a_program_that_is_not_there_is_named(linux: LinuxEngine, tmp_path: Path) -> None:
    made = scenario(tmp_path, 'client = "no-such-program {to}"', 'server = "./no/such {port}"')
    with pytest.raises(NotPossible) as caught:
        linux.check(made.plan, 1)
    assert {problem.asked for problem in caught.value.problems} == {"no-such-program", "./no/such"}
    assert "own.0: `no-such-program`: no" in str(caught.value)
    # A program of this machine that no guest sees.
    hidden = tmp_path.parent / "hidden"
    hidden.write_text("#!/bin/sh\n", encoding="utf-8")
    hidden.chmod(0o755)
    made = scenario(tmp_path, f'client = "{hidden}"')
    with pytest.raises(NotPossible, match="a guest has only /usr"):
        linux.check(made.plan, 1)


def test_a_changed_file_is_refused(linux: LinuxEngine, tmp_path: Path) -> None:
    made = scenario(tmp_path, 'client = "python3 own.py"', own="1\n")
    linux.check(made.plan, 1)
    other = scenario(tmp_path, 'client = "python3 own.py"', own="2\n")
    assert other.digest() != made.digest()
    with pytest.raises(NotPossible, match=r"own.py`: the file"):
        linux.check(made.plan, 1)


def test_a_program_that_fails_makes_the_run_invalid(linux: LinuxEngine, tmp_path: Path) -> None:
    made = scenario(tmp_path, 'client = \'python3 -c "print(1); raise SystemExit(\\"sorry\\")"\'')
    record = linux.simulate(made.plan, 1)
    [violation] = record.violations
    assert "own.0: client: " in violation
    assert "exit status 1: sorry" in violation
    assert "programs.zip" in violation
    assert outputs(record)["command-client-own.0.err"] == "sorry\n"


@pytest.mark.usefixtures("linux")
@pytest.mark.parametrize("status", [0, 3])
def test_the_command_ends_like_its_programs(tmp_path: Path, status: int) -> None:
    scenario(tmp_path, f"client = 'python3 -c \"raise SystemExit({status})\"'")
    file = tmp_path / "scenario.toml"
    for command in (["run"], ["lab", "run"]):
        result = sojourn(*command, file, "--engine", "linux")
        assert result.status == (1 if status else 0), result.err
        if status:
            assert "exit status 3" in result.out


def test_a_server_that_does_not_listen_is_reported(linux: LinuxEngine, tmp_path: Path) -> None:
    server = "server = 'python3 -c \"raise SystemExit({port})\"'"
    made = scenario(tmp_path, 'client = "python3 -c 1"', server)
    with pytest.raises(LabError, match=r"server of `own.0`: `python3.*ended before it listened"):
        linux.simulate(made.plan, 1)


def test_a_program_that_does_not_end_is_ended(linux: LinuxEngine, tmp_path: Path) -> None:
    own = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\ntime.sleep(100)\n"
    made = scenario(tmp_path, 'client = "python3 own.py"', 'stop = "2s"', own=own)
    record = linux.simulate(made.plan, 1)
    assert not record.violations
    [client] = described(record)["own_programs"]
    assert (client["stopped"], client["killed"], client["status"]) == (True, True, -9)
    assert client["ended"] == pytest.approx(3e9, rel=0.01)


@pytest.mark.parametrize("own", ["while True: pass\n", "import os\nos.fork()\nwhile True: pass\n"])
def test_a_program_that_spins_is_named(linux: LinuxEngine, tmp_path: Path, own: str) -> None:
    made = scenario(tmp_path, 'client = "python3 spin.py {number}"', 'start = "1s"', spin=own)
    named = r"from 0\.9 s: client of `own.0`: `python3 spin.py 0` is in an endless loop"
    with pytest.raises(LabError, match=named):
        linux.simulate(made.plan, 1)


def test_programs_reach_nothing_else_of_this_machine(linux: LinuxEngine, tmp_path: Path) -> None:
    folder = tmp_path / "scenario"
    folder.mkdir()
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    own = f"""
import os, socket
def tried(what):
    try:
        return what()
    except OSError as error:
        return type(error).__name__
for path in ({str(tmp_path / "secret")!r}, {str(Path.home())!r}, "/proc/1/root/out", "/job.json"):
    print(path, tried(lambda: os.listdir(path) if os.path.isdir(path) else open(path).read(3)))
print(tried(lambda: open("written", "w")), tried(lambda: open("/usr/written", "w")))
print(tried(lambda: open("/tmp/written", "w").close()))
print(tried(lambda: socket.create_connection(("192.0.2.1", 80), 1)))
print(os.listdir("."))
"""
    made = scenario(folder, 'client = "python3 own.py"', own=own)
    record = linux.simulate(made.plan, 1)
    said = outputs(record)["command-client-own.0.out"].splitlines()
    assert said[0].endswith((" FileNotFoundError", " PermissionError"))
    assert said[1].endswith((" FileNotFoundError", " PermissionError", " []"))
    assert said[4] == "OSError OSError"
    assert said[5] == "None"
    assert said[6] == "OSError"
    assert sorted(said[7].strip("[]").split(", ")) == ["'own.py'", "'scenario.toml'"]
    assert not (folder / "written").exists()


def test_missing_is_an_error_of_its_own_in_real_time(tmp_path: Path) -> None:
    from sojourn.lab.programs import prepare

    made = scenario(tmp_path, 'client = "no-such-program {to}"')
    with pytest.raises(MissingProgram, match=r"such as \./server"):
        prepare(made.plan, 1)
