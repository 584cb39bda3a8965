"""Reads the text output of `tc qdisc show`, `tc class show` and `tc filter show`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from sojourn import _core
from sojourn.tc import filters
from sojourn.tc.model import (
    INGRESS,
    ROOT,
    Class,
    Device,
    Discipline,
    Filter,
    Name,
    Place,
    Reading,
    Refused,
    handle_of,
    name_of,
)

ENTRY = re.compile(r"^\s*(qdisc|class|filter)\s+(.*)$")
_SHOWN = re.compile(
    r"^[ \t]*(?:qdisc [a-z_0-9]+ [0-9a-f]+: |class [a-z_0-9]+ [0-9a-f]*:[0-9a-f]* "
    r"|filter (?:parent|protocol) )",
    re.MULTILINE,
)
_PROMPT = re.compile(r"\btc\b.*\bdev\s+(\S+)")
LINE = 2000
"""Number of characters of a line that are searched for the command which printed the output."""
CLASSFUL = {"htb", "hfsc", "drr", "ets", "prio"}
"""Disciplines whose classes have parameters."""
HOLDERS = {"mq", "mqprio"}
_DROPPED = {
    "htb": {"direct_packets_stat": 1, "ver": 1},
    "sfq": {"ewma": 1},
    "netem": {"seed": 1},
    "fq": {"bands": 1},
}
"""By discipline: words that `tc` prints but does not accept, with the number of their values."""


def is_dump(text: str) -> bool:
    """Returns whether a text contains text output of `tc`."""
    return _SHOWN.search(text) is not None


class Dumps:
    """Reads output of `tc` on disciplines, classes and filters into the devices of a reading."""

    def __init__(self, reading: Reading, chosen: Collection[str]) -> None:
        self.reading = reading
        self._chosen = chosen
        self._classes: list[tuple[Class, str | None]] = []
        self._filters: list[tuple[Filter, str | None]] = []

    def read(self, file: str, text: str) -> None:
        """Reads the text output in one file."""
        device: str | None = None
        for place, words, more in _entries(file, text):
            if not words:
                device = more[0][1]
                continue
            try:
                match words[0]:
                    case "qdisc":
                        device = self._qdisc(words[1:], more, place, device, file)
                    case "class":
                        self._class(words[1:], place, device)
                    case _:
                        self._filter(words[1:], more, place, device)
            except Refused as why:
                self.reading.problems.append(place.problem(str(why), why.found))

    # Disciplines

    def _qdisc(
        self,
        words: list[str],
        more: list[tuple[int, str]],
        place: Place,
        device: str | None,
        file: str,
    ) -> str | None:
        if len(words) < 2 or (handle := handle_of(words[1])) is None:
            raise Refused("this is not a discipline as `tc` prints it")
        kind, at = words[0], 2
        name, parent = device, None
        while at < len(words):
            match words[at]:
                case "root":
                    parent, at = ROOT, at + 1
                case "offloaded":
                    at += 1
                case "dev" | "parent" | "refcnt" | "ingress_block" | "egress_block" as key if (
                    at + 1 < len(words)
                ):
                    if key == "dev":
                        name = words[at + 1]
                    elif key == "parent":
                        parent = name_of(words[at + 1])
                    at += 2
                case _:
                    break
        if name is None:
            name = file.rpartition("/")[2]
            device = name
        stab = next((line.split() for _, line in more if re.match(r"\s*linklayer \w+ ", line)), [])
        self.add_qdisc(name, kind, handle, parent, words[at:], stab, place)
        return device

    def add_qdisc(
        self,
        name: str,
        kind: str,
        handle: int,
        parent: Name | None,
        words: list[str],
        stab: list[str],
        place: Place,
    ) -> None:
        """Adds a discipline to its device, from the words that `tc` prints."""
        device = self.reading.device(name)
        if kind in ("ingress", "clsact"):
            device.ingress = place
            return
        words, notice = shown_words(kind, words)
        if notice:
            self.reading.notices.append(place.note(notice))
        new = Discipline(kind, parent or ROOT, handle or None, words, place, stab, shown=True)
        device.check_depth(new)
        device.put(new)

    # Classes

    def _class(self, words: list[str], place: Place, device: str | None) -> None:
        if len(words) < 2 or (name := name_of(words[1])) is None:
            raise Refused("this is not a class as `tc` prints it")
        kind, at, parent = words[0], 2, Name(name.major)
        while at < len(words):
            match words[at]:
                case "root":
                    at += 1
                case "parent" | "leaf" as key if at + 1 < len(words):
                    if key == "parent":
                        parent = name_of(words[at + 1]) or parent
                    at += 2
                case _:
                    break
        self.add_class(Class(kind, name, parent, class_words(kind, words[at:]), place), device)

    def add_class(self, found: Class, device: str | None) -> None:
        """Adds a class that has parameters; the flows of `fq_codel` are classes without any."""
        if found.kind in CLASSFUL and found.name.minor:
            self._classes.append((found, device))

    # Filters

    def _filter(
        self, words: list[str], more: list[tuple[int, str]], place: Place, device: str | None
    ) -> None:
        given: dict[str, str] = {}
        at, kind, pretty = 0, "", ""
        keys = ("parent", "protocol", "pref", "chain", "handle", "fh", "flowid", "classid")
        while at < len(words):
            if words[at] in keys and at + 1 < len(words):
                given[words[at]] = words[at + 1]
                at += 2
            elif words[at] == "match" or (kind == "flow" and "handle" in given):
                pretty = " ".join(words[at:])
                break
            else:
                kind = kind or (words[at] if "pref" in given else "")
                at += 1
        target = given.get("flowid") or given.get("classid")
        if not (target or more or pretty or kind in ("fw", "matchall")) or "pref" not in given:
            return
        if kind in ("fw", "matchall", "flower", "basic", "flow") and "handle" not in given:
            return
        found = Filter(
            kind,
            name_of(given.get("parent", "")) or ROOT,
            place,
            int(given["pref"]) if given["pref"].isdecimal() else None,
            given.get("protocol", "all"),
            given.get("handle", ""),
            target=None if target in (None, "???") else target,
        )
        self.add_filter(found, [pretty, *(line for _, line in more)], device)

    def add_filter(self, found: Filter, lines: list[str], device: str | None) -> None:
        """Adds a filter with the tests that these lines show."""
        leads = found.target is not None or found.kind == "flow"
        if found.parent.major == INGRESS and not (found.parent == ROOT and leads):
            found.kind = (
                "matchall" if found.kind not in ("u32", "flower", "matchall") else found.kind
            )
        elif found.kind in filters.NOT_READ:
            raise Refused(f"`{found.kind}` filters are not supported", found.kind)
        if found.kind == "fw":
            filters.read_command(found, [])
        if found.kind == "flow":
            filters.read_command(found, lines[0].split())
        for line in lines:
            if found.kind == "flower":
                key, _, value = line.strip().partition(" ")
                if value and not line.startswith("\t") and key not in ("action", "not_in_hw"):
                    filters.flower_key(found, key, value)
            elif found.kind in ("basic", "flow") and "(" in line and "mirred" not in line:
                filters.basic_match(found, line.strip().removeprefix("AND "))
            filters.read_shown(found, line)
        if found.target or found.redirect or found.flow:
            self._filters.append((found, device))

    # Devices

    def end(self) -> None:
        """Assigns classes and filters to devices, because `tc` prints them without their device."""
        for one, name in self._classes:
            if (device := self._owner(one.name.major, name, one.place)) is not None:
                device.classes[one.name] = one
        seen: list[tuple[object, ...]] = []
        for found, name in self._filters:
            major = found.parent.major
            if found.parent == ROOT:
                target = name_of(found.target or found.flow.get("baseclass", ""))
                major = target.major if target is not None else 0
            # `tc filter show` and `tc filter show ... parent 1:` both print the root's filters, but
            # only the first command prints their parent.
            key = (
                name,
                major,
                found.parent.minor % 0xFFFF,
                found.prio,
                found.target,
                found.flow,
                found.matches,
            )
            if key in seen:
                continue
            seen.append(key)
            if major == INGRESS:
                self._ingress(found, name)
            elif (device := self._owner(major, name, found.place)) is not None:
                if found.parent == ROOT and device.root is not device.handles.get(major):
                    # `tc filter show ... parent 20:` does not print this parent.
                    found.parent = Name(major)
                device.filters.append(found)

    def _ingress(self, found: Filter, name: str | None) -> None:
        entrances = [d for d in self.reading.devices.values() if d.ingress is not None]
        device = self.reading.devices.get(name or "")
        if device is None and len(entrances) == 1:
            device = entrances[0]
        if device is not None:
            device.filters.append(found)

    def _owner(self, major: int, name: str | None, place: Place) -> Device | None:
        if name is not None and name in self.reading.devices:
            return self.reading.devices[name]
        able = [
            device for device in self.reading.devices.values()
            if major in device.handles
        ]  # fmt: skip
        if len(able) > 1 and self._chosen:
            able = [device for device in able if device.name in self._chosen]
        if len(able) == 1:
            return able[0]
        if not able:
            message = f"the files have no discipline `{major:x}:`"
        else:
            names = ", ".join(device.name for device in able)
            message = (
                f"several devices have a discipline `{major:x}:`: {names}; put the command that "
                f"printed these lines before them, such as `tc class show dev {able[0].name}`, "
                "or choose a device by --device"
            )
        self.reading.problems.append(place.problem(message))
        return None


def _entries(file: str, text: str) -> Iterator[tuple[Place, list[str], list[tuple[int, str]]]]:
    """Yields each entry of the output with its place, words and following lines.

    An entry without words is a command that names a device.
    """
    current: tuple[Place, list[str], list[tuple[int, str]]] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        place = Place(file, number, line)
        if match := ENTRY.match(line):
            if current is not None:
                yield current
            current = (place, line.split(), [])
        elif (match := _PROMPT.search(line[:LINE])) and not line[:1].isspace():
            if current is not None:
                yield current
            current = None
            yield place, [], [(number, match[1])]
        elif current is not None and line.strip():
            current[2].append((number, line))
    if current is not None:
        yield current


def shown_words(kind: str, words: list[str]) -> tuple[list[str], str | None]:
    """Returns a discipline's printed words as words that `tc` accepts, and a notice or None."""
    dropped = _DROPPED.get(kind, {})
    kept: list[str] = []
    at = 0
    while at < len(words):
        if words[at] in dropped:
            at += 1 + dropped[words[at]]
            continue
        kept.append(words[at])
        at += 1
    notice = None
    if kind == "tbf" and kept.count("mpu") > 1:
        # `tc` prints `mpu` twice: after the parameters of each bucket.
        del kept[kept.index("mpu") : kept.index("mpu") + 2]
    if kind == "sfq" and "min" in kept:
        notice = "`tc` does not print `redflowlimit`, so sfq is read without RED"
    if kind == "fq_codel" and "ecn" not in kept:
        kept.append("noecn")
    if kind == "sfq":
        kept = [re.sub(r"^(\d+)(?:sec|/\d+)$", r"\1", word) for word in kept]
    if kind in ("codel", "fq_codel"):
        # CoDel's clock ticks every 1024 ns; `tc` prints whole microseconds, rounded down.
        kept = [re.sub(r"^(\d+)us$", lambda m: f"{int(m[1]) + 1}us", word) for word in kept]
    if kind in ("red", "choke"):
        notice = (
            f"`tc` does not print all words of `{kind}`; burst, avpkt and bandwidth are read as "
            "their defaults"
        )
    if kind in HOLDERS or kind == "netem" or not kept:
        return kept, notice
    try:
        text = _core.queue_description(f"qdisc {kind} 1: root {' '.join(kept)}")
    except _core.WordError:
        return kept, notice
    return text.split()[1:], notice


def class_words(kind: str, words: list[str]) -> list[str]:
    """Returns the printed words of a class as words that `tc` accepts."""
    # In `burst 15Kb/1mpu 0b`, the cell size after the slash has no effect on current kernels.
    text = re.sub(r"/\d+ ?(mpu \S+)?(?: ?overhead \S+)?", " ", " ".join(words))
    kept: list[str] = []
    source = iter(text.split())
    for word in source:
        if word in ("level", "mpu") and kind == "htb":
            next(source, None)
        else:
            kept.append(word)
    mpu = re.search(r"mpu (\d+)b", " ".join(words))
    if kind == "htb" and mpu is not None and mpu[1] != "0":
        kept += ["mpu", mpu[1]]
    return kept
