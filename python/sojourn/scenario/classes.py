"""The classes of a queue's description: as a tree, with a run's measurements, changed singly."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

from sojourn import _core
from sojourn.scenario.errors import Problem, ScenarioError
from sojourn.scenario.trees import IMPLICIT

KEY = re.compile(r"(?P<queue>.+)\.class\[(?P<name>[^\[\]]+)\](?:\.(?P<word>\w+))?")
"""A key that changes one class: `queue.class[1:40]` its queue, `queue.class[1:40].rate` a word."""
FIFOS = ("pfifo", "bfifo")
WIDTH = 80


@dataclass
class Class:
    """A class, or the discipline at the root."""

    name: str
    words: str = ""
    """Parameters of the class, in words of `tc`."""
    queue: str = ""
    """Discipline inside the class; empty for the FIFO that each class has."""
    filters: list[str] = field(default_factory=list)
    """Conditions of the filters that select the class."""
    is_default: bool = False
    classes: list[Class] = field(default_factory=list)

    @property
    def is_fifo(self) -> bool:
        """Whether packets of the class wait in a plain FIFO."""
        return not self.classes and (not self.queue or self.queue.split()[0] in FIFOS)

    @property
    def leaves(self) -> Iterator[Class]:
        """The classes that hold packets."""
        for one in self.classes:
            if one.classes:
                yield from one.leaves
            else:
                yield one


def _statements(text: str) -> list[list[str]]:
    return [part.split() for part in text.split(";") if part.strip()]


def tree(text: str, nodes: Sequence[str] = ()) -> Class:
    """Returns the discipline that a queue's description has at its root, with its classes.

    `nodes` has the names of the nodes whose numbers are in filters.
    """

    def named(words: list[str]) -> str:
        pairs = pairwise(["", *words])
        return " ".join(
            nodes[int(word)]
            if before in ("src", "dst") and word.isdecimal() and int(word) < len(nodes)
            else word
            for before, word in pairs
        )

    own, *statements = _statements(text)
    root = Class("", " ".join(own))
    disciplines = {_after(own, "handle", "1:").removesuffix(":") + ":": root}
    known: dict[str, Class] = {}

    def within(parent: str, name: str) -> Class:
        if name not in known:
            known[name] = Class(name)
            above = known.get(parent) or disciplines.get(parent) or root
            above.classes.append(known[name])
        return known[name]

    for words in statements:
        match words:
            case ["class", name, "parent", parent, *rest]:
                within(parent, name).words = " ".join(rest)
            case ["class", name, *rest]:
                within(f"{name.partition(':')[0]}:", name).words = " ".join(rest)
            case ["qdisc", "parent", name, *rest]:
                handle = _after(rest, "handle", "")
                one = within(f"{name.partition(':')[0]}:", name)
                if handle:
                    disciplines[handle] = one
                    rest = [word for word in rest if word not in ("handle", handle)]
                one.queue = " ".join(rest)
            case ["filter", *rest] if "to" in rest[:-1]:
                if rest[0] == "parent":
                    rest = rest[2:]
                at = len(rest) - 1 - rest[::-1].index("to")
                one = within(f"{rest[at + 1].partition(':')[0]}:", rest[at + 1])
                one.filters.append(named(rest[:at]))
    for handle, discipline in disciplines.items():
        words = (discipline.words if discipline is root else discipline.queue).split()
        if "default" in words:
            minor = _after(words, "default", "").removeprefix("0x").rpartition(":")[2]
            if found := known.get(f"{handle}{minor}"):
                found.is_default = True
    return root


def _after(words: list[str], name: str, otherwise: str) -> str:
    return words[words.index(name) + 1] if name in words[:-1] else otherwise


def lines(root: Class, figures: Callable[[str], str] = lambda _: "") -> list[str]:
    """Returns the tree in lines of a terminal; `figures` has a text for each path of a class."""
    found = textwrap.wrap(root.words, WIDTH, subsequent_indent="    ")
    is_filtered = root.words.split()[0] not in IMPLICIT
    for one in root.classes:
        found += _lines(one, 1, "", is_filtered, figures)
    return found


def _lines(
    one: Class, depth: int, above: str, is_filtered: bool, figures: Callable[[str], str]
) -> list[str]:
    indent = "  " * depth
    queue = one.queue or ("" if one.classes else "FIFO of the device's txqueuelen")
    text = f"{one.name}  {'; '.join(part for part in (one.words, queue) if part)}"
    notes = [f"from {condition or 'all'}" for condition in one.filters]
    if one.is_default:
        notes.append("from all other packets")
    if is_filtered and not notes and not one.classes:
        notes.append("unreachable: no filter leads here")
    path = f"{above}{one.name}"
    parts = [text, *("    " + note for note in [*notes, figures(path)] if note)]
    found = []
    for part in parts:
        inner = " " * (len(part) - len(part.lstrip()))
        start = indent + inner
        further = start + "    "
        found += textwrap.wrap(part.strip(), WIDTH, initial_indent=start, subsequent_indent=further)
    inside = one.queue.split()[:1]
    filtered = is_filtered if not inside else inside[0] not in IMPLICIT
    for child in one.classes:
        nested = f"{path}/" if inside else above
        found += _lines(child, depth + 1, nested, filtered, figures)
    return found


@cache
def _words(discipline: str) -> frozenset[str]:
    """Returns the words of a discipline's classes."""
    tables = json.loads(_core.describe())["class"]
    return frozenset(
        word["name"] for one in tables if one["name"] == discipline for word in one["words"]
    )


