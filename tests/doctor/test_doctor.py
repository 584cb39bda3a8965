"""`sojourn doctor`: what it finds, what it advises, and that it leaves nothing behind."""

from __future__ import annotations

import platform
import re
import threading
import time
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from sojourn.doctor import (
    GROUPS,
    Finding,
    Group,
    examination,
    modules,
    network,
    parts,
    programs,
    sockets,
)
from sojourn.doctor.examination import Machine, Report, within
from sojourn.doctor.libraries import asked, library
from sojourn.lab import syscalls
from sojourn.lab.kernel import qdiscs
from sojourn.lab.machine import needs, packages
from sojourn.lab.machine.journal import Journal
from sojourn.lab.machine.packages import DEBIAN, FAMILIES, PACKAGES
from tests.cli.test_commands import process, sojourn

RELEASES = {
    "debian": ({"ID": "debian"}, "sudo apt-get install"),
    "ubuntu": ({"ID": "ubuntu", "ID_LIKE": "debian"}, "sudo apt-get install"),
    "mint": ({"ID": "linuxmint", "ID_LIKE": "ubuntu debian"}, "sudo apt-get install"),
    "fedora": ({"ID": "fedora"}, "sudo dnf install"),
    "rocky": ({"ID": "rocky", "ID_LIKE": "rhel centos fedora"}, "sudo dnf install"),
    "arch": ({"ID": "arch"}, "sudo pacman -S"),
    "manjaro": ({"ID": "manjaro", "ID_LIKE": "arch"}, "sudo pacman -S"),
    "tumbleweed": (
        {"ID": "opensuse-tumbleweed", "ID_LIKE": "opensuse suse"},
        "sudo zypper install",
    ),
    "alpine": ({"ID": "alpine"}, "sudo apk add"),
}


PATIENCE = 120.0
"""For probes, on a machine that has much else to do."""


@pytest.mark.parametrize("name", RELEASES)
def test_distributions(name: str) -> None:
    release, command = RELEASES[name]
    of = packages.family(release)
    assert of is not None
    assert packages.install(["iperf3"], of).startswith(f"{command} iperf")


def test_packages_of_distributions() -> None:
    by_name = {of.name: of for of in FAMILIES}
    assert packages.packages(["tshark"], by_name["fedora"]) == ["wireshark-cli"]
    assert packages.packages(["tc", "ip"], by_name["fedora"]) == ["iproute", "iproute-tc"]
    assert packages.packages(["tc", "ip"], DEBIAN) == ["iproute2"]
    assert packages.install(["ovs-vswitchd", "ovsdb-tool"], by_name["arch"]) == (
        "sudo pacman -S openvswitch"
    )
    assert packages.install(["unheard-of"], DEBIAN) == ""
    assert packages.family({"ID": "haiku"}) is None
    assert packages.family({}) is None
    for known in PACKAGES.values():
        assert "" in known


def kernel_tree(root: Path, loaded: str = "", builtin: str = "", disk: str = "") -> Path:
    (root / "proc").mkdir()
    (root / "proc/modules").write_text(loaded)
    if builtin or disk:
        folder = root / "lib/modules" / platform.release()
        folder.mkdir(parents=True)
        (folder / "modules.builtin").write_text(builtin)
        (folder / "modules.dep").write_text(disk)
    return root


def test_modules_of_the_kernel(tmp_path: Path) -> None:
    root = kernel_tree(
        tmp_path,
        "sch_htb 32768 1 - Live 0x0\n",
        "kernel/net/sched/sch_fq_codel.ko\n",
        "kernel/net/sched/sch_cake.ko.xz: kernel/x.ko\nkernel/net/sch-netem.ko.zst:\n",
    )
    assert modules.modular(root)
    assert modules.where("sch_htb", root) == "here"
    assert modules.where("sch_fq_codel", root) == "here"
    assert modules.where("sch_cake", root) == "on disk"
    assert modules.where("sch_netem", root) == "on disk"
    assert modules.where("sch_pie", root) == "nowhere"


def test_a_container_does_not_see_the_kernels_modules(tmp_path: Path) -> None:
    root = kernel_tree(tmp_path, "sch_htb 32768 1 - Live 0x0\n")
    assert modules.where("sch_htb", root) == "here"
    assert modules.where("sch_pie", root) == "unknown"
    assert "cannot be detected" in parts.datapaths(root)


