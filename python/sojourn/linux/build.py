"""The build of kernels for virtual time from source.

A build has stages: unpack and patch the source, configure, compile the kernel, compile the programs
that configure the network, and boot the kernel to read its features. After an interruption,
complete stages are not repeated, and `make` continues its stage. The folder of the kernel is
created last, by a rename.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TypedDict

from sojourn.data import Object
from sojourn.lab.errors import LabError
from sojourn.linux import commands, guest, kernels, needs, patches, sources
from sojourn.linux.settings import Build
from sojourn.linux.sources import Archive, Tell, Tree
from sojourn.scenario.engine import Stopped

WORK, DOWNLOADS = ".work", ".downloads"
"""Names of the folders for builds and downloads, next to the kernels' folders."""
LICENCES = ("COPYING", "LICENSES/preferred/GPL-2.0", "LICENSES/exceptions/Linux-syscall-note")
"""Files of a kernel's source with its licence."""
STEPS = 1000
"""Approximate number of files that are compiled for a kernel, for the progress."""
BOOT = 300.0
"""Time limit of the boot in seconds; a boot takes 0.1 s on an idle machine."""
PATIENCE = 3.0
"""Time in seconds to wait for the lock, since processes of a killed build hold the lock until they
end.
"""

Stage = Callable[[str], Tell]
"""Callback that gets the name of a stage when it begins; returns the callback for the progress."""


class Described(TypedDict):
    """The description of a kernel before its first boot."""

    hz: int
    build: str
    patches: list[str]
    sources: list[Object]
    compiler: str
    library: str
    static: bool


@dataclass(frozen=True)
class Made:
    """The result of a build."""

    kernel: kernels.Kernel
    new: bool
    """Whether the kernel was built now; `False` if an equal kernel existed."""


@dataclass(frozen=True)
class Options:
    """Options of a kernel's configuration, without the prefix `CONFIG_`."""

    on: tuple[str, ...]
    """Options that are enabled."""
    off: tuple[str, ...]
    """Options that are disabled."""
    required: frozenset[str]
    """Enabled options without which no kernel is built."""
    optional: frozenset[str]
    """Enabled options that a release may lack without a remark."""

    def lines(self, hz: int, *, static: bool) -> str:
        """Returns the options as lines of the file `.config`."""
        made = [f"CONFIG_{name}=y" for name in self.on]
        made += [f"# CONFIG_{name} is not set" for name in self.off]
        made += ["CONFIG_STATIC_LINK=y" if static else "# CONFIG_STATIC_LINK is not set"]
        return "\n".join([*made, f"CONFIG_HZ={hz}", ""])


def options() -> Options:
    """Returns the options for virtual time from the file `data/config`."""
    text = (resources.files(__package__) / "data" / "config").read_text("utf-8")
    words = [
        word for line in text.splitlines() if not line.startswith("#") for word in line.split()
    ]
    return Options(
        tuple(word.lstrip("*?") for word in words if not word.startswith("!")),
        tuple(word[1:] for word in words if word.startswith("!")),
        frozenset(word[1:] for word in words if word.startswith("*")),
        frozenset(word[1:] for word in words if word.startswith("?")),
    )


def unfinished() -> int:
    """Returns the size of all files of builds and downloads, in bytes."""
    return sum(
        path.lstat().st_size
        for name in (WORK, DOWNLOADS)
        for folder, _, names in os.walk(kernels.place() / name)
        for path in (Path(folder) / file for file in names)
    )


def remove_unfinished() -> None:
    """Removes all files of builds and downloads."""
    if not kernels.place().is_dir():
        return
    with _alone(kernels.place()):
        for name in (WORK, DOWNLOADS):
            shutil.rmtree(kernels.place() / name, ignore_errors=True)


