"""Composition of a scenario from a few answers on a link, the users' activities and the problem."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from sojourn import _core
from sojourn.scenario.question import BY
from sojourn.templates.data import toml


@dataclass(frozen=True)
class Flows:
    """One group of flows."""

    name: str
    app: str
    """Application as in a scenario."""
    comment: str
    """Comment in the scenario."""
    up: bool = False
    """Whether the flows send in the direction up, to the Internet."""
    count: int = 1
    start: str = "uniform 0s 1s"
    tcp: str = ""


@dataclass(frozen=True)
class Activity:
    """An activity of users on a link."""

    what: str
    flows: tuple[Flows, ...]
    felt: str = ""
    """Metric that users notice, of the first flows; empty for background activities."""
    smallest: str = ""
    """Line of the scenario with the smallest difference of interest; empty: the metric's default.
    """


@dataclass(frozen=True)
class Complaint:
    """A problem of users, which determines the queue and the metric of the question."""

    what: str
    up: bool
    """Whether the queue of the direction up usually causes the problem."""
    needs: str = ""
    """Activity that has the problem, a word of `ACTIVITIES`; empty: any activity."""


@dataclass(frozen=True)
class Line:
    """A kind of access line with its overhead, as in `tc-cake(8)`.

    The lengths of packets in a scenario include the Ethernet header of 14 bytes. CAKE's overheads
    are relative to the IP packet, so 14 is subtracted.
    """

    what: str
    overhead: int = 0
    """Bytes that the line adds to the length of a packet in the scenario."""
    cells: str = ""
    """Cells into which the line divides packets: `atm`, `ptm`, or empty for none."""


@dataclass(frozen=True)
class Known:
    """The content of `data/answers.toml`: all answers by the user's word."""

    activities: dict[str, Activity]
    complaints: dict[str, Complaint]
    lines: dict[str, Line]


_KNOWN = toml(Known, "answers")
ACTIVITIES = _KNOWN.activities
"""Activities, the most sensitive to delay first."""
COMPLAINTS = _KNOWN.complaints
"""Problems."""
LINES = _KNOWN.lines
"""Kinds of lines."""


@dataclass(frozen=True)
class Answers:
    """The answers of a user."""

    down: str
    """Rate of the direction down, such as `50mbit`."""
    up: str
    """Rate of the direction up."""
    rtt: str
    """Base RTT, such as `30ms`."""
    does: Sequence[str]
    """Activities, as words of `ACTIVITIES`."""
    hurts: str
    """Problem, a word of `COMPLAINTS`."""
    line: str = "other"
    """Kind of line, a word of `LINES`."""
    loaded: str = ""
    """Round-trip time while the direction of the problem is full; empty if unknown."""

    @property
    def is_up(self) -> bool:
        """Returns whether the queue of the direction up causes the problem.

        If the activities fill only one direction, it is this one; otherwise that of the problem.
        """
        flows = [flows for word in self.does for flows in ACTIVITIES[word].flows]
        for app in ("bulk", "transfer"):
            ways = {one.up for one in flows if one.app.split()[0] == app}
            if len(ways) == 1:
                return ways.pop()
            if ways:
                break
        return COMPLAINTS[self.hurts].up

    @property
    def buffer(self) -> int:
        """Returns the size in full frames of the present buffer, which holds the added delay."""
        if not self.loaded:
            return 1000
        rate = self.up if self.is_up else self.down
        added = _core.parse_quantity("time", self.loaded) - _core.parse_quantity("time", self.rtt)
        frame = 8 * (1514 + LINES[self.line].overhead)
        return max(2, round(added * _core.parse_quantity("rate", rate) / (frame * 10**9)))


DEPLOY = """\
[deploy]                             # deployment of the best queue
machine = "here"                     # your machine, which shapes outgoing or incoming traffic
modem = true                         # the present queue is in a modem: shape below its rate
# interface = "eth0"                 # its interface to the line; `ip link` lists them
# format = "sqm"                     # settings of OpenWrt; also tc, networkd"""
"""Table of the scenario with the machine for which `sojourn tc` prints commands."""


def about(does: Sequence[str]) -> list[str]:
    """Returns the words of the problems that users with these activities can have."""
    return [word for word, it in COMPLAINTS.items() if not it.needs or it.needs in does]


