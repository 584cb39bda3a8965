"""The paper's findings as claims, for each network and transport.

*Beats* is a higher mean throughput of a client, paired by seed: the whole interval of the ratio
lies above 1, at every number of clients. *22.5 %* is 15 to 30 %.
"""

from __future__ import annotations

from sojourn.papers.queue_lb.scenarios import BENCHMARKS, NETWORKS, TRANSPORTS
from sojourn.stats.cells import Cell
from sojourn.stats.claims import Claim, Every, Ratio
from sojourn.stats.estimate import Region

_MORE = Region(low=1.0)


def _beats(who: str, others: tuple[str, ...], network: str, transport: str) -> Every:
    def cell(policy: str) -> Cell:
        return {"network": network, "transport": transport, "policy": policy}

    words = {
        "IQLB": "IQLB gives clients more than random, round robin, LBW and SLPLB",
        "QTM": "QTM gives clients more than those four and IQLB",
    }
    return Every(
        id=f"{who.lower()}-{network}-{transport.lower()}",
        text=f"{words[who]}, at 4, 10 and 20 clients ({network} ports, {transport})",
        metric="throughput",
        published="significantly higher at every load",
        claims=tuple(
            Ratio(
                id="", text="", metric="throughput",
                a=cell(who), b=cell(other), region=_MORE, each="clients",
            )
            for other in others
        ),
    )  # fmt: skip


def _more(network: str) -> Ratio:
    at: Cell = {"network": network, "transport": "UDP", "clients": 20}
    return Ratio(
        id=f"qtm-22-{network}",
        text=f"At 20 clients, UDP, QTM is 22.5 % above the benchmarks ({network} ports)",
        metric="throughput",
        published="an increase of 22.5 % (text); 25 to 72 % (its table 4)",
        a={**at, "policy": "QTM"},
        b={**at, "policy": BENCHMARKS},
        region=Region(1.15, 1.30),
    )


CLAIMS: tuple[Claim, ...] = (
    *(
        _beats(who, others, network.name, transport)
        for who, others in (("IQLB", BENCHMARKS), ("QTM", (*BENCHMARKS, "IQLB")))
        for network in NETWORKS
        for transport in TRANSPORTS
    ),
    *(_more(network.name) for network in NETWORKS),
)
"""All claims; factors `network`, `transport`, `clients` and `policy`."""
