"""A scenario from a few answers: a link, what people do on it, and what hurts."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from sojourn import _core


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


ACTIVITIES = {
    "calls": Activity(
        "phone calls",
        (
            Flows("calls", "voip", "two calls: what is said here", up=True, count=2),
            Flows("heard", "voip", "... and what is heard", count=2),
        ),
    ),
    "video": Activity(
        "video calls",
        (
            Flows("video", "cbr rate 1.5mbit size 1200", "a video call: our picture", up=True),
            Flows("seen", "cbr rate 1.5mbit size 1200", "... and theirs"),
        ),
    ),
    "games": Activity(
        "games",
        (
            Flows("games", "client preset gaming", "a game: what the player does", up=True),
            Flows("world", "client preset gaming", "... and what becomes of it"),
        ),
    ),
    "web": Activity(
        "the Web",
        (
            Flows(
                "web", "web preset pareto-2", "ten people on the Web; pages come from `from`",
                count=10, start="uniform 0s 5s",
            ),
        ),
    ),
    "films": Activity(
        "films and music",
        (
            Flows(
                "films", "transfer size 2mb forever think 2s", "two screens, a piece at a time",
                count=2, start="uniform 0s 3s",
            ),
        ),
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
"""What people may do, by its word."""


@dataclass(frozen=True)
class Complaint:
    """What hurts: which queue is asked about then, and which number decides."""

    what: str
    up: bool
    """Whether it is the queue of the direction up."""
    by: str
    """The metric that `compare` ranks by."""
    needs: str = ""
    """The activity that it is about."""


COMPLAINTS = {
    "uploading": Complaint(
        "everything is slow while somebody uploads", True, "sojourn_p95", "uploads"
    ),
    "downloading": Complaint(
        "everything is slow while somebody downloads", False, "sojourn_p95", "downloads"
    ),
    "calls": Complaint("calls stutter", True, "calls.delay_p99", "calls"),
    "video": Complaint("video calls freeze", True, "video.delay_p99", "video"),
    "games": Complaint("games lag", True, "games.delay_p99", "games"),
    "web": Complaint("pages take long", False, "web.page_p95", "web"),
    "films": Complaint("films wait", False, "films.fct_p95", "films"),
    "nothing": Complaint("nothing yet; which queue would be good?", True, "sojourn_p95"),
}
"""What may hurt, by its word."""


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


def about(does: Sequence[str]) -> list[str]:
    """What may hurt those who do this."""
    return [word for word, it in COMPLAINTS.items() if not it.needs or it.needs in does]


def compose(answers: Answers, file: str) -> str:
    """The text of a scenario; `file` is the name by which its commands call it."""
    hurts = COMPLAINTS[answers.hurts]
    file = shlex.quote(file)
    by = "" if hurts.by == "sojourn_p95" else f" --by {hurts.by}"
    subject = "line" if hurts.up else "line.reverse"
    way = "up" if hurts.up else "down"
    top = [
        f"{hurts.what[0].upper()}{hurts.what[1:]}.",
        "",
        f"  sojourn compare {file}{by}",
        f"  sojourn run {file}",
        "",
        *textwrap.wrap(
            f"`compare` exchanges the queue of the direction {way}, where `bottleneck` points, and "
            f"ranks by {hurts.by}: `sojourn explain {hurts.by.rpartition('.')[2]}`. Change what "
            "is not as it is at your place; every key is in the reference.",
            98,
        ),
    ]
    parts = ["\n".join(f"# {line}".rstrip() for line in top), _network(answers, subject)]
    parts += [_flows(flows) for word in answers.does for flows in ACTIVITIES[word].flows]
    return "\n\n".join(parts) + "\n"


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
        ('queue = "pfifo limit 1000p"', "up; what most interfaces have"),
        ('reverse.queue = "pfifo limit 1000p"', "down"),
    ]
    return "\n".join(f"{line:<36} # {said}" if said else line for line, said in lines)


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
