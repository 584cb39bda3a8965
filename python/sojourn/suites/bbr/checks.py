"""The checks of each test case: a function with the case's short name and the draft's title.

The numbers of checks are the steps of the case in the draft. Limits that the draft leaves open,
such as "rapidly" or "a reasonable number", are our choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sojourn.scenario import Run
from sojourn.suites.bbr.trace import FRAME, MSS, Missing, Phase, Trace

LEAST = 4 * MSS
"""`MinPipeCwnd` in bytes."""


@dataclass(frozen=True)
class Check:
    """A comparison of one measured value with the draft's expectation."""

    step: int
    """Step of the case in the draft."""
    what: str
    """The measured quantity."""
    found: float | str
    allowed: str
    """The permitted values, as text."""
    passes: bool

    @property
    def text(self) -> str:
        """The measured value as text."""
        return self.found if isinstance(self.found, str) else f"{self.found:.4g}"


Checks = Iterator[Check]
PROBE_BW = ("down", "cruise", "refill", "up")
"""Phases of PROBE_BW."""


def number(step: int, what: str, found: float, low: float = -np.inf, high: float = np.inf) -> Check:
    """Returns a check that a number is from `low` to `high`."""
    if low == high:
        allowed = f"{low:g}"
    elif np.isinf(high):
        allowed = f"at least {low:g}"
    else:
        allowed = f"{low:g} to {high:.3g}"
    return Check(step, what, float(found), allowed, bool(low <= found <= high))


def same(step: int, what: str, found: str, wanted: str) -> Check:
    """Returns a check that a text is `wanted`."""
    return Check(step, what, found, wanted, found == wanted)


def among(step: int, found: str, wanted: Sequence[str]) -> Check:
    """Returns a check that the next phase is one of `wanted`."""
    return Check(step, "next phase", found, " or ".join(wanted), found in wanted)


def _payload(rate: float) -> float:
    """Returns the payload in bytes per second of full frames on a link of `rate` bit/s."""
    return rate / 8 * MSS / FRAME


RATE = _payload(10e6)
"""Payload rate of the usual bottleneck."""


def _plateau(t: Trace, phase: Phase, step: int, *names: str) -> Checks:
    yield number(step, "full_bw_count", t.at("full_bw_count", phase.end), 3, 3)
    for name in names:
        yield number(step, name, t.at(name, phase.end), 1, 1)


def _gain(t: Trace, phase: Phase, step: int, gain: float) -> Check:
    found = t.of("pacing_gain", phase) / 100
    return number(step, "pacing_gain", found[np.argmax(abs(found - gain))], gain, gain)


def startup_plateau(t: Trace, _: Run) -> Checks:
    """Exiting STARTUP on Bandwidth Plateau."""
    startup = t.nth("startup")
    yield number(3, "max_bw / bottleneck", t.at("max_bw", startup.end) / RATE, 0.98, 1.02)
    yield from _plateau(t, startup, 4, "full_bw_now", "full_bw_reached")
    yield among(5, t.next(startup), ["drain"])


def startup_loss(t: Trace, _: Run) -> Checks:
    """Exiting STARTUP on Loss When Application-Limited."""
    startup = t.nth("startup")
    limited = t.of("is_app_limited", startup)[t.time[startup.begin : startup.end] > 1]
    yield number(2, "app-limited share of samples", limited.mean(), 0.9)
    yield number(3, "packets lost", t.at("lost", startup.end), 6)
    yield number(4, "full_bw_count", t.at("full_bw_count", startup.end), 0, 2)
    for name in ("full_bw_now", "full_bw_reached"):
        yield number(5, name, t.at(name, startup.end), 1, 1)
    yield number(5, "exit after the loss began (s)", t.time[startup.end] - 2, 0.1, 0.5)
    yield among(5, t.next(startup), ["drain", *PROBE_BW])


def drain_inflight(t: Trace, _: Run) -> Checks:
    """Exiting DRAIN Based on Inflight."""
    drain = t.nth("drain")
    end = drain.end
    yield _gain(t, drain, 2, 0.5)
    before = t.of("bytes_in_flight", drain).min()
    yield number(3, "inflight / BDP before the exit", before / t.inflight(end), 1)
    yield number(
        4, "inflight / BDP at the exit", t.at("bytes_in_flight", end) / t.inflight(end), 0, 1
    )
    yield among(4, t.next(drain), PROBE_BW)


