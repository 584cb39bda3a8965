"""Sentences of the sources as claims, fixed before the runs that judge them.

Each sentence is quoted verbatim with its place; `HOW` states how it is judged. *Roughly the same*
and *equal* rates differ by at most a factor of two (a share of a third to two thirds). *Dominate*
is at least four to one. *Much longer* is at least twice, and *around* is within a factor of two.
*Very nearly equal* is a share of 45 to 55 %. *No losses* means fewer than one packet in a million.

Results known when the claims were fixed: the coexistence matrix with seeds 1 to 3, which has other
rates and settings of queues, and runs of ten seconds with seed 1 of `environment` and `step`. The
quick study with seeds 1001 and 1002 was run after the claims were fixed. No region was changed
after this study, but the limit of a spike was raised by the transmission time of four packets,
because at 1 Mbit/s the round-trip time never falls below the original limit. With the original and
with the raised limit, the spike is longer than the source's 30 s.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sojourn.papers.l4s import scenarios
from sojourn.stats import AllIn, Claim, Difference, Every, MeanIn, Ratio, Region
from sojourn.stats.cells import Cell

FROZEN = "2026-11-24"
"""Date when the claims were fixed."""
FIRST_SEED = 4001
"""First seed of the runs that judge the claims; no earlier run had this seed or a greater one."""

_SAME = Region(1 / 3, 2 / 3)
_FAIR = Region(0.45, 0.55)
_DOMINATES = Region(low=0.8)
PAIRS = ("1 Prague, 1 CUBIC", "1 Prague, 1 Reno")
L4S = tuple(
    mix for mix, groups in scenarios.MIXES.items() if any(name == "l4s" for name, *_ in groups)
)
EQUAL = ("10/10", "20/20", "80/80")


def _cells(mixes: Iterable[str], grid: Sequence[tuple[int, int]]) -> tuple[Cell, ...]:
    return tuple({"mix": m, "rate": rate, "rtt": rtt} for m in mixes for rate, rtt in grid)


def _in_cell(metric: str, cell: Cell, region: Region) -> MeanIn:
    """Returns the claim that a cell's mean is in `region`, with the levels of the cell as text."""
    text = ", ".join(map(str, cell.values()))
    return MeanIn(id="", text=text, metric=metric, cell=cell, region=region)


def _everywhere(
    name: str, text: str, metric: str, cells: Iterable[Cell], region: Region, published: str = ""
) -> Every:
    """Returns the claim that the means of all `cells` are in `region`."""
    parts = tuple(_in_cell(metric, cell, region) for cell in cells)
    return Every(id=name, text=text, published=published, claims=parts)


