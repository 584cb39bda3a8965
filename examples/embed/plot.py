"""Draws the figure of the table that `cargo run --release` writes: `plot.py TABLE FIGURE`."""

import sys

import matplotlib.pyplot as plt
import pandas as pd

table = pd.read_csv(sys.argv[1])
stacks, queues = table["stack"].unique(), table["queue"].unique()
figure, panels = plt.subplots(len(stacks), len(queues), figsize=(10, 5), sharex=True, sharey=True)
for stack, row in zip(stacks, panels, strict=True):
    for queue, panel in zip(queues, row, strict=True):
        rows = table[(table["stack"] == stack) & (table["queue"] == queue)]
        for flow, of in rows.groupby("flow", sort=False):
            panel.plot(of["second"], of["goodput"], label=flow)
        delay = rows["delay"].median()
        panel.set_title(f"{stack}, {queue}: {delay:.0f} ms of queue", fontsize=9)
        panel.legend(fontsize=8, frameon=False)
for panel in panels[-1]:
    panel.set_xlabel("second")
for panel in panels[:, 0]:
    panel.set_ylabel("goodput, Mbit/s")
figure.tight_layout()
figure.savefig(sys.argv[2])
