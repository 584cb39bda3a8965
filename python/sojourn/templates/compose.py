"""A scenario from a few answers: a link, what people do on it, and what hurts."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from sojourn import _core
from sojourn.scenario.question import BY


@dataclass(frozen=True)
class Flows:
    """One group of flows."""

    name: str
    app: str
    comment: str
    up: bool = False
    count: int = 1
    start: str = "uniform 0s 1s"
    tcp: str = ""


@dataclass(frozen=True)
class Activity:
    """Something that people do on a link."""

    what: str
    flows: tuple[Flows, ...]
    felt: str = ""
    """The metric of its flows that people notice; empty where nobody waits for it."""
    smallest: str = ""
    """The smallest difference of it that they notice, with a comment; else the metric's own."""


ACTIVITIES = {
    "calls": Activity(
        "phone calls",
        (
            Flows("calls", "voip", "two calls: what is said here", up=True, count=2),
            Flows("heard", "voip", "... and what is heard", count=2),
        ),
        "delay_p99",
        'smallest = "10ms"                    # costs a call at most 0.05 of MOS (ITU-T G.107)',
    ),
    "video": Activity(
        "video calls",
        (
            Flows("video", "cbr rate 1.5mbit size 1200", "a video call: our picture", up=True),
            Flows("seen", "cbr rate 1.5mbit size 1200", "... and theirs"),
        ),
        "delay_p99",
    ),
    "games": Activity(
        "games",
        (
            Flows("games", "client preset gaming", "a game: what the player does", up=True),
            Flows("world", "client preset gaming", "... and what becomes of it"),
        ),
        "delay_p99",
    ),
    "web": Activity(
        "the Web",
        (
            Flows(
                "web", "web preset pareto-2", "ten people on the Web; pages come from `from`",
                count=10, start="uniform 0s 5s",
            ),
        ),
        "page_p95",
    ),
    "films": Activity(
        "films and music",
        (
            Flows(
                "films", "transfer size 2mb forever think 2s", "two screens, a piece at a time",
                count=2, start="uniform 0s 3s",
            ),
        ),
        "fct_p95",
    ),
    "downloads": Activity(
        "downloads and updates",
        (Flows("downloads", "bulk", "two downloads", count=2, tcp="cubic"),),
    ),
    "uploads": Activity(
        "uploads and backups",
        (Flows("uploads", "bulk", "two uploads", up=True, count=2, tcp="cubic"),),
    ),
}  # fmt: skip
"""What people may do, by its word; the most sensitive comes first."""


@dataclass(frozen=True)
class Complaint:
    """What hurts: which queue is asked about then, and which number decides."""

    what: str
    up: bool
    """Whether it is the queue of the direction up."""
    needs: str = ""
    """The activity that it is about."""


COMPLAINTS = {
    "uploading": Complaint("everything is slow while somebody uploads", True, "uploads"),
    "downloading": Complaint("everything is slow while somebody downloads", False, "downloads"),
    "calls": Complaint("calls stutter", True, "calls"),
    "video": Complaint("video calls freeze", True, "video"),
    "games": Complaint("games lag", True, "games"),
    "web": Complaint("pages take long", False, "web"),
    "films": Complaint("films wait", False, "films"),
    "nothing": Complaint("nothing yet; which queue would be good?", True),
}
"""What may hurt, by its word."""


@dataclass(frozen=True)
class Line:
    """What a kind of line adds to each packet, as `tc-cake(8)` has it for these kinds.

    A scenario's lengths count the Ethernet header of 14 bytes, and CAKE's overheads do not.
    """

    what: str
    overhead: int = 0
    cells: str = ""


LINES = {
    "other": Line("something else, or nobody knows"),
    "adsl": Line("ADSL: PPPoE in cells of ATM; give its sync rates", 40 - 14, "atm"),
    "vdsl": Line("VDSL2: PPPoE in PTM; give its sync rates", 30 - 14, "ptm"),
    "cable": Line("cable (DOCSIS)", 18 - 14),
    "fibre": Line("fibre or Ethernet", 38 - 14),
}
"""Kinds of lines, by their words."""