def rfc(grid: Sequence[tuple[int, int]]) -> tuple[Claim, ...]:
    """Returns RFC 9332's claims for a grid of rates in Mbit/s and round-trip times in ms."""
    return (
        _everywhere(
            name="rfc-same-throughput",
            text='RFC 9332, 1.4: "a flow will get roughly the same throughput whichever it uses"',
            metric="rfc_share", cells=_cells(PAIRS, grid), region=_SAME,
        ),
        AllIn(
            id="rfc-mean-delay",
            text='RFC 9332, 1.4: "the AQM kept the average queuing delay below 1 ms"',
            published="below 1 ms", metric="rfc_delay", cells=_cells(L4S, grid),
            region=Region(high=1e-3),
        ),
        AllIn(
            id="rfc-tail-delay",
            text='RFC 9332, 1.4: "with the 99th percentile being no worse than 2 ms"',
            published="at most 2 ms", metric="rfc_delay_p99", cells=_cells(L4S, grid),
            region=Region(high=2e-3),
        ),
        AllIn(
            id="rfc-no-losses",
            text='RFC 9332, 1.4: "No losses at all were introduced by the L4S AQM."',
            published="none", metric="rfc_loss", cells=_cells(L4S, grid), region=Region(high=1e-6),
        ),
        AllIn(
            id="rfc-heavy-load",
            text='RFC 9332, 1.4: "The L4S queue can be filled with a heavy load of '
            'capacity-seeking flows (Prague, BBRv2, etc.) and still achieve low delay."',
            metric="rfc_delay_p99", cells=_cells(["20 Prague"], grid), region=Region(high=2e-3),
        ),
        AllIn(
            id="rfc-without-classic",
            text='RFC 9332, 1.4: "It gives low latency to L4S traffic whether or not there is '
            'Classic traffic."',
            metric="rfc_delay", cells=_cells(["1 Prague", PAIRS[0]], grid),
            region=Region(high=1e-3),
        ),
        _everywhere(
            name="rfc-no-priority",
            text='RFC 9332, 1.4: "it does not have bandwidth priority over the Classic queue"',
            metric="rfc_share", cells=_cells(["10 Prague, 10 CUBIC"], grid), region=_SAME,
        ),
        AllIn(
            id="rfc-full-capacity",
            text='RFC 9332, 1.4: "both queues can feed into the full capacity of a link"',
            metric="rfc_utilisation", cells=_cells(["1 Prague", PAIRS[0], "20 CUBIC"], grid),
            region=Region(low=0.95),
        ),
        Every(
            id="rfc-classic-tail",
            text='RFC 9332, 1.4: "The tail latency of traffic served by the Classic AQM is '
            "sometimes a little better, sometimes a little worse, when a proportion of the traffic "
            'is L4S."',
            claims=tuple(
                Ratio(
                    id="", text=f"{rate} Mbit/s, {rtt} ms", metric="rfc_classic_p99",
                    a={"mix": "10 Prague, 10 CUBIC", "rate": rate, "rtt": rtt},
                    b={"mix": "20 CUBIC", "rate": rate, "rtt": rtt}, region=Region(0.5, 2),
                )
                for rate, rtt in grid
            ),
        ),
        _everywhere(
            name="rfc-no-starvation",
            text='RFC 9332, 2.5.1: "priority MUST be bounded in order not to starve Classic '
            'traffic"',
            metric="rfc_share", cells=_cells(["20 Prague, 1 CUBIC"], grid),
            region=Region(high=2 / 3),
        ),
        _everywhere(
            name="rfc-same-window",
            text='RFC 9332, 2.5.1: "their congestion window will be roughly the same as that of a '
            'Standards Track TCP Reno congestion control"',
            metric="rfc_window", cells=_cells(["1 Prague, 1 Reno"], grid), region=_SAME,
        ),
        _everywhere(
            name="rfc-half-millisecond",
            text='RFC 9332, 1.1: "500 microseconds with L4S for the same traffic mix"',
            published="500 µs",
            metric="rfc_delay", cells=_cells(["10 Prague, 10 CUBIC"], grid),
            region=Region(0.25e-3, 1e-3),
        ),
    )  # fmt: skip


FEW = "few flows"
"""Reading of RFC 9332 with at most two flows, which have at least a few packets in flight."""
FEW_MIXES = ("1 Prague", *PAIRS)


def few(grid: Sequence[tuple[int, int]]) -> tuple[Claim, ...]:
    """Returns RFC 9332's claims on delay and losses for mixes with a single L4S flow.

    These claims were added when the verdicts on the claims of `rfc` were known.
    """
    return tuple(
        replace(c, id=f"{c.id}-{FEW}", reading=FEW, cells=_cells(FEW_MIXES, grid))
        for c in rfc(grid)
        if isinstance(c, AllIn) and c.cells == _cells(L4S, grid)
    )


def _fair(queue: str, pair: str, rtts: str) -> Cell:
    return {"queue": queue, "pair": pair, "rtts": rtts}


