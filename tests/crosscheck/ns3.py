"""ns-3's half: finds the library, compiles `dumbbell.cc`, runs it and keeps what it said."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from grid import (
    ACCESS_RATE,
    BOTTLENECK_DELAY_MS,
    BUFFER,
    FRAME,
    RECEIVER_DELAY_MS,
    RTT_MAX_MS,
    RTT_MIN_MS,
    SEGMENT,
    START_SPREAD_S,
    Cell,
    queue,
)

HERE = Path(__file__).resolve().parent
MODULES = ("applications", "internet", "point-to-point", "traffic-control", "network", "core")
# Only ns-3's own libraries: Debian's .pc files also name development files of libraries (gsl,
# sqlite) that are needed to build ns-3, not to use it.
INDIRECT = ("bridge", "stats")
MISSING = """ns-3 is not installed here, so there is nothing to compare with.
  On Debian or Ubuntu:  apt-get install libns3-dev g++ pkg-config
  (the cross-check is made for ns-3 3.37, Debian 12's)
  With figures recorded from ns-3 earlier:  python tests/crosscheck/run.py --recorded"""


class Missing(Exception):
    """ns-3, or what it needs, is not on this machine."""


def version() -> str:
    """The library's version, or `Missing`."""
    if not shutil.which("pkg-config"):
        raise Missing("pkg-config is not installed")
    done = subprocess.run(
        ["pkg-config", "--modversion", "ns3-core"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise Missing("pkg-config knows no ns3-core")
    if not shutil.which("g++"):
        raise Missing("g++ is not installed")
    return done.stdout.strip()


def build_name() -> str:
    """Which build of ns-3 this is: ratios of speed mean nothing without it."""
    where = "ns-3 " + version()
    done = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Version}", "libns3-dev"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0 and done.stdout:
        where += f" (Debian libns3-dev {done.stdout}: release build with logging compiled in)"
    return where


def compile_dumbbell(folder: Path, source: Path = HERE / "dumbbell.cc") -> Path:
    """The program, compiled again only if its source or the library changed."""
    tag = hashlib.sha256(source.read_bytes() + version().encode()).hexdigest()[:16]
    program = folder / f"dumbbell-{tag}"
    if program.exists():
        return program
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{program.name}.{os.getpid()}"
    done = subprocess.run(
        ["g++", "-std=c++17", "-O2", "-o", str(draft), str(source)]
        + [f"-lns3-{m}" for m in MODULES + INDIRECT],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise Missing("dumbbell.cc does not compile:\n" + done.stderr.strip())
    draft.rename(program)
    return program


def arguments(cell: Cell, seed: int) -> dict[str, str | int | float]:
    """The command line of one run."""
    return {
        "flows": cell.flows,
        "rate": cell.rate,
        "frame": FRAME,
        "accessRate": ACCESS_RATE,
        "rttMin": f"{RTT_MIN_MS}ms",
        "rttMax": f"{RTT_MAX_MS}ms",
        "bottleneckDelay": f"{BOTTLENECK_DELAY_MS}ms",
        "receiverDelay": f"{RECEIVER_DELAY_MS}ms",
        "deviceQueue": 0,
        "duration": cell.duration_s,
        "warmup": cell.warmup_s,
        "startSpread": START_SPREAD_S,
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
