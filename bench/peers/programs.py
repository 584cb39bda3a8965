"""Adapters for the programs that run the dumbbells: Sojourn, builds of ns-3, and htsim."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "crosscheck"))

import ns3  # noqa: E402
import ours  # noqa: E402
from grid import BUFFER, FRAME, SEGMENT, Cell, queue  # noqa: E402
from interleave import Missing, Program, Run  # noqa: E402

BUILD = ROOT / "target" / "crosscheck"
SEED = 1


def _of(result: dict[str, Any]) -> Run:
    return Run(
        int(result["packets_whole_run"]),
        int(result["back_whole_run"]),
        int(result["drops"]),
        float(result["goodput_bps"]),
        float(result["cpu_s"]),
    )


def own_name(single: bool) -> str:
    """Returns the name of Sojourn with the rule of acknowledgements."""
    return "Sojourn, each segment acknowledged" if single else "Sojourn"


def sojourn(single: bool, build: str) -> Program:
    """Returns Sojourn, which runs in this process.

    Its runs include the trace hash, the conservation checks and the default probes.
    """
    tcp = f"{ours.TCP} delack_timeout 0" if single else ours.TCP
    return Program(own_name(single), lambda cell: _of(ours.run(cell, SEED, tcp)), single, build)


def ns3_of(library: Callable[[], ns3.Library]) -> Program:
    """Returns the program for a build of ns-3; raises `Missing` without a build."""
    try:
        found = library()
        program = ns3.compile_dumbbell(BUILD, found)
    except ns3.Missing as why:
        raise Missing(f"ns-3: {why}") from why

    def run(cell: Cell) -> Run:
        return _of(ns3.run(program, ns3.arguments(cell, SEED)))

    return Program(found.name, run, single=False, build="")


def htsim(program: Path) -> Program:
    """Returns htsim: the program that was compiled from `bench/htsim/dumbbell.cc`."""
    if not program.is_file():
        raise Missing(f"htsim: {program} is not an executable program")

    def run(cell: Cell) -> Run:
        paths = cell.paths
        options = {
            "flows": cell.flows,
            "rate": cell.rate,
            "accessRate": paths.access_rate,
            "rttMin": paths.rtt_min_ms / 1e3,
            "rttMax": paths.rtt_max_ms / 1e3,
            "bottleneckDelay": paths.bottleneck_ms / 1e3,
            "receiverDelay": paths.receiver_ms / 1e3,
            "duration": cell.duration_s,
            "startSpread": paths.start_spread_s,
            "frame": FRAME,
            "segment": SEGMENT,
            "limit": queue(cell.queue, cell.rate).ns3["limit"],
            "buffer": BUFFER,
            "seed": SEED,
        }
        words = [str(program.resolve()), *(f"--{k}={v!r}" for k, v in options.items())]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return _of(json.loads(done.stdout))

    return Program("htsim", run, single=True, build="-O3, as in its Makefile")
