"""The queues in files of `tc` as trees, in the words of the files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sojourn import _core
from sojourn.scenario import ScenarioError
from sojourn.scenario.classes import lines, tree
from sojourn.tc.read import notice, problem

_TREES = ("htb", "hfsc", "drr", "ets", "prio", "mq")
"""Disciplines with classes that filters select."""


def shown(reading: _core.TcReading) -> Iterator[str]:
    """Yields the queues of all devices in lines of a terminal, and the notices on them.

    Raises `ScenarioError` for parts that could not be read.
    """
    problems = [problem(one) for one in reading.problems]
    yield from map(notice, reading.notices)
    for device in reading.devices:
        if not device.holds or (built := reading.build(device.name, {}, False)) is None:
            continue
        problems += [problem(one) for one in built.problems]
        if problems:
            break
        yield f"{device.name}:"
        if built.netem is not None:
            yield f"  netem {built.netem}"
        if built.queue is not None:
            params = _core.parse_queue(built.queue)
            commands = reading.commands(device.name, {}, False, None, params, "DEV")
            kinds = dict(re.findall(r"tc qdisc .* handle (\w+:) (\w+)", "\n".join(commands)))
            statements = " ; ".join(_statement(one) for one in commands if _is_shown(one, kinds))
            yield from (f"  {line}" for line in lines(tree(statements)))
    if problems:
        raise ScenarioError(problems)


def _is_shown(command: str, kinds: dict[str, str]) -> bool:
    """Whether a command sets up a part of a tree: filters of other disciplines select no class."""
    major = re.match(r"tc filter .* parent (\w+:)", command)
    return bool(_statement(command)) and (not major or kinds.get(major[1], "prio") in _TREES)


def _statement(command: str) -> str:
    """Returns a command of `tc` as a statement of a queue's description."""
    match command.split():
        case ["tc", "qdisc", _, "dev", _, "root", "handle", handle, kind, *words]:
            return " ".join([kind, *([] if handle == "1:" else ["handle", handle]), *words])
        case ["tc", "qdisc", _, "dev", _, "root", *words]:
            return " ".join(words)
        case ["tc", "qdisc", _, "dev", _, "parent", parent, "handle", handle, *words]:
            return " ".join(["qdisc parent", parent, "handle", handle, *words])
        case ["tc", "qdisc", _, "dev", _, *words]:
            return " ".join(["qdisc", *words])
        case ["tc", "class", _, "dev", _, "parent", parent, "classid", name, _, *words]:
            return " ".join(["class", name, "parent", parent, *words])
        case ["tc", "filter", _, "dev", _, "parent", parent, *words]:
            for key in ("flowid", "classid", "baseclass"):
                if key in words[:-1]:
                    at = words.index(key)
                    rest = words[:at] + words[at + 2 :]
                    return " ".join(["filter parent", parent, *rest, "to", words[at + 1]])
    return ""
