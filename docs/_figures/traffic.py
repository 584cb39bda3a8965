"""What each application sends, on two time scales."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import WIDTH, column, simulate

from sojourn import Scenario
from sojourn.show import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN: dict[str, list[tuple[str, str]]] = {
    "bulk": [("bulk", 'app = "bulk"')],
    "transfer": [
        (
            "transfer size pareto2(500kb,1.5) forever think exp(1s)",
            'app = "transfer size pareto2(500kb,1.5) forever think exp(1s)"',
        )
    ],
    "cbr": [
        ("cbr rate 1mbit payload 500", 'app = "cbr rate 1mbit payload 500"'),
        (
            "cbr rate 2mbit payload 500 on pareto(1s,1.4) off pareto(1s,1.4)",
            'app = "cbr rate 2mbit payload 500 on pareto(1s,1.4) off pareto(1s,1.4)"',
        ),
    ],
    "packets": [
        ("packets interval exp(4ms) size 500", 'app = "packets interval exp(4ms) size 500"'),
        (
            "packets interval pareto(4ms,1.3) size 500",
            'app = "packets interval pareto(4ms,1.3) size 500"',
        ),
    ],
    "client": [
        ("client preset http", 'app = "client preset http"\ntcp = "reno"'),
        (
            "client preset http model weibull-onoff",
            'app = "client preset http model weibull-onoff"\ntcp = "reno"',
        ),
    ],
    "replay": [
        ("replay file seen.pcap", "app = 'replay file {capture}'"),
        ("replay file seen.pcap speed 2", "app = 'replay file {capture} speed 2'"),
    ],
    "web": [("web, 20 sessions", 'app = "web"\ncount = 20')],
}
NAMES = [*SHOWN, "voip", "responsiveness"]

_LINE = """
duration = "60s"
observe.series = "10ms"
{capture}

[links.line]
from = "a"
to = "b"
rate = "10mbit"
netem = "delay 10ms"
queue = "fq_codel"

[[flows]]
name = "shown"
from = "a"
to = "b"
{flow}
"""


def _captured(folder: Path) -> Path:
    """A capture to replay: what Web sessions sent."""
    told = _LINE.format(capture='observe.capture = ["line"]', flow='app = "web"\ncount = 8')
    run = Scenario.from_toml(told.replace('"60s"', '"40s"')).run(seed=2)
    path = folder / "seen.pcap"
    path.write_bytes(run.captures["line"])
    return path


def draw(name: str) -> tuple[Figure, str]:
    if name == "voip":
        return _call()
    if name == "responsiveness":
        return _round_trips()
    runs: list[tuple[str, Any]] = []
    begin = 0 if name == "replay" else 20
    with tempfile.TemporaryDirectory() as folder:
        capture = _captured(Path(folder)) if name == "replay" else ""
        for label, flow in SHOWN[name]:
            told = _LINE.format(capture="", flow=flow.format(capture=capture))
            runs.append((label, simulate(told)))
    with style.styled():
        figure = style.figure(WIDTH, 3.1)
        whole, part = figure.subplots(2, 1)
        for i, (label, run) in enumerate(runs):
            look = {"color": style.colour(i), "linestyle": style.line(i), "linewidth": 0.9}
            x, y = column(run, "line.throughput", 50)
            whole.plot(x, y / 1e6, label=label, drawstyle="steps-mid", **look)
            x, y = column(run, "line.throughput")
            now = (x > begin) & (x <= begin + 1)
            part.plot(1e3 * (x[now] - begin), y[now] / 1e6, drawstyle="steps-mid", **look)
        for axes in (whole, part):
            axes.set_ylabel("Rate on the\nline (Mbit/s)")
            axes.set_ylim(bottom=0)
        whole.set_xlim(0, 60)
        whole.set_xlabel("Time (s), bins of 500 ms")
        part.set_xlim(0, 1000)
        part.set_xlabel(f"Time from {begin} s on (ms), bins of 10 ms")
        handles, names = whole.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=1)
    caption = (
        f"Traffic of `{name}` on a line of 10 Mbit/s, 10 ms each way, seed 1: one minute, and "
        "one second of it."
    )
    if name == "replay":
        caption += " The capture is one of eight Web sessions, 40 s long."
    return figure, caption


def _round_trips() -> tuple[Figure, str]:
    """Round trips per minute with several queues."""
    queues = ("bfifo limit 250kb", "pie", "fq_codel", "cake")
    parts = ("idle", "foreign", "loaded")
    labels = ("without load", "new connections", "loaded connections")
    with style.styled():
        figure = style.figure(WIDTH, 2.6)
        axes = figure.add_subplot()
        for i, queue in enumerate(queues):
            flow = 'app = "responsiveness direction download"'
            told = _LINE.format(capture="", flow=flow).replace("fq_codel", queue)
            run = simulate(told)
            for j, (part, label) in enumerate(zip(parts, labels, strict=True)):
                trips = run.metrics[f"shown.responsiveness_08_{part}"]
                shown = {"label": label} if i == 0 else {}
                axes.barh(i + 0.27 * (j - 1), trips, 0.25, color=style.colour(j), **shown)
        axes.set_yticks(range(len(queues)), queues)
        axes.invert_yaxis()
        axes.set_xlabel("Round trips per minute")
        handles, names = axes.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=3)
    caption = (
        "Results of `responsiveness direction download` on a line of 10 Mbit/s, 10 ms each way, "
        "with four queues, seed 1. `bfifo` holds 200 ms."
    )
    return figure, caption


def _call() -> tuple[Figure, str]:
    """Quality over delay, for some losses."""
    told = _LINE.format(capture="", flow='app = "voip codec {codec}"').replace("60s", "30s")
    delays = (5, 50, 100, 150, 200, 250, 300, 400, 500, 600)
    with style.styled():
        figure = style.figure(WIDTH, 2.6)
        axes = figure.add_subplot()
        i = 0
        for codec in ("g711", "g729"):
            for loss in ("0%", "2%"):
                scores = []
                for delay in delays:
                    netem = f'"delay {delay}ms loss {loss}"'
                    text = told.format(codec=codec).replace('"delay 10ms"', netem)
                    scores.append(float(simulate(text).metrics["shown.mos"]))
                look = {"color": style.colour(i), "linestyle": style.line(i)}
                look |= {"marker": style.marker(i), "label": f"{codec}, {loss} lost"}
                axes.plot(delays, scores, markersize=3, **look)
                i += 1
        axes.set_xlabel("One-way delay of the line (ms)")
        axes.set_ylabel("Mean opinion score")
        axes.set_ylim(1, 4.5)
        axes.set_xlim(0, 610)
        style.legend_above(figure, axes)
    caption = (
        "Quality of a call over a line with a given delay and random loss: simulated calls of "
        "30 s, seed 1."
    )
    return figure, caption
