"""Reasons for drops by the kernel's disciplines, from their counters.

The reasons are the simulator's: `early` by the policy's probability or schedule, `forced` at a
threshold of the policy, `overflow` because the queue is full, `ack_filter` for acknowledgements
that a later acknowledgement makes redundant, `measurement` for drops by which dAQM measures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TypeAlias

from sojourn.data import Json
from sojourn.lab.typed import of_json

REASONS = ("early", "forced", "overflow", "ack_filter", "measurement")
"""All reasons, in the order of the metrics `drops_...`."""


@dataclass(frozen=True)
class Counted:
    """How a discipline counts its drops."""

    uncounted: tuple[str, ...]
    """Reasons without a counter of their own. The number of such drops is known if there is only
    one such reason, or if the counters of the other reasons add up to all drops.
    """
    counters: Mapping[str, tuple[str, ...]]
    """Names of the counters in the output of `tc -s -j`, by the reason that they count."""
    memory: tuple[str, str] | None = None
    """Names of the counters of the highest memory use and of its limit, if the discipline has them.
    If the use never exceeded the limit, no drop was an overflow.
    """


_LIMIT = ("drop_overlimit",)
_REFUSED = Counted(("overflow",), {})
DISCIPLINES = {
    "pfifo": _REFUSED,
    "bfifo": _REFUSED,
    "pfifo_fast": _REFUSED,
    "pfifo_head_drop": _REFUSED,
    "skbprio": _REFUSED,
    "hhf": _REFUSED,
    "tbf": _REFUSED,
    "fq": Counted(("overflow",), {"forced": ("horizon_drops",)}),
    "prio": _REFUSED,
    "drr": _REFUSED,
    "ets": _REFUSED,
    "htb": _REFUSED,
    "hfsc": _REFUSED,
    # `drop_overlimit` of `fq_codel` includes drops for lack of memory.
    "codel": Counted(("early",), {"overflow": _LIMIT}),
    "fq_codel": Counted(("early",), {"overflow": _LIMIT}),
    "pie": Counted(("early",), {"overflow": ("overlimit",)}),
    "fq_pie": Counted(("early",), {"overflow": ("overlimit",)}),
    # The kernel's counter `early` of `red` and `choke` includes drops above the upper threshold.
    "red": Counted(("early", "forced"), {"overflow": ("pdrop",)}),
    "choke": Counted(("early", "forced"), {"overflow": ("pdrop",)}),
    "sfb": Counted(
        ("early",),
        {"overflow": ("queuedrop", "childdrop"), "forced": ("bucketdrop", "penaltydrop")},
    ),
    "cake": Counted(
        ("early", "overflow"), {"ack_filter": ("ack_drops",)}, ("memory_used", "memory_limit")
    ),
    "dualpi2": Counted(("early", "forced", "overflow"), {}),
}
"""How each discipline counts, by its name. Reasons that a discipline does not list never occur."""

TREES = ("prio", "drr", "ets", "htb", "hfsc")
"""Disciplines with classes."""
MARKS = ("ecn_mark", "ecn-mark", "marked", "ecn_mark_l4s")
"""Names in `tc` for packets that were marked instead of dropped."""


Listed: TypeAlias = Mapping[str, Json]
"""A discipline in the output of `tc -s -j qdisc show`."""


@dataclass(frozen=True)
class Tin:
    """The counters of one of CAKE's tins that its totals lack."""

    ecn_mark: int
    ack_drops: int


