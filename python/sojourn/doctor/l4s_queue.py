"""Findings of `doctor l4s` on queues: where the queue of an interface forms, and how it marks."""

from __future__ import annotations

from collections.abc import Iterator

from sojourn import _core
from sojourn.doctor.finding import Finding, State
from sojourn.doctor.interface import Facts, Qdisc

FRAME = 1514
"""Length of a full Ethernet frame in bytes."""
ENOUGH = 1000
"""Minimum number of packets for the finding that no queue formed."""
LONG = 0.001
"""Time in a transmit ring, in seconds, from which the ring is reported as too long. L4S marks from
1 ms of queue (RFC 9332).
"""
MARGIN = 95
"""Recommended rate of a shaper, in percent of the link's rate."""
FIFOS = ("pfifo_fast", "pfifo", "bfifo", "noqueue", "pfifo_head_drop")
"""Disciplines without an AQM."""
THRESHOLDS = ("fq_codel", "fq", "codel")
"""Disciplines with the parameter `ce_threshold`, which marks at a fixed delay."""
SHAPERS = ("htb", "hfsc", "netem")
"""Disciplines that contain others and have no AQM."""
VIRTUAL = (
    "loopback",
    "veth",
    "dummy",
    "bridge",
    "ifb",
    "tun",
    "wireguard",
    "vxlan",
    "macvlan",
    "ipvlan",
)
"""Kinds of devices that have no rate."""

WHY = {
    "bottleneck": (
        "An AQM marks only where the queue forms, which is before the slowest link of the path. "
        "If another queue is the bottleneck, nothing is marked here, and the delay is elsewhere."
    ),
    "counts": (
        "A queue that never grows marks nothing, with any parameters: the bottleneck is elsewhere."
    ),
    "discipline": (
        "L4S requires marks for ECT(1) from about 1 ms of queue, separate from classic traffic "
        "(RFC 9332). Marks as in RFC 3168 begin at longer queues, so a scalable sender keeps a "
        "longer queue."
    ),
    "transmit queues": (
        "Each transmit queue has its own AQM, and a flow's hash selects one: flows in different "
        "queues share no AQM, and dualpi2 does not couple them."
    ),
    "netem": (
        "On the sender's own device, packets delayed by netem use up TCP's limit of unsent data. "
        "An AQM on the same device measures netem's delay as queueing delay, or no queue builds "
        "up in it."
    ),
    "pacing": (
        "Prague requires pacing. `fq` paces each packet. Without `fq`, TCP paces by timers; "
        "a late timer sends a burst that a step threshold marks."
    ),
    "transmit ring": (
        "Packets in the driver's ring have left the queue: no AQM sees them, and they add delay."
    ),
}
"""Explanations by the name of the finding."""


def unread(facts: Facts, what: str, name: str, why: str) -> Finding:
    """Returns the finding `name` for the property `what`, which could not be read."""
    found, remedy = facts.unread.get(what, ("not stated", ""))
    text = f"could not be read: {found}"
    return Finding(name, "unknown", text, remedy, needed=False, why=why)


def _found(
    name: str, state: State, found: str, remedy: str = "", *, needed: bool = False
) -> Finding:
    return Finding(name, state, found, remedy, needed, WHY[name])


def _bottleneck(facts: Facts) -> Iterator[Finding]:
    name = "bottleneck"
    if facts.qdiscs is None:
        yield unread(facts, "qdiscs", name, WHY[name])
        return
    speed = facts.speed
    if facts.shaper is not None:
        kind, rate = facts.shaper
        text = f"{kind} sends at {_rate(rate)}"
        if speed is not None and rate >= speed:
            text += f", the link at {_rate(speed)}: the queue forms in the driver"
            yield _found(name, "no", text, _slower(facts, kind, _below(speed)), needed=True)
        else:
            text += ": the queue forms here, unless another link of the path is slower"
            yield _found(name, "yes", text, needed=True)
    elif facts.kind in VIRTUAL:
        text = f"no shaper, and a {facts.kind} device sends immediately: no queue forms here"
        yield _found(name, "no", text, _shape(facts, None))
    elif speed is None:
        text = "no shaper, and the driver does not report the link's rate: unknown"
        yield _found(name, "unknown", text, _shape(facts, None))
    else:
        text = (
            f"no shaper: the queue forms here only if this link ({_rate(speed)}) is the slowest "
            "of the path"
        )
        yield _found(name, "unknown", text, _shape(facts, _below(speed)))


