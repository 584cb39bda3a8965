"""TCP settings for a plan's store.

The store's programs set no options of their sockets. Attributes of the hosts' routes therefore
select the properties of TCP.
"""

from __future__ import annotations

from itertools import permutations, product

from sojourn.lab.programs.errors import Problem
from sojourn.lab.programs.plan import MTU, TCP_HEADERS
from sojourn.lab.programs.stack import Settings
from sojourn.plan.flows import Flow
from sojourn.plan.store import Store


def ask(settings: Settings, store: Store) -> Flow:
    """Adds the store's requirements on TCP between all hosts that communicate.

    Returns a flow with these requirements, which does not belong to the plan.
    """
    tcp = store.tcp
    nodes, clients = ([host.node for host in hosts] for hosts in (store.nodes, store.clients))
    flow = Flow(
        flow=-1, group=-1, name=store.name, number=0, label=f"{store.name}.0",
        sender=clients[0], receiver=nodes[0],
        servers=(), port=0, start=None, stop=0, dscp=0, app="store", payload=0, tcp=tcp,
    )  # fmt: skip
    if tcp.mss + TCP_HEADERS < MTU:
        has = "the store's programs use the MTU of the device"
        settings.problems.append(Problem(flow.label, f"mss {tcp.mss}", has))
    # A node opens the connections on which it sends to another node. A client opens its connection
    # to a node, on which both send.
    for one, other in permutations(nodes, 2):
        settings.add(flow, one, [(one, other)])
    for client, node in product(clients, nodes):
        settings.add(flow, client, [(client, node), (node, client)])
    for one, other in [*permutations(nodes, 2), *product(clients, nodes), *product(nodes, clients)]:
        settings.control(flow, one, other, tcp.congestion.TAG)
    return flow