@dataclass(frozen=True)
class Counters:
    """The counters of a discipline and of its inner disciplines."""

    kind: str
    """Name of the discipline that decides about drops: the discipline itself, or its only inner
    discipline unless the outer one is in `TREES`.
    """
    values: Mapping[str, int]
    leaves: Mapping[str, Counters] = field(default_factory=dict)
    """Counters of a tree's disciplines without inner disciplines, by handle. Linux does not list
    the default FIFOs of classes.
    """

    def since(self, before: Counters) -> Counters:
        """Returns the increase of the counters since `before`; limits and peaks are copied."""
        counted = DISCIPLINES.get(self.kind)
        stay = (counted and counted.memory) or ()
        values = {
            name: n if name in stay else n - before.values.get(name, 0)
            for name, n in self.values.items()
        }
        none = Counters("", {})
        leaves = {
            handle: leaf.since(before.leaves.get(handle, none))
            for handle, leaf in self.leaves.items()
        }
        return Counters(self.kind, values, leaves)

    @property
    def drops(self) -> int:
        """Number of packets dropped, for any reason."""
        return self.values.get("drops", 0)

    @property
    def marks(self) -> int | None:
        """Number of packets marked; `None` if the discipline does not count them."""
        if self.leaves:
            counted = [n for leaf in self.leaves.values() if (n := leaf.marks) is not None]
            return sum(counted) if counted else None
        known = [self.values[name] for name in MARKS if name in self.values]
        return sum(known) if known else None


def read(listed: Sequence[Listed], handle: str, device: str) -> Counters | None:
    """Returns a discipline's counters from `tc -s -j qdisc show`; `None` if it is not listed."""
    here = [one for one in listed if one.get("dev") == device]
    found = next((one for one in here if one.get("handle") == handle), None)
    if found is None:
        return None
    inside = _inside(here, handle)
    decide = [one for one in inside if not _inside(here, str(one["handle"]))]
    kind = str(found["kind"])
    if len(decide) == 1 and kind not in TREES:
        # An inner discipline knows the reasons; only the outer one counts all drops.
        return Counters(str(decide[0]["kind"]), _numbers(decide[0]) | _counted(found))
    leaves = {str(one["handle"]): Counters(str(one["kind"]), _counted(one)) for one in decide}
    return Counters(kind, _counted(found), leaves)


def _inside(here: Sequence[Listed], handle: str) -> list[Listed]:
    """Returns the disciplines inside the discipline with this handle, at all depths."""
    direct = [one for one in here if str(one.get("parent", "")).startswith(handle)]
    return [*direct, *(inner for one in direct for inner in _inside(here, str(one["handle"])))]


def _counted(one: Listed) -> dict[str, int]:
    values = _numbers(one)
    for tin in of_json(list[Tin], one.get("tins", [])):
        for name, count in asdict(tin).items():
            values[name] = values.get(name, 0) + count
    return values


def _numbers(one: Listed) -> dict[str, int]:
    return {n: v for n, v in one.items() if isinstance(v, int) and not isinstance(v, bool)}


def split(counters: Counters) -> dict[str, int]:
    """Returns the drops by reason as metrics of a link; reasons with unknown counts are absent."""
    if not counters.leaves:
        return _split(counters)
    parts = [_split(leaf) for leaf in counters.leaves.values()]
    # The rest are drops without a class, and drops of classes' default FIFOs, which are not listed.
    rest = counters.drops - sum(leaf.drops for leaf in counters.leaves.values())
    parts.append({f"drops_{reason}": 0 for reason in REASONS} | {"drops_overflow": rest})
    known = [name for name in parts[-1] if all(name in part for part in parts)]
    return {name: sum(part[name] for part in parts) for name in known}


def _split(counters: Counters) -> dict[str, int]:
    counted = DISCIPLINES.get(counters.kind)
    if counted is None:
        return {}
    found = {
        reason: sum(counters.values.get(name, 0) for name in names)
        for reason, names in counted.counters.items()
    }
    left = counters.drops - sum(found.values())
    rest = counted.uncounted
    if counted.memory is not None:
        most, limit = (counters.values.get(name) for name in counted.memory)
        if most is not None and limit is not None and most <= limit:
            rest = tuple(reason for reason in rest if reason != "overflow")
            found["overflow"] = 0
    if len(rest) == 1 or left == 0:
        found |= dict.fromkeys(rest, left)
    none = set(REASONS) - set(counted.uncounted) - set(counted.counters)
    found |= dict.fromkeys(none, 0)
    return {f"drops_{reason}": found[reason] for reason in REASONS if reason in found}
