"""Findings on the simulator, Open vSwitch, Java and Cassandra."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from sojourn import _core, wasm
from sojourn.doctor import modules, programs
from sojourn.doctor.finding import Finding
from sojourn.lab import openvswitch
from sojourn.lab.cassandra import VERSION, artefacts, java
from sojourn.lab.errors import LabError, Unavailable
from sojourn.templates import template

SIMULATED = "2s"
"""Duration of the simulated run."""


def simulator() -> list[Finding]:
    """Examines the simulator by a run."""
    found = [Finding("engine", "yes", f"{_core.version()}, made from {_core.fingerprint()[:12]}")]
    scenario = template("home").scenario().replace(duration=SIMULATED, warmup="0s")
    begin = time.perf_counter()
    run = scenario.run(seed=1)
    took = time.perf_counter() - begin
    text = f"{SIMULATED} of the template `home` in {took:.2f} s"
    state = "yes" if run.complete else "no"
    return [*found, Finding("a run", "yes" if state == "yes" else "no", text)]


def browsers() -> list[Finding]:
    """Examines whether the engine for browsers is installed."""
    try:
        found = Finding("engine for browsers", "yes", f"{len(wasm.module()) >> 10} KiB")
    except wasm.ModuleMissing:
        found = Finding("engine for browsers", "no", "not installed", wasm.REMEDY)
    return [found]


def switch() -> list[Finding]:
    """Examines Open vSwitch and its datapaths."""
    name = "Open vSwitch"
    try:
        openvswitch.require("user")  # `kernel` could load a module
    except Unavailable as error:
        lacking = list(openvswitch.PROGRAMS)
        return [Finding(name, "no", error.message, programs.install(lacking), needed=False)]
    version = programs.program("ovs-vswitchd", "the switch of balanced flows")
    return [replace(version, name=name), Finding("datapaths", "yes", datapaths(), needed=False)]


def datapaths(root: Path = Path("/")) -> str:
    """Returns a description of the available datapaths of Open vSwitch."""
    match modules.where("openvswitch", root):
        case "here" if modules.modular(root):
            return "user space; the kernel's datapath is loaded"
        case "on disk":
            return "user space; the kernel's datapath is a module, loaded at its first use"
        case "unknown":
            return "user space; the kernel's datapath cannot be detected from here"
        case _:
            return "user space; this kernel has no datapath, but it is not required"


def cassandra() -> list[Finding]:
    """Examines Java and the jars of Cassandra."""
    found = []
    try:
        path, major = java.found_java()
    except LabError as error:
        found.append(Finding("Java", "no", _before(error), java.advice(), needed=False))
    else:
        found.append(Finding("Java", "yes", f"{major} ({path})", needed=False))
    name = f"Cassandra {VERSION}"
    lacking = artefacts.missing()
    if lacking:
        text = f"{len(lacking)} of {len(artefacts.pinned())} jars are missing"
        found.append(Finding(name, "no", text, "sojourn store fetch", needed=False))
    else:
        found.append(Finding(name, "yes", str(artefacts.folder()), needed=False))
    return found


def _before(error: LabError) -> str:
    return error.message if isinstance(error, Unavailable) else str(error)