def test_a_kernel_without_modules(tmp_path: Path) -> None:
    assert not modules.modular(tmp_path)
    assert modules.where("sch_pie", tmp_path) == "here"
    assert "it is not required" in parts.datapaths(tmp_path)


def test_nothing_is_tried_that_would_load_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    places = {"sch_netem": "on disk", "sch_htb": "unknown"}
    tried: list[dict[str, str]] = []

    def refusals(_sandbox: object, asked: dict[str, str]) -> dict[str, str]:
        tried.append(dict(asked))
        return {
            "cake": "Error: Specified qdisc kind is unknown.",
            "dualpi2": 'Unknown qdisc "dualpi2", hence option "limit" is unparsable',
        }

    monkeypatch.setattr(modules, "where", lambda name: places.get(name, "here"))
    monkeypatch.setattr(qdiscs, "refusals", refusals)
    monkeypatch.setattr(needs, "require_programs", lambda names: None)
    found = network._disciplines(None)  # type: ignore[arg-type]
    assert not {"netem", "htb"} & set(tried[0])
    assert "netem" in found[0].found.split()
    texts = {f.state: [g.found for g in found if g.state == f.state] for f in found}
    (unknown,) = texts["unknown"]
    assert re.fullmatch("not tried, .*load a module: htb", unknown)
    assert texts["no"] == [
        "this `tc` lacks: dualpi2",
        "this kernel lacks: cake",
    ]


def test_programs_that_are_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sojourn.lab.machine.needs._SBIN", str(tmp_path))
    monkeypatch.setattr(packages, "release", lambda: {"ID": "fedora"})
    found = programs.program("tshark", "reads captures")
    assert (found.state, found.remedy) == ("no", "sudo dnf install wireshark-cli")
    old = tmp_path / "iperf3"
    old.write_text("#!/bin/sh\necho iperf 3.1.7\n")
    old.chmod(0o755)
    found = programs.program("iperf3", "flows")
    assert found.state == "no"
    assert "3.1.7; 3.7 or later is required" in found.found
    old.write_text("#!/bin/sh\necho iperf 3.16\n")
    assert programs.program("iperf3", "flows").found == "3.16: flows"


def test_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    assert library("no-such-thing", "no_such_thing", "lab").remedy == "pip install 'sojourn[lab]'"
    wanted = asked("optuna", "tune")
    assert wanted is not None
    assert ">=" in wanted
    assert asked("optuna", "lab") is None
    version = metadata.version
    monkeypatch.setattr(
        metadata, "version", lambda name: "0.1" if name == "optuna" else version(name)
    )
    found = library("optuna", "optuna", "tune")
    assert found.state == "no"
    assert found.found == f"0.1; {wanted} is required"


def test_rights_to_receive_buffers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(syscalls, "capable", lambda capability: False)
    (tmp_path / "proc/sys/kernel/yama").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/yama/ptrace_scope").write_text("1\n")
    (tmp_path / "proc/sys/net/core").mkdir(parents=True)
    (tmp_path / "proc/sys/net/core/rmem_max").write_text("212992\n")
    found = {f.name: f for f in sockets.sockets(tmp_path)}
    assert "ptrace_scope is 1" in found["servers of other users"].found
    assert "425,984 bytes" in found["sizes"].found
    assert all(f.remedy for f in found.values() if f.state == "no")
    assert sockets.systemd(tmp_path).state == "no"
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    assert sockets.systemd(tmp_path).state == "yes"


def test_settings_of_killed_runs(tmp_path: Path) -> None:
    from sojourn.lab.machine.journal import Entry, Owner, me, pid_namespace

    journal = Journal(tmp_path / "journal")
    assert journal.left() == []
    dead = Owner(2**22 - 1, 1, pid_namespace(), "x")
    with journal.locked(create=True) as entries:
        assert entries is not None
        entries["net.core.rmem_max"] = Entry("1", ["2"], [dead])
        entries["net.core.wmem_max"] = Entry("1", ["2"], [me("y")])
        journal.write(entries)
        before = journal.path.read_bytes()
    assert journal.left() == ["net.core.rmem_max"]
    assert journal.path.read_bytes() == before
    journal.path.write_text("{")
    assert journal.left() == []


