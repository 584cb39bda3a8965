"""Hashes of a run in virtual time by the kernels' builds and the guests' first processes.

`python -m tests.linux.golden` records that of the kernel that runs take by default.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from sojourn.linux import kernels
from sojourn.linux.engine import LinuxEngine
from sojourn.linux.guest import init
from sojourn.scenario import Scenario
from tests.conftest import ROOT

FILE = Path(__file__).with_name("golden.json")
SEED = 1


def scenario() -> Scenario:
    """Uploads and a call for a minute."""
    home = Scenario.load(ROOT / "examples" / "home.toml")
    return home.replace({"duration": "60s", "links.uplink.queue": "fq_codel"})


def made(kernel: kernels.Kernel) -> str:
    """The hash of a run."""
    return LinuxEngine(kernel).simulate(scenario().plan, SEED).trace_hash


def build(kernel: kernels.Kernel) -> str:
    """The inputs of a run in addition to its scenario and seed."""
    return f"{kernel.build} {hashlib.sha256(init().read_bytes()).hexdigest()[:16]}"


def known() -> dict[str, str]:
    """The hashes by `build`."""
    found: dict[str, str] = json.loads(FILE.read_text("utf-8"))
    return found


def main() -> None:
    """Record the hash of the kernel that runs take by default."""
    kernel = kernels.find()
    text = json.dumps({build(kernel): made(kernel)}, indent=1)
    FILE.write_text(f"{text}\n", "utf-8")


if __name__ == "__main__":
    main()
