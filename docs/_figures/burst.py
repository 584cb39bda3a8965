"""Goodput and delay over the burst of a shaper, for hosts that are late in several ways."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from common import legend

import sojourn
from sojourn.show import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SEEDS = (1, 2, 3)
MILLISECONDS = 1e3
MEGABITS = 1e-6


def draw() -> Figure:
    """The levels of `examples/studies/burst.toml`."""
    study = EXAMPLES / "studies" / "burst.toml"
    told = tomllib.loads(study.read_text(encoding="utf-8"))
    scenario = sojourn.Scenario.load(study.parent / told["scenario"])
    hosts, bursts = told["study"]["vary"]["host"], told["study"]["vary"]["burst"]
    with style.styled():
        figure = style.figure(5.0, 4.2)
        rate, delay = figure.subplots(2, 1, sharex=True)
        for i, (host, late) in enumerate(hosts.items()):
            sizes, rates, delays = [], [], []
            for name, queue in bursts.items():
                runs = [scenario.replace({**late, **queue}).run(seed) for seed in SEEDS]
                sizes.append(float(name.split()[0]))
                rates.append(sum(run.metrics["goodput"] for run in runs) / len(runs) * MEGABITS)
                waits = (run.metrics["voip.delay_p99"] for run in runs)
                delays.append(sum(waits) / len(runs) * MILLISECONDS)
            look = {"color": style.colour(i), "marker": style.marker(i), "label": host}
            rate.plot(sizes, rates, **look)
            delay.plot(sizes, delays, **look)
        rate.set_ylabel("Goodput (Mbit/s)")
        rate.set_ylim(bottom=0)
        delay.set_ylabel("Call, 99th percentile\nof the delay (ms)")
        delay.set_xlabel("burst and cburst (kB)")
        delay.set_xscale("log")
        ticks = [float(name.split()[0]) for name in bursts]
        delay.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        delay.minorticks_off()
        legend(rate, 3)
    return figure
