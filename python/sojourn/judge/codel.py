"""CoDel by RFC 8289, section 5, as rules with choices."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from math import sqrt

from sojourn.judge.monitor import Decision, Freedom, Ledger, Line, Op, Params, Path, Span, State
from sojourn.own.laws import codel_invsqrt

ROUNDING = 0.005
"""Relative error of interval/sqrt(count) that counts as arithmetic."""
MOST = 256
"""Most packets that a departure drops since Linux 7.3."""
CODEL = {
    "clock": Freedom(
        "RFC 8289, 5.7",
        "time_t is an integer time value in units convenient for the system.",
        per_decision=True,
    ),
    "square root": Freedom(
        "RFC 8289, 5.6",
        "Note that for embedded systems or kernel implementation, the inverse sqrt can be computed "
        "efficiently using only integer multiplication.",
        per_decision=True,
    ),
    "largest packet": Freedom(
        "RFC 8289, 4.1",
        "The MTU size can be set adaptively to the largest packet seen so far or can be read from "
        "the interface driver.",
    ),
    "a whole MTU": Freedom(
        "RFC 8289, 4.1",
        "CoDel makes another check before dropping to see if at least an MTU worth of bytes "
        "remains in the buffer.",
    ),
    "re-entry": Freedom("RFC 8289, 5.5", "Implementations vary slightly here"),
    "Newton step": Freedom(
        "Linux",
        "1/sqrt(count) is one Newton step from the previous value: 0.5 at a count of 2",
        linux=True,
    ),
    "256 drops": Freedom(
        "Linux", "a departure drops at most 256 packets, then the schedule restarts", linux=True
    ),
}
"""Freedoms of CoDel. The names are used by `State.mode`; a clock's step and the arithmetic of the
square root are spans instead.
"""


@dataclass
class Control:
    """CoDel's variables of one queue; times are spans of possible values."""

    above: Span | None = None
    """The time `first_above_time_`; None is the RFC's 0."""
    next: Span = (0, 0)
    """The time `drop_next_`."""
    count: int = 0
    last: int = 0
    dropping: bool = False
    root: int = 0
    """Linux's approximation of 1/sqrt(count) in units of 2^-16."""


