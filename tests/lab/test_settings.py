"""Settings of the whole machine: journalled, shared, put back, and left to others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sojourn.lab import LabError, Settings, Unavailable
from sojourn.lab.machine.journal import Journal, pid_namespace, started
from sojourn.lab.machine.settings import AtLeast, Exactly, Includes, Sysctls, recover, same

RMEM = "net.core.rmem_max"
ALLOWED = "net.ipv4.tcp_allowed_congestion_control"
PUBLIC = "net.core.public"


class Machine:
    """Sysctls and a journal in a folder: what the kernel does with a file, a file does too."""

    def __init__(self, folder: Path) -> None:
        self.journal = Journal(folder / "run")
        self.sysctls = Sysctls(folder / "sys")
        self.values = {RMEM: "212992", ALLOWED: "reno bbr", PUBLIC: "4096\t131072\t6291456"}
        for name, value in self.values.items():
            path = self.sysctls.path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(value + "\n")

    def settings(self, **demands: object) -> Settings:
        names = {"rmem": RMEM, "allowed": ALLOWED, "public": PUBLIC}
        return Settings(
            {names[key]: demand for key, demand in demands.items()},  # type: ignore[misc]
            self.journal,
            self.sysctls,
        )

    def recover(self, *, force: bool = False) -> list[str]:
        return [o.text for o in recover(self.journal, self.sysctls, force=force)]

    def clean(self) -> bool:
        untouched = all(
            self.sysctls.read(name) == " ".join(value.split())
            for name, value in self.values.items()
        )
        return untouched and not self.journal.folder.exists()

    def content(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]]
        found = json.loads(self.journal.path.read_bytes())["settings"]
        return found

    def edit(self, change: dict[str, object]) -> None:
        content = json.loads(self.journal.path.read_bytes())
        self.journal.path.write_text(json.dumps(content | change))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_changed_and_put_back(machine: Machine) -> None:
    with machine.settings(rmem=AtLeast(8 << 20), allowed=Includes(("cubic", "reno"))) as settings:
        assert settings.changed == {
            RMEM: ("212992", str(8 << 20)),
            ALLOWED: ("reno bbr", "reno bbr cubic"),
        }
        assert machine.sysctls.read(RMEM) == str(8 << 20)
        entry = machine.content()[RMEM]
        assert entry["before"] == "212992"
        assert entry["owners"][0]["pid"] == os.getpid()
        assert oct(machine.journal.folder.stat().st_mode)[-3:] == "700"
    assert machine.clean()
    assert not settings.notes
    settings.release()


def test_settings_that_suffice_are_not_changed(machine: Machine) -> None:
    with machine.settings(
        rmem=AtLeast(1000), allowed=Includes(("bbr",)), public=Exactly("4096 131072 6291456")
    ) as settings:
        assert not settings.changed
        assert not machine.journal.folder.exists()


def test_two_at_once(machine: Machine) -> None:
    first = machine.settings(rmem=AtLeast(1 << 20))
    second = machine.settings(rmem=AtLeast(2 << 20))
    third = machine.settings(rmem=AtLeast(1 << 19))
    for settings in (first, second, third):
        settings.take()
    assert machine.sysctls.read(RMEM) == str(2 << 20)
    assert not third.changed
    first.release()
    second.release()
    assert machine.sysctls.read(RMEM) == str(2 << 20), "the third still needs it"
    third.release()
    assert machine.clean()


def test_two_that_disagree(machine: Machine) -> None:
    with machine.settings(public=Exactly("1 2 3")):
        other = machine.settings(rmem=AtLeast(1 << 20), public=Exactly("4 5 6"))
        with pytest.raises(LabError, match=rf"process {os.getpid()}.*'1 2 3'"):
            other.take()
        assert machine.sysctls.read(RMEM) == "212992", "nothing half done"
        with machine.settings(public=Exactly("1 2 3")):
            pass
        assert machine.sysctls.read(PUBLIC) == "1 2 3"
    assert machine.clean()


def test_a_value_that_another_program_changed_is_kept_and_noted(machine: Machine) -> None:
    with machine.settings(rmem=AtLeast(1 << 20)) as settings:
        machine.sysctls.write(RMEM, "5000000")
    assert machine.sysctls.read(RMEM) == "5000000"
    assert ["another program" in note for note in settings.notes] == [True]
    assert not machine.journal.folder.exists()


def test_an_insufficient_value_of_another_program_is_restored(
    machine: Machine,
) -> None:
    with machine.settings(rmem=AtLeast(1 << 20)):
        machine.sysctls.write(RMEM, "300000")
        with machine.settings(rmem=AtLeast(1 << 20)) as second:
            assert second.changed
    assert machine.sysctls.read(RMEM) == "300000"
    assert not machine.journal.folder.exists()


def test_forbidden_before_anything_is_changed(machine: Machine) -> None:
    with pytest.raises(Unavailable, match=r"net\.core\.missing cannot be read"):
        Settings(
            {RMEM: AtLeast(1 << 20), "net.core.missing": AtLeast(1)},
            machine.journal,
            machine.sysctls,
        ).take()
    for name in ("kernel.hostname", "net.core/../../kernel", "net"):
        with pytest.raises(LabError, match="name of a network"):
            Settings({name: AtLeast(1)}, machine.journal, machine.sysctls).take()
    assert machine.clean()


def test_a_kernel_that_does_not_obey(machine: Machine) -> None:
    class Deaf(Sysctls):
        def write(self, name: str, value: str) -> None:
            super().write(name, "1000000" if value != "212992" and name == RMEM else value)

    machine.sysctls = Deaf(machine.sysctls.root)
    with pytest.raises(Unavailable, match="but is '1000000'"):
        machine.settings(allowed=Includes(("cubic",)), rmem=AtLeast(1 << 20)).take()
    assert machine.sysctls.read(ALLOWED) == "reno bbr"
    assert machine.sysctls.read(RMEM) == "1000000", "not our value: another program may have set it"


def test_settings_of_a_killed_process_are_restored_once(machine: Machine) -> None:
    """Killed by a signal while it holds, and while another one that lives holds too."""
    text = (
        "import sys, time; from pathlib import Path\n"
        "from sojourn.lab.machine.journal import Journal\n"
        "from sojourn.lab.machine.settings import *\n"
        "run, sys_, name, number = sys.argv[1:]\n"
        "Settings({name: AtLeast(int(number))}, Journal(Path(run)), Sysctls(Path(sys_))).take()\n"
        "print('held', flush=True); time.sleep(1000)\n"
    )
    folders = [str(machine.journal.folder), str(machine.sysctls.root)]
    holder = subprocess.Popen(
        [sys.executable, "-c", text, *folders, RMEM, str(1 << 20)], stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    with holder, holder.stdout:
        assert holder.stdout.readline() == b"held\n"
        assert machine.recover() == [f"{RMEM}: in use by process {holder.pid}, not restored"]
        with machine.settings(allowed=Includes(("cubic",))):
            holder.send_signal(signal.SIGKILL)
            holder.wait()
            assert machine.recover() == [
                f"{RMEM}: restored to '212992' (was '{1 << 20}')",
                f"{ALLOWED}: in use by process {os.getpid()}, not restored",
            ]
    assert machine.clean()
    assert machine.recover() == []


def test_a_number_that_was_used_again_is_not_the_owner(machine: Machine) -> None:
    machine.settings(rmem=AtLeast(1 << 20)).take()
    content = machine.content()
    owner = content[RMEM]["owners"][0]
    assert owner["start"] == started(os.getpid())
    assert owner["namespace"] == pid_namespace()
    owner["start"] -= 1
    machine.edit({"settings": content})
    assert machine.recover() == [f"{RMEM}: restored to '212992' (was '{1 << 20}')"]
    assert machine.clean()


def test_one_of_another_pid_namespace_counts_as_alive_unless_forced(machine: Machine) -> None:
    machine.settings(rmem=AtLeast(1 << 20)).take()
    content = machine.content()
    content[RMEM]["owners"][0] |= {"namespace": 1, "pid": 2**22 + 1}
    machine.edit({"settings": content})
    assert machine.recover() == [f"{RMEM}: in use by process {2**22 + 1}, not restored"]
    assert machine.recover(force=True) == [f"{RMEM}: restored to '212992' (was '{1 << 20}')"]
    assert machine.clean()


def test_killed_between_journal_and_change(machine: Machine) -> None:
    machine.settings(rmem=AtLeast(1 << 20)).take()
    machine.sysctls.write(RMEM, "212992")
    assert machine.recover(force=True) == []
    assert machine.clean()


def test_a_restart_undoes_all(machine: Machine) -> None:
    machine.settings(rmem=AtLeast(1 << 20)).take()
    machine.edit({"boot": "another"})
    machine.sysctls.write(RMEM, "7")
    assert machine.recover() == []
    assert machine.sysctls.read(RMEM) == "7"
    assert not machine.journal.folder.exists()


def test_a_sysctl_that_went_away(machine: Machine) -> None:
    machine.settings(rmem=AtLeast(1 << 20), allowed=Includes(("cubic",))).take()
    machine.sysctls.path(RMEM).unlink()
    assert machine.recover(force=True) == [
        f"{RMEM}: no longer exists",
        f"{ALLOWED}: restored to 'reno bbr' (was 'reno bbr cubic')",
    ]
    assert not machine.journal.folder.exists()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 2}', '{"version": 1, "boot": "x"', "x" * (2 << 20)]
)
def test_a_journal_that_is_none(machine: Machine, text: str) -> None:
    machine.journal.folder.mkdir(mode=0o700)
    machine.journal.path.write_text(text)
    with pytest.raises(LabError, match=r"settings\.json is not"):
        machine.recover()
    with pytest.raises(LabError, match=r"settings\.json is not"):
        machine.settings(rmem=AtLeast(1 << 20)).take()
    assert machine.sysctls.read(RMEM) == "212992"
    assert machine.journal.path.read_text() == text


def test_a_folder_that_others_may_write(machine: Machine) -> None:
    machine.journal.folder.mkdir()
    machine.journal.folder.chmod(0o777)
    with pytest.raises(Unavailable, match="not private to this"):
        machine.settings(rmem=AtLeast(1 << 20)).take()
    machine.journal.folder.rmdir()
    machine.journal.folder.symlink_to("/tmp")
    with pytest.raises(Unavailable, match="run: "):
        machine.settings(rmem=AtLeast(1 << 20)).take()
    assert machine.sysctls.read(RMEM) == "212992"


def test_half_a_journal_is_never_seen(machine: Machine) -> None:
    machine.settings(rmem=AtLeast(1 << 20)).take()
    machine.journal.path.with_suffix(".new").write_text("half")
    assert len(machine.recover(force=True)) == 1
    assert machine.clean()


def test_the_same_values() -> None:
    assert same("1 2\t3", "1 2 3")
    assert same("reno bbr", "bbr reno")
    assert same("010", "10")
    assert not same("1 2", "2 1")
    assert not same("reno", "reno bbr")


def test_many_processes_at_once(machine: Machine) -> None:
    """Processes that take and release at the same time lose no entry and no value."""
    text = (
        "import sys; from pathlib import Path\n"
        "from sojourn.lab.machine.journal import Journal\n"
        "from sojourn.lab.machine.settings import *\n"
        "run, sys_, name, number = sys.argv[1:]\n"
        "sysctls = Sysctls(Path(sys_))\n"
        "for i in range(40):\n"
        "    with Settings({name: AtLeast(int(number) + i)}, Journal(Path(run)), sysctls):\n"
        "        assert int(sysctls.read(name)) >= int(number) + i\n"
    )
    folders = [str(machine.journal.folder), str(machine.sysctls.root)]
    processes = [
        subprocess.Popen([sys.executable, "-c", text, *folders, RMEM, str(300_000 + 1000 * n)])
        for n in range(4)
    ]
    assert [process.wait(60) for process in processes] == [0] * 4
    assert machine.clean()
