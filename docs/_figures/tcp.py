"""One path for all congestion controls: a flow, and a second one for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from common import column, legend, simulate, stacked

from sojourn.show import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Each before the queue that it is made for; 66 full frames are the path's bandwidth-delay product.
QUEUES = {
    "reno": "pfifo limit 66p",
    "cubic": "pfifo limit 66p",
    "bbr": "pfifo limit 66p",
    "bbr3": "pfifo limit 66p",
    "dctcp": "codel limit 1000p target 1s ce_threshold 2ms",
    "prague": "dualpi2",
}
NAMES = list(QUEUES)

_PATH = """
duration = "60s"
observe.series = "50ms"

[links.line]
from = "a"
to = "b"
rate = "20mbit"
netem = "delay 20ms"
queue = "{queue}"

[[flows]]
name = "first"
from = "a"
to = "b"
app = "bulk"
tcp = "{control}"

[[flows]]
name = "second"
from = "a"
to = "b"
app = "bulk"
tcp = "{control}"
start = "20s"
stop = "45s"
"""


def _segments(run: Any, group: str) -> tuple[Any, Any]:
    x, y = column(run, f"{group}.0.cwnd")
    return x, y / 1448


def draw(name: str) -> tuple[Figure, str]:
    run = simulate(_PATH.format(queue=QUEUES[name], control=name))
    with style.styled():
        figure, (window, rates, delay) = stacked([1.3, 0.95, 0.95])
        for i, group in enumerate(("first", "second")):
            x, y = _segments(run, group)
            window.plot(x, y, style.line(i), color=style.colour(i), linewidth=0.9, label=group)
            x, y = column(run, f"{group}.goodput", 10)
            rates.plot(x, y / 1e6, style.line(i), color=style.colour(i), label=group)
        window.set_ylabel("cwnd (segments)")
        window.set_ylim(bottom=0)
        legend(window)
        rates.set_ylabel("Goodput\n(Mbit/s)")
        rates.set_ylim(0, 22)
        x, y = column(run, "line.last_sojourn")
        delay.plot(x, 1e3 * y, color=style.colour(6), linewidth=0.7)
        delay.set_ylabel("Queueing\ndelay (ms)")
        delay.set_ylim(bottom=0)
        delay.set_xlabel("Time (s), seed 1")
        delay.set_xlim(0, 60)
        figure.align_ylabels()
    caption = (
        f"One flow of `{name}` over 20 Mbit/s and 20 ms each way, behind "
        f"`{QUEUES[name]}`; from 20 s to 45 s a second flow. Top: windows. Middle: goodput. "
        "Bottom: sojourn time of the last packet that left the queue."
    )
    return figure, caption
