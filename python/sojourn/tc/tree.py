"""The queue of a device as a scenario's text, from its disciplines, classes and filters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import IPv4Address
from itertools import chain

from sojourn import _core
from sojourn.scenario import limits
from sojourn.scenario.errors import Problem
from sojourn.scenario.trees import IMPLICIT
from sojourn.tc import cbq, filters, firewall, mq
from sojourn.tc.classify import Rule, descended
from sojourn.tc.dumps import CLASSFUL
from sojourn.tc.model import (
    ROOT,
    SEATED,
    Class,
    Device,
    Discipline,
    Filter,
    Firewall,
    Name,
    Notice,
    Place,
    Refused,
    Step,
)

FAULTS = 200
"""Largest number of lines that are reported as invalid and ignored."""
DEFAULT = ("htb", "hfsc")
"""Disciplines that have a default class for packets without a matching filter."""
HOLDERS = CLASSFUL | {"mq"}
"""Disciplines that may have other disciplines below them."""
AUTOMATIC = 0xC000
"""Order that Linux gives to the first filter whose command states no order.

Each later filter without a stated order gets the next lower number.
"""


@dataclass(slots=True)
class Built:
    """The queue of a device as a scenario's text, with problems and notices."""

    queue: str | None = None
    """Text of the queue; None if the device has impairments only, or nothing can be read."""
    netem: str | None = None
    """Impairments of the device in netem's words; None without any."""
    problems: list[Problem] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    filters: list[Part] = field(default_factory=list)
    """Statements of filters; the statements of one discipline are in the order of evaluation."""


@dataclass(slots=True)
class Part:
    """A statement of the queue's text, and the line that it comes from."""

    text: str
    place: Place
    needs: tuple[Name, ...] = ()
    """Classes without which the statement is invalid, such as its parent or its target."""
    makes: Name | None = None
    """Name of the class that the statement declares; None for other statements."""
    asked_by: int | None = None
    """Major number of the discipline of a filter statement; None for other statements."""


