"""ns-3's half: finds the library, compiles `dumbbell.cc`, runs it and keeps what it said."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grid import BUFFER, FRAME, SEGMENT, Cell, queue

HERE = Path(__file__).resolve().parent
MODULES = ("applications", "internet", "point-to-point", "traffic-control", "network", "core")
# Only ns-3's own libraries: Debian's .pc files also name development files of libraries (gsl,
# sqlite) that are needed to build ns-3, not to use it.
INDIRECT = ("bridge", "stats")
PROFILES = ("debug", "default", "minsizerel", "optimized", "relwithdebinfo")
"""Suffixes of libraries; those of a release build have none."""
STANDARDS = ("c++20", "c++17")
"""Of the language: headers since 3.44 need the first, those of 3.37 do not compile with it."""
MISSING = """ns-3 is not installed here, so there is nothing to compare with.
  On Debian or Ubuntu:  apt-get install libns3-dev g++ pkg-config
  (the cross-check is made for ns-3 3.37, Debian 12's)
  With figures recorded from ns-3 earlier:  python tests/crosscheck/run.py --recorded"""


class Missing(Exception):
    """ns-3, or what it needs, is not on this machine."""


@dataclass(frozen=True)
class Library:
    """A build of ns-3."""

    version: str
    build: str
    """Origin and profile. Ratios of speed mean nothing without it."""
    flags: tuple[str, ...]
    """The compiler's words: headers, shared objects and their folder."""
    objects: tuple[Path, ...] = ()
    """The shared objects, if they are in a folder of their own."""

    @property
    def name(self) -> str:
        """Version and build."""
        return f"ns-3 {self.version} ({self.build})"


def installed() -> Library:
    """Returns the system's ns-3, or raises `Missing`."""
    if not shutil.which("pkg-config"):
        raise Missing("pkg-config is not installed")
    version = _output(["pkg-config", "--modversion", "ns3-core"])
    if not version:
        raise Missing("pkg-config knows no ns3-core")
    package = _output(["dpkg-query", "-W", "-f", "${Version}", "libns3-dev"])
    build = "of this system"
    if package:
        build = f"Debian {package}: release build with logging"
    return Library(version, build, tuple(f"-lns3-{m}" for m in MODULES + INDIRECT))


def in_folder(folder: Path) -> Library:
    """Returns the ns-3 that was built into a folder with `include` and `lib`, or raises `Missing`.

    These are the output folder of a build from source, an installed tree, or the folder `ns3` of a
    wheel.
    """
    headers = folder / "include"
    if not (headers / "ns3" / "core-module.h").exists():
        raise Missing(f"{folder} has no include/ns3/core-module.h")
    objects, version, profile = [], "", ""
    for module in MODULES + INDIRECT:
        found = re.compile(rf"libns(3[^-]*)(?:-dev)?-{module}(?:-({'|'.join(PROFILES)}))?\.so")
        named = [(p, m) for p in folder.glob("lib*/*.so") if (m := found.fullmatch(p.name))]
        if len(named) != 1:
            raise Missing(f"{folder} has {len(named)} libraries of ns-3's {module}, and not one")
        objects.append(named[0][0].resolve())
        version, profile = named[0][1][1], named[0][1][2] or "release"
    where = {p.parent for p in objects}
    flags = [f"-I{headers.resolve()}", *map(str, objects)]
    flags += [f"-Wl,-rpath,{p}" for p in sorted(where)]
    return Library(version, f"{profile} build", tuple(flags), tuple(objects))


def _output(command: list[str]) -> str:
    """Returns what a command prints, or an empty text if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def compile_dumbbell(folder: Path, library: Library, source: Path = HERE / "dumbbell.cc") -> Path:
    """Returns the program, compiled again only if its source or the library changed."""
    if not shutil.which("g++"):
        raise Missing("g++ is not installed")
    # Another build at the same place has other times.
    times = [f"{p} {p.stat().st_mtime_ns}" for p in library.objects]
    what = [library.name, *library.flags, *times]
    tag = hashlib.sha256(source.read_bytes() + "\n".join(what).encode()).hexdigest()[:16]
    program = folder / f"dumbbell-{tag}"
    if program.exists():
        return program
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{program.name}.{os.getpid()}"
    for standard in STANDARDS:
        done = subprocess.run(
            ["g++", f"-std={standard}", "-O2", "-o", str(draft), str(source), *library.flags],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            draft.rename(program)
            return program
    raise Missing("dumbbell.cc does not compile:\n" + done.stderr.strip())


def arguments(cell: Cell, seed: int) -> dict[str, str | int | float]:
    """The command line of one run."""
    paths = cell.paths
    return {
        "flows": cell.flows,
        "rate": cell.rate,
        "frame": FRAME,
        "accessRate": paths.access_rate,
        "rttMin": f"{paths.rtt_min_ms}ms",
        "rttMax": f"{paths.rtt_max_ms}ms",
        "bottleneckDelay": f"{paths.bottleneck_ms}ms",
        "receiverDelay": f"{paths.receiver_ms}ms",
        "deviceQueue": 0,
        "duration": cell.duration_s,
        "warmup": cell.warmup_s,
        "startSpread": paths.start_spread_s,
        "seed": seed,
        "segment": SEGMENT,
        "initialWindow": 10,
        "buffer": BUFFER,
        "delAckCount": 2,
        "delAckTimeout": "200ms",
        "minRto": "1s",
        "sack": "true",
        "limitedTransmit": "true",
        "prr": "true",
        "congestion": "TcpNewReno",
        "queue": cell.queue,
        **queue(cell.queue, cell.rate).ns3,
    }


def run(program: Path, args: dict[str, Any], cache: Path | None = None) -> dict[str, Any]:
    """One run's figures. ns-3 is deterministic: a run done before is read, not repeated."""
    words = [f"--{k}={v!r}" if isinstance(v, float) else f"--{k}={v}" for k, v in args.items()]
    kept = None
    if cache is not None:
        tag = hashlib.sha256("\n".join([program.name, *words]).encode()).hexdigest()[:24]
        kept = cache / f"{tag}.json"
        if kept.exists():
            return dict(json.loads(kept.read_text()))
    done = subprocess.run([str(program), *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{program.name} {' '.join(words)}\n{done.stdout}{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        draft = kept.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(result))
        draft.rename(kept)
    return result
