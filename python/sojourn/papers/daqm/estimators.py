"""The published metrics, with the errors of the published code, from samples of a flow monitor.

The published code read the totals of ns-3's FlowMonitor every 0.1 s and averaged them in ways that
the thesis does not describe. The functions here repeat these computations. The study shows the
results next to the run's own metrics, which count every packet once. The published code computes as
follows:

- Flows of ACKs count as flows. So half of all delays are those of small packets on the way back,
  and throughput is halved.
- Every total is counted from time 0, and the mean over flows is unweighted: a flow of ten packets
  has the weight of a flow of ten thousand.
- A drop at a queue is counted twice, because the monitor was installed twice. So losses can exceed
  1.
- dAQM does not report packets that it discards by measuring. The monitor counts such a packet as
  lost once, 10 s later, and so almost never in a run of 11 s.
- The flow completion time is the time from a flow's first packet to the last packet received so
  far, even if the flow is not finished.
- The means of loss, queue length and sojourn time omit samples of zero.

The monitor also sees packets that our runs do not have. Servers listen from 1 s on; a server
answers an earlier SYN by a reset, which ns-3's client ignores until it repeats the SYN after 3 s.
In our runs the early SYN is lost. For the monitor it is the flow's first packet, and the reset the
first on the way back. The first packet between two hosts waits for the resolution of an address:
two frames, after up to 10 ms at random.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

#: FlowMonitor counts a packet as lost if it has not seen the packet for this time in seconds.
FORGOTTEN = 10.0
#: Number of times that the published code counts each drop at a queue.
DROPS_COUNTED = 2
#: Columns of times, and fractional part of the golden ratio, whose multiples are spread evenly.
_TIMES = ["first_sent", "last_received"]
_GOLDEN = 0.6180339887498949
#: Share of the changes of an empty queue that show the packet passing through: to 1, then to 0.
PASSING = 0.5
#: Metrics whose mean omits samples of zero.
WITHOUT_ZEROS = ("plr", "queue", "sojourn")
#: Length of Ethernet's header, and of a SYN and a reset with their IP headers, in bytes.
ETHERNET, SYN, RESET = 14, 56, 40
#: Time from which servers listen, in seconds.
LISTENING = 1.0
#: Duration of a frame on the bus, and longest random wait before a resolution, in seconds.
FRAME, JITTER = 0.001, 0.01


def monitored(flow_series: pd.DataFrame) -> pd.DataFrame:
    """Returns the counts of a run as ns-3's monitor has them: of IP packets, with early SYNs.

    Random waits are spread evenly over the flows. Early SYNs and resets of flow i wait for three
    frames of each earlier flow.
    """
    keys = ["time", "group", "flow", "back"]
    unheard = (flow_series["time"] < LISTENING) & (flow_series["received"] == 0)
    refused = flow_series.loc[unheard & (flow_series["lost"] > 0), "flow"].unique()
    resets = flow_series[flow_series["flow"].isin(refused)].assign(back=True)[keys]
    f = flow_series.merge(resets.drop_duplicates(), on=keys, how="outer").sort_values(keys)
    f = f.fillna(dict.fromkeys(f.columns.drop(_TIMES), 0)).reset_index(drop=True)
    time, back, flow = (f[key].to_numpy() for key in ("time", "back", "flow"))
    early = f["flow"].isin(refused).to_numpy()
    evenly = (flow + 1) * _GOLDEN
    there, again = (2 * FRAME + JITTER * ((evenly + half) % 1) for half in (0.0, 0.5))
    after = early * FRAME * (1 + 3 * flow)
    begun = np.where(back, there + after, 0.0)
    wait = np.where(back, again, there) + after
    count = f["received"].to_numpy()
    seen = np.where(early, time >= begun + wait, count > 0)
    few = np.where(back, there + again, np.where(count == 1, there, there + again))
    last = f["last_received"] + (count <= np.where(back, 1, 2)) * few
    arrived = pd.Series(begun + wait)
    f["last_received"] = last.where(~early, f["last_received"].fillna(arrived))
    f["first_sent"] = np.where(early, begun, f["first_sent"] + back * there)
    f["delay_sum"] += seen * wait
    f["sent"] += early & back
    f["received"] += early & seen
    f["received_bytes"] += early * seen * np.where(back, RESET, SYN) - ETHERNET * count
    return f[~early | (time >= begun)]


def samples(flow_series: pd.DataFrame, series: pd.DataFrame) -> pd.DataFrame:
    """Returns the published metrics at each sample, as a table with the time as index.

    `delay` and `sojourn` are in ms, `fct` in s, `throughput` in kbit/s and `queue` in packets;
    `plr` is a share. `flow_series` and `series` are the tables of a run with `observe.monitor`.
    """
    if flow_series.empty:  # the table is empty if no packets were sent
        names = ["delay", "plr", "throughput", "fct", "queue", "sojourn"]
        return pd.DataFrame(0.0, index=pd.Index(series["time"], name="time"), columns=names)
    f = monitored(flow_series)
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
    """Returns, for each sample, the number of measurement drops until 10 s before the sample."""
    keys = ["group", "flow", "back"]
    late = f[[*keys, "time", "measurement_drops"]].copy()
    late["time"] = (late["time"] + FORGOTTEN).round(6)
    now = f[[*keys, "time"]].copy()
    now["time"] = now["time"].round(6)
    merged = pd.merge(now, late, on=[*keys, "time"], how="left")
    return merged["measurement_drops"].fillna(0).to_numpy()


def averages(found: pd.DataFrame) -> dict[str, float]:
    """Returns the thesis' numbers for a run: means over the samples.

    The result also has the last sample of delay, loss and throughput, with the suffix `_final`.
    """
    out = {}
    for name in ("fct", "delay", "plr", "queue", "sojourn", "throughput"):
        values = found[name].to_numpy(dtype=float)
        values = values[np.isfinite(values)]
        weights = np.ones(values.size)
        if name in WITHOUT_ZEROS:
            weights[values == 0] = PASSING if name == "queue" else 0
            values = np.where((values == 0) & (name == "queue"), 1, values)
        out[name] = float(np.average(values, weights=weights)) if weights.any() else 0.0
    for name in ("delay", "plr", "throughput"):
        out[f"{name}_final"] = float(found[name].iloc[-1])
    return out


def with_zeros(found: pd.DataFrame) -> dict[str, float]:
    """Returns the means of `WITHOUT_ZEROS` including samples of zero."""
    return {name: float(found[name].mean()) for name in WITHOUT_ZEROS}


def books(flow_series: pd.DataFrame) -> dict[str, float]:
    """Returns results at the end of a run that count each packet once.

    `loss` is the share of sent data packets that were dropped for any reason, and `discarded` the
    share that measuring dropped. `carried` is the number of received packets per second, including
    ACKs. `first_drop` is the time of the first sample with a drop, in seconds; NaN without drops.
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
