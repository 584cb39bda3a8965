"""Findings on programs that real runs use."""

from __future__ import annotations

from sojourn.doctor.finding import Finding
from sojourn.lab.errors import Unavailable
from sojourn.lab.machine import needs, packages
from sojourn.lab.programs import installed
from sojourn.lab.programs.installed import Kind

OTHERS = {
    "curl": Kind(("--version",), r"curl (\d[\w.]*)"),
    "ovs-vswitchd": Kind(("--version",), r"\(Open vSwitch\) (\d[\w.]*)"),
    "tc": Kind(("-V",), r"iproute2-v?(\d[\w.]*)"),
    "tshark": Kind(("--version",), r"TShark[^\d]*(\d[\w.]*)"),
}
"""How programs report their versions, for programs that no application of a scenario needs."""


def program(name: str, use: str, *, needed: bool = False) -> Finding:
    """Examines whether a program is installed in a supported version; `use` is its purpose."""
    kind = installed.PROGRAMS.get(name) or OTHERS[name]
    try:
        path = needs.find_program(name)
    except Unavailable:
        return Finding(name, "no", f"not installed: {use}", install([name]), needed)
    version = installed.version(path, kind)
    if kind.least and not installed.recent(version, kind):
        least = ".".join(map(str, kind.least))
        found = f"{version or 'of an unknown version'}; {least} or later is required: {use}"
        return Finding(name, "no", found, install([name]), needed)
    return Finding(name, "yes", f"{version or path}: {use}", needed=needed)


def install(names: list[str]) -> str:
    """Returns the command that installs programs on this distribution."""
    return packages.install(names, packages.family() or packages.DEBIAN)