def drain_time(t: Trace, _: Run) -> Checks:
    """Exiting DRAIN Based on Time."""
    drain = t.nth("drain")
    rounds = t.at("round", drain.end) - t.at("round", drain.begin)
    ratio = t.at("bytes_in_flight", drain.end) / t.inflight(drain.end)
    yield number(3, "inflight / BDP at the exit", ratio, 1)
    yield number(5, "rounds in DRAIN", rounds, 3, 4)
    yield among(5, t.next(drain), PROBE_BW)


def up_plateau(t: Trace, _: Run) -> Checks:
    """Exiting PROBE_UP on Bandwidth Plateau."""
    up = t.nth("up")
    yield number(2, "packets lost", t.at("lost", up.end) - t.at("lost", up.begin), 0, 0)
    yield from _plateau(t, up, 4, "full_bw_now")
    yield among(5, t.next(up), ["down"])


def up_loss(t: Trace, _: Run) -> Checks:
    """Exiting PROBE_UP on Loss When Application-Limited."""
    up = t.nth("up")
    yield number(2, "app-limited share of samples", t.of("is_app_limited", up)[-20:].mean(), 0.9)
    yield number(3, "packets lost", t.at("lost", up.end) - t.at("lost", up.begin), 1)
    yield number(4, "full_bw_count", t.at("full_bw_count", up.end), 0, 2)
    yield among(5, t.next(up), ["down", "cruise"])
    bounds = [t.at("inflight_longterm", row) for row in (up.begin, up.end)]
    yield number(5, "inflight_longterm after / before", bounds[1] / bounds[0], 1)


def application_limited(t: Trace, _: Run) -> Checks:
    """Never Exiting PROBE_UP (or STARTUP) When Application-Limited With No Loss."""
    early = [phase.name for phase in t.phases if t.time[phase.begin] < 8]
    names = dict.fromkeys(name for name in early if name != "probe_rtt")
    yield same(3, "phases without loss, except PROBE_RTT", ", ".join(names), "startup")
    ups = [phase for phase in t.phases[:-1] if phase.name == "up"]
    lost, rounds = (sum(t.at(n, u.end) - t.at(n, u.begin) for u in ups) for n in ("lost", "round"))
    yield number(3, "packets lost in PROBE_UP", lost, 0, 0)
    yield number(3, "rounds in PROBE_UP", rounds, 4)
    yield among(3, ", ".join({t.next(up) for up in ups}), ["probe_rtt"])


def down_inflight(t: Trace, _: Run) -> Checks:
    """Exiting PROBE_DOWN on Inflight."""
    down = t.nth("down")
    end = down.end
    yield _gain(t, down, 2, 0.9)
    found = t.at("bytes_in_flight", end)
    bound = t.at("inflight_longterm", end)
    headroom = max(bound - max(MSS, 0.15 * bound), LEAST)
    yield number(4, "inflight / InflightWithHeadroom()", found / headroom, 0, 1)
    yield number(4, "inflight / BDP", found / t.inflight(end), 0, 1)
    yield among(5, t.next(down), ["cruise"])


def down_time(t: Trace, _: Run) -> Checks:
    """Exiting PROBE_DOWN After Max Time."""
    down = t.nth("down")
    least = t.of("bytes_in_flight", down).min() / t.inflight(down.end)
    yield number(2, "least inflight / BDP", least, 1)
    waited = t.seconds(down) / (t.at("bw_probe_wait", down.end) / 1e9)
    yield number(3, "time in PROBE_DOWN / bw_probe_wait", waited, 1, 1.1)
    yield among(4, t.next(down), ["refill"])


def probe_rtt(t: Trace, _: Run) -> Checks:
    """Entering and Exiting PROBE_RTT."""
    probe = t.nth("probe_rtt")
    least = t.of("min_rtt")[: probe.begin]
    last = t.time[np.flatnonzero(least[1:] < least[:-1])[-1] + 1]
    yield number(
        2, "time since the last decrease of min_rtt (s)", t.time[probe.begin] - last, 5, 5.2
    )
    yield number(3, "cwnd_gain", t.at("cwnd_gain", probe.begin) / 100, 0.5, 0.5)
    yield number(4, "time in PROBE_RTT (s)", t.seconds(probe), 0.2, 0.4)
    rounds = t.at("round", probe.end) - t.at("round", probe.begin)
    yield number(4, "rounds in PROBE_RTT", rounds, 1)
    yield among(5, t.next(probe), ["cruise"])
    after = (t.time > t.time[probe.end]) & (t.time < t.time[probe.end] + 0.2)
    restored = t.of("bytes_in_flight")[after].max() / t.inflight(probe.end)
    yield number(5, "inflight / BDP within 0.2 s", restored, 0.9)