def build(wanted: Build, stage: Stage, note: Callable[[str], object]) -> Made:
    """Builds a kernel, or returns an existing equal kernel.

    `note` is called with remarks on the result. An interrupted build is continued. Raises
    `LabError` if the kernel cannot be built.
    """
    unknown = [name for name in wanted.omitted if name not in patches.NAMES]
    if unknown:
        raise LabError(
            f"unknown patch {', '.join(unknown)}; existing patches: {', '.join(patches.NAMES)}"
        )
    place = kernels.place()
    guest.init()
    place.mkdir(parents=True, exist_ok=True)
    with _alone(place):
        return _Build(wanted, place, stage, note).make()


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Locks the folder of the kernels, so that only one build runs at a time."""
    lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    end = time.monotonic() + PATIENCE
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise LabError(
                        f"another build is running in {place}: wait for its end, or stop it and "
                        "repeat its command later, which continues the build"
                    ) from None
                time.sleep(0.1)
        yield
    finally:
        os.close(lock)


class _Build:
    """One build. A repetition of the build uses the same folder."""

    def __init__(
        self, wanted: Build, place: Path, stage: Stage, note: Callable[[str], object]
    ) -> None:
        self.wanted = wanted
        self.place = place
        self.stage = stage
        self.note = note
        self.options = options()
        self.downloads = place / DOWNLOADS

    def make(self) -> Made:
        """Executes all stages that an earlier build has not completed."""
        wanted = self.wanted
        pin = sources.pins()[sources.IPROUTE2]
        source = sources.resolve(wanted.source, self.downloads)
        if isinstance(source, Archive):
            # The hash of an archive is known, so an existing kernel is found before any download.
            all_ = [name for name in patches.NAMES if name not in wanted.omitted]
            if kernel := self._there(self._identity(source.sha256, all_, pin.sha256)):
                return Made(kernel, new=False)
        key = json.dumps([source.key, wanted.hz, sorted(wanted.omitted)])
        self.work = self.place / WORK / hashlib.sha256(key.encode()).hexdigest()[:16]
        self.tree, self.objects = self.work / "source", self.work / "objects"
        self.log = self.work / "log"
        needs.require(self.place, begun=self.tree.is_dir())
        self.work.mkdir(parents=True, exist_ok=True)
        applied, digest = self._source(source)
        identity = self._identity(digest, applied, pin.sha256)
        if kernel := self._there(identity):
            self._clean()
            return Made(kernel, new=False)
        self._traced()
        static = self._compile()
        programs = self._programs(
            sources.fetch(
                pin,
                self.downloads,
                wanted.mirror,
                self.stage("downloading iproute2"),
            )
        )
        described: Described = {
            "hz": wanted.hz,
            "build": identity,
            "patches": applied,
            "sources": [
                source.described() | {"content": digest},
                {"file": pin.name, "sha256": pin.sha256, "addresses": pin.addresses()},
            ],
            "compiler": needs.compiler(),
            "library": needs.c_library(),
            "static": static,
        }
        kernel = self._complete(described, programs)
        self._clean()
        return Made(kernel, new=True)

    def _there(self, identity: str) -> kernels.Kernel | None:
        """Returns the existing kernel that is equal to the result of the build, or `None`."""
        for folder in kernels.folders():
            with suppress(LabError):  # damaged kernels are ignored
                kernel = kernels.read(folder)
                if (
                    kernel is not None
                    and kernel.build == identity
                    and self.wanted.name in (None, kernel.name)
                ):
                    return kernel
        return None

    def _identity(self, source: str, applied: Sequence[str], programs: str) -> str:
        """Returns a hash of source, options, patches and programs; it identifies the kernel."""
        parts = {
            "source": source,
            "options": self.options.lines(self.wanted.hz, static=True),
            "patches": {name: patches.text(name) for name in applied},
            "compiler": needs.compiler(),
            "iproute2": programs,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]

    def _source(self, source: Archive | Tree) -> tuple[list[str], str]:
        """Creates the folder with the patched source.

        Returns the names of the applied patches, and the hash of the unpatched source.
        """
        if isinstance(source, Tree):
            tell = self.stage(f"copying {source.path}")
            if source.modified:
                self.note(f"{source.path} has uncommitted changes: the build includes them")
            changed, applied = self._patched(source.path)
            return applied, sources.copy(source, self.tree, changed, tell)
        done = self.work / "patches.json"
        if not self.tree.is_dir():
            half = self.work / "source.half"
            shutil.rmtree(half, ignore_errors=True)
            half.mkdir()
            if source.pin is not None:
                tell = self.stage("downloading the source")
                sources.fetch(source.pin, self.downloads, self.wanted.mirror, tell)
            sources.unpack(source.path, half, self.stage(f"unpacking {source.path.name}"))
            if not (half / "arch" / "um" / "Makefile").is_file():
                raise LabError(f"{source.path} is not a source of Linux (no arch/um/Makefile)")
            changed, applied = self._patched(half)
            for name, text in changed.items():
                (half / name).write_text(text, "utf-8")
            done.write_text(json.dumps(applied), "utf-8")
            half.rename(self.tree)
        return json.loads(done.read_text("utf-8")), source.sha256

    def _patched(self, tree: Path) -> tuple[dict[str, str], list[str]]:
        """Returns the texts of the changed files by path, and the names of the applied patches."""
        changed: dict[str, str] = {}
        applied = []

        def read(path: str) -> str:
            return changed.get(path) or (tree / path).read_text("utf-8")

        for name in (name for name in patches.NAMES if name not in self.wanted.omitted):
            try:
                changed |= patches.apply(patches.text(name), read)
                applied.append(name)
            except patches.DoesNotApply as error:
                self.note(f"the patch {name} does not apply: {error}")
        if patches.SEEDED not in applied:
            self.note("equal runs of this kernel will NOT have equal results")
        return changed, applied

    def _traced(self) -> None:
        if needs.confined_by_ptrace(self.tree) and not needs.traceable():
            raise LabError(
                "this release lacks the seccomp mode of User-Mode Linux; its ptrace mode hangs on "
                "processors with AMX such as this one: build release 6.16 or later"
            )

    def _make(self, *words: str, line: Callable[[str], object] | None = None) -> None:
        jobs = self.wanted.jobs or len(os.sched_getaffinity(0))
        temporary = self.work / "tmp"
        temporary.mkdir(exist_ok=True)
        command = ["make", f"-j{jobs}", "ARCH=um", f"O={self.objects}", *words]
        commands.run(command, self.tree, self.log / "kernel", commands.environment(temporary), line)

    def _configure(self, *, static: bool) -> None:
        self.objects.mkdir(exist_ok=True)
        config, stamp = self.objects / ".config", self.work / "configured"
        lines = self.options.lines(self.wanted.hz, static=static)
        if not stamp.exists() or stamp.read_text("utf-8") != lines:
            stamp.unlink(missing_ok=True)
            self._make("allnoconfig")
            with config.open("a", encoding="utf-8") as file:
                file.write(lines)
            self._make("olddefconfig")
            stamp.write_text(lines, "utf-8")
        made = set(config.read_text("utf-8").splitlines())
        lacking = [name for name in self.options.on if f"CONFIG_{name}=y" not in made]
        if required := sorted(self.options.required.intersection(lacking)):
            raise LabError(
                f"this source cannot be built for virtual time: it lacks {', '.join(required)}"
            )
        if f"CONFIG_HZ={self.wanted.hz}" not in made:
            raise LabError(
                f"HZ can only be set with the patch {patches.HZ}, which was omitted or does not "
                "apply: use --hz 100"
            )
        if missed := [name for name in lacking if name not in self.options.optional]:
            self.note(f"this source lacks {', '.join(missed)}: the kernel is built without it")

    def _compile(self) -> bool:
        """Compiles and links the kernel; returns whether it is a static program."""
        tell = self.stage("configuring")
        static = True
        self._configure(static=True)
        tell = self.stage("compiling")
        before = done = sum(1 for _ in self.objects.rglob(".*.o.cmd"))

        def line(text: str) -> None:
            nonlocal done
            if text.startswith(("  CC ", "  AS ")):
                done += 1
                tell(f"{done} files", min((done - before) / max(STEPS - before, 1), 0.99))

        tell(f"{done} files", 0.0)
        try:
            self._make("linux", line=line)
        except commands.Failed:
            # With some C libraries, the kernel cannot be linked statically.
            static = False
            self._configure(static=False)
            self._make("linux", line=line)
        return static

    def _programs(self, archive: Path) -> Path:
        """Compiles `ip` and `tc`, if necessary; returns the folder of iproute2."""
        folder = self.work / "iproute2"
        if (
            all((folder / name / name).is_file() for name in ("ip", "tc"))
            and (folder / "done").exists()
        ):
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        tell = self.stage("compiling ip and tc")
        sources.unpack(archive, folder, tell)
        environment = commands.environment(self.work / "tmp") | {"PKG_CONFIG": "false"}
        log = self.log / "iproute2"
        # Without pkg-config, iproute2 is compiled without libraries that a guest lacks.
        commands.run(["./configure"], folder, log, environment)
        config = folder / "config.mk"
        lines = [
            "PKG_CONFIG:=false" if line.startswith("PKG_CONFIG") else line
            for line in config.read_text("utf-8").splitlines()
        ]
        config.write_text("\n".join([*lines, ""]), "utf-8")
        jobs = self.wanted.jobs or len(os.sched_getaffinity(0))
        done = 0

        def line(text: str) -> None:
            nonlocal done
            done += text.startswith("    CC ")
            tell(f"{done} files", min(done / 170, 0.99))

        words = ["make", f"-j{jobs}", "SHARED_LIBS=n", "SUBDIRS=lib ip tc", "LDFLAGS=-static"]
        commands.run(words, folder, log, environment, line)
        (folder / "done").touch()
        return folder

    def _complete(self, described: Described, programs: Path) -> kernels.Kernel:
        """Boots the kernel, writes its description, and moves it into its folder."""
        self.stage("booting the kernel")
        result = self.work / "result"
        shutil.rmtree(result, ignore_errors=True)
        (result / "patches").mkdir(parents=True)
        for path, name in (
            (self.objects / "linux", "linux"),
            (programs / "ip" / "ip", "ip"),
            (programs / "tc" / "tc", "tc"),
        ):
            commands.run(
                ["strip", "-o", str(result / name), str(path)],
                self.work,
                self.log / "strip",
                commands.environment(self.work / "tmp"),
            )
        shutil.copy(self.objects / ".config", result / "config")
        texts = [self.tree / name for name in LICENCES]
        (result / "COPYING").write_text(
            "\n".join(path.read_text("utf-8") for path in texts if path.is_file()), "utf-8"
        )
        shutil.copy(programs / "COPYING", result / "COPYING.iproute2")
        for name in described["patches"]:
            (result / "patches" / f"{name}.patch").write_text(patches.text(name), "utf-8")
        facts = boot(result, described)
        release = str(facts.pop("release"))
        whole = {"release": release, **described, "facts": facts}
        with (result / kernels.DESCRIPTION).open("w", encoding="utf-8") as file:
            json.dump(whole, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        target = self._target(release, described["build"])
        result.rename(target)
        kernel = kernels.read(target)
        assert kernel is not None, "the kernel has a description"
        return kernel

    def _target(self, release: str, identity: str) -> Path:
        """Returns the path of the new kernel's folder; removes an existing folder at this path."""
        name = self.wanted.name or f"{release}-hz{self.wanted.hz}"
        target = self.place / name
        if (target / kernels.DESCRIPTION).exists():
            if self.wanted.name is not None:
                raise LabError(f"the kernel {name} already exists: use sojourn linux remove {name}")
            self.note(
                f"a kernel {name} already exists: a hash is added to the name of the new kernel"
            )
            target = self.place / f"{name}-{identity[:8]}"
        shutil.rmtree(target, ignore_errors=True)  # an interrupted removal may have left files
        return target

    def _clean(self) -> None:
        if self.wanted.keep:
            self.note(f"source and object files are in {self.work}")
            return
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.rmtree(self.downloads, ignore_errors=True)
        if not any((self.place / WORK).iterdir()):
            (self.place / WORK).rmdir()


def boot(folder: Path, described: Described) -> Object:
    """Boots a folder's kernel without a job; returns the features that the kernel reports.

    Raises `LabError` if the kernel does not run.
    """
    kernel = kernels.Kernel(
        folder, folder.name, "", described["hz"], described["build"],
        tuple(described["patches"]), kernels.Facts((), (), ()),
    )  # fmt: skip
    end = time.monotonic() + BOOT
    try:
        with guest.Guest(kernel, seed=1) as started:
            started.start({})
            output = started.wait(lambda _now: time.monotonic() < end)
    except Stopped:
        what = f"the kernel was built, but did not boot within {BOOT:g} s"
        raise LabError(what) from None
    except LabError as error:
        raise LabError(f"the kernel was built, but does not run here: {error}") from error
    if "facts.json" not in output.files:
        report = output.files.get("done.json", b"").decode("utf-8", errors="replace")
        raise LabError(f"the kernel was built, but its first process failed: {report}")
    facts: Object = json.loads(output.files["facts.json"])
    return facts
