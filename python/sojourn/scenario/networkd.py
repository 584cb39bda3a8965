"""A queue as configuration of systemd-networkd (systemd.network(5)).

Incoming traffic must be redirected to an `ifb` device, for which networkd has no words: there a
service runs the commands of `tc`.
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
    """The section of a discipline, and the keys of its words."""

    name: str
    keys: dict[str, str] = field(default_factory=dict)
    """By a word that a value follows."""
    flags: dict[str, str] = field(default_factory=dict)
    """By a word that stands alone: a whole assignment."""


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
}  # fmt: skip
"""By discipline. networkd has no section for `red`, `choke` and `dualpi2`."""

_SINCE_253 = ("RTTSec", "AckFilter")
"""Keys of CAKE that older versions of systemd do not know."""


def steps(placed: Placement) -> Steps:
    """Makes a drop-in for outgoing traffic, a service for incoming."""
    return _service(placed) if placed.ingress else _drop_in(placed)


def _service(placed: Placement) -> Steps:
    """A service that lives as long as the interface does."""
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
    """A drop-in beside the file that configures the interface, which stays as it is."""
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
            raise _refused("networkd has no ATM cells for a shaper: use `cake`, or tc's commands")
        if placed.overhead < 0:
            raise _refused("networkd has no overhead below zero for a shaper")
        if placed.overhead:
            lines.append(f"OverheadBytes={placed.overhead}")
        lines += ["", *_discipline(placed, parent="1:10", handle="10")]
    path = f"{FOLDER}/NETWORK.network.d/50-sojourn.conf"
    notes = [
        (
            f"Replace NETWORK by the name of the file that configures {dev} now, which `networkctl "
            f"status {dev}` shows. A separate .network file would take that file's place, "
            "addresses and all."
        ),
        tc.replaced(placed),
    ]
    if any(line.startswith(_SINCE_253) for line in lines):
        notes.append(f"systemd knows {' and '.join(_SINCE_253)} since version 253.")
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
    """The discipline's section; raises `ScenarioError` for what networkd has no words for."""
    kind, *words = placed.modelled.split()
    section = _SECTIONS.get(kind)
    if section is None:
        raise _refused(f"networkd has no section for `{kind}`: use the commands of tc")
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
        # Keys that older versions do not know are left out where they say nothing new.
        if not (line.startswith(_SINCE_253) and f" {said} " in f"{usual} "):
            lines.append(line)
    if placed.is_cake:
        kept += f" bandwidth {placed.rate}bit"
        lines.append(f"Bandwidth={placed.rate}")
    # Words that networkd has not are no loss where they are the kernel's defaults.
    again = _rendered(kept, placed.rate)
    if again != placed.modelled:
        differing = [word for word in words if word not in again.split()]
        raise _refused(
            f"networkd cannot set `{' '.join(differing)}` of `{kind}`: use the commands of tc"
        )
    if "fwmark" in placed.router:
        raise _refused("networkd cannot set `fwmark` of `cake`: use the commands of tc")
    return [*lines, "NAT=yes"] if "nat" in placed.router else lines


def _rendered(queue: str, rate: int) -> str:
    return _core.queue_to_tc(_core.parse_queue(queue, 1514, 1000, rate))


def _escaped(dev: str) -> str:
    """An interface in the name of its unit, as `systemd-escape` writes it."""
    return "".join(c if c.isalnum() or c in ":_." else f"\\x{ord(c):02x}" for c in dev)


def _refused(message: str) -> ScenarioError:
    return ScenarioError([Problem(message)])