S1 = (
    _everywhere(
        name="s1-advantage",
        text='Heist and Morton, Network Bias: "DualPI2 consistently gives TCP Prague flows a '
        'throughput advantage over conventional CUBIC flows"',
        published="Prague to CUBIC: 2.6, 2.1 and 1.7 to one at 10, 20 and 80 ms",
        metric="s1_share", cells=(_fair("dualpi2", "Prague, CUBIC", r) for r in EQUAL),
        region=Region(low=0.55),
    ),
    MeanIn(
        id="s1-two-to-one",
        text='Heist and Morton, Network Bias: "a large throughput advantage over CUBIC, in more '
        'than a 2:1 ratio"',
        published="Prague 31.85, CUBIC 15.51 Mbit/s", metric="s1_share",
        cell=_fair("dualpi2", "Prague, CUBIC", "20/20"), region=Region(low=2 / 3),
    ),
    _everywhere(
        name="s1-plain-queue",
        text='Heist and Morton, Network Bias: with no AQM "TCP Prague behaves approximately like '
        'NewReno and, as expected, is outperformed by CUBIC"',
        published="Prague 5.88, CUBIC 41.63 Mbit/s at 20 ms",
        metric="s1_share", cells=(_fair("pfifo", "Prague, CUBIC", r) for r in EQUAL),
        region=Region(high=0.45),
    ),
    _everywhere(
        name="s1-fair-queue",
        text='Heist and Morton, Network Bias: "CUBIC and TCP Prague are given very nearly equal '
        'access to the link", and so "when the current state-of-the-art fq_codel and CAKE qdiscs '
        'are used"',
        published="Prague 24.03, CUBIC 23.32 Mbit/s at 20 ms with fq_codel",
        metric="s1_share", cells=(_fair("fq_codel", "Prague, CUBIC", r) for r in EQUAL),
        region=_FAIR,
    ),
    _everywhere(
        name="s1-short-wins",
        text='Heist and Morton, RTT Unfairness: "when the bottleneck is managed by DualPI2, the '
        'shorter-RTT flow has a big throughput advantage in every case"',
        published="CUBIC at 160 ms 4.87, Prague at 10 ms 41.67 Mbit/s",
        metric="s1_share", cells=(_fair("dualpi2", p, "160/10") for p in scenarios.S1_PAIRS),
        region=Region(high=1 / 3),
    ),
    MeanIn(
        id="s1-beyond-16",
        text='Heist and Morton, RTT Unfairness: "the ratio of throughput actually exceeds the '
        'nominal 16:1 ratio of path RTTs"',
        published="1.56 Mbit/s at 160 ms, 45.46 at 10 ms", metric="s1_share",
        cell=_fair("dualpi2", "Prague, Prague", "160/10"), region=Region(high=1 / 17),
    ),
    Difference(
        id="s1-rtt-unfairness",
        text='Heist and Morton, Key Findings, 4: "TCP Prague and DualPI2 exhibit a greater level '
        'of RTT unfairness than the presently used CUBIC and pfifo."',
        published="the flow with 160 ms: 3 % with Prague, 36 % with CUBIC", metric="s1_share",
        a=_fair("dualpi2", "Prague, Prague", "160/10"), b=_fair("pfifo", "CUBIC, CUBIC", "160/10"),
        region=Region(high=-0.05),
    ),
)  # fmt: skip


def _step(control: str, to: str) -> Cell:
    return {"control": control, "to": to}


S2 = (
    Ratio(
        id="s2-longer-spike",
        text='Heist and Morton, Intra-Flow Latency Spikes: "the induced latency spike has a much '
        'longer duration for TCP Prague than CUBIC"',
        metric="s2_spike", a=_step("Prague", "25mbit"), b=_step("CUBIC", "25mbit"),
        region=Region(low=2),
    ),
    MeanIn(
        id="s2-five-seconds",
        text='Heist and Morton, Intra-Flow Latency Spikes: "we can see that the spike lasts around '
        '5 seconds"',
        published="5 s", metric="s2_spike", cell=_step("Prague", "25mbit"),
        region=Region(2.5, 10),
    ),
    MeanIn(
        id="s2-greatest",
        text='Heist and Morton, Intra-Flow Latency Spikes: "shows the maximum TCP RTT to be '
        '4346ms"',
        published="4.346 s", metric="s2_greatest", cell=_step("Prague", "1mbit"),
        region=Region(4.346 / 2, 2 * 4.346),
    ),
    MeanIn(
        id="s2-thirty-seconds",
        text='Heist and Morton, Intra-Flow Latency Spikes: "the spike lasts for over 30 seconds"',
        published="over 30 s", metric="s2_spike", cell=_step("Prague", "1mbit"),
        region=Region(low=30),
    ),
)  # fmt: skip
S2_BURSTS = (
    Ratio(
        id="s2-half-utilisation",
        text='Heist and Morton, Underutilization with Bursty Links: "a tradeoff of about a 50% '
        'reduction in link utilization"',
        published="about half", metric="s2_utilisation",
        a={"sender": "Prague, dualpi2"}, b={"sender": "CUBIC, fq_codel"}, region=Region(0.3, 0.7),
    ),
)  # fmt: skip
S3 = (
    Ratio(
        id="s3-spikes",
        text='Heist and Morton, Key Findings, 7: "L4S transports experience intra-flow latency '
        'spikes at RFC3168 bottlenecks, particularly with the widely deployed fq_codel."',
        metric="s3_excess", a={"control": "Prague"}, b={"control": "CUBIC"}, each="rtt",
        region=Region(low=2),
    ),
)  # fmt: skip


