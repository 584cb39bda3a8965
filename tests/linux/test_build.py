"""`sojourn linux build`: its stages, what stops it, and what it leaves behind."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sojourn import temporary
from sojourn.lab.errors import LabError, Unavailable
from sojourn.lab.machine import packages
from sojourn.linux import build, kernels, needs, patches, sources
from tests.conftest import ROOT
from tests.linux import fake


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return fake.tarball(tmp_path / "linux-9.1.2.tar.xz", fake.FILES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fake.write(tmp_path / "linux", fake.FILES)


def place(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "sojourn" / "linux"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def compiled(tmp_path: Path) -> list[str]:
    (told,) = place(tmp_path).glob(".work/*/compiled")
    return sorted(told.read_text().split())


# What comes out


def test_an_archive_becomes_a_kernel(tmp_path: Path, archive: Path) -> None:
    made, stages, notes = fake.make(tmp_path, archive)
    kernel = made.kernel
    assert made.new
    assert notes == []
    assert stages == [
        "unpacking linux-9.1.2.tar.xz",
        "configuring",
        "compiling",
        "downloading iproute2",
        "compiling ip and tc",
        "booting the kernel",
    ]
    assert (kernel.name, kernel.release, kernel.hz) == ("9.1.2-hz100", "9.1.2", 100)
    assert kernel.patches == patches.NAMES
    assert kernel.repeats
    assert kernel.abilities().version == (9, 1)
    wanted = [
        "COPYING",
        "COPYING.iproute2",
        "config",
        "ip",
        "kernel.json",
        "linux",
        "patches",
        "tc",
    ]
    assert names(kernel.folder) == wanted
    assert (kernel.folder / "COPYING").read_text() == "see LICENSES\n\nGPL\n"
    told = json.loads((kernel.folder / "kernel.json").read_text())
    assert told["sources"][0]["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    # Source, object files and downloads are gone.
    assert names(place(tmp_path)) == ["9.1.2-hz100"]


def test_the_same_again_is_there_already(tmp_path: Path, archive: Path) -> None:
    first, _, _ = fake.make(tmp_path, archive)
    again, stages, _ = fake.make(tmp_path, archive)
    assert not again.new
    assert again.kernel == first.kernel
    assert stages == []


def test_all_choices_that_decide_the_result_are_in_its_hash(tmp_path: Path, archive: Path) -> None:
    plain, _, _ = fake.make(tmp_path, archive)
    other, _, _ = fake.make(tmp_path, archive, hz=250)
    bare, _, notes = fake.make(tmp_path, archive, without=(patches.SEEDED,))
    assert other.kernel.name == "9.1.2-hz250"
    assert len({made.kernel.build for made in (plain, other, bare)}) == 3
    # The name was taken.
    assert bare.kernel.name == f"9.1.2-hz100-{bare.kernel.build[:8]}"
    assert not bare.kernel.repeats
    assert any("will NOT have equal" in note for note in notes)


def test_a_folder_is_only_read(tmp_path: Path, folder: Path) -> None:
    def state() -> dict[str, tuple[int, bytes]]:
        return {
            str(path): (path.stat().st_mtime_ns, path.read_bytes())
            for path in folder.rglob("*")
            if path.is_file()
        }

    before = state()
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)
    made, _, _ = fake.make(tmp_path, folder, keep=True)
    assert state() == before
    assert made.kernel.repeats
    # After a change only what has changed is copied, and another kernel comes out.
    (copied,) = place(tmp_path).glob(".work/*/source/net/ipv4/tcp.c")
    untouched = (copied.parents[2] / "COPYING").stat().st_mtime_ns
    (folder / "net/ipv4/tcp.c").chmod(0o644)
    (folder / "net/ipv4/tcp.c").write_text("int tcp2;\n")
    again, _, _ = fake.make(tmp_path, folder, keep=True)
    assert copied.read_text() == "int tcp2;\n"
    assert (copied.parents[2] / "COPYING").stat().st_mtime_ns == untouched
    assert again.kernel.build != made.kernel.build
    assert compiled(tmp_path) == [str(n + 1) for n in range(fake.OBJECTS)]


@pytest.mark.needs("git")
def test_changes_of_a_repository_are_noted(tmp_path: Path, folder: Path) -> None:
    def git(*words: str) -> None:
        one = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", "-C", str(folder), *one, *words], check=True, capture_output=True)

    (folder / ".gitignore").write_text("*.o\n")
    git("init")
    git("add", ".")
    git("commit", "-m", "all")
    (folder / "made.o").touch()
    found = sources.tree(folder)
    assert not found.modified
    assert "made.o" not in found.files
    (folder / "COPYING").write_text("other")
    _, _, notes = fake.make(tmp_path, folder)
    assert [note for note in notes if "uncommitted" in note]


def test_a_folder_that_was_built_in_place_is_refused(tmp_path: Path, folder: Path) -> None:
    (folder / ".config").touch()
    with pytest.raises(LabError, match=r"built in place .*make mrproper"):
        fake.make(tmp_path, folder)


def test_other_files_and_folders_are_no_source(tmp_path: Path, archive: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(LabError, match="no arch/um/Makefile"):
        fake.make(tmp_path, tmp_path / "empty")
    other = fake.tarball(tmp_path / "other.tar.gz", {"README": "x"})
    with pytest.raises(LabError, match="not a source of"):
        fake.make(tmp_path, other)
    (tmp_path / "half.tar.xz").write_bytes(archive.read_bytes()[:300])
    with pytest.raises(LabError, match="cannot be unpacked"):
        fake.make(tmp_path, tmp_path / "half.tar.xz")
    with pytest.raises(LabError, match="not a folder, a"):
        fake.make(tmp_path, Path("7.4"))
    assert kernels.read(place(tmp_path) / "9.1.2-hz100") is None


# Patches and options


def test_a_patch_applies_also_further_down() -> None:
    text = "a\n" * 7 + fake.UTIL
    changed = patches.apply(patches.text(patches.SEEDED), lambda _path: text)
    (made,) = changed.values()
    assert 'getenv("SOJOURN_SEED")' in made
    assert made.startswith("a\n" * 7)
    assert made.endswith("/*\n */\n")


def test_a_source_that_has_a_patch_already_stays_as_it_is() -> None:
    patch = patches.text(patches.SEEDED)
    (made,) = patches.apply(patch, lambda _path: fake.UTIL).values()
    assert list(patches.apply(patch, lambda _path: made).values()) == [made]


def test_a_patch_is_refused_where_the_file_is_another() -> None:
    text = fake.UTIL.replace("unsigned int flags", "int flags")
    with pytest.raises(patches.DoesNotApply, match=r"differs from the patch's"):
        patches.apply(patches.text(patches.SEEDED), lambda _path: text)

    def nowhere(path: str) -> str:
        raise FileNotFoundError(path)

    with pytest.raises(patches.DoesNotApply, match="cannot be read"):
        patches.apply(patches.text(patches.HZ), nowhere)


@pytest.mark.parametrize("name", patches.NAMES)
def test_patches_leave_the_network_code_alone(name: str) -> None:
    text = patches.text(name)
    assert text.startswith("SPDX-License-Identifier: GPL-2.0-only\n")
    changed = re.findall(r"^(?:---|\+\+\+) (\S+)", text, re.MULTILINE)
    assert changed
    assert all(path.split("/", 1)[1].startswith("arch/um/") for path in changed)


def test_a_source_that_a_patch_does_not_fit_is_built_nevertheless(tmp_path: Path) -> None:
    util = fake.UTIL.replace("getrandom(buf", "random(buf")
    files = fake.FILES | {"arch/um/os-Linux/util.c": util}
    made, _, notes = fake.make(tmp_path, fake.tarball(tmp_path / "a.tar.xz", files))
    assert made.kernel.patches == (patches.HZ,)
    assert not made.kernel.repeats
    assert "does not apply" in notes[0]
    assert "NOT have equal results" in notes[1]


def test_hz_needs_its_patch(tmp_path: Path, archive: Path) -> None:
    made, _, _ = fake.make(tmp_path, archive, without=patches.NAMES)
    assert made.kernel.patches == ()
    with pytest.raises(LabError, match=r"with the patch choice-of-hz.*--hz 100"):
        fake.make(tmp_path, archive, hz=1000, without=patches.NAMES)
    with pytest.raises(LabError, match="x; existing patches: seeded"):
        fake.make(tmp_path, archive, without=("x",))


def test_options_that_a_source_has_not(tmp_path: Path) -> None:
    files = fake.FILES | {"lacks": "NET_SCH_DUALPI2"}
    _, _, notes = fake.make(tmp_path, fake.tarball(tmp_path / "a.tar.xz", files))
    (note,) = notes
    assert re.search("lacks NET_SCH_DUALPI2: .*without it", note)
    files["lacks"] = "UML_TIME_TRAVEL_SUPPORT"
    with pytest.raises(LabError, match="it lacks UML_TIME_TRAVEL_SUPPORT"):
        fake.make(tmp_path, fake.tarball(tmp_path / "b.tar.xz", files))


def test_a_release_that_does_not_run_on_this_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = fake.FILES | {"arch/um/os-Linux/start_up.c": ""}
    monkeypatch.setattr(needs, "traceable", lambda: False)
    with pytest.raises(LabError, match="processors with AMX"):
        fake.make(tmp_path, fake.tarball(tmp_path / "a.tar.xz", files))
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("flags : fpu amx_tile\n")
    monkeypatch.undo()
    assert not needs.traceable(cpuinfo)
    cpuinfo.write_text("flags : fpu\n")
    assert needs.traceable(cpuinfo)


# Archives


def deb(path: Path, inner: Path) -> Path:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as tar:
        tar.add(inner, "./usr/src/linux-source-9.1.tar.xz")
    parts = [
        (b"debian-binary", b"2.0\n"),
        (b"control.tar.xz", b"odd"),
        (b"data.tar.xz", data.getvalue()),
    ]
    with path.open("wb") as file:
        file.write(b"!<arch>\n")
        for name, content in parts:
            head = b"%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (name, 0, 0, 0, 0o644, len(content))
            file.write(head + content + b"\n" * (len(content) % 2))
    return path


def unpacked(archive: Path, into: Path) -> list[str]:
    into.mkdir()
    sources.unpack(archive, into, lambda _words, _fraction: None)
    return sorted(str(path.relative_to(into)) for path in into.rglob("*") if path.is_file())


def test_all_kinds_of_archives(tmp_path: Path, archive: Path) -> None:
    wanted = sorted(fake.FILES)
    assert unpacked(archive, tmp_path / "xz") == wanted
    assert unpacked(deb(tmp_path / "a.deb", archive), tmp_path / "deb") == wanted
    gz = fake.tarball(tmp_path / "a.tar.gz", fake.FILES)
    assert unpacked(gz, tmp_path / "gz") == wanted


@pytest.mark.needs("zstd")
def test_an_archive_that_zstd_made(tmp_path: Path) -> None:
    plain = fake.tarball(tmp_path / "a.tar", fake.FILES)
    subprocess.run(["zstd", "-q", str(plain)], check=True)
    assert unpacked(tmp_path / "a.tar.zst", tmp_path / "zst") == sorted(fake.FILES)


def test_an_archive_writes_only_into_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "evil.tar"
    with tarfile.open(path, "w") as tar:
        for name in ("a/../../evil", "/etc/evil", "a/link/evil", "a/good"):
            tar.addfile(tarfile.TarInfo(name))
        for target in ("/etc", "../../..", "good"):
            link = tarfile.TarInfo(f"a/to-{len(target)}")
            link.type, link.linkname = tarfile.SYMTYPE, target
            tar.addfile(link)
        # Each link stays within, by its name; both together do not.
        for name, target, of in (
            ("a/inner/self", "..", tarfile.SYMTYPE),
            ("a/inner/self/up", "..", tarfile.SYMTYPE),
            ("a/inner/self/up/evil", "", tarfile.REGTYPE),
        ):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = of, target
            tar.addfile(link)
    unpacked(path, tmp_path / "into")
    found = sorted(str(p.relative_to(tmp_path / "into")) for p in (tmp_path / "into").rglob("*"))
    assert found == ["etc", "etc/evil", "good", "inner", "inner/self", "link", "link/evil", "to-4"]
    assert not (tmp_path / "evil").exists()


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from("xyz"), min_size=1, max_size=3),
            st.sampled_from(
                ["file", ".", "..", "../..", "x", "x/..", "y/../e", "/", "../out", "z/e"]
            ),
        ),
        min_size=1,
        max_size=8,
    )
)
@example([(["u", "x"], "../v"), (["u", "y"], "x/../../e"), (["u", "y"], "file")])
@example([(["y"], "x/../e"), (["x"], "."), (["y"], "file")])
@example([(["u", "x"], ".."), (["u", "y"], "x/../e"), (["u", "y"], "file")])
def test_no_archive_writes_outside_of_its_folder(members: list[tuple[list[str], str]]) -> None:
    with temporary.folder() as place:
        path, into = place / "evil.tar", place / "a" / "into"
        with tarfile.open(path, "w") as tar:
            for parts, target in members:
                member = tarfile.TarInfo("/".join(["top", *parts]))
                if target == "file":
                    member.size = 4
                    tar.addfile(member, io.BytesIO(b"evil"))
                else:
                    member.type, member.linkname = tarfile.SYMTYPE, target
                    tar.addfile(member)
        into.mkdir(parents=True)
        with contextlib.suppress(LabError):
            sources.unpack(path, into, lambda _words, _fraction: None)
        outside = {p for p in place.rglob("*") if not p.is_relative_to(into)}
        assert outside == {place / "a", path}


def test_half_of_a_source_is_enough() -> None:
    kept = ("net/ipv4/tcp.c", "drivers/net/veth.c", "arch/x86/um/ptrace.c", "arch/um/Kconfig",
            "drivers/gpu/drm/Kconfig", "sound/Makefile", "arch/Kconfig", "Documentation/Kconfig",
            ".gitattributes")  # fmt: skip
    left = ("drivers/gpu/drm/a.c", "arch/arm64/kernel/a.S", "sound/a.c", "Documentation/a.rst",
            ".git/config", "drivers/net/ethernet/intel/a.c")  # fmt: skip
    assert [name for name in kept if not sources.needed(name)] == []
    assert [name for name in left if sources.needed(name)] == []


# Interruption


STAGES = [
    ("unpacking", ""),
    ("configuring", ""),
    ("compiling", "3 files"),
    ("downloading", ""),
    ("compiling ip", ""),
    ("booting", ""),
]


@pytest.mark.parametrize(("stage", "words"), STAGES)
def test_killed_in_any_stage_it_goes_on(
    tmp_path: Path, archive: Path, stage: str, words: str
) -> None:
    command = [sys.executable, "-m", "tests.linux.fake", str(tmp_path), stage, words]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    assert not list(place(tmp_path).glob("*/kernel.json"))
    made, _, _ = fake.make(tmp_path, archive, keep=True)
    assert made.kernel.repeats
    # Nothing was compiled twice, nor went on behind our back.
    assert compiled(tmp_path) == [str(n + 1) for n in range(fake.OBJECTS)]
    assert names(made.kernel.folder / "patches") == sorted(f"{n}.patch" for n in patches.NAMES)


def test_programs_of_a_killed_build_end_with_it(tmp_path: Path, archive: Path) -> None:
    command = [sys.executable, "-m", "tests.linux.fake", str(tmp_path), "compiling", "2 files"]
    subprocess.run(command, cwd=ROOT, check=False, capture_output=True)
    time.sleep(0.3)
    before = compiled(tmp_path)
    time.sleep(0.3)
    assert compiled(tmp_path) == before
    assert len(before) < fake.OBJECTS


def test_one_build_at_a_time(
    tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "PATIENCE", 0.0)
    place(tmp_path).mkdir(parents=True)
    lock = os.open(place(tmp_path), os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with pytest.raises(LabError, match="another build is running"):
        fake.make(tmp_path, archive)
    os.close(lock)
    assert fake.make(tmp_path, archive)[0].new


# Bad days


def test_missing_programs_are_named_with_their_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sojourn.lab.machine.needs._SBIN", str(tmp_path))
    monkeypatch.setattr(packages, "release", lambda: {"ID": "debian"})
    with pytest.raises(Unavailable) as told:
        needs.require(tmp_path, begun=False)
    assert "not installed: gcc, make, flex, bison, bc, strip" in str(told.value)
    assert "sudo apt-get install bc binutils bison flex gcc make" in str(told.value)


@pytest.mark.needs("gcc")
def test_no_static_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert needs.STATIC not in needs.lacking()
    monkeypatch.setattr(needs, "PROGRAMS", ())
    monkeypatch.setattr(needs, "_links", lambda: False)
    monkeypatch.setattr(packages, "release", lambda: {"ID": "debian"})
    with pytest.raises(Unavailable, match="libc6-dev"):
        needs.require(tmp_path, begun=False)


def test_a_place_that_does_not_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "lacking", list)
    with pytest.raises(LabError, match="space or colon"):
        needs.require(tmp_path / "my cache", begun=False)
    full = shutil.disk_usage(tmp_path)._replace(free=1_000_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: full)
    with pytest.raises(Unavailable, match=r"1\.0 GB free;.*needs 1\.5 GB"):
        needs.require(tmp_path, begun=False)
    needs.require(tmp_path, begun=True)


def test_a_source_that_does_not_compile(tmp_path: Path) -> None:
    files = fake.FILES | {"says": "tcp.c:1: error: expected expression\n"}
    with pytest.raises(LabError, match="error: expected expression") as told:
        fake.make(tmp_path, fake.tarball(tmp_path / "a.tar.xz", files))
    (log,) = place(tmp_path).glob(".work/*/log/kernel")
    assert str(log) in str(told.value)


def test_a_full_disk_while_it_compiles(tmp_path: Path) -> None:
    files = fake.FILES | {"says": "as: out.o: No space left on device\n"}
    with pytest.raises(OSError, match="No space left") as told:
        fake.make(tmp_path, fake.tarball(tmp_path / "a.tar.xz", files))
    assert told.value.errno == errno.ENOSPC
    assert not list(place(tmp_path).glob("*/kernel.json"))


def test_an_unavailable_pinned_source_is_reported_with_its_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "ARCHIVE", (tmp_path / "archive").as_uri())
    pin = sources.pins()["7.3"]
    with pytest.raises(Unavailable) as told:
        sources.fetch(pin, tmp_path / "kept", tmp_path.as_uri(), lambda _w, _f: None)
    assert all(address in str(told.value) for address in pin.addresses(tmp_path.as_uri()))
    assert "--mirror" in str(told.value)
    with pytest.raises(LabError, match="a mirror must begin"):
        sources.fetch(pin, tmp_path / "kept", "ftp://x", lambda _w, _f: None)