def test_verdicts() -> None:
    yes, no = Finding("a", "yes", ""), Finding("b", "no", "", "do this")
    spare = Finding("c", "no", "", needed=False)
    unknown = Finding("d", "unknown", "", needed=False)
    assert Group("", "", (yes, unknown)).verdict == "yes"
    assert Group("", "", (yes, spare)).verdict == "partly"
    assert Group("", "", (yes, Finding("e", "unknown", ""))).verdict == "partly"
    assert Group("", "", (yes, spare, no)).verdict == "no"


def test_a_probe_that_hangs_or_fails_is_reported_with_its_reason() -> None:
    never = threading.Event()
    begin = time.monotonic()

    def broken() -> Finding:
        raise RuntimeError("oh")

    found = within(
        0.5,
        [
            ("slow", lambda: [Finding("slow", "yes", str(never.wait(60)))]),
            ("broken", broken),
            ("good", lambda: Finding("good", "yes", "fine")),
        ],
    )
    never.set()
    assert time.monotonic() - begin < 30
    assert [f[0].state for f in found] == ["unknown", "unknown", "yes"]
    assert found[0][0].found == "no answer within 0.5 s"
    assert "RuntimeError: oh" in found[1][0].found


def children() -> set[str]:
    """Process ids of this process's children, those of all its threads."""
    found: set[str] = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that has just ended
            found |= set((task / "children").read_text().split())
    return found


@pytest.fixture(scope="module")
def report() -> Report:
    return examination.examine(seconds=PATIENCE)


def test_this_machine(report: Report) -> None:
    assert [group.name for group in report.groups] == list(GROUPS)
    assert report.group("simulate").verdict == "yes"
    for group in report.groups:
        assert group.findings
        for finding in group.findings:
            assert "examination failed" not in finding.found
            if finding.state == "no":
                assert finding.remedy, finding


@pytest.mark.skipif(platform.system() != "Linux", reason="not installed: Linux")
def test_nothing_is_left_and_nothing_is_changed() -> None:
    names = ("net.core.rmem_max", "net.ipv4.ip_forward", "kernel.yama.ptrace_scope")
    paths = [Path("/proc/sys") / name.replace(".", "/") for name in names]

    def state() -> tuple[Any, ...]:
        settings = [path.read_text() for path in paths if path.exists()]
        loaded = Path("/proc/modules")
        return (
            settings,
            loaded.read_text() if loaded.exists() else "",
            sorted(Path("/sys/class/net").iterdir()),
        )

    before, running = state(), children()
    examination.examine(seconds=PATIENCE)
    assert children() <= running
    assert state() == before


def test_the_table_lines_up() -> None:
    result = process("doctor")
    assert result.status == 0, result.err
    lines = result.out.splitlines()
    groups = [line for line in lines if re.match(r"[a-z-]+ +(yes|partly|no) ", line)]
    assert [line.split()[0] for line in groups] == list(GROUPS)
    column = {re.search(r" (yes|partly|no) ", line).start() for line in groups}  # type: ignore[union-attr]
    assert len(column) == 1
    [at] = column
    findings = [line for line in lines if line.startswith("  ") and "→" not in line]
    states = {line[at + 1 : at + 8].split()[0] for line in findings if line[2] != " "}
    assert states <= {"yes", "no", "?"}
    for line in lines:
        if "→" in line:
            assert line.index("→") == at + 9
            assert set(line[: at + 9]) == {" "}


def test_only_the_requested_groups_decide_the_exit_status(monkeypatch: pytest.MonkeyPatch) -> None:
    def examined(*, measure: bool) -> Report:
        assert not measure
        found = {name: (Finding("part", "yes", "1.0"),) for name in GROUPS}
        found["tune"] = (Finding("optuna", "no", "not installed", "pip install 'sojourn[tune]'"),)
        groups = tuple(Group(name, what, found[name]) for name, what in GROUPS.items())
        return Report(Machine("Linux", "6", "x86_64", 2, None, "3", "me"), groups, 0.1)

    monkeypatch.setattr(examination, "examine", examined)
    assert sojourn("doctor").status == 0
    result = sojourn("doctor", "tune")
    assert result.status == 1
    assert "→ pip install 'sojourn[tune]'" in result.out
    assert "cluster" not in result.out
    told = sojourn("doctor", "tune", "simulate", "--json")
    assert told.status == 1
    assert [g["name"] for g in told.json()["groups"]] == ["simulate", "tune"]
    wrong = sojourn("doctor", "tunes")
    assert wrong.status == 2
    assert "did you mean `tune`?" in wrong.err