def _counts(facts: Facts) -> Iterator[Finding]:
    for leaf in facts.leaves:
        packets, drops, marks = leaf.packets, leaf.drops, leaf.marked
        longest = max(leaf.maxq or 0, leaf.qlen)
        waits = leaf.overlimits or leaf.requeues or longest > 1
        text = f"{leaf.kind}: {packets} packets, {marks} marked, {drops} dropped"
        if leaf.maxq is not None:
            text += f", longest queue {longest}"
        if marks or drops or waits:
            yield _found("counts", "yes", text)
        elif packets < ENOUGH:
            text += ": too few to decide; fill the path for ten seconds, then repeat"
            yield _found("counts", "unknown", text, f"tc -s qdisc show dev {facts.name}")
        else:
            text += ": no queue formed here"
            yield _found("counts", "no", text, _shape(facts, None))


def _discipline(facts: Facts) -> Iterator[Finding]:
    for leaf in facts.leaves:
        state, text, words = _judged(leaf)
        if leaf.kind in SHAPERS:
            text, remedy = f"{leaf.kind} contains no AQM", _shape(facts, _own_rate(facts))
        elif leaf.kind in ("cake", "tbf") and facts.shaper:
            remedy = _shape(facts, _own_rate(facts))
        else:
            parent = f"parent {leaf.parent}" if leaf.parent is not None else "root"
            remedy = f"sudo tc qdisc replace dev {facts.name} {parent} {words}"
        yield _found("discipline", state, text, "" if state == "yes" else remedy)


def _judged(leaf: Qdisc) -> tuple[State, str, str]:
    """Returns whether a discipline suits L4S, why, and a better discipline in words of `tc`."""
    kind, options = leaf.kind, leaf.options
    if kind == "dualpi2":
        if options.coupling == 0:
            return "no", "dualpi2 without coupling: classic traffic starves", "dualpi2"
        step = options.step_thresh
        return "yes", "dualpi2" + (f", step at {step} µs" if step else ""), ""
    if kind in THRESHOLDS and options.ce_threshold is not None:
        return "yes", f"{kind} with ce_threshold {options.ce_threshold} µs", ""
    if kind == "fq_codel":
        words = "fq_codel ce_threshold 1ms ce_threshold_selector 0x1/0x3"
        return "no", "fq_codel without ce_threshold marks ECT(1) by RFC 3168", words
    if kind in (*FIFOS, "fq", "tbf"):
        return "no", f"{kind} does not mark: unsuitable as an L4S bottleneck", "dualpi2"
    return "no", f"{kind} marks ECT(1) by RFC 3168, if at all", "dualpi2"


def _queues(facts: Facts) -> Iterator[Finding]:
    children = [q for q in facts.egress if q.parent is not None]
    if any(q.kind == "mq" for q in facts.roots) and len(children) > 1:
        text = f"mq: {len(children)} queues, each with its own {children[0].kind}"
        yield _found("transmit queues", "no", text, f"sudo ethtool -L {facts.name} combined 1")


def _netem(facts: Facts) -> Iterator[Finding]:
    if any(q.kind == "netem" for q in facts.egress):
        remedy = (
            f"sudo tc qdisc del dev {facts.name} root, and netem on a node behind the bottleneck"
        )
        yield _found("netem", "no", "netem on this device", remedy)


