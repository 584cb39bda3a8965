"""One scenario for all queue disciplines: an upload and a call, and a flood in between."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from common import column, legend, simulate, stacked

from sojourn.show import colours, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What is compared, where the name alone does not do.
_RED = "min 20p max 100p probability 0.1 avpkt 1000 bandwidth 10mbit"
TEXTS = {
    "pfifo": "pfifo limit 300p",
    "bfifo": "bfifo limit 100kb",
    "red": "red limit 450kb min 30kb max 90kb probability 0.1 avpkt 1000 bandwidth 10mbit",
    "choke": f"choke limit 300p {_RED}",
    "blue": "blue limit 300p",
    "sfb": "sfb limit 300p",
    "pie": "pie limit 300p",
    "pi2": "pi2 limit 300p",
    "dualpi2": "dualpi2",
    "codel": "codel limit 300p",
    "cobalt": "cobalt",
    "daqm": "daqm limit 300p",
    "fq_codel": "fq_codel",
    "fq_pie": "fq_pie",
    "fq_cobalt": "fq_cobalt",
    "cake": "cake bandwidth 9.5mbit",
    "pfifo_fast": "pfifo_fast limit 300p",
    "pfifo_head_drop": "pfifo_head_drop limit 300p",
    "skbprio": "skbprio limit 300p",
    "hhf": "hhf limit 300p admit_bytes 20kb",
    "sfq": "sfq limit 300p",
    "fq": "fq limit 300p",
    "tbf": "tbf rate 9.5mbit burst 16kb latency 100ms",
    "prio": "prio txqueuelen 300p",
    "drr": "drr txqueuelen 100p; class 1:1; class 1:2; class 1:3; class 1:4; "
    "filter flow divisor 4 to 1:1",
    "ets": "ets strict 1 quanta 3000 1514 priomap 1 2 2 2 0 2 0 0 txqueuelen 300p",
    "mq": "mq numtxqueues 4 default_qdisc fq_codel",
    "htb": "htb default 20 txqueuelen 300p; class 1:1 rate 9.5mbit; "
    "class 1:10 parent 1:1 rate 1mbit ceil 9.5mbit; "
    "class 1:20 parent 1:1 rate 8mbit ceil 9.5mbit prio 1; filter dscp EF to 1:10",
    "hfsc": "hfsc default 20 txqueuelen 300p; class 1:1 ls rate 9.5mbit ul rate 9.5mbit; "
    "class 1:10 parent 1:1 sc m1 4mbit d 5ms m2 1mbit; "
    "class 1:20 parent 1:1 ls rate 8mbit; filter dscp EF to 1:10",
}
NAMES = list(TEXTS)

_LINE = """
duration = "40s"
observe.series = "20ms"

[links.line]
from = "home"
to = "isp"
rate = "{rate}mbit"
netem = "delay 20ms"
queue = "{queue}"

[[flows]]
name = "uploads"
from = "home"
to = "isp"
app = "bulk"
tcp = "cubic"
count = {uploads}
start = "uniform 0s 1s"

[[flows]]
name = "call"
from = "home"
to = "isp"
app = "voip"

[[flows]]
name = "other"
from = "home"
to = "isp"
{other}
start = "15s"
stop = "25s"
"""
FLOOD = 'app = "cbr rate 8mbit size 1000"'
SCALABLE = 'app = "bulk"\ntcp = "prague"\ncount = 2'


def _weight(minimum: float, burst: float) -> int:
    """The averaging weight's exponent that `tc` chooses for thresholds in packets."""
    a = burst + 1 - minimum
    return next(k for k in range(1, 32) if a <= (1 - (1 - 0.5**k) ** burst) * 2**k)


# The discipline's own state that is shown: series, what to multiply it by, axis title.
STATES: dict[str, tuple[str, float, str]] = {
    "red": ("qavg", 2.0 ** -_weight(30.72, 51) / 1024, "Average\n(KiB)"),
    "choke": ("qavg", 2.0 ** -_weight(20, 46), "Average\n(packets)"),
    "blue": ("p", 100 / 2**32, "Probability\n(%)"),
    "pie": ("prob", 100 / 2**56, "Probability\n(%)"),
    "pi2": ("prob", 100 / 2**32, "p' (%)"),
    "dualpi2": ("prob", 100 / 2**32, "p' (%)"),
    "codel": ("count", 1, "Drops of\nepisode"),
    "cobalt": ("count", 1, "Drops of\nepisode"),
}


