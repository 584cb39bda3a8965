"""TCP settings of a plan's store: its programs choose none, so its hosts' routes set them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations, product
from typing import Any

from sojourn.lab.programs.errors import Problem
from sojourn.lab.programs.plan import MTU, TCP_HEADERS, Flow
from sojourn.lab.programs.stack import Settings


def ask(settings: Settings, store: Mapping[str, Any]) -> Flow:
    """Requires the store's TCP at all its hosts, between any two that communicate.

    Returns a flow that represents these requirements.
    """
    tcp = store["tcp"]
    nodes, clients = ([host["node"] for host in store[key]] for key in ("nodes", "clients"))
    flow = Flow(
        flow=-1, group=-1, name=store["name"], number=0, sender=clients[0], receiver=nodes[0],
        servers=(), start=None, stop=0, dscp=0, app="store", payload=0, tcp=tcp,
    )  # fmt: skip
    if tcp["mss"] + TCP_HEADERS < MTU:
        has = "its programs have what the device has"
        settings.problems.append(Problem(flow.label, f"mss {tcp['mss']}", has))
    # Each node opens the connections on which it sends to other nodes; clients open their own.
    for one, other in permutations(nodes, 2):
        settings.add(flow, one, [(one, other)])
    for client, node in product(clients, nodes):
        settings.add(flow, client, [(client, node), (node, client)])
    for one, other in [*permutations(nodes, 2), *product(clients, nodes), *product(nodes, clients)]:
        settings.control(flow, one, other, tcp["congestion"]["name"])
    return flow
