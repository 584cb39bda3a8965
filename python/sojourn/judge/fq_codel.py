"""FQ-CoDel by RFC 8290, section 4, as rules with choices. The driver names the flows."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

from sojourn.judge.codel import CODEL, Codel, Control
from sojourn.judge.monitor import Decision, Freedom, Ledger, Line, Op, Params, Path

BATCH = 64
"""Most packets that an overflow drops (RFC 8290, 4.1)."""


class FqCodel(Codel):
    """A possible state of FQ-CoDel."""

    freedoms: Mapping[str, Freedom] = {
        **CODEL,
        "zero credits": Freedom(
            "RFC 8290, 3",
            "This continues until the value of _byte credits_ becomes zero or less (section 4.2: "
            "a negative number of credits)",
        ),
        "own occupancy": Freedom(
            "RFC 8289, 4.4",
            "when testing for queue occupancy before dropping, the total occupancy of all queues "
            "sharing the same output link SHOULD be used",
        ),
        "half": Freedom("RFC 8290, 4.1", "half the number of packets, rounded up or down"),
        "half of the bytes": Freedom(
            "Linux", "an overflow drops half of the bytes instead of the packets", linux=True
        ),
        "overflow counts": Freedom(
            "Linux", "packets that an overflow drops are added to CoDel's count", linux=True
        ),
        "no old queue": Freedom(
            "Linux",
            "a new queue that is empty leaves at once if there is no old queue",
            linux=True,
        ),
    }

    def __init__(self, params: Params, linux: bool) -> None:
        super().__init__(params, linux)
        self.new: tuple[int, ...] = ()
        self.old: tuple[int, ...] = ()
        self.credits: dict[int, float] = {}

    def line(self, op: Op) -> int:
        """Returns the flow of an arriving packet."""
        return op.flow

    def play(self, op: Op, ledger: Ledger, path: Path) -> Decision:
        """Executes an operation."""
        if op.kind == "enqueue":
            return self._enqueue(op, ledger, path)
        return self._dequeue(op.t, ledger, path) if op.kind == "dequeue" else Decision()

    def occupied(self, line: Line, path: Path) -> int:
        """Returns the number of bytes that the MTU test compares: of all queues, or of this one."""
        mtu = self["mtu"]
        if line.bytes <= mtu < line.total + 1 and line.bytes != line.total:
            return line.bytes if self.mode(path, "own occupancy") else line.total
        return line.total

    def _enqueue(self, op: Op, ledger: Ledger, path: Path) -> Decision:
        if op.flow not in self.new and op.flow not in self.old:
            self.new = (*self.new, op.flow)
            self.credits = {**self.credits, op.flow: self["quantum"]}
        limit = self.params.get("limit")
        if limit is None or len(ledger.packets) <= limit:
            return Decision()
        most = max(ledger.line_bytes.values())
        fattest = [name for name, size in ledger.line_bytes.items() if size == most]
        while len(fattest) > 1 and not path():
            fattest.pop(0)
        name = fattest[0]
        line, dropped = Line(ledger, name), list[int]()
        packets = len(line.ids)
        half = packets // 2
        if packets % 2 and half + 1 <= BATCH and (half == 0 or self.mode(path, "half")):
            half += 1
        in_bytes = self.mode(path, "half of the bytes")
        while len(dropped) < BATCH and line.taken < packets:
            if in_bytes and dropped and line.bytes <= most - most // 2:
                break
            if not in_bytes and len(dropped) >= half:
                break
            number = line.pop()
            assert number is not None
            dropped.append(number)
        if self.mode(path, "overflow counts"):
            control = copy(self.controls.get(name, Control()))
            control.count += len(dropped)
            self.controls = {**self.controls, name: control}
        return Decision(dropped=tuple(dropped))

    def _dequeue(self, now: int, ledger: Ledger, path: Path) -> Decision:
        dropped: tuple[int, ...] = ()
        while self.new or self.old:
            is_new = bool(self.new)
            name = (self.new or self.old)[0]
            credit = self.credits[name]
            if credit < 0 or (credit == 0 and self.mode(path, "zero credits")):
                self.credits = {**self.credits, name: credit + self["quantum"]}
                self._leave()
                self.old = (*self.old, name)
                continue
            found = self.dequeue(name, ledger, now, path, dropped)
            dropped += found.dropped
            if found.delivered is not None:
                size = ledger.packets[found.delivered].size
                self.credits = {**self.credits, name: credit - size}
                return found._replace(dropped=dropped)
            self._leave()
            if is_new and (self.old or not self.mode(path, "no old queue")):
                self.old = (*self.old, name)
        return Decision(dropped=dropped)

    def _leave(self) -> None:
        if self.new:
            self.new = self.new[1:]
        else:
            self.old = self.old[1:]

    def describe(self, begin: int) -> dict[str, str]:
        """Returns the state as texts, with times since `begin`."""
        lists = {"new queues": self.new, "old queues": self.old}
        shown = {
            kind: ", ".join(f"{name} ({self.credits[name]:g} credits)" for name in names) or "none"
            for kind, names in lists.items()
        }
        return shown | super().describe(begin)