class _Builder:
    def __init__(
        self, device: Device, hosts: Mapping[IPv4Address, int], firewall: Firewall
    ) -> None:
        self._device = device
        self._hosts = hosts
        self._firewall = firewall
        self.built = Built()
        self._parts: list[Part] = []
        self._strangers: dict[str, Place] = {}
        self._notices: set[Notice] = set()
        self._index()

    def _index(self) -> None:
        """Groups the parts of the device by the discipline that contains them."""
        self._seated: dict[int, list[Discipline]] = {}
        for one in self._device.seats.values():
            if one.parent != ROOT:
                self._seated.setdefault(one.parent.major, []).append(one)
        self._by_major: dict[int, list[Class]] = {}
        for inner in self._device.classes.values():
            self._by_major.setdefault(inner.name.major, []).append(inner)
        self._parents = {inner.parent for inner in self._device.classes.values()}
        self._filtered: dict[int, list[tuple[int, Filter]]] = {}
        for number, found in enumerate(self._device.filters):
            major = -1 if found.parent == ROOT else found.parent.major
            self._filtered.setdefault(major, []).append((number, found))

    def _in(self, handle: int | None) -> list[Discipline]:
        """Returns the disciplines that are attached below the discipline with this handle."""
        return self._seated.get(handle, []) if handle else []

    def _classes_of(self, handle: int | None) -> list[Class]:
        return self._by_major.get(handle, []) if handle else []

    def note(self, place: Place, message: str) -> None:
        found = place.note(message)
        if found not in self._notices:
            self._notices.add(found)
            self.built.notices.append(found)

    def fault(self, place: Place, message: str, found: str | None = None) -> None:
        self.built.problems.append(place.problem(message, found))

    def build(self, root: Discipline) -> None:
        """Builds the queue from the root discipline."""
        root = self._impairments(self._single(root))
        if root.kind == "netem":
            return
        if root.kind == "cake_mq":
            self.note(
                root.place,
                "`cake_mq` is read as one `cake` with the whole rate, on a single transmit queue",
            )
        head = self._head(root, at_root=True)
        self._parts = [Part(head, root.place)]
        self._inside(root)
        self._tell_strangers()
        self.built.queue = self._settled(root)
        if self.built.queue is not None:
            self.built.filters = [part for part in self._parts if part.asked_by is not None]

    def _tell_strangers(self) -> None:
        """Adds a notice on addresses in filters that no host has."""
        if not self._strangers:
            return
        known = list(self._strangers)
        listed = ", ".join(known[:4]) + (f" and {len(known) - 4} more" if len(known) > 4 else "")
        self.note(
            self._strangers[known[0]],
            f"no host has {listed}: filters with these addresses match no packet; --host "
            "ADDRESS=NODE assigns an address",
        )

    def _single(self, root: Discipline) -> Discipline:
        """Returns the root discipline; for `mqprio` the discipline of its transmit queues."""
        below = mq.transmit_queues(self._device, root)
        if root.kind != "mqprio" and (root.kind != "mq" or below or not root.shown):
            return root
        if not below:
            self.fault(
                root.place,
                f"these lines do not have the disciplines of the transmit queues of `{root.kind}`",
            )
            return Discipline("noqueue", ROOT, None, [], root.place)
        texts = {self._shape(one): one for one in reversed(below)}
        if len(texts) > 1:
            self.fault(
                root.place,
                f"the {len(below)} transmit queues of `{self._device.name}` differ: choose one "
                f"by --device {self._device.name}:1 (up to {len(below)})",
            )
        chosen = below[0]
        if len(below) > 1 and len(texts) == 1:
            self.note(
                root.place,
                f"{len(below)} transmit queues with equal disciplines are read as one queue",
            )
        return chosen

    def _shape(self, one: Discipline) -> str:
        """Returns a text that is equal for disciplines that differ only in their handles."""
        classes = [
            (c.kind, c.name.minor, c.parent.minor, c.words)
            for c in self._classes_of(one.handle)
            if one.handle and c.name.major == one.handle
        ]
        inner = [(d.parent.minor, self._shape(d)) for d in self._in(one.handle)]
        return repr((one.kind, one.words, one.stab, classes, inner))

    def _impairments(self, root: Discipline) -> Discipline:
        """Returns the discipline without a netem around or in it; netem becomes the impairments."""
        inner = next(iter(self._seat(root)), None)
        if root.kind == "netem":
            self.built.netem = self._netem(root)
            return inner or root
        if root.kind == "tbf" and inner is not None and inner.kind == "netem":
            self.built.netem = self._netem(inner)
            self._device.take_out(inner)
            self._index()
        return root

    def _seat(self, holder: Discipline) -> list[Discipline]:
        if holder.kind not in SEATED or not holder.handle:
            return []
        return self._in(holder.handle)[:1]

    def _netem(self, one: Discipline) -> str | None:
        words = list(one.words)
        if "limit" in words and words.index("limit") + 1 < len(words):
            at = words.index("limit")
            self.note(one.place, f"netem's limit of {words[at + 1]} packets is ignored")
            del words[at : at + 2]
        text = " ".join(words)
        try:
            text = _core.netem_description(f"tc qdisc add dev x root netem {text}") if text else ""
            if text:
                _core.parse_netem(text)
        except _core.WordError as why:
            self.fault(one.place, f"netem: {why.message}", why.found)
            return None
        if text:
            self.note(
                one.place, "netem becomes the impairments of the link, which follow its queue"
            )
        return text or None

    # Disciplines

    def _head(self, one: Discipline, *, at_root: bool) -> str:
        """Returns the words of a discipline, including those of its inner discipline, if any."""
        kind = "cake" if one.kind == "cake_mq" else one.kind
        words = [kind, *one.words]
        if kind in HOLDERS and one.handle and (at_root or one.parent != ROOT):
            words[1:1] = ["handle", f"{one.handle:x}:"] if one.handle != 1 or not at_root else []
        if kind in HOLDERS and self._device.length is not None:
            words += ["txqueuelen", f"{self._device.length}p"]
        if kind == "pfifo_fast" and self._device.length is not None:
            words += ["limit", f"{self._device.length}p"]
        if kind == "tbf":
            words += self._frame(one, words)
        elif one.stab and kind != "htb":
            self.note(
                one.place,
                "the size table `stab` has no effect here: set the link's `overhead` and `cells`",
            )
        inner = next(iter(self._seat(one)), None)
        if inner is not None and inner.kind != "netem":
            # With an inner discipline, the outer limit has no effect, although `tc` prints it.
            words = _without(words, ("limit", "latency"))
            words += ["child", self._head(inner, at_root=False)]
        return " ".join(words)

    def _frame(self, one: Discipline, words: list[str]) -> list[str]:
        """Returns the words of a shaper that are equivalent to its size table."""
        if not one.stab:
            return []
        given = dict(zip(one.stab[::2], one.stab[1::2], strict=False))
        found: list[str] = []
        overhead = given.get("overhead", "0")
        if overhead.startswith("-"):
            self.note(one.place, f"the overhead of {overhead} bytes in `stab` is ignored")
        elif overhead.isdecimal() and overhead != "0" and "overhead" not in words:
            found += ["overhead", overhead]
        if (
            given.get("mpu", "0").isdecimal()
            and given.get("mpu", "0") != "0"
            and "mpu" not in words
        ):
            found += ["mpu", given["mpu"]]
        if given.get("linklayer") in ("atm", "adsl") and "linklayer" not in words:
            found += ["linklayer", "atm"]
        return found

    def _inside(self, holder: Discipline) -> None:
        """Adds the classes of a discipline, the disciplines in them, and the filters."""
        inner = next(iter(self._seat(holder)), None)
        if inner is not None:
            if inner.kind != "netem":
                self._inside(inner)
            return
        if holder.handle is None and holder.shown and holder.kind in CLASSFUL:
            return
        major = holder.handle or (1 if holder.parent == ROOT else 0)
        if holder.kind in CLASSFUL:
            self._classes(holder, major)
        if holder.kind in ("hfsc", "drr", "htb") and not self._has_classes(major):
            self._no_classes(holder, major)
            if holder.shown:
                return
        for one in self._in(major):
            self._child(holder, major, one)
        self._filters(holder, major)

    def _classes(self, holder: Discipline, major: int) -> None:
        own = self._classes_of(major)
        names = {c.name for c in own}
        placed: set[Name] = set()
        waiting = list(own)
        while waiting:
            later: list[Class] = []
            for one in waiting:
                if one.parent.minor and one.parent in names and one.parent not in placed:
                    later.append(one)
                    continue
                self._class(holder, one, names)
                placed.add(one.name)
            if len(later) == len(waiting):
                for one in later:
                    self.fault(one.place, f"`{one.name}` would contain itself")
                return
            waiting = later

    def _class(self, holder: Discipline, one: Class, names: set[Name]) -> None:
        if one.kind != holder.kind:
            self.fault(one.place, f"a class of `{one.kind}` cannot be in `{holder.kind}`", one.kind)
            return
        parent = one.parent
        if parent.minor and parent not in names and one.kind == "htb":
            self.note(
                one.place,
                f"the parent `{parent}` does not exist: as in Linux, the class is below the root",
            )
            parent = Name(parent.major)
        words = list(one.words)
        if holder.kind == "htb":
            words += self._frame(holder, words)
            words = _without_zeros(self._rank(one, words))
        text = f"class {one.name}"
        if holder.kind in ("htb", "hfsc"):
            text += f" parent {parent}"
        if holder.kind in IMPLICIT and not words:
            return
        needs = (parent,) if parent.minor else ()
        self._parts.append(Part(" ".join([text, *words]), one.place, needs, one.name))

    def _is_only_leaf(self, holder: Discipline, name: Name) -> bool:
        """Returns whether all packets of the device pass through a class."""
        leaves = [c.name for c in self._classes_of(name.major) if c.name not in self._parents]
        is_default = self._default(holder, name.major) == name
        return holder.parent == ROOT and leaves == [name] and is_default

    def _no_classes(self, holder: Discipline, major: int) -> None:
        if holder.shown:
            self.fault(
                holder.place,
                f"the classes of `{major:x}:` are not in these lines: add the output of `tc "
                f"class show dev {self._device.name}`",
            )
            return
        does = (
            "sends every packet without a rate limit"
            if holder.kind == "htb"
            else "drops every packet"
        )
        self.note(holder.place, f"`{holder.kind}` has no class: it {does}")

    def _has_classes(self, major: int) -> bool:
        return bool(self._classes_of(major))

    def _rank(self, one: Class, words: list[str]) -> list[str]:
        """Returns the words with a valid priority.

        HTB has the priorities 0 to 7; Linux reads larger values as 7.
        """
        if "prio" in words and words.index("prio") + 1 < len(words):
            value = words[words.index("prio") + 1]
            if value.isdecimal() and int(value) > 7:
                self.note(one.place, f"`prio {value}` is read as 7, as by Linux")
                words[words.index("prio") + 1] = "7"
        return words

    def _child(self, holder: Discipline, major: int, one: Discipline) -> None:
        name = Name(major, one.parent.minor)
        if holder.kind in DEFAULT and name in self._parents:
            self.note(
                one.place, f"`{name}` has child classes, so Linux ignores the discipline in it"
            )
            return
        if holder.kind not in HOLDERS:
            self.fault(one.place, f"`{holder.kind}` cannot have other disciplines below it here")
            return
        if one.kind == "netem":
            if not any(word != "limit" for word in one.words[::2]):
                self.note(one.place, "netem without impairments is read as a pfifo with its limit")
                limit = one.words[1] if len(one.words) > 1 else "1000"
                self._parts.append(
                    Part(f"qdisc parent {name} pfifo limit {limit}", one.place, (name,))
                )
                return
            if self._is_only_leaf(holder, name) and not self._seat(one):
                self.built.netem = self._netem(one)
                return
            self.fault(
                one.place,
                "netem in a class is not modelled: delay is a property of a link",
                "netem",
            )
            return
        seated = self._seat(one)
        if seated and seated[0].kind == "netem":
            self.fault(seated[0].place, "netem in a class is not modelled", "netem")
        needs = () if holder.kind in IMPLICIT else (name,)
        self._parts.append(
            Part(f"qdisc parent {name} {self._head(one, at_root=False)}", one.place, needs)
        )
        self._inside_of(one)

    def _inside_of(self, one: Discipline) -> None:
        if one.handle is not None:
            self._inside(one)

    # Filters

    def _filters(self, holder: Discipline, major: int) -> None:
        """Adds the filters of a discipline, including the filters of its inner classes."""
        order = sorted(enumerate(self._filters_of(holder, major)), key=lambda f: (f[1][0], f[0]))
        rules: list[Rule] = []
        of_class: dict[Name, list[Rule]] = {}
        for _, (_, found) in order:
            at_class = found.parent != ROOT and found.parent.minor != 0
            made = self._rules(holder, major, found)
            (of_class.setdefault(found.parent, []) if at_class else rules).extend(made)
        if holder.kind in DEFAULT:
            rules = self._descended(holder, major, rules, of_class)
        elif of_class:
            first = next(iter(of_class.values()))[0]
            self.fault(
                first.place, f"classes of `{holder.kind}` cannot have filters: Linux rejects them"
            )
        if self._steps:
            rules = self._behind_firewall(holder, major, rules)
        for rule in rules:
            has_class = rule.target.minor and holder.kind not in IMPLICIT and rule.divisor == 1
            lead = (rule.target,) if has_class else ()
            self._parts.append(Part(rule.text(major), rule.place, lead, asked_by=major))

    def _descended(
        self, holder: Discipline, major: int, rules: list[Rule], of_class: dict[Name, list[Rule]]
    ) -> list[Rule]:
        inner = {name for name in self._parents if name.major == major and name.minor}
        inner &= set(self._device.classes)
        reached = {rule.target for rule in chain(rules, *of_class.values())} & inner
        for name in of_class.keys() - reached:
            message = (
                f"no filter leads to `{name}`, so Linux does not evaluate the filters of this class"
            )
            self.note(of_class[name][0].place, message)
        default = self._default(holder, major)
        for rule in rules:
            if rule.target in inner - of_class.keys():
                where = (
                    f"the default class `{default}`"
                    if default.minor
                    else "past all classes, without a limit"
                )
                message = (
                    f"`{rule.target}` has child classes and no filters of its own: packets go to "
                    f"{where}"
                )
                self.note(rule.place, message)
        try:
            return descended(rules, of_class, inner, default)
        except Refused as why:
            self.fault(rules[0].place, str(why), why.found)
            return []

    @cached_property
    def _steps(self) -> dict[int, list[tuple[filters.Condition, ...]]]:
        """Conditions by which packets match each rule of the firewall, by the rule's `id`.

        Empty if no rule changes packets.
        """
        if not self._firewall.changes:
            return {}
        found = {}
        for step in chain.from_iterable(self._firewall.chains.values()):
            found[id(step)] = [] if step.is_idle else self._ways(step)
        return found

    def _ways(self, step: Step) -> list[tuple[filters.Condition, ...]]:
        found: list[tuple[filters.Condition, ...]] = []
        try:
            for matches in firewall.alternatives(step):
                rule = Filter("", ROOT, step.place, protocol="ip", matches=matches)
                meaning = filters.meaning(rule, self._hosts)
                for address in meaning.strangers:
                    self._strangers.setdefault(address, step.place)
                found += map(tuple, meaning.alternatives)
        except Refused as why:
            self.note(step.place, f"this line of the firewall is ignored: {why}")
            return []
        return found

    def _behind_firewall(self, holder: Discipline, major: int, rules: list[Rule]) -> list[Rule]:
        default = self._default(holder, major) if holder.kind in DEFAULT else None
        rewriter = firewall.Rewriter(self._firewall, self._device.name, default, self._steps)
        try:
            return rewriter.rewritten(rules, major)
        except Refused as why:
            self.fault(self._firewall.changes[0].place, str(why), why.found)
            return rules

    def _filters_of(self, holder: Discipline, major: int) -> Iterator[tuple[int, Filter]]:
        automatic = AUTOMATIC
        at_root = self._filtered.get(-1, []) if holder.parent == ROOT else []
        both = sorted([*self._filtered.get(major, []), *at_root], key=lambda one: one[0])
        for _, found in both:
            order = found.prio
            if order is None:
                order, automatic = automatic, automatic - 1
            yield order, found

    def _rules(self, holder: Discipline, major: int, found: Filter) -> list[Rule]:
        """Returns the rules for a filter of `tc`: one for each alternative of its tests."""
        if holder.kind not in CLASSFUL:
            self.note(
                found.place,
                f"filters of `{holder.kind}` are ignored: it distinguishes flows by its own hash "
                "here",
            )
            return []
        if found.target is None and not found.flow:
            if found.kind != "flow":
                self.note(found.place, "this filter leads to no class: it has no effect here")
            return []
        try:
            if found.kind == "flow":
                target, divisor = filters.spread(found, major)
            else:
                target, divisor = self._target(holder, major, found), 1
            meaning = filters.meaning(found, self._hosts)
        except Refused as why:
            self.fault(found.place, str(why), why.found)
            return []
        for note in meaning.notes:
            self.note(found.place, note)
        for address in meaning.strangers:
            self._strangers.setdefault(address, found.place)
        return [
            Rule(tuple(conditions), target, found.place, divisor)
            for conditions in meaning.alternatives
        ]

    def _target(self, holder: Discipline, major: int, found: Filter) -> Name:
        from_text = filters.target_of(found)
        target = Name(major, from_text.minor)
        if holder.kind in IMPLICIT:
            return target
        known = self._device.classes
        if from_text.major not in (0, major) or (target.minor and target not in known):
            default = self._default(holder, major)
            if holder.kind in DEFAULT:
                where = (
                    f"the default class `{default}`"
                    if default.minor
                    else "past all classes, without a limit"
                )
                self.note(
                    found.place, f"the class `{from_text}` does not exist: packets go to {where}"
                )
                return default
        return target

    def _default(self, holder: Discipline, major: int) -> Name:
        words = holder.words
        if "default" in words and words.index("default") + 1 < len(words):
            text = words[words.index("default") + 1]
            minor = text.rpartition(":")[2].lower().removeprefix("0x")
            try:
                name = Name(major, int(minor, 16))
            except ValueError:
                return Name(major)
            if name in self._device.classes:
                return name
        return Name(major)

    # The whole

    def _settled(self, root: Discipline) -> str | None:
        """Returns the text of all valid statements; reports invalid statements at their lines.

        Returns None if no text is left.
        """
        length = sum(len(part.text) + 3 for part in self._parts)
        if length > limits.TEXT_CHARACTERS:
            self.fault(
                root.place,
                f"the tree of `{self._device.name}` has {len(self._parts)} statements with "
                f"{length} characters; at most {limits.TEXT_CHARACTERS} are allowed",
            )
            return None
        for _ in range(FAULTS):
            why = self._error(len(self._parts))
            if why is None:
                return self._text(len(self._parts))
            if not self._leave_out(why):
                return None
        self.fault(root.place, f"more than {FAULTS} lines of `{self._device.name}` cannot be read")
        return None

    def _text(self, count: int) -> str:
        return " ; ".join(part.text for part in self._parts[:count])

    def _error(self, count: int) -> _core.WordError | None:
        """Returns the error of the first `count` statements; None if they are valid."""
        try:
            _core.parse_queue(self._text(count))
        except _core.WordError as why:
            return why
        return None

    def _leave_out(self, why: _core.WordError) -> bool:
        """Removes the first invalid statement and the statements that depend on it.

        Returns whether any statement remains.
        """
        low, high = 0, len(self._parts)
        while high - low > 1:
            middle = (low + high) // 2
            found = self._error(middle)
            if found is None:
                low = middle
            else:
                high, why = middle, found
        part = self._parts[high - 1]
        nearest = f": did you mean `{why.nearest}`?" if why.nearest else ""
        self.fault(part.place, why.message + nearest, why.found)
        if high == 1:
            return False
        gone = {part.makes} - {None}
        kept = [p for p in self._parts if p is not part]
        while lost := [p for p in kept if any(name in gone for name in p.needs)]:
            gone |= {p.makes for p in lost} - {None}
            kept = [p for p in kept if p not in lost]
            for p in lost:
                reason = f"line {part.place.line}, which declares the class, is ignored"
                self.note(p.place, f"ignored, because {reason}")
        self._parts = kept
        return True


