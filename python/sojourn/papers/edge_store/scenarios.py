"""The paper's testbed: a full mesh of nodes, one client, a thousand consecutive writes.

Packets from one node to another are delayed by L and lost with probability p, in both directions.
The client is 10 ms away from each node, without loss. The paper's scripts delay only one direction
of the client's link, but the latencies at low loss without delay between nodes (24 to 29 ms) fit 10
ms in both. Writes are of small rows at QUORUM, one after the other, to the coordinators in turn.
The coordinator's timeout is a minute, so that losses appear as latency and not as failed writes.
"""

from __future__ import annotations

from sojourn.scenario import Scenario

NODES = (3, 4, 5)
LOSSES = {"low": 0.005, "medium": 0.025, "high": 0.075}
CLIENT_MS = 10
#: Number of writes that open the connections and are not measured.
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
    """Returns the scenario of one cell of the paper's grid.

    `loss` is a key of `LOSSES`, `delay` the one-way delay between nodes in milliseconds, and
    `outstanding` the number of writes at a time.
    """
    store: dict[str, object] = {
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
        observe={"series": "0s"},
    )
