"""The transmit queues of a device whose root discipline is `mq` or `mqprio`."""

from __future__ import annotations

from dataclasses import replace

from sojourn.tc.model import ROOT, Device, Discipline, Name, Notice

MOST = 4096
"""Largest number of transmit queues of a device."""
LAST = 0x7FFF
"""Handle that an `mq` without a handle gets; if it is in use, the next lower free handle."""


def transmit_queues(device: Device, root: Discipline) -> list[Discipline]:
    """Returns the disciplines of a device's transmit queues, in the order of their numbers."""
    found = [
        d for d in device.seats.values()
        if d.parent != ROOT and d is not root and d.parent.major == (root.handle or 0)
    ]  # fmt: skip
    return sorted(found, key=lambda d: d.parent.minor)


def transmit_queue(device: Device, number: int) -> Device | None:
    """Returns a copy of the device with one transmit queue only; None without such a queue.

    `number` counts from 1.
    """
    root = device.root
    if root is None or root.kind not in ("mq", "mqprio"):
        return None
    seated = transmit_queues(device, root)
    if not 1 <= number <= len(seated):
        return None
    chosen = seated[number - 1]
    one = device.copy()
    one.name = f"{device.name}:{number}"
    for other in seated:
        if other is not chosen:
            one.take_out(other)
    _raise(one, root, chosen)
    return one


def _raise(device: Device, root: Discipline, chosen: Discipline) -> None:
    """Makes the discipline of the only transmit queue the root discipline."""
    device.seats = {
        name: d for name, d in device.seats.items() if d is not root and d is not chosen
    }
    device.put(replace(chosen, parent=ROOT))


def counted(device: Device, notices: list[Notice]) -> None:
    """Sets the number of transmit queues of `mq` from its children, and gives it a handle.

    If there is only one transmit queue, its discipline becomes the root discipline.
    """
    root = device.root
    if root is None or root.kind != "mq":
        return
    seated = transmit_queues(device, root)
    if not seated and root.shown:
        return
    if [one.parent.minor for one in seated] == [1]:
        _raise(device, root, seated[0])
        return
    count = max((one.parent.minor for one in seated), default=0)
    words = ["numtxqueues", str(count)] if count > 1 else []
    if not words:
        notices.append(
            root.place.note("these lines do not show the number of transmit queues: 4 are assumed")
        )
    handle = root.handle or next(n for n in range(LAST, 0, -1) if n not in device.handles)
    known = {one.parent.minor: one for one in seated}
    missing = [n for n in range(1, count + 1) if n not in known] if count <= MOST else []
    for one in seated:
        known[one.parent.minor] = replace(one, parent=Name(handle, one.parent.minor))
    if missing and root.shown:
        like = seated[0]
        notices.append(
            root.place.note(
                f"{len(missing)} of {count} transmit queues are not in these lines: they are "
                f"read as the `{like.kind}` of queue {like.parent.minor:x}"
            )
        )
        for n in missing:
            known[n] = replace(like, parent=Name(handle, n), handle=None)
    notices.append(
        root.place.note(
            "flows are distributed over the transmit queues by their hash, and the queues send "
            "in turn: XPS, programs that choose a queue and the card's arbiter are not modelled"
        )
    )
    device.seats = {
        name: one for name, one in device.seats.items() if one is not root and one not in seated
    }
    device.put(replace(root, handle=handle, words=words))
    for one in known.values():
        device.put(one)
