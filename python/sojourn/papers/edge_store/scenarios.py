"""The paper's rig: fully joined nodes, one client, a thousand writes in a row.

Each node's packets to each other node are delayed by L and lost with probability p, so both ways
are slow and lossy. The client is 10 ms away without loss: the paper's scripts delay one direction
only, but its intercepts of 24 to 28 ms fit 10 ms each way. Writes are of small rows at QUORUM, one
after the other, to coordinators in turn. The coordinator's timeout is a minute, so that losses
appear as latency.
"""

from __future__ import annotations

from typing import Any

from sojourn.scenario import Scenario

NODES = (3, 4, 5)
LOSSES = {"low": 0.005, "medium": 0.025, "high": 0.075}
CLIENT_MS = 10
#: The first writes open connections, which costs round trips of handshakes; real stores have them
#: open.
WARMUP = 100


def scenario(
    nodes: int,
    rf: int,
    loss: str,
    delay: int,
    writes: int,
    *,
    consistency: str = "quorum",
    tcp: str = "cubic",
    outstanding: int = 1,
) -> Scenario:
    """Returns one cell of the paper's grid; `loss` by its name, `delay` in milliseconds one way."""
    store: dict[str, Any] = {
        "nodes": "nodes",
        "clients": "clients",
        "replication": rf,
        "consistency": consistency,
        "tcp": tcp,
        "requests": writes + WARMUP,
        "warmup": WARMUP,
        "outstanding": outstanding,
        "write_timeout": "60s",
        "client_timeout": "120s",
        "hints": False,
    }
    return Scenario(
        name=f"edge store, {nodes} nodes, RF {rf}",
        duration="20000s",
        topology={
            "template": "mesh",
            "nodes": nodes,
            "rate": "1gbit",
            "netem": f"delay {delay}ms loss {LOSSES[loss] * 100:g}%",
            "clients": {"netem": f"delay {CLIENT_MS}ms"},
        },
        store=store,
        observe={"series": "0s", "trace_hash": False},
    )
