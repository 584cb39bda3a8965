"""Commands of `tc`, and their effects on devices."""

from __future__ import annotations

from collections.abc import Sequence

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
    Words,
    handle_of,
    name_of,
    number,
)

OBJECTS = ("qdisc", "class", "filter")
VERBS = {
    "qdisc": ("add", "change", "replace", "link", "delete", "list", "show", "ls", "get", "help"),
    "class": ("add", "change", "replace", "delete", "list", "show", "ls", "get", "help"),
    "filter": ("add", "change", "replace", "delete", "list", "show", "ls", "get", "help"),
}
"""Verbs of each object, in the order in which `tc` compares abbreviations (tc(8))."""
PRINTS = {"list", "show", "ls", "get", "help"}
STAB = ("mtu", "mpu", "tsize", "overhead", "linklayer")


def begins(word: str, *whole: str) -> str | None:
    """Returns the first word in `whole` that the word `word` abbreviates; None without a match."""
    return next((one for one in whole if word and one.startswith(word)), None)


def object_of(words: Sequence[str]) -> tuple[str, str] | None:
    """Returns object and verb of the words after `tc`; None if they do not concern queues."""
    if not words or (thing := begins(words[0], *OBJECTS)) is None:
        return None
    verb = begins(words[1], *VERBS[thing]) if len(words) > 1 else "list"
    return (thing, verb) if verb else None