@cache
def _run(queue: str, scalable: bool) -> Any:
    """Half a dozen packets must fit into L4S's step of 1 ms, so its line is faster."""
    uploads, other, rate = (2, SCALABLE, 60) if scalable else (4, FLOOD, 10)
    return simulate(_LINE.format(queue=queue, uploads=uploads, other=other, rate=rate))


def draw(name: str) -> tuple[Figure, str]:
    scalable = name == "dualpi2"
    run = _run(TEXTS[name], scalable)
    state = STATES.get(name)
    top = 400.0
    third = "Prague" if scalable else "flood"
    names = list(dict.fromkeys(["pfifo", name, "uploads", third]))
    looks = dict(zip(names, colours.slots(names), strict=True))
    own = style.colour(looks[name])
    with style.styled():
        figure, panels = stacked([1.15, 1.15, *([0.85] if state else [])])
        delay, rates = panels[:2]
        if name != "pfifo":
            x, y = column(_run(TEXTS["pfifo"], scalable), "line.last_sojourn", 5)
            delay.plot(x, 1e3 * y, color=style.colour(looks["pfifo"]), linewidth=0.7, alpha=0.5,
                       label=TEXTS["pfifo"])  # fmt: skip
        x, y = column(run, "line.last_sojourn")
        label = TEXTS[name].split(" limit")[0].split(";")[0]
        delay.plot(x, 1e3 * y, ".", color=own, markersize=1.7, markeredgewidth=0, label=label)
        delay.set_ylabel("Queueing\ndelay (ms)")
        clipped = bool((1e3 * y > top).any())
        delay.set_ylim(0, top if clipped else None)
        legend(delay, markerscale=5)
        highest = 0.0
        for i, (group, label) in enumerate((("uploads", "uploads"), ("other", third))):
            kind = "goodput" if f"{group}.goodput" in run.series else "udp_goodput"
            x, y = column(run, f"{group}.{kind}", 50)
            look = {"color": style.colour(looks[label]), "label": label}
            rates.plot(x, y / 1e6, style.line(i), **look)
            highest = max(highest, float(np.nanmax(y)) / 1e6)
        rates.set_ylabel("Goodput (Mbit/s)")
        rates.set_ylim(0, max(66 if scalable else 11, 1.05 * highest))
        legend(rates)
        if state:
            series, factor, title = state
            x, y = column(run, f"line.state.{series}")
            panels[2].plot(x, factor * y, color=own, linewidth=0.8,
                           drawstyle="steps-post")  # fmt: skip
            panels[2].set_ylabel(title)
            panels[2].set_ylim(bottom=0)
        panels[-1].set_xlabel("Time (s), seed 1")
        panels[-1].set_xlim(0, 40)
        figure.align_ylabels(panels)
    return figure, _caption(name, run, bool(state), clipped)


def _caption(name: str, run: Any, state: bool, clipped: bool) -> str:
    mos = float(run.metrics["call.mos"])
    other = "Prague" if name == "dualpi2" else "the flood"
    if name == "dualpi2":
        traffic = "Two uploads (CUBIC) and a call; from 15 s to 25 s two flows of Prague as well."
    else:
        traffic = (
            "Four uploads (CUBIC) and a call; from 15 s to 25 s a flood of 8 Mbit/s as well, "
            "which does not respond."
        )
    return (
        f"`{TEXTS[name]}` at a link of {60 if name == 'dualpi2' else 10} Mbit/s, 20 ms each way. "
        f"{traffic} Top: sojourn time of the last packet that left, every 20 ms"
        + ("" if name == "pfifo" else "; the thin line is tail drop")
        + ("; values above the panel are the flood's, in its own queue" if clipped else "")
        + f". Middle: goodput of the uploads and of {other}."
        + (" Bottom: the variable that controls the discipline." if state else "")
        + f" The call's mean opinion score over the 40 s: {mos:.1f}."
    )