def _met(queue: str, rival: str) -> Cell:
    return {"queue": queue, "rival": rival}


TUNNELLED = ("cubic-noecn", "reno-noecn")
S6 = (
    _everywhere(
        name="s5-tunnel",
        text='Heist and Morton, Tunneled Non-L4S Flows: "L4S flows dominate non-L4S flows in the '
        'same tunnel"',
        metric="s5_share", cells=(_met("fq_codel(1q)", r) for r in TUNNELLED), region=_DOMINATES,
    ),
    _everywhere(
        name="s6-dominate",
        text='Heist and Morton, Key Findings, 1: "L4S flows dominate non-L4S flows, whether ECN '
        'enabled or not, when they occupy a shared RFC3168 signaling queue."',
        published="Prague to its rival: 20 : 1 to 60 : 1",
        metric="s6_share",
        cells=(_met(q, r) for q in scenarios.S6_QUEUES for r in scenarios.S6_RIVALS),
        region=_DOMINATES,
    ),
)  # fmt: skip


_LITTLE, _MUCH = Region(high=0.2), Region(low=0.8)
PARTIAL = (
    Every(
        id="2407-some-scenarios",
        text='arXiv 2407.00464, abstract: "TCP Prague, has less favorable throughput or fairness '
        'properties than TCP Cubic or BBR in some coexistence scenarios"',
        published="Prague has 0.4 of 96 Mbit/s next to CUBIC without ECN in a FIFO with ECN, and "
        "88 of 95 in CoDel",
        claims=(
            _in_cell("partial_share", _met("FIFO+ECN", "CUBIC"), _LITTLE),
            _in_cell("partial_share", _met("CoDel", "CUBIC"), _MUCH)),
    ),
    Every(
        id="2411-harm",
        text='arXiv 2411.10952, abstract: "it cannot be assured that it will not harm or be harmed '
        'by another flow sharing the bottleneck link"',
        published="Prague has 88 of 95 Mbit/s next to CUBIC with ECN in CoDel; 9 of 94 next to "
        "BBRv1 in PIE that drops",
        claims=(
            _in_cell("partial_share", _met("CoDel", "CUBIC, ECN"), _MUCH),
            _in_cell("partial_share", _met("PIE, drops", "BBRv1"), _LITTLE)),
    ),
    _everywhere(
        name="2411-bbr3",
        text='arXiv 2411.10952, abstract: "the approach of BBRv3 [...] does not solve the '
        'coexistence problem"',
        published="Prague has 4 of 94 Mbit/s next to BBRv3 with ECN in DualPI2; 20 of 94 in CoDel "
        "that drops", metric="partial_share",
        cells=(_met("DualPI2", "BBRv3, ECN"), _met("CoDel, drops", "BBRv3, ECN")),
        region=Region(high=1 / 3),
    ),
)  # fmt: skip
MULTIPLE = (
    MeanIn(
        id="2411-multiple",
        text='arXiv 2411.10952, abstract: "the harm is not necessarily mitigated when a scalable '
        'flow shares a bottleneck with multiple classic flows"',
        metric="multiple_share", cell={"rivals": 10}, region=Region(low=0.3),
    ),
)  # fmt: skip
ENVIRONMENTS = (
    Ratio(
        id="2603-dynamics",
        text='arXiv 2603.04381, abstract: "identical DualPI2 parameterization does not guarantee '
        'identical dynamics"',
        metric="environment_delay", a={"where": "Mahimahi"}, b={"where": "link"}, each="product",
        region=Region(low=1.1),
    ),
)  # fmt: skip

