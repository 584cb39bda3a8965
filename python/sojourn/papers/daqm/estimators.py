"""The published metrics, including their errors, from the records of a flow monitor.

The thesis took FlowMonitor's totals every 0.1 s and averaged them in ways that its text does not
describe. Each function here implements one of them, so that its effect is visible; the run's own
metrics, counted once at the queue, are shown next to them. Findings in the published code:

- the flows of ACKs count as flows, so that half of all delays are those of small packets on the
  way back, and throughput is halved;
- every total runs from time 0, and the mean over flows is unweighted: a flow of ten packets has the
  weight of one of ten thousand;
- a drop at a queue is counted twice (the monitor was installed twice), so that losses may exceed
  1;
- a packet discarded by measuring leaves no trace and is counted once, as lost, 10 s
  later: never in a run of 11 s;
- flow completion time is that of every flow, finished or not: from its first packet to the last
  received so far;
- of the samples of loss, queue length and sojourn time, the mean omits those of zero.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

#: Seconds after which a packet without any trace counts as lost.
FORGOTTEN = 10.0
#: Number of times that a drop at a queue was counted.
DROPS_COUNTED = 2
#: Metrics whose zero samples were omitted.
WITHOUT_ZEROS = ("plr", "queue", "sojourn")


def samples(flow_series: pd.DataFrame, series: pd.DataFrame) -> pd.DataFrame:
    """Returns the published metrics at each sample.

    Units: delay and sojourn in ms, fct in s, throughput in kbit/s; plr is a share. Takes a run's
    tables `flow_series` and `series`, recorded with `observe.monitor`.
    """
    f = flow_series
    if f.empty:  # no packets were sent
        names = ["delay", "plr", "throughput", "fct", "queue", "sojourn"]
        return pd.DataFrame(0.0, index=pd.Index(series["time"], name="time"), columns=names)
    seen = f["received"] > 0
    span = f["last_received"] - f["first_sent"]
    lost = DROPS_COUNTED * (f["dropped"] - f["measurement_drops"]) + _forgotten(f)
    with np.errstate(divide="ignore", invalid="ignore"):
        by_flow = pd.DataFrame(
            {
                "time": f["time"],
                "delay": np.where(seen, 1000 * f["delay_sum"] / f["received"], 0.0),
                "plr": lost / f["sent"],
                "throughput": np.where(seen & (span > 0), 8e-3 * f["received_bytes"] / span, 0.0),
                "fct": np.where(seen, span, 0.0),
            }
        )
    found = by_flow.groupby("time").mean()
    latest = series.set_index("time")[["latest.queue", "latest.last_sojourn"]]
    found["queue"] = latest["latest.queue"].reindex(found.index)
    found["sojourn"] = 1000 * latest["latest.last_sojourn"].reindex(found.index)
    return found


def _forgotten(f: pd.DataFrame) -> np.ndarray:
    """Returns the packets discarded by measuring that a monitor has missed for long enough."""
    keys = ["group", "flow", "back"]
    late = f[[*keys, "time", "measurement_drops"]].copy()
    late["time"] = (late["time"] + FORGOTTEN).round(6)
    now = f[[*keys, "time"]].copy()
    now["time"] = now["time"].round(6)
    merged = pd.merge(now, late, on=[*keys, "time"], how="left")
    return merged["measurement_drops"].fillna(0).to_numpy()


def averages(found: pd.DataFrame) -> dict[str, float]:
    """Returns the thesis' figures for a run: means over the samples, last samples of some."""
    out = {}
    for name in ("fct", "delay", "plr", "queue", "sojourn", "throughput"):
        values = found[name].to_numpy(dtype=float)
        values = values[np.isfinite(values)]
        if name in WITHOUT_ZEROS:
            values = values[values != 0]
        out[name] = float(values.mean()) if values.size else 0.0
    for name in ("delay", "plr", "throughput"):
        out[f"{name}_final"] = float(found[name].iloc[-1])
    return out


def with_zeros(found: pd.DataFrame) -> dict[str, float]:
    """Returns the same means including zeros."""
    return {name: float(found[name].mean()) for name in WITHOUT_ZEROS}


def books(flow_series: pd.DataFrame) -> dict[str, float]:
    """Returns the counts at the end of a run, with each packet counted once and without ACKs.

    `loss`: packets dropped for any reason over packets sent; `discarded`: the share of packets sent
    that measuring dropped; `carried`: packets received per second, including ACKs; `first_drop`:
    the sample of the first drop, in seconds.
    """
    if flow_series.empty:
        return {"loss": 0.0, "discarded": 0.0, "carried": 0.0, "first_drop": float("nan")}
    end = flow_series["time"].max()
    last = flow_series[flow_series["time"] == end]
    data = last[~last["back"]]
    sent = float(data["sent"].sum()) or 1.0
    return {
        "loss": float(data["dropped"].sum()) / sent,
        "discarded": float(data["measurement_drops"].sum()) / sent,
        "carried": float(last["received"].sum()) / float(end) if end else 0.0,
        "first_drop": float(flow_series.loc[flow_series["dropped"] > 0, "time"].min()),
    }
