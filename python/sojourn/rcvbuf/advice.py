"""Recommendations for the sizes of receive buffers, from a tuner's measurements."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from sojourn.lab.wire.quantities import octets
from sojourn.rcvbuf.state import Drops, Snapshot, SocketState

RMEM_MAX = Path("/proc/sys/net/core/rmem_max")
"""File with the largest buffer that unprivileged programs may request."""
PATIENCE = 3.0
"""Time in seconds from a first loss to an empty buffer above which the server counts as too slow,
as `patience` of the policy `elastic`.
"""
GREATEST = 1 << 30
"""Largest recommended size in bytes, since the kernel doubles `SO_RCVBUF`, which is a 32-bit int.
"""
COARSE = 0.1
"""Interval between samples in seconds above which bursts cannot be told apart."""
SHOWN = 8
"""Maximum number of sockets in the output."""

Verdict = Literal["enough", "larger", "too_slow", "unknown"]


@dataclass(frozen=True)
class Advice:
    """The recommendation for one socket. Sizes are in bytes as the kernel counts them."""

    local: str
    """Local address and port."""
    process: str
    """Name of the process; empty if unknown."""
    verdict: Verdict
    drops: Drops
    """Number of dropped packets by reason."""
    bursts: int
    """Number of bursts with losses."""
    worst: int
    """Number of packets lost in the worst burst."""
    seconds: float
    """Longest time from a first loss until the server had emptied the buffer, in seconds."""
    held: int
    """Largest memory of packets in the buffer."""
    size: int | None
    """Current size of the receive buffer; `None` if unknown."""
    before: int | None
    """Size before the tuner changed it; `None` if it is unchanged."""
    needed: tuple[int, int]
    """Size that the worst burst needed: lower and upper bound."""
    so_rcvbuf: int | None
    """Recommended argument of `setsockopt`, which the kernel doubles; `None` without a
    recommendation.
    """


def advise(socket: SocketState) -> Advice:
    """Returns the recommendation for a socket of a snapshot."""
    need = socket["need"]
    seconds = need["longest"] / 1e9
    lost = socket["drops"]["buffer"]
    wanted = generous((need["most"] + 1) // 2)
    verdict: Verdict = "larger"
    if not lost:
        verdict = "enough"
    elif seconds > PATIENCE or wanted > GREATEST:
        verdict = "too_slow"
    elif socket["size"] is None:
        verdict = "unknown"
    return Advice(
        local=socket["local"],
        process=socket["process"],
        verdict=verdict,
        drops=socket["drops"],
        bursts=need["bursts"],
        worst=need["worst"],
        seconds=seconds,
        held=socket["peak_occupied"],
        size=socket["size"],
        before=socket["before"],
        needed=(need["least"], need["most"]),
        so_rcvbuf=wanted if verdict == "larger" else None,
    )


def generous(size: int) -> int:
    """Returns the size in bytes rounded up to 64 KiB, 96 KiB, 128 KiB, 192 KiB, and so on."""
    step = 64 << 10
    while step < size:
        if step // 2 * 3 >= size:
            return step // 2 * 3
        step *= 2
    return step


class Seen:
    """The last known measurements of up to `most` sockets, including closed sockets."""

    def __init__(self, most: int = 4096) -> None:
        self._most = most
        self._known: dict[int, SocketState] = {}
        self.last: Snapshot | None = None
        """The last snapshot; `None` before the first."""

    def update(self, snapshot: Snapshot) -> None:
        """Adds a snapshot; above `most` sockets, those that were closed first are removed."""
        self.last = snapshot
        for socket in snapshot["sockets"]:
            self._known.pop(socket["inode"], None)
            self._known[socket["inode"]] = socket
        while len(self._known) > self._most:
            self._known.pop(next(iter(self._known)))

    def advice(self) -> list[Advice]:
        """Returns the recommendations for all sockets, in order of decreasing losses."""
        found = [advise(socket) for socket in self._known.values()]
        return sorted(found, key=lambda one: sum(one.drops.values()), reverse=True)

    def as_json(self) -> list[dict[str, object]]:
        """Returns the recommendations as data for JSON."""
        return [asdict(one) for one in self.advice()]


def rmem_max() -> int | None:
    """Returns net.core.rmem_max in bytes; `None` if it cannot be read."""
    try:
        return int(RMEM_MAX.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def tell(seen: Seen, allowed: int | None) -> list[str]:
    """Returns lines with the measurements and recommendations.

    `allowed` is net.core.rmem_max in bytes; `None` if unknown.
    """
    found = seen.advice()
    lines = []
    for one in found[:SHOWN]:
        lines += _tell(one)
    if len(found) > SHOWN:
        rest = sum(one.drops["buffer"] for one in found[SHOWN:])
        lines.append(f"{len(found) - SHOWN} more sockets lost {rest} packets to full buffers")
    wanted = max((one.so_rcvbuf or 0 for one in found), default=0)
    if wanted:
        if allowed is not None and wanted > allowed:
            lines.append(
                f"first: sysctl -w net.core.rmem_max={wanted} (it is {allowed}, which limits "
                "buffers)"
            )
        lines.append(
            "SO_RCVBUF is an option of the socket. A buffer takes memory only for waiting packets. "
            "The kernel doubles the value."
        )
    last = seen.last
    period = last["seconds"] / last["looks"] if last is not None and last["looks"] else 0.0
    if wanted and period > COARSE:
        lines.append(
            f"samples were {period:.1g} s apart, so bursts in between count as one, and the sizes "
            "may be several times too large: --port PORT samples every 10 ms"
        )
    if found and last is not None and last["late"] * 20 > last["looks"]:
        lines.append(
            f"{last['late']} of {last['looks']} samples were late: this machine is busy, so the "
            "sizes for short bursts are uncertain"
        )
    return lines


def _tell(one: Advice) -> list[str]:
    who = f"{one.local} ({one.process or 'unknown process'})"
    size = "of unknown size" if one.size is None else f"of {octets(one.size)}"
    if one.before is not None and one.before != one.size:
        size += f" ({octets(one.before)} before)"
    lost = one.drops["buffer"]
    bursts = (
        f"in {one.bursts} bursts, {one.worst} in the worst" if one.bursts > 1 else "in one burst"
    )
    least, most = map(octets, one.needed)
    lines = []
    match one.verdict:
        case "enough":
            lines.append(
                f"{who}: no packets lost to a full buffer; at most {octets(one.held)} in a "
                f"buffer {size}"
            )
        case "too_slow":
            lines.append(f"{who}: {lost} packets lost to a full buffer {size}")
            lines.append(
                f"  the server had not caught up after {one.seconds:.1f} s: it was stopped, or is "
                "too slow for its traffic. A larger buffer would only delay packets: make the "
                "server faster, or add workers"
            )
        case "unknown":
            lines.append(f"{who}: {lost} packets lost {bursts}; the buffer's size is unknown")
        case "larger":
            lines.append(f"{who}: {lost} packets lost to a full buffer {size}, {bursts}")
            assert one.so_rcvbuf is not None
            takes = least if least == most else f"{least} to {most}"
            lines.append(
                f"  the worst burst needs {takes}: set SO_RCVBUF to {one.so_rcvbuf} "
                f"({_short(one.so_rcvbuf)})"
            )
    if one.drops["memory"]:
        lines.append(
            f"  {one.drops['memory']} packets lost for lack of UDP memory (net.ipv4.udp_mem), "
            "which no buffer size prevents"
        )
    others = one.drops["checksum"] + one.drops["other"]
    if others:
        lines.append(f"  {others} packets lost for other reasons: checksums, filters")
    return lines


def _short(size: int) -> str:
    """Returns a size in bytes as most servers' settings have it, such as `1536k` or `4m`."""
    return f"{size >> 20}m" if size % (1 << 20) == 0 else f"{size >> 10}k"
