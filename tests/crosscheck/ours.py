"""Our half: the same dumbbell as a scenario, through the product's own front door."""

from __future__ import annotations

import resource
from typing import Any

from grid import BUFFER, Cell, queue

PROFILE = "ns3-3.37"
TCP = f"reno profile {PROFILE} rwnd {BUFFER}b sndbuf {BUFFER}b"


def scenario_toml(cell: Cell, tcp: str = TCP, more: str = "") -> str:
    """The dumbbell in the words of a scenario file."""
    paths = cell.paths
    sides = [paths.sender_ms(i, cell.flows) for i in range(cell.flows)]
    delays = ", ".join(f'"delay {round(ms * 1000)}us"' for ms in sides)
    return f"""
name = "cross-check {cell.key}"
duration = "{cell.duration_s:g}s"
warmup = "{cell.warmup_s:g}s"

[topology]
template = "dumbbell"
rate = "{cell.rate}bit"
netem = "delay {paths.bottleneck_ms:g}ms"
queue = "{queue(cell.queue, cell.rate).ours}"
reverse.queue = "pfifo limit 100000p"

[topology.left]
hosts = {cell.flows}
rate = "{paths.access_rate}bit"
netem = [{delays}]
queue = "pfifo limit 1000000p"
reverse.queue = "pfifo limit 1000000p"

[topology.right]
hosts = {cell.flows}
rate = "{paths.access_rate}bit"
netem = "delay {paths.receiver_ms:g}ms"
queue = "pfifo limit 1000000p"
reverse.queue = "pfifo limit 1000000p"

[[flows]]
name = "bulk"
from = "left"
to = "right"
app = "bulk"
tcp = "{tcp}"
count = {cell.flows}
start = "uniform 0s {paths.start_spread_s:g}s"

[observe]
series = "0s"
{more}"""


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def run(cell: Cell, seed: int, tcp: str = TCP) -> dict[str, Any]:
    """One run's figures, under the names that ns-3's have."""
    import sojourn

    scenario = sojourn.Scenario.from_toml(scenario_toml(cell, tcp))
    before = cpu_s()
    done = scenario.run(seed=seed)
    cpu = cpu_s() - before
    return {"program": "sojourn", "seed": seed, "cpu_s": cpu, **figures(done)}


def figures(done: Any) -> dict[str, Any]:
    """Reads what is compared out of a run's summary."""
    m = done.metrics
    departures = done.queues.set_index("link")["departures"]
    return {
        "goodput_bps": float(m["goodput"]),
        "jain": float(m["jain"]),
        "delay_mean_ms": float(m["sojourn_mean"]) * 1e3,
        "delay_sd_ms": float(m["sojourn_sd"]) * 1e3,
        "delay_p50_ms": float(m["sojourn_p50"]) * 1e3,
        "delay_p95_ms": float(m["sojourn_p95"]) * 1e3,
        "delay_p99_ms": float(m["sojourn_p99"]) * 1e3,
        "loss": float(m["loss"]),
        "arrivals": int(m["arrivals"]),
        "drops": int(m["drops"]),
        "packets": int(m["departures"]),
        # Without a warm-up, which is when this figure is asked for, nothing was cut.
        "packets_whole_run": int(m["departures"]),
        "back_whole_run": int(departures["bottleneck.reverse"]),
        "utilisation": float(m["utilisation"]),
        "timeouts": int(m["timeouts"]),
        "recoveries": int(m["recoveries"]),
        "retransmissions": int(m["retransmissions"]),
        "events": int(done.events),
        "trace_hash": done.trace_hash,
    }
