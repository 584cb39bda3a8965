"""PIE by RFC 8033, sections 4 and 5, as rules with choices; and what DualPI2 has in common."""

from __future__ import annotations

from collections.abc import Mapping

from sojourn.judge.codel import CODEL
from sojourn.judge.monitor import Answer, Decision, Freedom, Ledger, Op, Params, Path, State

ALPHA, BETA = 0.125, 1.25
"""Gains in 1/s (RFC 8033, 4.2)."""
BURST = 150_000_000
"""MAX_BURST in nanoseconds (RFC 8033, 4.4)."""
STEPS = ((1e-6, 2048), (1e-5, 512), (1e-4, 128), (1e-3, 32), (1e-2, 8), (1e-1, 2))
"""Probabilities below which the steps are divided, and the divisors (RFC 8033, 4.2)."""
LOW, HIGH = 0.85, 8.5
"""Thresholds of the de-randomisation (RFC 8033, 5.4)."""
UNKNOWN = 0.05
"""Relative error of a probability that the implementation does not show."""
NEAR = 0.01
"""Relative error of a step of a shown probability, which is arithmetic."""


class Controller(State):
    """A possible state of a discipline with a proportional integral controller."""

    def __init__(self, params: Params, linux: bool) -> None:
        super().__init__(params, linux)
        self.p = self.old = self.step = 0.0
        """Probability, previous delay in seconds, and size of the last step."""
        self.shows = False
        """Whether the implementation shows its probability."""

    def show(self, answer: Answer, op: Op) -> str | None:
        """Compares the probability that an implementation shows, and continues with it."""
        if "p" not in answer.shown:
            return None
        shown, self.shows = float(answer.shown["p"]), True
        if op.kind != "update":
            return None
        error = NEAR * self.step + 1e-6
        if abs(shown - self.p) > error:
            return f"the probability is {shown:.6g}, where {self.p:.6g} is expected"
        self.p = shown
        return None

    def limits(self, p: float) -> tuple[float, float]:
        """Returns the limits of a probability: of an unknown one, with an error."""
        if p <= 0 or p >= 1:
            return p, p
        error = 0.02 * p if self.shows else UNKNOWN * p + 0.001
        return max(0.0, p - error), min(0.999999, p + error)

    def describe(self, begin: int) -> dict[str, str]:
        """Returns the state as texts."""
        del begin
        return {"probability": f"{self.p:.6g}", "previous delay": f"{self.old * 1e3:.3f} ms"}


