"""A source of a kernel, and programs, that compile in a second: for a build's stages.

`python -m tests.linux.fake FOLDER STAGE WORDS` builds it, and dies when this stage says that.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import signal
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from sojourn.linux import build, guest, needs, sources
from sojourn.linux.settings import Build

OBJECTS = 6
MAKEFILE = """
allnoconfig:
\t@mkdir -p $(O); echo CONFIG_FAKE=y > $(O)/.config
olddefconfig:
\t@grep -q Timer arch/um/Kconfig || sed -i s/^CONFIG_HZ=.*/CONFIG_HZ=100/ $(O)/.config
\t@if [ -e lacks ]; then sed -i "/CONFIG_$$(cat lacks)=/d" $(O)/.config; fi
linux: $(O)/linux
$(O)/linux: $(foreach n,1 2 3 4 5 6,$(O)/$(n).o)
\t@cp /bin/true $@
$(O)/%.o:
\t@echo "  CC      $*.o"; sleep 0.1; if [ -e says ]; then cat says; exit 1; fi
\t@echo $* >> $(O)/../compiled; touch $(O)/.$*.o.cmd $@
"""
UTIL = """
int before(void)
{
}

ssize_t os_getrandom(void *buf, size_t len, unsigned int flags)
{
\treturn getrandom(buf, len, flags);
}

/*
 */
"""
FILES = {
    "Makefile": MAKEFILE,
    "COPYING": "see LICENSES\n",
    "LICENSES/preferred/GPL-2.0": "GPL\n",
    "arch/um/Makefile": "",
    "arch/um/Kconfig": "config HZ\n\tint\n\tdefault 100\n",
    "arch/um/os-Linux/start_up.c": '__uml_setup("seccomp=", x);\n',
    "arch/um/os-Linux/util.c": UTIL,
    "net/ipv4/tcp.c": "int tcp;\n",
}
PROGRAMS = {
    "configure": "#!/bin/sh\necho 'PKG_CONFIG:=pkg-config' > config.mk\n",
    "Makefile": "all:\n\t@echo '    CC x.o'; grep -q =false config.mk\n"
    "\t@mkdir -p ip tc; cp /bin/true ip/ip; cp /bin/true tc/tc\n",
    "COPYING": "GPL",
}
FACTS = {
    "release": "9.1.2",
    "controls": ["cubic", "reno"],
    "cubic": [["beta", "717"]],
    "sysctls": ["tcp_sack"],
}


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write files into a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o644)
    return folder


def tarball(path: Path, files: dict[str, str], around: str = "linux-9.1.2") -> Path:
    """Write an archive; how it is compressed follows from its name."""
    how: Any = f"w:{path.suffix[1:]}" if path.suffix != ".tar" else "w"
    with tarfile.open(path, how) as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(f"{around}/{name}")
            member.size = len(text)
            member.mode = 0o755 if text.startswith("#!") else 0o644
            tar.addfile(member, io.BytesIO(text.encode()))
    return path


def facts(_folder: Path, _described: dict[str, Any]) -> dict[str, Any]:
    """The output of a boot."""
    return dict(FACTS)


@contextlib.contextmanager
def machine(folder: Path) -> Iterator[None]:
    """A cache in a folder, Debian's pool in another, and a kernel that boots."""
    pool = folder / "mirror" / "pool"
    pool.mkdir(parents=True, exist_ok=True)
    programs = pool / "iproute2.tar.xz"
    if not programs.exists():
        tarball(programs, PROGRAMS, "iproute2-1")
    pin = sources.Pin(programs.name, hashlib.sha256(programs.read_bytes()).hexdigest(), "0")
    with (
        mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(folder / "cache")}),
        mock.patch.object(sources, "pins", return_value={sources.IPROUTE2: pin}),
        mock.patch.object(needs, "lacking", return_value=[]),
        mock.patch.object(guest, "init", return_value=Path("/bin/true")),
        mock.patch.object(build, "boot", facts),
    ):
        yield


def make(
    folder: Path, source: Path, *, told: Callable[[str, str], object] | None = None, **words: Any
) -> tuple[build.Made, list[str], list[str]]:
    """Build; return the kernel, the stages and the notes."""
    stages: list[str] = []
    notes: list[str] = []

    def stage(name: str) -> Callable[[str, float], None]:
        stages.append(name)
        tell("")

        return lambda words, _fraction: tell(words)

    def tell(words: str) -> None:
        if told is not None:
            told(stages[-1], words)

    mirror = (folder / "mirror").as_uri()
    wanted = Build(str(source), mirror=mirror, jobs=1, **words)
    with machine(folder):
        return build.build(wanted, stage, notes.append), stages, notes


def main() -> None:
    """Ends at the requested stage."""
    folder, stage, text = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

    def told(name: str, words: str) -> None:
        if name.startswith(stage) and words == text:
            os.kill(os.getpid(), signal.SIGKILL)

    make(folder, folder / "linux-9.1.2.tar.xz", told=told)


if __name__ == "__main__":
    main()
