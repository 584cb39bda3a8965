"""A queue as configuration files of systemd-networkd (systemd.network(5)).

networkd cannot redirect incoming traffic to an `ifb` device, which a queue for incoming traffic
requires. In this case a systemd service runs the commands of `tc`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sojourn import _core
from sojourn.scenario import tc
from sojourn.scenario.errors import Problem, ScenarioError
from sojourn.scenario.placement import Placement
from sojourn.scenario.steps import Steps

FOLDER = "/etc/systemd/network"


@dataclass(frozen=True)
class _Section:
    """Section of a .network file for a discipline, and its keys for the discipline's words."""

    name: str
    keys: dict[str, str] = field(default_factory=dict)
    """Key in the section for each word that takes a value."""
    flags: dict[str, str] = field(default_factory=dict)
    """Assignment in the section for each word without a value."""


_ECN = {"ecn": "ECN=yes", "noecn": "ECN=no"}
_DELAYS = {"target": "TargetSec", "interval": "IntervalSec", "ce_threshold": "CEThresholdSec"}
_LIMIT = {"limit": "PacketLimit"}
_SECTIONS = {
    "pfifo": _Section("PFIFO", _LIMIT),
    "bfifo": _Section("BFIFO", {"limit": "LimitBytes"}),
    "pie": _Section("PIE", _LIMIT),
    "fq_pie": _Section("FlowQueuePIE", _LIMIT),
    "sfb": _Section("StochasticFairBlue", _LIMIT),
    "codel": _Section("ControlledDelay", _LIMIT | _DELAYS, _ECN),
    "fq_codel": _Section(
        "FairQueueingControlledDelay",
        _LIMIT
        | _DELAYS
        | {"flows": "Flows", "quantum": "QuantumBytes", "memory_limit": "MemoryLimitBytes"},
        _ECN,
    ),
    "cake": _Section(
        "CAKE",
        {"overhead": "OverheadBytes", "mpu": "MPUBytes", "rtt": "RTTSec"},
        {
            **{word: f"CompensationMode={word}" for word in ("atm", "ptm")},
            "noatm": "CompensationMode=none",
            "raw": "UseRawPacketSize=yes",
            "wash": "Wash=yes",
            "nowash": "Wash=no",
            "ack-filter": "AckFilter=yes",
            "no-ack-filter": "AckFilter=no",
            "ack-filter-aggressive": "AckFilter=aggressive",
            "flowblind": "FlowIsolationMode=none",
            "srchost": "FlowIsolationMode=src-host",
            "dsthost": "FlowIsolationMode=dst-host",
            "dual-srchost": "FlowIsolationMode=dual-src-host",
            "dual-dsthost": "FlowIsolationMode=dual-dst-host",
            "triple-isolate": "FlowIsolationMode=triple",
            **{word: f"FlowIsolationMode={word}" for word in ("hosts", "flows")},
            **{
                word: f"PriorityQueueingPreset={word}"
                for word in ("besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8")
            },
        },
    ),
}
"""Sections by discipline. networkd has no section for `red`, `choke` and `dualpi2`."""

_SINCE_253 = ("RTTSec", "AckFilter")
"""Keys of CAKE that versions of systemd before 253 do not know."""


def steps(placed: Placement) -> Steps:
    """Returns the steps: a drop-in file for outgoing traffic, a service for incoming traffic."""
    return _service(placed) if placed.ingress else _drop_in(placed)


def _service(placed: Placement) -> Steps:
    """Returns the steps of a systemd service that is active while the interface exists."""
    made = tc.steps(placed)
    dev = placed.interface
    unit = f"sojourn-ingress-{dev}.service"
    device = f"sys-subsystem-net-devices-{_escaped(dev)}.device"
    text = "\n".join(
        [
            "[Unit]",
            f"Description=Queue for incoming traffic of {dev}",
            f"BindsTo={device}",
            f"After={device}",
            "",
            "[Service]",
            "Type=oneshot",
            "RemainAfterExit=yes",
            *(f"ExecStart={command}" for command in made.commands),
            *(f"ExecStopPost=-{command}" for command in made.undo),
            "",
            "[Install]",
            f"WantedBy={device}",
            "",
        ]
    )
    path = f"/etc/systemd/system/{unit}"
    return Steps(
        ("systemctl daemon-reload", f"systemctl enable --now {unit}"),
        (f"systemctl disable --now {unit}", f"rm {path}", "systemctl daemon-reload"),
        (
            "networkd cannot redirect incoming traffic, so a service of systemd runs `tc`.",
            *made.notes,
        ),
        made.device,
        ((path, text),),
    )