class Pie(Controller):
    """A possible state of PIE."""

    freedoms: Mapping[str, Freedom] = {
        "clock": CODEL["clock"],
        "age of the head": Freedom(
            "RFC 8033, 4.3", "or it may use other techniques for calculating queueing latency"
        ),
        "departure rate": Freedom(
            "RFC 8033, 5.2", "one may obtain latency through measuring the dequeue rate"
        ),
        "no delay if empty": Freedom(
            "RFC 8033, 4.3", "a queue without packets has no delay, although the last sample had"
        ),
        "no delay once empty": Freedom(
            "RFC 8033, 4.3", "the last sample had no delay if its packet left an empty queue"
        ),
        "decay by 1/64": Freedom("RFC 8033, 4.2", "1- 1/64 is sufficient"),
        "wider decay": Freedom(
            "RFC 8033, B", "the probability decays while both delays are below half of the target"
        ),
        "cap": Freedom(
            "RFC 8033, 5.5", "PIE could cap the maximum drop probability increase in each step."
        ),
        "de-randomisation": Freedom("RFC 8033, 5.4", "PIE may use a de-randomization mechanism"),
        "overflow resets": Freedom(
            "RFC 8033, 5.4", "the sum is reset to 0 after any drop, or after a random one"
        ),
        "two MTU": Freedom("RFC 8033, 4.1", "exactly two MTU are no short queue"),
        "two packets": Freedom("RFC 8033, 4.1", "if the queue has less than a couple of packets"),
        "burst reset at an update": Freedom(
            "RFC 8033, 4.4",
            "When the congestion goes away, ... burst_allowance_ is reset to MAX_BURST.",
        ),
        "delay above 250 ms": Freedom(
            "Linux", "a delay above 250 ms adds 0.02 in each update", linux=True
        ),
        "above 1": Freedom("Linux", "the probability may exceed 1", linux=True),
        "present delay": Freedom(
            "Linux", "the present delay, not the previous one, bypasses drops", linux=True
        ),
        "burst by departures": Freedom(
            "Linux", "the burst allowance falls by the time between departures", linux=True
        ),
    }

    def __init__(self, params: Params, linux: bool) -> None:
        super().__init__(params, linux)
        self.sample = 0.0
        self.accumulated, self.burst = 0.0, float(BURST)
        self.start, self.left_bytes, self.rate_time = -1, 0, 0.0
        """Departure rate: start of the measurement, bytes since, and time of 16 KiB in seconds."""
        self.departed, self.emptied = 0, False
        """Time of the last departure, and whether it left an empty queue."""

    def play(self, op: Op, ledger: Ledger, path: Path) -> Decision:
        """Executes an operation."""
        if op.kind == "enqueue":
            return self._enqueue(op, ledger, path)
        if op.kind == "update":
            self._update(op.t, ledger, path)
            return Decision()
        line = ledger.lines.get(0)
        if not line:
            return Decision()
        packet = ledger.packets[line[0]]
        self._departs(op.t, packet.size, ledger)
        self.sample, self.emptied = (op.t - packet.at) / 1e9, len(line) == 1
        return Decision(line[0])

    def _departs(self, now: int, size: int, ledger: Ledger) -> None:
        """Measures the departure rate (RFC 8033, 5.2)."""
        threshold = 1 << 14
        if self.start < 0 and ledger.bytes >= threshold:
            self.start, self.left_bytes = now, 0
        if self.start >= 0:
            self.left_bytes += size
            if self.left_bytes >= threshold:
                taken = (now - self.start) / 1e9
                self.rate_time = taken / 4 + self.rate_time * 3 / 4 if self.rate_time else taken
                self.start = -1
        if self.departed and self.modes.get("burst by departures"):
            self.burst = max(0.0, self.burst - (now - self.departed))
        self.departed = now

    def _delay(self, now: int, ledger: Ledger, path: Path) -> float:
        """Returns the delay of the queue in seconds (RFC 8033, 4.3)."""
        if "delay" in self.shown:
            return float(self.shown["delay"])
        line = ledger.lines.get(0)
        age = (now - ledger.packets[line[0]].at) / 1e9 if line else 0.0
        rate = ledger.bytes * self.rate_time / (1 << 14)
        if age != self.sample and self.mode(path, "age of the head"):
            return age
        if rate != self.sample and self.mode(path, "departure rate"):
            return rate
        if not line and self.sample and self.mode(path, "no delay if empty"):
            return 0.0
        if line and self.emptied and self.sample and self.mode(path, "no delay once empty"):
            return 0.0
        return self.sample

    def _update(self, now: int, ledger: Ledger, path: Path) -> None:
        """Calculates the probability (RFC 8033, 4.2)."""
        target, delay = self["target"] / 1e9, self._delay(now, ledger, path)
        divisor = next((by for below, by in STEPS if self.p < below), 1)
        change, trend = ALPHA * (delay - target), BETA * (delay - self.old)
        step = (change + trend) / divisor
        self.step = (abs(change) + abs(trend)) / divisor
        if self.p >= 0.1 and step > 0.02 and self.mode(path, "cap"):
            step = 0.02
        if delay > 0.25 and self.mode(path, "delay above 250 ms"):
            step += 0.02
        self.p += step
        low, none = max(delay, self.old) < target / 2, max(delay, self.old) == 0
        if self.p > 0 and (self.mode(path, "wider decay") if low and not none else none):
            self.p *= 1 - 1 / 64 if self.mode(path, "decay by 1/64") else 0.98
        self.p = max(self.p, 0.0)
        if self.p > 1 and not self.mode(path, "above 1"):
            self.p = 1.0
        quiet = delay < target / 2 and self.old < target / 2 and self.p == 0
        self.old = delay
        if not self.mode(path, "burst by departures"):
            self.burst = max(0.0, self.burst - self["update"])
        if quiet and self.mode(path, "burst reset at an update"):
            self.burst = float(BURST)

    def _enqueue(self, op: Op, ledger: Ledger, path: Path) -> Decision:
        """Drops or marks at random (RFC 8033, 4.1, 4.4, 5.1 and 5.4)."""
        limit, target = self.params.get("limit"), self["target"] / 1e9
        if limit is not None and len(ledger.packets) > limit:
            if self.accumulated and self.mode(path, "overflow resets"):
                self.accumulated = 0.0
            return Decision(dropped=(op.id,))
        if (
            self.p == 0
            and max(self.old, self.sample) < target / 2
            and self.burst < BURST
            and not self.mode(path, "burst reset at an update")
        ):
            self.burst = float(BURST)
        if self.burst > 0 or not self._may_drop(op, ledger, path):
            return Decision()
        low, high = self.limits(self.p)
        if self.mode(path, "de-randomisation"):
            self.accumulated += self.p
            error = 0.02 if self.shows else 0.1
            if self.accumulated < HIGH * (1 + error):
                low = 0.0 if self.accumulated < LOW * (1 + error) else low
                high = 0.0 if self.accumulated < LOW * (1 - error) else high
                high = 1.0 if self.accumulated > HIGH * (1 - error) else high
            else:
                low = high = 1.0
        happened = op.id in self.seen.dropped or op.id in self.seen.marked
        given = op.random if self.params.get("random") else None
        if not path.draw("random drops or marks", happened, low, high, given):
            return Decision()
        self.accumulated = 0.0
        if self.params.get("ecn") and op.ecn:
            near = abs(self.p - 0.1) < 0.1 * (0 if self.shows else UNKNOWN)
            if (op.id in self.seen.marked) if near else self.p < 0.1:
                return Decision(marked=(op.id,))
        return Decision(dropped=(op.id,))

    def _may_drop(self, op: Op, ledger: Ledger, path: Path) -> bool:
        """Returns whether the safeguards permit a drop (RFC 8033, 4.1)."""
        if self.p < 0.2:
            half = self["target"] / 2e9
            previous, present = self.old < half, self.sample < half
            if present if previous != present and self.mode(path, "present delay") else previous:
                return False
        size, packets = ledger.bytes - op.size, len(ledger.packets) - 1
        few, short = packets < 2, size <= 2 * self["mtu"]
        if size == 2 * self["mtu"] and self.mode(path, "two MTU"):
            short = False
        return not (few if few != short and self.mode(path, "two packets") else short)

    def describe(self, begin: int) -> dict[str, str]:
        """Returns the state as texts."""
        return super().describe(begin) | {
            "burst_allowance": f"{self.burst / 1e6:g} ms",
            "accu_prob": f"{self.accumulated:.3g}",
        }
