"""Reads CBQ, which Linux no longer has, as its replacement HTB."""

from __future__ import annotations

from sojourn.tc.model import Class, Device, Discipline, Notice

_VALUES = {
    "bandwidth", "rate", "allot", "prio", "weight", "maxburst", "minburst", "avpkt", "cell", "mpu",
    "est", "ewma", "split", "defmap", "maxidle", "minidle", "linklayer", "overhead",
}  # fmt: skip
"""Words of CBQ that take a value; `bounded`, `isolated`, `borrow` and `sharing` take none."""
TOLD = (
    "`cbq`, which Linux no longer has, is read as `htb`: rates, borrowing and priorities are the "
    "same; the estimate of idle time is ignored"
)


def replaced(device: Device, notices: list[Notice]) -> None:
    """Replaces the CBQ disciplines and classes of a device by HTB, and adds a notice."""
    for one in list(device.seats.values()):
        if one.kind != "cbq":
            continue
        notices.append(one.place.note(TOLD))
        line = _given(one.words).get("bandwidth")
        device.put(Discipline("htb", one.parent, one.handle, [], one.place, one.stab))
        for name, inner in device.classes.items():
            if inner.kind == "cbq" and name.major == (one.handle or 1):
                device.classes[name] = _class(inner, line)


def _given(words: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at < len(words):
        if words[at] in _VALUES and at + 1 < len(words):
            found[words[at]] = words[at + 1]
            at += 2
        else:
            found[words[at]] = ""
            at += 1
    return found


def _class(one: Class, line: str | None) -> Class:
    given = _given(one.words)
    words = ["rate", given["rate"]] if "rate" in given else []
    ceil = given.get("bandwidth", line)
    if "bounded" not in given and ceil is not None:
        words += ["ceil", ceil]
    rank = given.get("prio", "")
    if rank.isdecimal():
        # Priorities of CBQ begin at 1, those of HTB at 0.
        words += ["prio", str(max(0, int(rank) - 1))]
    words += [word for key in ("mpu", "overhead") if key in given for word in (key, given[key])]
    words += [
        key for key in given if key not in (*_VALUES, "bounded", "isolated", "borrow", "sharing")
    ]
    return Class("htb", one.name, one.parent, words, one.place)