@dataclass(frozen=True)
class Answers:
    """What somebody says of his link."""

    down: str
    up: str
    rtt: str
    does: Sequence[str]
    """Words of `ACTIVITIES`."""
    hurts: str
    """A word of `COMPLAINTS`."""
    line: str = "other"
    """A word of `LINES`."""


DEPLOY = """\
[deploy]                             # where the best queue is put to work
machine = "here"                     # yours: it shapes what goes out, or what comes in
# interface = "eth0"                 # its interface to the line; `ip link` lists them
# format = "sqm"                     # settings of OpenWrt; also tc, networkd"""
"""The machine that commands are for."""


def about(does: Sequence[str]) -> list[str]:
    """What may hurt those who do this."""
    return [word for word, it in COMPLAINTS.items() if not it.needs or it.needs in does]


def compose(answers: Answers, file: str) -> str:
    """The text of a scenario; `file` is the name by which its commands call it."""
    hurts = COMPLAINTS[answers.hurts]
    file = shlex.quote(file)
    by = decides(answers)
    smallest = next((a.smallest for a in ACTIVITIES.values() if _is_of(by, a)), "")
    subject = "line" if hurts.up else "line.reverse"
    way = "up" if hurts.up else "down"
    top = [
        f"{hurts.what[0].upper()}{hurts.what[1:]}.",
        "",
        f"  sojourn compare {file}",
        f"  sojourn run {file}",
        "",
        *textwrap.wrap(
            f"`compare` exchanges the queue of the direction {way}, where `bottleneck` points, and "
            f"answers the question below: `sojourn explain {by.rpartition('.')[2]}`. Edit any "
            "value that does not match your connection; every key is in the reference.",
            98,
        ),
    ]
    parts = ["\n".join(f"# {line}".rstrip() for line in top), _network(answers, subject)]
    parts.append(f"{'[question]':<36} # what decides\n" + f'by = "{by}"')
    parts[-1] += f"\n{smallest}" if smallest else ""
    parts += [_flows(flows) for word in answers.does for flows in ACTIVITIES[word].flows]
    return "\n\n".join([*parts, DEPLOY]) + "\n"


def decides(answers: Answers) -> str:
    """The metric that decides: of the activity that hurts, else of the most sensitive one."""
    hurts = COMPLAINTS[answers.hurts]
    for word in (hurts.needs, *(word for word in ACTIVITIES if word in answers.does)):
        activity = ACTIVITIES.get(word)
        if activity is not None and activity.felt:
            flows = activity.flows
            way = next((f for f in flows if f.up == hurts.up), flows[0])
            return f"{way.name}.{activity.felt}"
    return BY


def _network(answers: Answers, subject: str) -> str:
    half = _core.format_quantity("time", _core.parse_quantity("time", answers.rtt) // 2)
    lines = [
        (f'name = "{COMPLAINTS[answers.hurts].what}"', ""),
        ('duration = "60s"', ""),
        ('warmup = "10s"', "what happens before is not measured"),
        (f'bottleneck = "{subject}"', "the queue that is asked about"),
        ("", ""),
        ("[links.line]", ""),
        ('from = "here"', ""),
        ('to = "internet"', ""),
        (f'rate = "{answers.up}"', "up"),
        (f'reverse.rate = "{answers.down}"', "down"),
        (f'netem = "delay {half}"', f"each way: a round trip of {answers.rtt}"),
        *_framing(LINES[answers.line]),
        ('queue = "pfifo limit 1000p"', "up; what most interfaces have"),
        ('reverse.queue = "pfifo limit 1000p"', "down"),
    ]
    return "\n".join(f"{line:<36} # {said}" if said else line for line, said in lines)


def _is_of(by: str, activity: Activity) -> bool:
    """Whether a metric is of an activity's flows."""
    return by.rpartition(".")[0] in [flows.name for flows in activity.flows]


def _framing(line: Line) -> list[tuple[str, str]]:
    """The keys that say what the line adds, with their comments."""
    lines = []
    if line.overhead:
        lines.append((f"overhead = {line.overhead}", "bytes that the line adds to a frame"))
    if line.cells:
        lines.append((f'cells = "{line.cells}"', "into which it cuts the whole"))
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