class Table:
    """Applies commands of `tc` to the devices of a reading."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading

    def run(self, words: Sequence[str], place: Place) -> None:
        """Applies one command, given by its words after `tc`; adds a problem if it is invalid."""
        rest = list(words)
        while rest and rest[0].startswith("-"):
            rest = rest[2:] if rest[0] in ("-n", "-netns", "-nm") else rest[1:]
        if not rest or begins(rest[0], "actions", "chain", "monitor", "exec"):
            return
        found = object_of(rest)
        try:
            if found is None:
                known = ", ".join(OBJECTS if begins(rest[0], *OBJECTS) is None else VERBS["qdisc"])
                raise Refused(
                    f"unknown word for `tc`; known words: {known}", rest[min(1, len(rest) - 1)]
                )
            thing, verb = found
            if verb in PRINTS:
                return
            {"qdisc": self._qdisc, "class": self._class, "filter": self._filter}[thing](
                verb, rest[2:], place
            )
        except Refused as why:
            self.reading.problems.append(place.problem(str(why), why.found))

    def _device(self, name: str) -> Device:
        return self.reading.device(name)

    # Disciplines

    def _qdisc(self, verb: str, words: list[str], place: Place) -> None:
        given = _Options(words)
        stab: list[str] = []
        while (key := given.next()) is not None:
            match key:
                case "dev" | "handle" | "ingress_block" | "egress_block":
                    given.take(key)
                case "parent":
                    given.take("parent")
                case "root":
                    given.values["parent"] = "root"
                case "ingress" | "clsact":
                    given.values["kind"] = key
                case "estimator":
                    given.drop(2)
                case "stab":
                    while given.peek() in STAB:
                        stab += [given.next() or "", given.next() or ""]
                case _:
                    given.values.setdefault("kind", key)
                    break
        device = self._device(given.need("dev", "eth0"))
        kind = given.values.get("kind", "")
        handle = _handle(given.values.get("handle"))
        parent = _parent(given.values.get("parent"))
        if kind in ("ingress", "clsact") or handle == INGRESS or parent == Name(INGRESS, 0xFFF1):
            device.clear_ingress()
            device.ingress = None if verb == "delete" else place
            return
        if verb == "delete":
            self._remove(device, parent, handle)
            return
        if not kind:
            raise Refused("the kind of discipline is missing, such as `fq_codel`")
        if parent is None:
            parent = ROOT
            self.reading.notices.append(
                place.note(
                    "`root` is missing, so Linux rejects this command; it is read as if "
                    "it had `root`"
                )
            )
        self._put(verb, device, Discipline(kind, parent, handle, given.rest, place, stab))

    def _remove(self, device: Device, parent: Name | None, handle: int | None) -> None:
        if parent in (None, ROOT) and handle in (None, 0):
            device.clear()
            return
        one = device.handles.get(handle) if handle else None
        if one is None and parent is not None:
            one = device.seats.get(device.seat(parent))
        if one is not None:
            device.take_out(one)

    def _put(self, verb: str, device: Device, new: Discipline) -> None:
        seat = device.seat(new.parent)
        old = device.seats.get(seat)
        device.check_depth(new)
        if old is None:
            if new.handle and new.handle in device.handles:
                raise Refused(
                    f"two disciplines of `{device.name}` have the handle `{new.handle:x}:`"
                )
            if verb == "change":
                message = (
                    "this command changes a discipline that these files do not set up; "
                    "parameters that it does not set have their defaults"
                )
                self.reading.notices.append(new.place.note(message))
            device.put(new)
            return
        # A new class has a default discipline, which `add` may replace.
        if verb == "add" and not old.shown:
            message = (
                f"line {old.place.line} has already added a discipline here, so Linux rejects "
                "this command"
            )
            raise Refused(message, new.kind)
        keeps = new.kind == old.kind and new.handle in (None, old.handle)
        if keeps:
            new.handle = old.handle
        else:
            device.take_out(old)
        device.put(new)

    # Classes

    def _class(self, verb: str, words: list[str], place: Place) -> None:
        given = _Options(words)
        while (key := given.next()) is not None:
            match key:
                case "dev" | "classid" | "parent":
                    given.take(key)
                case "root":
                    given.values["parent"] = "root"
                case "estimator":
                    given.drop(2)
                case _:
                    given.values["kind"] = key
                    break
        device = self._device(given.need("dev", "eth0"))
        name = _class_name(given.need("classid", "1:10"))
        parent = _parent(given.values.get("parent"))
        if name.major == 0 and parent is not None and parent != ROOT:
            name = Name(parent.major, name.minor)
        if verb == "delete":
            self._delete_class(device, name, place)
            return
        old = device.classes.get(name)
        if old is not None and verb == "add":
            raise Refused(
                f"line {old.place.line} has already added `{name}`, so Linux rejects this command"
            )
        if parent in (None, ROOT):
            parent = old.parent if old is not None else Name(name.major)
        assert parent is not None
        kind = given.values.get("kind") or (old.kind if old is not None else "")
        if not kind:
            raise Refused("the kind of discipline is missing, such as `htb`")
        device.classes[name] = Class(kind, name, parent, given.rest, place)

    def _delete_class(self, device: Device, name: Name, place: Place) -> None:
        """Deletes a class with its discipline and filters; keeps a class in use, with a notice."""
        why = None
        if any(one.parent == name for one in device.classes.values()):
            why = "has child classes"
        elif any(one.target and name_of(one.target) == name for one in device.filters):
            why = "is the target of filters"
        if why is not None:
            message = f"`{name}` {why}: Linux rejects this, and the class is not deleted"
            self.reading.notices.append(place.note(message))
            return
        device.classes.pop(name, None)
        if (inner := device.seats.get(name)) is not None:
            device.take_out(inner)
        device.filters = [one for one in device.filters if one.parent != name]

    # Filters

    def _filter(self, verb: str, words: list[str], place: Place) -> None:
        given = _Options(words)
        while (key := given.next()) is not None:
            match begins(
                key, "dev", "root", "ingress", "egress", "parent", "handle", "preference", "prio",
                "protocol", "chain", "estimator", "block",
            ):  # fmt: skip
                case "dev" | "handle" | "protocol" | "chain" | "block" as word:
                    given.take(word)
                case "parent":
                    given.take("parent")
                case "preference" | "prio":
                    given.take("prio")
                case "root":
                    given.values["parent"] = "root"
                case "ingress":
                    given.values["parent"] = "ffff:"
                case "egress":
                    given.values["parent"] = "ffff:fff3"
                case "estimator":
                    given.drop(2)
                case _:
                    if key in ("pref", "priority"):
                        given.take("prio")
                        continue
                    given.values["kind"] = key
                    break
        device = self._device(given.need("dev", "eth0"))
        parent = _parent(given.values.get("parent")) or ROOT
        prio = _prio(given.values.get("prio"))
        if verb == "delete":
            found = [f for f in device.filters if f.parent == parent and prio in (None, f.prio)]
            if handle := given.values.get("handle"):
                found = _of_handle(found, handle)
            device.filters = [f for f in device.filters if not any(f is one for one in found)]
            return
        kind = given.values.get("kind", "")
        if not kind:
            raise Refused("the kind of filter is missing, such as `u32`")
        new = Filter(
            kind,
            parent,
            place,
            prio,
            given.values.get("protocol", "all"),
            given.values.get("handle", ""),
        )
        filters.read_command(new, given.rest)
        device.filters.append(new)


class _Options(Words):
    """The words of a command, in order, and the values found so far."""

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        self.values: dict[str, str] = {}

    def take(self, key: str) -> None:
        """Stores the next word as the value of `key`."""
        self.values[key] = self.value(key)

    def drop(self, count: int) -> None:
        """Skips `count` words."""
        self._at += count

    def need(self, key: str, example: str) -> str:
        """Returns the value of `key`; raises `Refused` if it is missing."""
        if key not in self.values:
            raise Refused(f"`{key}` is missing, such as `{key} {example}`")
        return self.values[key]

    @property
    def rest(self) -> list[str]:
        """Returns the words that were not yet taken."""
        return self._words[self._at :]


def _of_handle(filters_: list[Filter], handle: str) -> list[Filter]:
    """Returns the filters that have the handle `handle`.

    A filter of `u32` whose command states no handle has one by its order: `800::800`, `800::801`.
    """
    if given := [one for one in filters_ if one.handle == handle]:
        return given
    own = [one for one in filters_ if one.kind == "u32" and not one.handle]
    last = number(handle.rpartition(":")[2])
    at = -1 if last is None or "::" not in handle else last - 0x800
    return [own[at]] if 0 <= at < len(own) else []


def _handle(text: str | None) -> int | None:
    if text is None:
        return None
    found = handle_of(text)
    if found is None:
        raise Refused(f"`{text}` is not the handle of a discipline, such as 1:", text)
    return found


def _class_name(text: str) -> Name:
    found = name_of(text)
    if found is None:
        raise Refused(f"`{text}` is not the name of a class, such as 1:10", text)
    return found


def _parent(text: str | None) -> Name | None:
    return None if text is None else _class_name(text)


def _prio(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(text, 0) or None
    except ValueError:
        raise Refused(f"`{text}` is not the priority of a filter", text) from None
