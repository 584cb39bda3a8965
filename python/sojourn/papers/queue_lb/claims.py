"""The paper's findings as claims, for each of three networks.

The paper does not describe its network completely; each network here is a reading of the paper.
*Higher* means that the mean throughput of a client is higher in runs paired by seed: the whole
interval of the ratio is above 1. *22.5 %* means 15 to 30 %. The ANOVA is the paper's own: the
clients of one run are pooled as independent values. The claim on the ANOVA is that F exceeds its
critical value: the logarithm of F over this value is above 0.

The paper also shows that the total throughput of all clients rises with their number. This is no
claim, because the networks were chosen to fit this finding.
"""

from __future__ import annotations

from sojourn.papers.paper import Withdrawn
from sojourn.papers.queue_lb.scenarios import BENCHMARKS, NETWORKS, TRANSPORTS
from sojourn.stats.cells import Cell
from sojourn.stats.claims import Claim, Every, MeanIn, Ratio
from sojourn.stats.estimate import Region
from sojourn.stats.verdict import Verdict

FROZEN = "2026-11-23"
"""Date when the claims were fixed.

Known at that date were all earlier results, and one or two runs per cell, with the seeds 901 and
902.
"""
FIRST_SEED = 1001
"""First seed of the runs that judge the claims; no earlier run had this seed or a greater one."""

_MORE = Region(low=1.0)
_ABOUT = Region(1.15, 1.30)
_F = Region(low=0.0)
_LOADS = "4, 10 and 20 clients"


def _higher(
    name: str, text: str, published: str, who: str, others: tuple[str, ...], network: str,
    transports: tuple[str, ...],
) -> Every:  # fmt: skip
    def cell(transport: str, policy: str) -> Cell:
        return {"network": network, "transport": transport, "policy": policy}

    return Every(
        id=f"{name}-{network}",
        reading=network,
        text=f"{text}: {' and '.join(transports)}, {_LOADS}, {network} ports",
        metric="throughput",
        published=published,
        claims=tuple(
            Ratio(
                id="", text=f"more than {other}, {transport}", metric="throughput",
                a=cell(transport, who), b=cell(transport, other), region=_MORE, each="clients",
            )
            for transport in transports
            for other in others
        ),
    )  # fmt: skip


def _share(name: str, text: str, published: str, others: tuple[str, ...], network: str) -> Ratio:
    at: Cell = {"network": network, "transport": "UDP", "clients": 20}
    return Ratio(
        id=f"{name}-{network}",
        reading=network,
        text=f"{text} ({network} ports)",
        metric="throughput",
        published=published,
        a={**at, "policy": "QTM"},
        b={**at, "policy": others},
        region=_ABOUT,
    )


def _anova(experiment: str, among: str, network: str) -> Every:
    return Every(
        id=f"anova-{experiment.lower()}-{network}",
        reading=network,
        text=f"The paper's ANOVA of one run finds that {among} differ, with TCP and UDP, {_LOADS} "
        f"({network} ports)",
        metric="log_f",
        published="six times F > F crit: 5.4 to 33 against 2.4 (IQLB), 15 to 76 against 2.2 (QTM)",
        claims=tuple(
            MeanIn(
                id="", text=f"F above F crit, {transport}", metric="log_f",
                cell={"network": network, "transport": transport, "experiment": experiment},
                region=_F, each="clients",
            )
            for transport in TRANSPORTS
        ),
    )  # fmt: skip


def made(
    networks: tuple[str, ...], transports: tuple[str, ...] = TRANSPORTS, anova: bool = True
) -> tuple[Claim, ...]:
    """Returns the claims for these networks and transports.

    `anova` states whether runs have the paper's number of measurements, which claims on the paper's
    ANOVA require.
    """
    found: list[Claim] = []
    for network in networks:
        found += [
            _higher(
                "iqlb-four",
                "Clients have a higher throughput with IQLB than with random, round robin, LBW and "
                "SLPLB",
                "significantly higher at every load; with 20 UDP clients IQLB has 14.24 Mbit/s in "
                "table 3, and 13.24 in table 4, where LBW has 13.3",
                "IQLB", BENCHMARKS, network, transports,
            ),
            _higher(
                "qtm-four",
                "Clients have a higher throughput with QTM than with random, round robin, LBW and "
                "SLPLB",
                "outperforms all benchmarks with different load", "QTM", BENCHMARKS, network,
                transports,
            ),
            _higher(
                "qtm-five",
                "Clients have a higher throughput with QTM than with random, round robin, LBW, "
                "SLPLB and IQLB",
                "significantly enhances throughput as compared with the rest of the benchmark and "
                "IQLB", "QTM", (*BENCHMARKS, "IQLB"), network, transports,
            ),
            _share(
                "qtm-share",
                "With 20 UDP clients, throughput is 15 to 30 % higher with QTM than the mean of "
                "random, round robin, LBW and SLPLB",
                "an increase of 22.5 % in the text; 46 % by table 4", BENCHMARKS, network,
            ),
            _share(
                "qtm-share-best",
                "With 20 UDP clients, throughput is 15 to 30 % higher with QTM than with LBW",
                "22.5 % over the best of the benchmarks; 25 % by table 4", ("LBW",), network,
            ),
        ]  # fmt: skip
        if anova:
            found += [
                _anova("IQLB", "IQLB, random, round robin, LBW and SLPLB", network),
                _anova("QTM", "QTM, IQLB, random, round robin, LBW and SLPLB", network),
            ]
    return tuple(found)


CLAIMS: tuple[Claim, ...] = made(tuple(network.name for network in NETWORKS))
"""All claims; their cells have the factors `network`, `transport`, `clients` and `policy`."""

_REASON = (
    "the network did not fit the paper: the total throughput of all clients did not grow with "
    "their number as in the paper's tables, and starts were closer than QTM's period"
)
_RANGE = f"{_REASON}; table 4 gives 46 % over the mean of the four benchmarks"
_OLD: dict[str, tuple[str, dict[str, tuple[Verdict, Verdict, Verdict]]]] = {
    "iqlb": (
        "Clients have a higher throughput with IQLB than with random, round robin, LBW and SLPLB",
        {
            "TCP": ("does not hold", "does not hold", "cannot be told"),
            "UDP": ("does not hold", "cannot be told", "holds"),
        },
    ),
    "qtm": (
        (
            "Clients have a higher throughput with QTM than with random, round robin, LBW, SLPLB "
            "and IQLB"
        ),
        dict.fromkeys(TRANSPORTS, ("does not hold", "does not hold", "does not hold")),
    ),
}

#: The verdicts of withdrawn claims are from quick runs: rounds of 6 s, seeds 1 to 8, and ports with
#: 40 Mbit/s together.
WITHDRAWN = (
    *(
        Withdrawn(
            id=f"{who}-{network.name}-{transport.lower()}",
            text=f"{text}, {_LOADS} ({network.name} ports, {transport})",
            date=FROZEN,
            verdict=verdict,
            reason=_REASON,
        )
        for who, (text, verdicts) in _OLD.items()
        for transport, listed in verdicts.items()
        for network, verdict in zip(NETWORKS, listed, strict=True)
    ),
    *(
        Withdrawn(
            id=f"qtm-22-{network.name}",
            text="With 20 UDP clients, throughput is 15 to 30 % higher with QTM than the mean of "
            f"random, round robin, LBW and SLPLB ({network.name} ports)",
            date=FROZEN,
            verdict="does not hold",
            reason=_RANGE,
        )
        for network in NETWORKS
    ),
)
