"""Names of the thesis' metrics in each reading, and functions that make claims with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sojourn.papers.claim_table import Row
from sojourn.papers.daqm.mechanisms import EIGHT
from sojourn.papers.words import margin
from sojourn.stats.cells import Cell, ClaimError, Level

#: Metrics of the runs on the switch: mean sojourn time, mean queue length, share of lost packets.
SOJOURN, QUEUE, LOSS = "sojourn_mean", "queue_mean", "loss"
DELAY = "clients.packet_delay_mean"
"""Mean delay of packets from host to host, without waiting in the sender, as in the thesis."""
DELIVERED = "clients.delivered"
"""Delivered payload in bit/s: `goodput` of TCP plus `udp_goodput`."""
COMPLETION = "completion"
"""Mean flow completion time in seconds; an unfinished flow counts with the measured time."""
AGAINST_RED = "sojourn_against_red"
"""Sojourn time divided by RED's sojourn time in the same cell and with the same seed."""
TRIGGERS = "triggers"
"""Number of times that a packet met a drop condition of dAQM, divided by the number of packets."""
SPREAD = ("sojourn_sd", "queue_sd", TRIGGERS)
"""Metrics of all readings: standard deviations of sojourn times and queue lengths, triggers."""
FIRST_DROP = "first_drop"
"""Time of the first sample with a drop, in seconds; samples are 0.1 s apart."""


@dataclass(frozen=True)
class Terms:
    """Names of the thesis' metrics in a reading, and the levels that identify its cells."""

    sojourn: str
    queue: str
    loss: str
    delay: str
    throughput: str
    completion: str = ""
    """Flow completion time; empty if the reading does not measure it."""
    first_drop: str = ""
    """Time of the first drop; empty if the reading does not measure it."""
    figures: bool = False
    """Whether cells have the factor `figure`, the number of the thesis' figure."""
    each: str | None = None
    """Factor at whose levels the claims about figures 6 to 10 are judged separately.

    `None` if these claims are judged on all runs together.
    """
    full: Mapping[str, Cell] = field(default_factory=dict)
    """Levels of the heaviest load in section 6.3.2, by flow."""

    def at(self, **levels: Level | Sequence[Level]) -> Cell:
        """Returns the cell with these levels; without `figure` if the reading has no figures."""
        return {k: v for k, v in levels.items() if self.figures or k != "figure"}

    def metric(self, name: str) -> str:
        """Returns the metric with this name in `claims.toml`; empty if it is not measured."""
        if name in SPREAD:
            return name
        return AGAINST_RED if name == "against_red" else str(getattr(self, name))


PUBLISHED = Terms(
    "sojourn", "queue", "plr", "delay", "throughput", "fct", FIRST_DROP, figures=True,
    full={"http": {"rate": 4000}, "ftp": {"rate": 10_000}},
)  # fmt: skip
"""Terms of the reading as published: the published averaging; loads are the clients' rates."""
MEANT = Terms(
    SOJOURN, QUEUE, LOSS, DELAY, DELIVERED, each="load",
    full={"http": {"load": 2.0}, "ftp": {"load": 2.0}},
)  # fmt: skip
"""Terms of the reading as meant: every packet counts once; loads are those of the ports."""
ENDING = Terms(
    SOJOURN, QUEUE, LOSS, DELAY, DELIVERED, COMPLETION,
    full={"http": {"load": 2.0}, "ftp": {"load": 2.0}},
)  # fmt: skip
"""Terms of the reading as meant, for runs in which clients stop and all data are delivered."""


def _text(value: object) -> str:
    assert isinstance(value, str)
    return value


def _names(value: object) -> tuple[str, ...]:
    assert isinstance(value, tuple)
    return value


KINDS = ("most", "moves", "same", "below_mean")
"""Kinds of parts in `claims.toml`, in addition to those of all studies.

`most` is `least` for the largest value. `moves` is the ratio of the values at the levels `to` and
`from` of the factor `over`. `same` means similar, unless a margin is given. `below_mean` is the
ratio of `who` to the mean of `among`.
"""


_FIELDS = {
    *("kind", "metric", "text", "region", "margin", "cell"),
    *("who", "among", "but", "a", "b", "from", "to", "over"),
}


def completed(terms: Terms, row: Row) -> Row | None:
    """Returns a part of a claim in the terms of a reading; `None` if its metric is not measured.

    Metrics are those of `Terms`. A part compares mechanisms: `who` with all `among` (by default the
    eight of figures 7 to 16) except `but`, or `a` with `b`.
    """
    if unknown := row.keys() - _FIELDS:
        raise ClaimError(f"unknown: {', '.join(sorted(unknown))}")
    metric = terms.metric(_text(row.pop("metric")))
    if not metric:
        return None
    cell = row.pop("cell", {})
    assert isinstance(cell, dict)
    at, each = terms.at(**cell), terms.each if cell.get("figure", 0) <= 10 else None
    where = ", ".join(str(level) for factor, level in cell.items() if factor != "figure")
    kind, who = row["kind"], row.get("who")
    made: Row = {"kind": "ratio", "metric": metric, "each": each, "scale": "geometric"}
    left_out = (who, *_names(row.get("but", ())))
    among = tuple(m for m in _names(row.get("among", EIGHT)) if m not in left_out)
    match kind:
        case "mean":
            return {**row, "metric": metric, "cell": at}
        case "least" | "most":
            made |= {"kind": "least", "among": "mechanism", "who": who}
            made |= {"extreme": "smallest" if kind == "least" else "largest"}
            made |= {"text": f"{who}'s {word(metric)}, {where}", "margin": row.get("margin", 0.0)}
            return {**made, "cell": {**at, "mechanism": (*among, who)}}
        case "same":
            made = {"kind": "equal", "metric": metric, "each": each}
            made["margin"] = row.get("margin", margin("similar"))
            made |= {"text": f"{word(metric)}, {where}", "among": "mechanism"}
            return {**made, "cell": {**at, "mechanism": among}}
        case "moves":
            made |= {"text": f"{who}'s {word(metric)}, {where}", "each": None}
            ends = (
                {**at, "mechanism": who, _text(row["over"]): row[end]} for end in ("to", "from")
            )
        case "below_mean":
            made |= {"text": f"{who}, {cell['flow']}", "scale": "mean"}
            ends = ({**at, "mechanism": level} for level in (who, among))
        case _ if who is None:
            made["text"] = f"{word(metric)}, {row['a']} / {row['b']}, {where}"
            ends = ({**at, "mechanism": row[end]} for end in ("a", "b"))
        case _:
            made["text"] = row.get("text", f"{who}'s {word(metric)}")
            cells = (row["a"], row["b"])
            ends = ({**terms.at(**c), "mechanism": who} for c in cells if isinstance(c, dict))
    return {**made, **dict(zip("ab", ends, strict=True)), "region": row["region"]}


_WORDS = {
    SOJOURN: "sojourn time", "sojourn": "sojourn time", QUEUE: "queue", "queue": "queue",
    LOSS: "loss", "plr": "loss", DELAY: "delay", "delay": "delay", DELIVERED: "throughput",
    "throughput": "throughput", COMPLETION: "completion time", "fct": "completion time",
    AGAINST_RED: "sojourn time over RED's", "sojourn_sd": "variation of sojourn times",
    "queue_sd": "variation of queues", TRIGGERS: "triggers a packet", "": "",
}  # fmt: skip


def word(metric: str) -> str:
    """Returns the name of a metric in words."""
    return _WORDS[metric]