HOW = {
    "rfc-same-throughput": "Prague's share of the goodput next to one CUBIC or Reno flow is a "
    "third to two thirds at every rate and RTT.",
    "rfc-mean-delay": "The mean queueing delay of L4S packets is at most 1 ms in every mix.",
    "rfc-tail-delay": "The 99th percentile of the queueing delay of L4S packets is at most 2 ms in "
    "every mix.",
    "rfc-no-losses": "Fewer than one L4S packet in a million is lost in every mix.",
    "rfc-heavy-load": "The 99th percentile of the queueing delay of twenty Prague flows is at most "
    "2 ms.",
    "rfc-without-classic": "The mean queueing delay of one Prague flow is at most 1 ms, alone and "
    "next to one CUBIC flow.",
    "rfc-no-priority": "With ten Prague and ten CUBIC flows, Prague's share of the goodput is a "
    "third to two thirds.",
    "rfc-full-capacity": "The utilisation is at least 95 % with one Prague flow, with one Prague "
    "and one CUBIC flow, and with twenty CUBIC flows.",
    "rfc-classic-tail": "The 99th percentile of the queueing delay of Classic packets with ten "
    "Prague and ten CUBIC flows is half to twice that with twenty CUBIC flows.",
    "rfc-no-starvation": "One CUBIC flow has at least half the mean goodput of twenty Prague "
    "flows.",
    "rfc-same-window": "The mean window of one Prague flow is a third to two thirds of the sum of "
    "the mean windows of this flow and one Reno flow.",
    "rfc-half-millisecond": "With ten Prague and ten CUBIC flows, the mean queueing delay of L4S "
    "packets is 0.25 to 1 ms.",
    "s1-advantage": "Prague's share in DualPI2 is at least 55 % at 10, 20 and 80 ms.",
    "s1-two-to-one": "Prague's share in DualPI2 is at least two thirds at 20 ms.",
    "s1-plain-queue": "Prague's share in pfifo is at most 45 % at 10, 20 and 80 ms.",
    "s1-fair-queue": "Prague's share in fq_codel is 45 to 55 % at 10, 20 and 80 ms. The authors' "
    "own AQM is not available here.",
    "s1-short-wins": "In DualPI2, the flow with 160 ms has at most a third of the goodput next to "
    "a flow with 10 ms, for every pair of congestion controls.",
    "s1-beyond-16": "Of two Prague flows in DualPI2, the 160 ms flow has a share of at most 1/17.",
    "s1-rtt-unfairness": "Share of the flow with 160 ms next to a flow with 10 ms: at least 5 "
    "percentage points lower with two Prague flows in DualPI2 than with two CUBIC flows in pfifo.",
    "s2-longer-spike": "A spike is the time in which the smoothed round-trip time is above the "
    "path's by more than 25 ms plus four packets' transmission time. After a step from 50 to "
    "25 Mbit/s in fq_codel at 80 ms, Prague's spike is at least twice as long as CUBIC's.",
    "s2-five-seconds": "After the step to 25 Mbit/s, Prague's spike in fq_codel lasts 2.5 to 10 s.",
    "s2-greatest": "After a step from 50 to 1 Mbit/s in fq_codel, Prague's greatest smoothed "
    "round-trip time is 4.346 s within a factor of two.",
    "s2-thirty-seconds": "After the step to 1 Mbit/s in fq_codel, Prague's spike lasts over 30 s.",
    "s2-half-utilisation": "Behind a link that sends in bursts of 4 ms, at 20 ms, the goodput of "
    "Prague in DualPI2 is 0.3 to 0.7 times that of CUBIC in fq_codel.",
    "s3-spikes": "In fq_codel, the 99th percentile of the queueing part of the round-trip time is "
    "at least twice as great for Prague as for CUBIC without ECN, at 20 and 80 ms.",
    "s5-tunnel": "Prague's share is at least 80 % next to a flow without ECN in fq_codel with one "
    "bucket, by which the authors emulate the tunnel.",
    "s6-dominate": "Prague's share is at least 80 % in six queues and next to four rivals.",
    "2407-some-scenarios": "Next to CUBIC without ECN, Prague's share is at most 20 % in a FIFO "
    "that marks ECN, and at least 80 % in CoDel.",
    "2411-harm": "Prague's share is at least 80 % next to CUBIC with ECN in CoDel (Prague harms), "
    "and at most 20 % next to BBRv1 in PIE that drops (Prague is harmed).",
    "2411-bbr3": "Prague's share next to BBRv3 with ECN is at most a third in DualPI2, and in "
    "CoDel that drops.",
    "2411-multiple": "One Prague flow next to ten CUBIC flows with ECN in CoDel has a share of at "
    "least 30 %; an equal share is 9 %.",
    "2603-dynamics": "A link that sends at the milliseconds of a trace, like Mahimahi, gives L4S "
    "packets at least 1.1 times the mean queueing delay of a link with the same rate: at 12 Mbit/s "
    "and 20 ms, and at 48 Mbit/s and 80 ms.",
}
"""How a claim is judged, by the claim's identifier."""