def compose(answers: Answers, file: str) -> str:
    """Returns the text of a scenario; `file` is the name of its file for the commands."""
    hurts = COMPLAINTS[answers.hurts]
    file = shlex.quote(file)
    by = decides(answers)
    smallest = next((a.smallest for a in ACTIVITIES.values() if _is_of(by, a)), "")
    subject = "line" if answers.is_up else "line.reverse"
    way = "up" if answers.is_up else "down"
    top = [
        f"{hurts.what[0].upper()}{hurts.what[1:]}.",
        "",
        f"  sojourn compare {file}",
        f"  sojourn run {file}",
        "",
        *textwrap.wrap(
            f"`compare` tries other queues in the direction {way} (`bottleneck`) and ranks them by "
            f"the metric below: `sojourn explain {by.rpartition('.')[2]}`. Edit any value that "
            "does not match your connection; every key is in the reference.",
            98,
        ),
    ]
    parts = ["\n".join(f"# {line}".rstrip() for line in top), _network(answers, subject)]
    parts.append(f"{'[question]':<36} # what decides\n" + f'by = "{by}"')
    parts[-1] += f"\n{smallest}" if smallest else ""
    parts += [_flows(flows) for word in answers.does for flows in ACTIVITIES[word].flows]
    return "\n\n".join([*parts, DEPLOY]) + "\n"


def decides(answers: Answers) -> str:
    """Returns the metric of the question.

    The result is a metric of the activity with the problem, or else of the most sensitive activity.
    """
    hurts = COMPLAINTS[answers.hurts]
    for word in (hurts.needs, *(word for word in ACTIVITIES if word in answers.does)):
        activity = ACTIVITIES.get(word)
        if activity is not None and activity.felt:
            flows = activity.flows
            way = next((f for f in flows if f.up == answers.is_up), flows[0])
            return f"{way.name}.{activity.felt}"
    return BY


def _network(answers: Answers, subject: str) -> str:
    half = _core.format_quantity("time", _core.parse_quantity("time", answers.rtt) // 2)
    is_up = answers.is_up
    up, down = (answers.buffer, 1000) if is_up else (1000, answers.buffer)
    fits = f", fitted to a ping of {answers.loaded} under load" if answers.loaded else ""
    lines = [
        (f'name = "{COMPLAINTS[answers.hurts].what}"', ""),
        ('duration = "60s"', ""),
        ('warmup = "10s"', "this initial part is not measured"),
        (f'bottleneck = "{subject}"', "the queue of the question"),
        ("", ""),
        ("[links.line]", ""),
        ('from = "here"', ""),
        ('to = "internet"', ""),
        (f'rate = "{answers.up}"', "up"),
        (f'reverse.rate = "{answers.down}"', "down"),
        (f'netem = "delay {half}"', f"each way: a round trip of {answers.rtt}"),
        *_framing(LINES[answers.line]),
        (f'queue = "pfifo limit {up}p"', f"up; a FIFO of {up} packets{fits if is_up else ''}"),
        (f'reverse.queue = "pfifo limit {down}p"', f"down{'' if is_up else fits}"),
    ]
    return "\n".join(f"{line:<36} # {said}" if said else line for line, said in lines)


def _is_of(by: str, activity: Activity) -> bool:
    """Returns whether a metric is a metric of an activity's flows."""
    return by.rpartition(".")[0] in [flows.name for flows in activity.flows]


def _framing(line: Line) -> list[tuple[str, str]]:
    """Returns lines of a scenario for the overhead of a kind of line, with their comments."""
    lines = []
    if line.overhead:
        lines.append((f"overhead = {line.overhead}", "bytes that the line adds to a frame"))
    if line.cells:
        lines.append((f'cells = "{line.cells}"', "cells into which the line divides packets"))
    return lines


def _flows(flows: Flows) -> str:
    ends = ("here", "internet") if flows.up else ("internet", "here")
    lines = [
        f"{'[[flows]]':<36} # {flows.comment}",
        f'name = "{flows.name}"',
        f'from = "{ends[0]}"',
        f'to = "{ends[1]}"',
        f'app = "{flows.app}"',
    ]
    if flows.tcp:
        lines.append(f'tcp = "{flows.tcp}"')
    if flows.count > 1:
        lines.append(f"count = {flows.count}")
    lines.append(f'start = "{flows.start}"')
    return "\n".join(lines)
