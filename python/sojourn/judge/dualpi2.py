"""DualPI2 by RFC 9332: the requirements of section 2.5, with the controller of appendix A."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sojourn.judge.codel import CODEL
from sojourn.judge.monitor import Answer, Decision, Freedom, Ledger, Op, Params, Path
from sojourn.judge.pie import Controller

CLASSIC, L4S = 0, 1
PATIENCE = 100
"""Most L4S packets that leave while a Classic packet waits: more are starvation."""


class DualPi2(Controller):
    """A possible state of DualPI2."""

    freedoms: Mapping[str, Freedom] = {
        "clock": CODEL["clock"],
        "scheduler": Freedom(
            "RFC 9332, 2.5.1",
            "MUST give L4S packets priority over Classic, although priority MUST be bounded in "
            "order not to starve Classic traffic",
            per_decision=True,
        ),
        "ramp": Freedom(
            "RFC 9332, 2.5.1",
            "MUST apply ECN marking to traffic in the L queue that is no lower than that derived "
            "from the likelihood of drop (or ECN marking) in the Classic queue",
            per_decision=True,
        ),
        "longer delay": Freedom(
            "RFC 9332, A",
            "the controller uses the longer of both queues' delays, not the Classic one's",
        ),
        "cap": Freedom("RFC 9332, 4", "the drop and marking probabilities could be capped"),
        "short queue": Freedom(
            "Linux", "less than two MTU are left: neither drops nor coupled marks", linux=True
        ),
        "at the arrival": Freedom(
            "RFC 9332, A", "Classic packets are dropped or marked on arrival, not on departure"
        ),
    }

    def __init__(self, params: Params, linux: bool) -> None:
        super().__init__(params, linux)
        self.waited = self.lead = 0
        """L4S packets since a Classic one while one waited; lead of Classic ones, if both wait."""

    def line(self, op: Op) -> int:
        """Returns the queue of an arriving packet (RFC 9332, 2.3): by ECT(1) and CE."""
        return L4S if op.ecn & 1 else CLASSIC

    def play(self, op: Op, ledger: Ledger, path: Path) -> Decision:
        """Executes an operation."""
        if op.kind == "update":
            self._update(op.t, ledger, path)
            return Decision()
        if op.kind == "dequeue":
            return self._dequeue(op.t, ledger, path)
        limit = self.params.get("limit")
        if limit is not None and len(ledger.packets) > limit:
            return Decision(dropped=(op.id,))
        if (
            self.line(op) == CLASSIC
            and len(ledger.packets) > 1
            and self.mode(path, "at the arrival")
        ):
            signal = self._signal(op.id, op.t, ledger, path)
            return Decision(
                None, *(((op.id,) if signal == name else ()) for name in ("drop", "mark"))
            )
        return Decision()

    def _update(self, now: int, ledger: Ledger, path: Path) -> None:
        """Calculates p' (RFC 9332, appendix A)."""
        ages = [
            (now - ledger.packets[line[0]].at) / 1e9 if line else 0.0
            for line in (ledger.lines.get(CLASSIC), ledger.lines.get(L4S))
        ]
        longer = ages[L4S] > ages[CLASSIC] and self.mode(path, "longer delay")
        delay = ages[L4S] if longer else ages[CLASSIC]
        change = self["alpha"] * (delay - self["target"] / 1e9)
        trend = self["beta"] * (delay - self.old)
        self.step, self.old = abs(change) + abs(trend), delay
        self.p = min(max(self.p + change + trend, 0.0), 1.0)
        most = 1 / self["coupling"]
        if self.p > most and self.mode(path, "cap"):
            self.p = most

    def show(self, answer: Answer, op: Op) -> str | None:
        """Compares the probabilities that an implementation shows."""
        difference = super().show(answer, op)
        if difference is not None or op.kind != "update":
            return difference
        for name, expected in (("p_c", self.p**2), ("p_cl", min(1, self["coupling"] * self.p))):
            shown = answer.shown.get(name)
            if shown is not None and abs(min(1, shown) - expected) > 0.01 * expected + 1e-6:
                return f"{name} is {shown:.6g}, where p' = {self.p:.6g} gives {expected:.6g}"
        return None

    def _dequeue(self, now: int, ledger: Ledger, path: Path) -> Decision:
        heads = [list(ledger.lines.get(name, ())) for name in (CLASSIC, L4S)]
        dropped: list[int] = []
        while heads[CLASSIC] or heads[L4S]:
            name = self._next(heads, len(dropped))
            number = heads[name].pop(0)
            signal = None
            if name == L4S or not self.modes.get("at the arrival"):
                signal = self._signal(number, now, ledger, path, dropped)
            if signal == "drop":
                dropped.append(number)
                continue
            marked = (number,) if signal == "mark" else ()
            return Decision(number, tuple(dropped), marked)
        return Decision(None, tuple(dropped))

    def _next(self, heads: list[list[int]], dropped: int) -> int:
        """Returns the queue that is served: the implementation's choice within the limits."""
        if not (heads[CLASSIC] and heads[L4S]):
            self.waited = 0
            return L4S if heads[L4S] else CLASSIC
        seen = self.seen
        wanted = seen.dropped[dropped] if dropped < len(seen.dropped) else seen.delivered
        name = CLASSIC if heads[CLASSIC][0] == wanted else L4S
        if self.waited >= PATIENCE:
            name = CLASSIC
        if self.lead > PATIENCE // 10:
            name = L4S
        self.waited = 0 if name == CLASSIC else self.waited + 1
        self.lead = max(-PATIENCE, self.lead + (1 if name == CLASSIC else -1))
        return name

    def _signal(
        self, number: int, now: int, ledger: Ledger, path: Path, gone: Sequence[int] = ()
    ) -> str | None:
        """Returns what happens to a packet: `drop`, `mark`, or nothing (RFC 9332, appendix A)."""
        packet = ledger.packets[number]
        does_drop = number in self.seen.dropped
        does_mark = number in self.seen.marked
        left = ledger.bytes - sum(ledger.packets[one].size for one in (*gone, number))
        p = 0.0 if left < 2 * self["mtu"] and self.mode(path, "short queue") else self.p
        coupled = self["coupling"] * p
        low, high = self.limits(p**2)
        overload = coupled > 1
        near = abs(coupled - 1) < (0.02 if self.shows else UNSURE)
        if near and packet.ecn:
            if does_drop:
                return "drop"
            overload = False
        if packet.ecn == 0 or overload:
            if path.draw("random drops", does_drop, low, high):
                return "drop"
        elif packet.flow == CLASSIC:
            return "mark" if path.draw("Classic marks", does_mark, low, high) else None
        if packet.flow == CLASSIC:
            return None
        wait, (begin, end) = now - packet.at, (self["ramp_min"], self["ramp_max"])
        low, high = self.limits(min(1.0, coupled))
        low = 1.0 if wait > end + self.slack else low
        high = 1.0 if wait > begin - self.slack else high
        return "mark" if path.draw("L4S marks", does_mark, 0.0 if near else low, high) else None

    def describe(self, begin: int) -> dict[str, str]:
        """Returns the state as texts."""
        found = super().describe(begin)
        found["p_C = p'^2, p_CL = k p'"] = f"{self.p**2:.6g}, {self['coupling'] * self.p:.6g}"
        found["L4S packets since a Classic one"] = str(self.waited)
        return found


UNSURE = 0.1
"""Distance of k p' from 1 in which an unknown probability may be in overload or not."""