class Codel(State):
    """A possible state of CoDel."""

    freedoms: Mapping[str, Freedom] = CODEL

    def __init__(self, params: Params, linux: bool) -> None:
        super().__init__(params, linux)
        self.controls: dict[int, Control] = {}

    def play(self, op: Op, ledger: Ledger, path: Path) -> Decision:
        """Executes an operation."""
        if op.kind == "dequeue":
            return self.dequeue(0, ledger, op.t, path)
        limit = self.params.get("limit")
        full = op.kind == "enqueue" and limit is not None and len(ledger.packets) > limit
        return Decision(dropped=(op.id,) if full else ())

    def dequeue(
        self, name: int, ledger: Ledger, now: int, path: Path, gone: tuple[int, ...] = ()
    ) -> Decision:
        """Executes CoDel on a line (RFC 8289, 5.5); packets of others in `gone` have left."""
        control = self.controls.get(name, Control())
        self.controls = {**self.controls, name: (control := copy(control))}
        line, dropped = Line(ledger, name, gone), list[int]()
        packet, late = self._take(control, line, now, path)
        if control.dropping:
            control.dropping = late
            while control.dropping and self._due(control, now, path):
                assert packet is not None
                if len(dropped) == MOST and self.mode(path, "256 drops"):
                    control.next = self._law(control, (now, now), path)
                    break
                self._count(control, control.count + 1)
                if self._marks(ledger, packet):
                    control.next = self._law(control, control.next, path)
                    return Decision(packet, tuple(dropped), (packet,))
                dropped.append(packet)
                packet, control.dropping = self._take(control, line, now, path)
                if control.dropping:
                    control.next = self._law(control, control.next, path)
        elif late:
            assert packet is not None
            marked = (packet,) if self._marks(ledger, packet) else ()
            if not marked:
                dropped.append(packet)
                packet, _ = self._take(control, line, now, path)
            control.dropping = True
            self._enter(control, now, path)
            return Decision(packet, tuple(dropped), marked)
        return Decision(packet, tuple(dropped))

    def _take(self, control: Control, line: Line, now: int, path: Path) -> tuple[int | None, bool]:
        """Returns the next packet, and whether it may be dropped (RFC 8289, 5.6)."""
        packet = line.pop()
        if packet is None:
            control.above = None
            return None, False
        target, interval = self["target"], self["interval"]
        sojourn = now - line.ledger.packets[packet].at
        above = self.passed(path, sojourn, (target - self.slack, target + self.slack))[0]
        if not above or self._low(line, path):
            control.above = None
        elif control.above is None:
            control.above = (now + interval - self.slack, now + interval + self.slack)
        else:
            late, control.above = self.passed(path, now, control.above)
            return packet, late
        return packet, False

    def _low(self, line: Line, path: Path) -> bool:
        """Returns whether too few bytes are left to drop a packet (RFC 8289, 4.1 and 5.6)."""
        occupied, mtu = self.occupied(line, path), self["mtu"]
        low, high = sorted((line.largest, mtu))
        if low < high and low <= occupied <= high and self.mode(path, "largest packet"):
            mtu = line.largest
        return occupied < mtu or (occupied == mtu and not self.mode(path, "a whole MTU"))

    def occupied(self, line: Line, path: Path) -> int:
        """Returns the number of bytes in the queue that the MTU test compares."""
        del path
        return line.bytes

    def _marks(self, ledger: Ledger, packet: int) -> bool:
        return bool(self.params.get("ecn")) and ledger.packets[packet].ecn > 0

    def _due(self, control: Control, now: int, path: Path) -> bool:
        due, control.next = self.passed(path, now, control.next)
        return due

    def _count(self, control: Control, count: int) -> None:
        control.root = codel_invsqrt(count, control.root)
        control.count = count

    def _law(self, control: Control, since: Span, path: Path) -> Span:
        """Returns the time of the next drop (RFC 8289, 5.6)."""
        clock, interval = self.params.get("clock") or 0, self["interval"]
        exact = interval / sqrt(control.count)
        error = ROUNDING if control.count > 1 else 0
        low, high = exact * (1 - error), exact * (1 + error)
        step = interval * control.root / (1 << 16)
        if not low <= step <= high and self.mode(path, "Newton step"):
            low, high = step * (1 - error), step * (1 + error)
        return since[0] + low - clock, since[1] + high + clock

    def _enter(self, control: Control, now: int, path: Path) -> None:
        """Begins to drop, at the recent rate if there is one (RFC 8289, 5.5)."""
        recent, far = 16 * self["interval"], self.slack
        since = (control.next[0] + recent - far, control.next[1] + recent + far)
        is_recent = not self.passed(path, now, since)[0]
        delta = control.count - control.last
        count = delta if is_recent and delta > 1 else 1
        other = control.count - 2 if is_recent and control.count > 2 else 1
        if count != other and self.mode(path, "re-entry"):
            count = other
        if count == 1:
            control.count, control.root = 1, 0xFFFF
        else:
            self._count(control, count)
        control.last = count
        control.next = self._law(control, (now, now), path)

    def describe(self, begin: int) -> dict[str, str]:
        """Returns the state as texts, with times since `begin`."""
        found = {}
        for name, control in self.controls.items():
            of = f"flow {name}: " if len(self.controls) > 1 else ""
            found[f"{of}first_above_time"] = text(control.above, begin)
            found[f"{of}drop_next"] = text(control.next, begin)
            found[f"{of}count, lastcount"] = f"{control.count}, {control.last}"
            found[f"{of}dropping"] = str(control.dropping).lower()
        return found


def text(span: Span | None, begin: int) -> str:
    """Returns a span of times since `begin` as a text in milliseconds."""
    if span is None or span == (0, 0):
        return "none"
    low, high = (f"{(value - begin) / 1e6:.3f}" for value in span)
    return f"{low} ms" if low == high else f"{low} to {high} ms"