def changed(text: str, key: str, name: str, word: str | None, value: object) -> str:
    """Returns a queue's description in which one class has another queue, or a word another value.

    Raises `ScenarioError` at `key` if there is no such class, or if the queue or value is wrong.
    """
    statements = _statements(text)
    own = statements[0][0]
    known = [one[1] for one in statements if one[0] == "class"]
    if name not in known and own not in IMPLICIT:
        message = f"the queue `{own}` has no class `{name}`"
        message += f"; its classes: {', '.join(known)}" if known else ""
        nearest = _core.nearest(name, known)
        raise ScenarioError(
            [Problem(message, key, found=name, allowed=tuple(known), nearest=nearest)]
        )
    given = str(value).split()
    if word is None:
        kept = [one for one in statements if one[:3] != ["qdisc", "parent", name]]
        at = next((n for n, one in enumerate(kept) if one[0] == "filter"), len(kept))
        kept.insert(at, ["qdisc", "parent", name, *given])
        statements = kept
    else:
        words = _words(own)
        of_class = next((one for one in statements if one[:2] == ["class", name]), None)
        if of_class is None:
            of_class = ["class", name]
            statements.insert(1, of_class)
        at = of_class.index(word) if word in of_class else len(of_class)
        behind = range(at + 1, len(of_class))
        end = next((n for n in behind if of_class[n] in words), len(of_class))
        of_class[at:end] = [word, *given]
    result = " ; ".join(" ".join(one) for one in statements)
    try:
        _core.parse_queue(result)
    except _core.WordError as error:
        problem = Problem(
            error.message,
            key,
            found=error.found or None,
            allowed=tuple(error.allowed),
            nearest=error.nearest,
        )
        raise ScenarioError([problem]) from None
    return result


def figures(
    metrics: Mapping[str, float], link: str, show: Callable[[float, str, str], str]
) -> Callable[[str], str]:
    """Returns a function that describes what a class of a link's queue did in a run, by its path.

    `show` writes a value with its unit; its third argument is the metric.
    """

    def text(path: str) -> str:
        def value(metric: str, unit: str) -> str:
            return show(metrics[f"{link}.{path}.{metric}"], unit, metric)

        if f"{link}.{path}.departures" not in metrics:
            return ""
        return (
            f"{value('throughput', 'bit/s')}, delay {value('sojourn_mean', 's')}, 95 % "
            f"{value('sojourn_p95', 's')}, {value('departures', '1')} packets sent, "
            f"{value('drops', '1')} dropped"
        )

    return text