def _drop_in(placed: Placement) -> Steps:
    """Returns the steps of a drop-in for the file that configures the interface.

    The file itself is not changed.
    """
    dev = placed.interface
    lines = []
    if placed.is_root:
        lines += _discipline(placed, parent="root", handle="1")
    else:
        burst = tc.burst_of(placed.rate)
        lines += [
            "[HierarchyTokenBucket]", "Parent=root", "Handle=1", "DefaultClass=10", "",
            "[HierarchyTokenBucketClass]", "Parent=root", "ClassId=1:10",
            f"Rate={placed.rate}", f"CeilRate={placed.rate}",
            f"BufferBytes={burst}", f"CeilBufferBytes={burst}", "QuantumBytes=1514",
        ]  # fmt: skip
        if placed.cells == "atm":
            raise _refused(
                "networkd cannot set ATM cells for a shaper: use `cake`, or the format `tc`"
            )
        if placed.added < 0:
            raise _refused(
                "networkd cannot set an overhead below zero for a shaper: use the format `tc`"
            )
        if placed.added:
            lines.append(f"OverheadBytes={placed.added}")
        lines += ["", *_discipline(placed, parent="1:10", handle="10")]
    path = f"{FOLDER}/NETWORK.network.d/50-sojourn.conf"
    notes = [
        (
            f"Replace NETWORK with the name of the file that configures {dev} now; `networkctl "
            f"status {dev}` shows it. A separate .network file would replace that file, "
            "including its addresses."
        ),
        tc.replaced(placed),
    ]
    if placed.mpu and not placed.is_root:
        notes.append(
            f"networkd cannot set the smallest length on the line, {placed.mpu} bytes, for a "
            "shaper: many short packets may exceed the line's rate. The format `tc` sets it."
        )
    if any(line.startswith(_SINCE_253) for line in lines):
        notes.append(f"systemd supports {' and '.join(_SINCE_253)} since version 253.")
    if placed.is_cake and "nat" not in placed.router:
        notes.append("On a router that translates addresses (NAT), add `NAT=yes`.")
    return Steps(
        ("networkctl reload", f"networkctl reconfigure {dev}"),
        (f"rm {path}", "networkctl reload", f"tc qdisc del dev {dev} root"),
        tuple(notes),
        dev,
        ((path, "\n".join([*lines, ""])),),
    )


def _discipline(placed: Placement, *, parent: str, handle: str) -> list[str]:
    """Returns the discipline's section; raises `ScenarioError` if networkd cannot express it."""
    kind, *words = placed.modelled.split()
    section = _SECTIONS.get(kind)
    if section is None:
        raise _refused(f"networkd has no section for `{kind}`: use the format `tc`")
    lines = [f"[{section.name}]", f"Parent={parent}", f"Handle={handle}"]
    usual = _rendered(kind, placed.rate)
    kept = kind
    rest = iter(words)
    for word in rest:
        if word in section.keys:
            value = next(rest)
            said, line = f"{word} {value}", f"{section.keys[word]}={value}"
        elif word in section.flags:
            said, line = word, section.flags[word]
        else:
            continue
        kept += f" {said}"
        # Keys unknown to old versions of systemd are omitted if their value is the default.
        if not (line.startswith(_SINCE_253) and f" {said} " in f"{usual} "):
            lines.append(line)
    if placed.is_cake:
        kept += f" bandwidth {placed.rate}bit"
        lines.append(f"Bandwidth={placed.rate}")
    # A word without a key in networkd may be omitted only if it equals the kernel's default.
    again = _rendered(kept, placed.rate)
    if again != placed.modelled:
        differing = [word for word in words if word not in again.split()]
        raise _refused(
            f"networkd cannot set `{' '.join(differing)}` of `{kind}`: use the format `tc`"
        )
    if "fwmark" in placed.router:
        raise _refused("networkd cannot set `fwmark` of `cake`: use the format `tc`")
    return [*lines, "NAT=yes"] if "nat" in placed.router else lines


def _rendered(queue: str, rate: int) -> str:
    return _core.queue_to_tc(_core.parse_queue(queue, 1514, 1000, rate))


def _escaped(dev: str) -> str:
    """Returns an interface's name as `systemd-escape` writes it in the name of a unit."""
    return "".join(c if c.isalnum() or c in ":_." else f"\\x{ord(c):02x}" for c in dev)


def _refused(message: str) -> ScenarioError:
    return ScenarioError([Problem(message)])