def probe_rtt_idle(t: Trace, _: Run) -> Checks:
    """Skipping PROBE_RTT Due to Application-Limited Sending."""
    after = np.flatnonzero(t.time >= 10)
    before = np.flatnonzero(t.time < 10)
    yield number(2, "inflight when idle (bytes)", t.of("bytes_in_flight")[before[-1]], 0, 0)
    yield number(4, "idle_restart", t.of("idle_restart")[after[:50]].max(), 1, 1)
    late = [phase.name for phase in t.phases if t.time[phase.begin] >= 4]
    yield number(5, "entries into PROBE_RTT", late.count("probe_rtt"), 0, 0)


def aggregation_startup(t: Trace, _: Run) -> Checks:
    """Achieving Expected STARTUP Bandwidth on a Link With Aggregation."""
    startup = t.nth("startup")
    yield number(3, "extra_acked (bytes)", t.of("extra_acked", startup).max(), 1)
    cwnd = t.of("congestion_window", startup).max() / t.inflight(startup.end)
    yield number(3, "cwnd / BDP", cwnd, 2.01)
    yield number(4, "max_bw / bottleneck", t.at("max_bw", startup.end) / RATE, 0.98)


def aggregation_cruise(t: Trace, run: Run) -> Checks:
    """Achieving Expected Cruise Bandwidth on a Link With Aggregation."""
    cruise = t.nth("cruise")
    rows = np.flatnonzero(t.time > t.time[cruise.begin] + 0.5)
    first = rows[0]
    yield number(3, "extra_acked (bytes)", t.at("extra_acked", first), 1)
    target = 2 * t.inflight(first) + t.at("extra_acked", first)
    yield number(4, "cwnd / (2 BDP + extra_acked)", t.at("congestion_window", first) / target, 0.95)
    yield number(4, "utilisation", run.metrics["utilisation"], 0.95)


def sub_packet(t: Trace, run: Run) -> Checks:
    """Correctly Managing Sub-Packet BDPs."""
    steady = Phase("", t.nth("cruise").begin, len(t.time) - 1)
    cwnd = t.of("congestion_window", steady).min() / MSS
    yield number(3, "least cwnd (packets)", cwnd, 4)
    pacing = np.median(t.of("pacing_rate", t.nth("cruise"))) / 8 / _payload(64e3)
    yield number(4, "pacing rate in PROBE_CRUISE / bottleneck", pacing, 0.95, 1.05)
    yield number(4, "utilisation", run.metrics["utilisation"], 0.95)


def rate_up(t: Trace, _: Run) -> Checks:
    """Increasing Bandwidth 10x and Ensuring Full Bandwidth is Reached."""
    begin = t.nth("cruise").begin
    fast = np.flatnonzero(t.of("max_bw") >= 0.9 * _payload(100e6))
    reached = fast[0] if len(fast) else len(t.time) - 1
    ups = [p for p in t.phases if p.name == "up" and begin < p.begin < reached]
    rounds = [t.at("round", min(p.end, reached)) - t.at("round", p.begin) for p in ups]
    growth = 0.0
    if ups:
        longest = ups[int(np.argmax(rounds))]
        starts = np.flatnonzero(np.diff(t.of("round", longest))) + longest.begin + 1
        steps = np.diff([t.at("inflight_longterm", int(row)) for row in starts])
        steps = steps[steps > 0]
        growth = float(np.median(steps[1:] / steps[:-1])) if len(steps) > 1 else 0.0
    yield number(3, "growth of inflight_longterm's step per round", growth, 1.5, 2.5)
    most = np.nanmax(t.of("max_bw")) / _payload(100e6)
    yield number(4, "greatest max_bw / bottleneck", most, 0.9, 1.02)
    yield number(4, "rounds in PROBE_UP until then", sum(rounds), 1, 3 * np.log2(345))


