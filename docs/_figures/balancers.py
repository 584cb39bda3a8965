"""One rack for all policies: four servers, two of them behind ports of half the rate."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from common import GREY, WIDTH, column

from sojourn import Scenario
from sojourn.show import style
from sojourn.stats import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = [
    "random", "round-robin", "weighted-round-robin", "hash", "maglev", "least-bandwidth",
    "least-packets", "least-connections", "iqlb", "qtm", "jsq", "power-of-d", "queue-delay",
    "peak-ewma", "jiq",
]  # fmt: skip
SEEDS = range(1, 6)

_RACK = """
duration = "12s"
warmup = "2s"
bottleneck = "servers"
observe.series = "20ms"

[topology]
template = "star"
rate = "1gbit"

[topology.clients]
hosts = 20

[topology.servers]
hosts = 4
rate = ["20mbit", "20mbit", "40mbit", "40mbit"]
queue = "pfifo limit 1000p"

[balancers.lb]
servers = "servers"
policy = "{policy}"
weights = [1, 1, 2, 2]

[[flows]]
name = "requests"
from = "clients"
to = "lb"
app = "transfer size pareto2(50kb,2.2)"
count = 2000
start = "uniform 0s 11.9s"
"""


@cache
def _run(policy: str, seed: int) -> Any:
    return Scenario.from_toml(_RACK.format(policy=policy)).run(seed=seed)


@cache
def _times(policy: str) -> Any:
    """The 99th percentile of completion times, in ms, with its interval over the seeds."""
    values = np.array([float(_run(policy, s).metrics["requests.fct_p99"]) for s in SEEDS])
    return mean_interval(1e3 * values)


def draw(name: str) -> tuple[Figure, str]:
    run = _run(name, 1)
    found = {policy: _times(policy) for policy in NAMES}
    order = sorted(found, key=lambda policy: float(found[policy].estimate))
    with style.styled():
        figure = style.figure(WIDTH, 4.6)
        ports, times = figure.subplots(2, 1, height_ratios=[1.35, 2.4])
        for i in range(4):
            x, y = column(run, f"server{i + 1}.queue", 5)
            rate = "20" if i < 2 else "40"
            ports.plot(x, y, color=style.colour(i), linestyle=style.line(i), linewidth=0.8,
                       label=f"port {i + 1}, {rate} Mbit/s")  # fmt: skip
        ports.set_ylabel("Queue length\n(packets)")
        ports.set_ylim(bottom=0)
        ports.set_xlim(2, 12)
        ports.set_xlabel("Time (s), seed 1")
        for row, policy in enumerate(order):
            i = found[policy]
            colour = style.colour(1) if policy == name else GREY
            times.errorbar(i.estimate, row, xerr=[[i.estimate - i.low], [i.high - i.estimate]],
                           fmt="o", color=colour, markersize=4, linewidth=1)  # fmt: skip
        times.set_yticks(range(len(order)), order)
        times.get_yticklabels()[order.index(name)].set_fontweight("bold")
        times.set_ylim(len(order) - 0.5, -0.5)
        times.tick_params(axis="y", length=0)
        style.logarithmic(times, "x")
        times.set_xlabel("Completion time, 99th percentile (ms)")
        handles, names = ports.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=2)
    caption = (
        f"`{name}` before four servers, two ports of 20 and two of 40 Mbit/s (weights 1, 1, 2, "
        "2): 2000 transfers begin within 12 s; their sizes are heavy-tailed with a mean of 50 kB. "
        "Top: queues of the four ports. Bottom: all policies with their defaults, five seeds, "
        "95 % intervals. With known rates or equal flows the ranking differs."
    )
    return figure, caption