def _pacing(facts: Facts) -> Iterator[Finding]:
    name = "pacing"
    if facts.qdiscs is None:
        yield unread(facts, "qdiscs", name, WHY[name])
    elif any(q.kind == "fq" for q in facts.egress):
        yield _found(name, "yes", "fq paces this machine's packets")
    else:
        text = "no fq: a sender should use fq, a forwarding machine need not"
        yield _found(name, "no", text, f"sudo tc qdisc replace dev {facts.name} root fq")


def _ring(facts: Facts) -> Iterator[Finding]:
    name = "transmit ring"
    shaper, speed = facts.shaper, facts.speed
    held = max(facts.limits or (), default=0)
    if shaper is not None and speed is not None and shaper[1] < speed:
        yield _found(name, "yes", "stays empty: the shaper is slower than the link")
    elif facts.kind in VIRTUAL:
        yield _found(name, "yes", f"a {facts.kind} device has no ring")
    elif held:
        text = f"byte queue limits hold {held} bytes a queue{_time(facts, held)}"
        limit = f"/sys/class/net/{facts.name}/queues/tx-*/byte_queue_limits/limit_max"
        if speed is not None and held * 8 / speed > LONG:
            yield _found(name, "no", text, f"echo {2 * FRAME} | sudo tee {limit}")
        else:
            yield _found(name, "yes", text)
    elif facts.ring is None:
        yield unread(facts, "ring", name, WHY[name])
    elif facts.limits is None:
        reason = facts.unread["limits"][0]
        text = f"{facts.ring} packets; byte queue limits could not be read: {reason}"
        yield _found(name, "unknown", text)
    else:
        octets = facts.ring * FRAME
        text = f"{facts.ring} packets{_time(facts, octets)}, and no byte queue limits in use"
        if speed is not None and octets * 8 / speed <= LONG:
            yield _found(name, "yes", text)
        else:
            yield _found(name, "no", text, f"sudo ethtool -G {facts.name} tx 64, or a shaper")


RULES = (_bottleneck, _counts, _discipline, _queues, _netem, _pacing, _ring)
"""Functions that examine the queues of an interface, in the order of the report."""


def _own_rate(facts: Facts) -> int | None:
    return None if facts.shaper is None else facts.shaper[1]


def _below(speed: int) -> int:
    return speed * MARGIN // 100


def _shape(facts: Facts, rate: int | None) -> str:
    """Returns the commands for a shaper with dualpi2; an unknown rate is `RATE`."""
    at = "RATE" if rate is None else _rate(rate)
    device = f"dev {facts.name}"
    commands = (
        f"sudo tc qdisc replace {device} root handle 1: htb default 1 && "
        f"sudo tc class replace {device} parent 1: classid 1:1 htb rate {at} && "
        f"sudo tc qdisc replace {device} parent 1:1 dualpi2"
    )
    return commands if rate is not None else f"{commands}  # RATE: below the slowest link's"


def _slower(facts: Facts, kind: str, rate: int) -> str:
    device, at = f"dev {facts.name}", _rate(rate)
    if kind == "htb":
        top = next(handle for handle, (parent, _, _) in facts.classes.items() if not parent)
        major = top.partition(":")[0]
        return f"sudo tc class replace {device} parent {major}: classid {top} htb rate {at}"
    if kind == "tbf":
        burst = max(2 * FRAME, rate // 8000)  # 1 ms of data or more: the kernel's timer may be late
        return f"sudo tc qdisc replace {device} root tbf rate {at} burst {burst}b latency 50ms"
    if kind == "cake":
        return f"sudo tc qdisc change {device} root cake bandwidth {at}"
    return _shape(facts, rate)


def _rate(rate: int) -> str:
    return _core.format_quantity("rate", rate)


def _time(facts: Facts, octets: int) -> str:
    return "" if facts.speed is None else f" ({octets * 8e3 / facts.speed:.2g} ms)"
