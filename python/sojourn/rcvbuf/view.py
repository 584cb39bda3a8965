"""A live view of a tuner's sockets in the terminal: occupancy, size, drops and reasons."""

from __future__ import annotations

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from sojourn.lab.wire.quantities import octets, sparkline
from sojourn.rcvbuf.state import Snapshot, SocketState

FRAME = 7
"""Number of lines of the screen in addition to the rows and notes."""
NARROW = 90
"""Width of a terminal in columns below which the view has only the columns with numbers."""
QUARTERS = 4
"""Number of values of the sparkline per second."""


class View:
    """The view of a tuner's snapshots."""

    def __init__(self, title: str, *, dry_run: bool = False) -> None:
        self.title = title
        self.dry_run = dry_run

    def render(self, now: Snapshot, width: int, height: int) -> Group:
        """Returns the view of a snapshot in a terminal of this size, in columns and lines."""
        wide = width >= NARROW
        space = (0, 1) if wide else (0, 1, 0, 0)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=space, header_style="bold")
        table.add_column("socket", no_wrap=True, overflow="ellipsis")
        if wide:
            table.add_column("process", no_wrap=True, overflow="ellipsis", max_width=20)
        for name in ("holds", "size", "before", "drops", "now"):
            table.add_column(name, justify="right", no_wrap=True)
        if wide:
            table.add_column("occupancy", no_wrap=True)
            table.add_column("why", overflow="fold")
        sockets = now["sockets"]
        shown = _chosen(sockets, max(1, height - FRAME - len(now["notes"])))
        for socket in shown:
            local, holder, *numbers, line, why = self._cells(socket)
            cells = [local, holder, *numbers, line, why] if wide else [local, *numbers]
            table.add_row(*map(Text, cells))
        foot = [Text(text, style="yellow") for text in lines(now)]
        if len(shown) < len(sockets):
            foot.append(Text(f"and {len(sockets) - len(shown)} more sockets", style="dim"))
        return Group(Text(self._head(now), style="bold", no_wrap=True), table, *foot)

    def _head(self, now: Snapshot) -> str:
        share = now["cpu"] / now["seconds"] if now["seconds"] else 0.0
        sizes = sum(socket["size"] or 0 for socket in now["sockets"])
        parts = [
            self.title,
            "no changes" if self.dry_run else "",
            f"{octets(sizes)} of {octets(now['budget'])} ({now['budget_bound']})",
            "MEMORY IS SHORT" if now["short"] else "",
            f"CPU {100 * share:.1f} %",
        ]
        return "   ".join(part for part in parts if part)

    def _cells(self, socket: SocketState) -> list[str]:
        size = socket["size"]
        recent = socket["recent"]
        lost = sum(drops for _, drops in recent[-QUARTERS:])
        holder = "" if socket["pid"] is None else f"{socket['process']} {socket['pid']}"
        return [
            socket["local"],
            holder,
            octets(socket["occupied"]),
            "?" if size is None else octets(size),
            "" if socket["before"] is None else octets(socket["before"]),
            str(sum(socket["drops"].values())),
            f"{lost}/s" if lost else "",
            sparkline((occupied for occupied, _ in recent), float(size or 0)),
            self._why(socket),
        ]

    def _why(self, socket: SocketState) -> str:
        if socket["refusal"] is not None:
            return f"not changed: {socket['refusal']['text']}"
        others = {
            reason: count
            for reason, count in socket["drops"].items()
            if count and reason != "buffer"
        }
        parts = [] if socket["reason"] == "hold" else [str(socket["reason"])]
        parts += [f"{count} drops by {reason}" for reason, count in others.items()]
        if self.dry_run and socket["wanted"] != socket["size"]:
            parts.append(f"would be set to {octets(socket['wanted'])}")
        return ", ".join(parts)


def _chosen(sockets: list[SocketState], most: int) -> list[SocketState]:
    """Returns up to `most` sockets, chosen by drops and then by largest content, in given order."""
    if len(sockets) <= most:
        return sockets
    ranked = sorted(
        sockets, key=lambda s: (sum(s["drops"].values()), s["peak_occupied"]), reverse=True
    )
    wanted = {socket["inode"] for socket in ranked[:most]}
    return [socket for socket in sockets if socket["inode"] in wanted]


def lines(snapshot: Snapshot) -> list[str]:
    """Returns the notes of a snapshot that concern all sockets."""
    said = [note["text"] for note in snapshot["notes"]]
    if snapshot["left_out"]:
        said.append(
            f"{snapshot['left_out']} sockets are not monitored: raise the limit by --sockets"
        )
    dropped = (
        (snapshot["softnet_drops"], "a CPU's backlog"),
        (snapshot["device_drops"], "a device"),
    )
    for packets, what in dropped:
        if packets:
            said.append(
                f"{packets} packets dropped by {what}, before any socket: no receive "
                "buffer prevents this"
            )
    return said