def _without(words: list[str], keys: tuple[str, ...]) -> list[str]:
    """Returns the words without these keys and their values."""
    idle = {at for key in keys if key in words for at in (words.index(key), words.index(key) + 1)}
    return [word for at, word in enumerate(words) if at not in idle]


def _without_zeros(words: list[str]) -> list[str]:
    """Returns the words of an HTB class without bursts of 0, for which `tc` uses its default."""
    kept: list[str] = []
    at = 0
    while at < len(words):
        is_burst = words[at] in ("burst", "cburst", "buffer", "cbuffer", "maxburst", "cmaxburst")
        value = words[at + 1] if at + 1 < len(words) else ""
        if is_burst and value.rstrip("bkmgBKMG") in ("0", "00"):
            at += 2
            continue
        kept.append(words[at])
        at += 1
    return kept


def build(device: Device, hosts: Mapping[IPv4Address, int], rules: Firewall | None = None) -> Built:
    """Returns the queue of a device; `hosts` maps addresses to node numbers.

    `rules` is the firewall that packets pass before the queue.
    """
    copy = device.copy()
    notices: list[Notice] = []
    cbq.replaced(copy, notices)
    mq.counted(copy, notices)
    builder = _Builder(copy, hosts, rules or Firewall())
    builder.built.notices += notices
    root = copy.root
    if root is not None:
        builder.build(root)
    return builder.built


def shaped_rate(queue: str) -> int | None:
    """Returns the rate limit of a queue in bit/s; None if it does not limit the rate."""
    return _core.queue_rate(_core.parse_queue(queue))
