"""Names of packages by program and distribution, and the commands that install them."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """Distributions that have the same names of packages."""

    name: str
    """Key in the entries of `PACKAGES`."""
    called: str
    """Name for display."""
    install: str
    """Install command, before the package names."""
    members: frozenset[str]
    """Values of `ID` or `ID_LIKE` in /etc/os-release."""


DEBIAN = Family(
    "debian", "Debian and Ubuntu", "sudo apt-get install", frozenset({"debian", "ubuntu"})
)
FAMILIES = (
    DEBIAN,
    Family(
        "fedora",
        "Fedora and Red Hat",
        "sudo dnf install",
        frozenset({"fedora", "rhel", "centos", "rocky", "almalinux"}),
    ),
    Family("arch", "Arch Linux", "sudo pacman -S", frozenset({"arch", "archlinux"})),
    Family(
        "suse",
        "openSUSE",
        "sudo zypper install",
        frozenset({"suse", "opensuse", "opensuse-leap", "opensuse-tumbleweed", "sles"}),
    ),
    Family("alpine", "Alpine Linux", "sudo apk add", frozenset({"alpine"})),
)

_OPENVSWITCH = {"debian": "openvswitch-switch", "": "openvswitch"}
_OPENVSWITCH_COMMON = {"debian": "openvswitch-common", "": "openvswitch"}

PACKAGES: Mapping[str, Mapping[str, str]] = {
    "bc": {"": "bc"},
    "bison": {"": "bison"},
    "curl": {"": "curl"},
    "ethtool": {"": "ethtool"},
    "flent": {"": "flent"},
    "flex": {"": "flex"},
    "gcc": {"": "gcc"},
    "ip": {"fedora": "iproute", "": "iproute2"},
    "iperf3": {"suse": "iperf", "": "iperf3"},
    "java": {
        "debian": "openjdk-17-jre-headless",
        "arch": "jre17-openjdk-headless",
        "alpine": "openjdk17-jre-headless",
        "": "java-17-openjdk-headless",
    },
    "libc.a": {
        "debian": "libc6-dev",
        "fedora": "glibc-static",
        "arch": "glibc",
        "suse": "glibc-devel-static",
        "": "musl-dev",
    },
    "make": {"": "make"},
    "nginx": {"debian": "nginx-light", "": "nginx"},
    "ovs-ofctl": _OPENVSWITCH_COMMON,
    "ovs-vsctl": _OPENVSWITCH,
    "ovs-vswitchd": _OPENVSWITCH,
    "ovsdb-server": _OPENVSWITCH_COMMON,
    "ovsdb-tool": _OPENVSWITCH_COMMON,
    "ping": {"debian": "iputils-ping", "": "iputils"},
    "sockperf": {"": "sockperf"},
    "strip": {"": "binutils"},
    "ss": {"fedora": "iproute", "": "iproute2"},
    "tc": {"fedora": "iproute-tc", "": "iproute2"},
    "tcpdump": {"": "tcpdump"},
    "tshark": {
        "fedora": "wireshark-cli",
        "arch": "wireshark-cli",
        "suse": "wireshark",
        "": "tshark",
    },
    "zstd": {"": "zstd"},
}
"""Names of packages by program and family. The empty key applies to all families without a key."""


def release() -> Mapping[str, str]:
    """Returns the fields of /etc/os-release; empty if the file does not exist."""
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def family(of: Mapping[str, str] | None = None) -> Family | None:
    """Returns the family of a distribution; `None` if it is unknown.

    `of` has the fields of /etc/os-release; the default is this machine's.
    """
    fields = release() if of is None else of
    ids = [fields.get("ID", ""), *fields.get("ID_LIKE", "").split()]
    return next((f for name in ids for f in FAMILIES if name in f.members), None)


def packages(programs: Iterable[str], of: Family) -> list[str]:
    """Returns the packages of programs, each once; programs with unknown packages are omitted."""
    known = [PACKAGES[program] for program in programs if program in PACKAGES]
    return sorted({names.get(of.name, names[""]) for names in known})


def install(programs: Iterable[str], of: Family) -> str:
    """Returns the command that installs programs; empty if no package is known."""
    wanted = packages(programs, of)
    return f"{of.install} {' '.join(wanted)}" if wanted else ""