def rate_down(t: Trace, _: Run) -> Checks:
    """Decreasing Bandwidth 10x and Ensuring Max Bandwidth Adapts Down."""
    change = t.nth("cruise").begin
    soon = Phase("", change, int(np.searchsorted(t.of("round"), t.at("round", change) + 12)))
    low = t.of("bw_shortterm", soon).min() / RATE
    yield number(3, "least bw_shortterm in 12 rounds / new bottleneck", low, 0, 2)
    downs = [p.begin for p in t.phases if p.name == "down" and p.begin > change]
    if len(downs) < 3:
        raise Missing(f"{len(downs)} cycles of PROBE_BW began after the change, not 3")
    yield number(
        4, "max_bw after 2 cycles / new bottleneck", t.at("max_bw", downs[2]) / RATE, 0.9, 1.1
    )


def policer(t: Trace, run: Run) -> Checks:
    """Handling Token Bucket Policers."""
    for name in ("inflight_shortterm", "bw_shortterm"):
        bounds = t.of(name)
        yield number(
            3, f"least {name} (bytes)", bounds[np.isfinite(bounds)].min(initial=np.inf), 0, 1e9
        )
    yield number(4, "goodput / token rate", run.metrics["goodput"] / (8 * RATE), 0.8, 1.02)
    yield number(4, "loss", run.metrics["loss"], 0, 0.05)


def _spurious(t: Trace, count: str) -> Checks:
    up = t.nth("up")
    began = np.flatnonzero(t.of(count) > t.at(count, up.begin))
    undone = np.flatnonzero(t.of("taken_back") > t.at("taken_back", up.begin))
    if not len(began) or not len(undone):
        raise Missing(f"{(len(began) and 'no undo') or 'no recovery'} followed")
    before, after = began[0] - 1, undone[0]
    for name in ("bw_shortterm", "inflight_shortterm", "inflight_longterm"):
        kept = t.at(name, after) >= t.at(name, before)
        yield same(3, f"{name} after the undo", "restored" if kept else "lower", "restored")
    target = t.at("cwnd_gain", after) / 100 * t.inflight(after)
    cwnd = t.at("congestion_window", after) / target
    yield number(3, "cwnd after the undo / (cwnd_gain BDP)", cwnd, 0.95)
    left = [p.name for p in t.phases if began[0] <= p.begin < after]
    yield same(3, "first phase after the loss", left[0] if left else "", "down")
    now = next(p.name for p in t.phases if p.begin <= after < p.end or p is t.phases[-1])
    yield same(4, "phase after the undo", now, "refill" if now == "refill" else "up")


def spurious_recovery(t: Trace, _: Run) -> Checks:
    """Handling Spurious Fast Recovery."""
    return _spurious(t, "recoveries")


def spurious_timeout(t: Trace, _: Run) -> Checks:
    """Handling Spurious RTO Recovery."""
    return _spurious(t, "timeouts")


def probe_rtt_startup(t: Trace, _: Run) -> Checks:
    """Entering and Exiting PROBE_RTT During STARTUP."""
    probe = t.nth("probe_rtt")
    yield number(1, "full_bw_reached", t.at("full_bw_reached", probe.begin), 0, 0)
    yield number(2, "time in PROBE_RTT (s)", t.seconds(probe), 0.2, 0.4)
    yield among(3, t.next(probe), ["startup"])


def up_loss_bound(t: Trace, _: Run) -> Checks:
    """Handling Loss During PROBE_UP After inflight_longterm is Set."""
    up = t.nth("up", 2)
    before, after = (t.at("inflight_longterm", row) for row in (up.begin, up.end))
    yield number(1, "inflight_longterm (bytes)", before, LEAST, 1e9)
    yield number(3, "packets lost", t.at("lost", up.end) - t.at("lost", up.begin), 1)
    yield number(3, "full_bw_now", t.at("full_bw_now", up.end), 0, 0)
    yield number(4, "inflight_longterm after / before", after / before, 0, 0.999)
    yield number(4, "inflight_longterm / BDP", after / t.inflight(up.end), 0.7)
    yield among(5, t.next(up), ["down"])


def refill_limited(t: Trace, _: Run) -> Checks:
    """Handling Application-Limited Sending During PROBE_REFILL."""
    refill = t.nth("refill")
    before = t.at("max_bw", refill.begin)
    yield number(3, "least max_bw / before", t.of("max_bw", refill).min() / before, 1)
    yield among(4, t.next(refill), ["up"])
    later = t.at("max_bw", len(t.time) - 1) / RATE
    yield number(4, "max_bw at the end / bottleneck", later, 0.98, 1.02)
