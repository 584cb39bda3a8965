"""The thesis' findings (its sections 4.3.5, 6 and 7) as claims, under each reading's metrics.

Interpretation of words: *lowest*, *highest*, *better* and *outperforms* mean by any amount. If the
thesis calls other mechanisms *comparable* or *on par*, these are excluded from the comparison.
*About x %* means within 10 percentage points of x %. *More than x %* has no tolerance. *On par*
means within 5 %. *Aligned*, *consistent*, *the same* and *maximised by all* mean within 25 %,
because the thesis' own numbers agree within 25 % where it uses these words (except delays under
CBR: 45 %). *Reduced* means by at least 3 %. Where the text distinguishes long flows from short
flows, findings on completion times and delays concern only the long flows, because the text calls
the values of short flows the same. Values differ by orders of magnitude, so claims compare
geometric means, paired by seed.

Until 2026-11-23 the verdicts were from short runs of the reading *as meant*, with seeds 1 to 6. On
that day, after these verdicts, claims were changed and added; `WITHDRAWN` lists the replaced
claims. Since then the verdicts are from runs of the reading *as published* with seeds from
`FIRST_SEED` on, which no earlier run used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sojourn.papers.daqm import sweeps
from sojourn.papers.daqm.mechanisms import (
    C1,
    C2,
    C3,
    COBALT,
    CODEL,
    CONFIGURATIONS,
    EIGHT,
    FEATURES,
    FQ_CODEL,
    PIE,
    RED,
    RIVALS,
    SIXTEEN,
)
from sojourn.papers.daqm.terms import (
    AGAINST_RED,
    LOWER,
    PAR,
    Section,
    Terms,
    better,
    others,
    word,
)
from sojourn.papers.paper import Withdrawn
from sojourn.stats.cells import Cell
from sojourn.stats.claims import Claim, Every, MeanIn, Ratio
from sojourn.stats.estimate import Region
from sojourn.stats.verdict import Verdict

FROZEN = "2026-11-23"
"""Date when the claims were last changed."""
FIRST_SEED = 2001
"""First seed of the runs that judge the claims."""

_LONG, _SHORT, _UDP = ("ftp", "streaming"), ("http", "voip", "gaming"), ("voip", "gaming")
_FLOWS = (*_LONG, *_SHORT)
_MODELS = ("cbr", "vbr", "poisson-onoff", "pareto-onoff", "weibull-onoff")
_POISSON, _PARETO, _WEIBULL = _MODELS[2:]
_BUSY = ("cbr", _POISSON, _PARETO, _WEIBULL)
"""All models except VBR. The thesis states that HTTP under VBR is hardly congested."""


def features(t: Terms) -> tuple[Claim, ...]:
    """Returns the claims of section 6.1 (figure 6): HTTP at a constant rate, 16 mechanisms."""
    s, here = Section(t), {"flow": "http", "model": "cbr"}
    dervs = (*FEATURES, *CONFIGURATIONS)
    s.add(
        "http-shortest-all",
        "HTTP, constant rate: every dAQM has a shorter sojourn time and queue than every rival",
        "all 11 dAQMs outperformed the other state-of-the-art AQM approaches in terms of achieving "
        "the minimal sojourn time and queue length",
        (s.least(metric, d, RIVALS, 6, here) for metric in (t.sojourn, t.queue) for d in dervs),
    )
    s.add(
        "http-delay-c2",
        "HTTP, constant rate: dAQM_c2's delay is within 5 % of COBALT's, and below all others'",
        "dAQM_c2 achieved the lowest delay, on par with COBALT",
        s.least(t.delay, C2, others(COBALT, C2, among=SIXTEEN), 6, here),
        s.ratio(t.delay, C2, COBALT, Region(1 / (1 + PAR), 1 + PAR), 6, here),
    )
    s.add(
        "http-loss-c1",
        "HTTP, constant rate: dAQM_c1 loses least if RED is left out",
        "dAQM_c1 attained the lowest PLR, comparable to RED",
        s.least(t.loss, C1, others(RED, C1, among=SIXTEEN), 6, here),
    )
    s.add(
        "http-throughput",
        "HTTP, constant rate: all sixteen mechanisms have the same throughput, within 25 %",
        "all AQMs managed to maximize throughput",
        s.same(t.throughput, SIXTEEN, 6, here),
    )
    s.add(
        "http-c3-shortest",
        "HTTP, constant rate: dAQM_c3 has the shortest sojourn time and queue of all dAQMs",
        "dAQM_c3 obtained the lowest sojourn time and queue length among all configurations",
        (s.least(metric, C3, others(C3, among=dervs), 6, here) for metric in (t.sojourn, t.queue)),
    )
    s.add(
        "http-c1-extremes",
        "HTTP, constant rate: dAQM_c1 has the least loss and the longest queue of all dAQMs",
        "dAQM_c1 has obtained the lowest PLR and highest queue length among all",
        s.least(t.loss, C1, others(C1, among=dervs), 6, here),
        s.most(t.queue, C1, others(C1, among=dervs), 6, here),
    )
    s.add(
        "http-delay-c2-daqm",
        "HTTP, constant rate: dAQM_c2 has the lowest delay of all dAQMs",
        "dAQM_c2 has obtained the lowest delay",
        s.least(t.delay, C2, others(C2, among=dervs), 6, here),
    )
    short = tuple(FEATURES[i - 1] for i in (5, 6, 8))
    s.add(
        "http-features-sojourn", "HTTP, constant rate: features 5, 6 and 8, each alone, have "
        "shorter sojourn times than the other features",
        "features 5, 6, and 8 delivered the lowest sojourn time",
        (s.least(t.sojourn, f, others(*short, among=FEATURES), 6, here) for f in short),
    )  # fmt: skip
    s.add(
        "http-features-loss",
        "HTTP, constant rate: feature 1 alone loses less than every other feature alone",
        "feature 1 has the lowest PLR",
        s.least(t.loss, FEATURES[0], FEATURES[1:], 6, here),
    )
    return tuple(s.made)


def red_over_time(t: Terms) -> tuple[Claim, ...]:
    """Returns the claims of section 6.1.1 (figure 7): streaming at a constant rate over time."""
    s, here = Section(t), {"flow": "streaming", "model": "cbr"}
    s.add(
        "figure-7-red",
        "Streaming, constant rate: RED's sojourn time and queue are the longest",
        "the worst performance (highest sojourn time and queue length) is given by RED",
        (s.most(metric, RED, others(RED), 10, here) for metric in (t.sojourn, t.queue)),
    )
    if t.first_drop:
        s.made.append(
            MeanIn(
                id="figure-7-28-s", text="RED first drops a packet after 28 s, within a fifth",
                metric=t.first_drop, region=Region(28 * 0.8, 28 * 1.2),
                published="(0 s to 28 s) only increasing until the RED drop mechanism kicks in",
                cell={**t.at(10, **here), "mechanism": RED},
            )
        )  # fmt: skip
    return tuple(s.made)


def flows(t: Terms) -> tuple[Claim, ...]:
    """Returns the claims of section 6.2.1 (figure 8): five kinds of flow, Poisson traffic."""
    s = Section(t)

    def over(flows: tuple[str, ...], make: Callable[[Cell], Claim]) -> list[Claim]:
        return [make({"flow": flow, "model": _POISSON}) for flow in flows]

    def below(metric: str, who: str, flows: tuple[str, ...], *rivals: str) -> list[Claim]:
        return over(flows, lambda cell: s.least(metric, who, rivals, 8, cell))

    def above(metric: str, who: str, flows: tuple[str, ...], *rivals: str) -> list[Claim]:
        return over(flows, lambda cell: s.most(metric, who, rivals, 8, cell))

    s.add(
        "poisson-loss-c1",
        "Poisson: dAQM_c1 loses least if RED and FQ-CoDel are left out",
        "dAQM_c1 has the lowest PLR, comparable to both RED and FQ-CoDel",
        below(t.loss, C1, _FLOWS, *others(RED, FQ_CODEL, C1)),
    )
    s.add(
        "poisson-fct-c1",
        "Poisson, long flows: dAQM_c1 completes sooner than all rivals except RED",
        "outperformed PIE, CoDel, FQ-CoDel, and COBALT (FCT)",
        below(t.completion, C1, _LONG, PIE, CODEL, FQ_CODEL, COBALT),
    )
    s.add(
        "poisson-delay-c1",
        "Poisson, long flows: dAQM_c1's delay is below RED's and PIE's and above the other rivals'",
        "outperformed by CoDel, FQ-CoDel, and COBALT, but lower than RED and PIE",
        below(t.delay, C1, _LONG, RED, PIE),
        above(t.delay, C1, _LONG, CODEL, FQ_CODEL, COBALT),
    )
    s.add(
        "poisson-c2",
        "Poisson: dAQM_c2 loses less than PIE, CoDel and COBALT, and its long flows complete "
        "sooner than those of all rivals except RED",
        "a relatively low PLR, better than PIE, CoDel, and COBALT, and a relatively low FCT, "
        "better than PIE, CoDel, FQ-CoDel, and COBALT",
        below(t.loss, C2, _FLOWS, PIE, CODEL, COBALT),
        below(t.completion, C2, _LONG, PIE, CODEL, FQ_CODEL, COBALT),
    )
    s.add(
        "poisson-queue-c3",
        "Poisson: dAQM_c3 has the shortest queue if PIE, CoDel and COBALT are left out",
        "dAQM_c3 presents the lowest queue length comparable to PIE, CoDel, and COBALT",
        below(t.queue, C3, _FLOWS, *others(PIE, CODEL, COBALT, C3)),
    )
    s.add(
        "poisson-sojourn-c3",
        "Poisson: dAQM_c3's sojourn time is below RED's and FQ-CoDel's and above COBALT's",
        "comparable to PIE and CoDel, but not as low as COBALT, yet, it outperforms RED and "
        "FQ-CoDel",
        below(t.sojourn, C3, _FLOWS, RED, FQ_CODEL),
        above(t.sojourn, C3, _FLOWS, COBALT),
    )
    s.add(
        "poisson-fct-c3",
        "Poisson, long flows: dAQM_c3 completes sooner than CoDel, FQ-CoDel and COBALT",
        "in terms of lower FCT, it surpasses CoDel, FQ-CoDel, and COBALT",
        below(t.completion, C3, _LONG, CODEL, FQ_CODEL, COBALT),
    )
    s.add(
        "poisson-loss-c3",
        "Poisson: dAQM_c3 loses less than PIE, CoDel and COBALT",
        "its PLR is more favorable than that of PIE, CoDel, and COBALT",
        below(t.loss, C3, _FLOWS, PIE, CODEL, COBALT),
    )
    s.add(
        "poisson-delay-c3",
        "Poisson, long flows: dAQM_c3's delay is below RED's and PIE's and above the other rivals'",
        "outperformed by CoDel, FQ-CoDel, and COBALT, but lower than RED and PIE",
        below(t.delay, C3, _LONG, RED, PIE),
        above(t.delay, C3, _LONG, CODEL, FQ_CODEL, COBALT),
    )
    s.add(
        "poisson-throughput-long", "Poisson, long flows: every dAQM's throughput is at least 3 % "
        "below the rivals' mean",
        "across all dAQM configurations, there is a noticeable reduction in throughput for heavy "
        "traffic and long flows traffic",
        (
            Ratio(id="", text=f"{d}, {flow}", metric=t.throughput, region=Region(high=0.97),
                  a={**t.at(8, flow=flow, model=_POISSON), "mechanism": d},
                  b={**t.at(8, flow=flow, model=_POISSON), "mechanism": RIVALS}, each=t.each)
            for flow in _LONG for d in CONFIGURATIONS
        ),
    )  # fmt: skip
    s.add(
        "poisson-throughput-even",
        "Poisson, short flows: all mechanisms have the same throughput, within 25 %",
        "under short flows traffic the throughput is more consistent across all AQM techniques",
        over(_SHORT, lambda cell: s.same(t.throughput, EIGHT, 8, cell)),
    )
    s.add(
        "poisson-fct-short",
        "Poisson, short flows: all mechanisms have the same completion time, within 25 %",
        "the FCTs are roughly the same in the short flows, for Gaming, VoIP, and HTTP",
        over(_SHORT, lambda cell: s.same(t.completion, EIGHT, 8, cell)),
    )
    s.add(
        "poisson-red",
        "Poisson: RED has the longest queue and sojourn time",
        "highest queue length and sojourn time",
        above(t.queue, RED, _FLOWS, *others(RED)),
        above(t.sojourn, RED, _FLOWS, *others(RED)),
    )
    s.add(
        "poisson-fct-red",
        "Poisson, long flows: RED completes soonest",
        "RED: has the lowest FCT",
        below(t.completion, RED, _LONG, *others(RED)),
    )
    s.add(
        "poisson-delay-pie",
        "Poisson, long flows: PIE has the highest delay",
        "PIE: the highest delay",
        above(t.delay, PIE, _LONG, *others(PIE)),
    )
    s.add(
        "poisson-throughput-codel",
        "Poisson, long flows: CoDel has the highest throughput",
        "CoDel: highest throughput",
        above(t.throughput, CODEL, _LONG, *others(CODEL)),
    )
    s.add(
        "poisson-fct-fq",
        "Poisson, long flows: FQ-CoDel completes last",
        "FQ-CoDel: the highest FCT",
        above(t.completion, FQ_CODEL, _LONG, *others(FQ_CODEL)),
    )
    s.add(
        "poisson-sojourn-cobalt",
        "Poisson: COBALT has the shortest sojourn time",
        "COBALT: lowest sojourn time",
        below(t.sojourn, COBALT, _FLOWS, *others(COBALT)),
    )
    s.add(
        "poisson-delay-cobalt",
        "Poisson, long flows: COBALT has the lowest delay",
        "COBALT: has the lowest delay",
        below(t.delay, COBALT, _LONG, *others(COBALT)),
    )
    s.add(
        "poisson-loss-cobalt",
        "Poisson: COBALT loses most if PIE and CoDel are left out",
        "COBALT: highest PLR, together with PIE and CoDel",
        above(t.loss, COBALT, _FLOWS, *others(PIE, CODEL, COBALT)),
    )
    s.add(
        "tcp-udp", "Poisson: dAQM's sojourn time divided by RED's is smaller with TCP than UDP",
        "the dAQM algorithm is more efficient when employed with the TCP as opposed to the UDP",
        (
            Ratio(id="", text=d, metric=AGAINST_RED, region=LOWER, each=t.each, scale="geometric",
                  a={**t.at(8, flow=("ftp", "streaming", "http"), model=_POISSON), "mechanism": d},
                  b={**t.at(8, flow=_UDP, model=_POISSON), "mechanism": d})
            for d in CONFIGURATIONS
        ),
    )  # fmt: skip
    return tuple(s.made)


def models(t: Terms) -> tuple[Claim, ...]:
    """Returns the claims of sections 6.2.2 and 7 (figures 9 and 10): five traffic models."""
    s = Section(t)
    figure = {"http": 9, "streaming": 10}

    def cells(flow: str, models: tuple[str, ...]) -> list[tuple[int, Cell]]:
        return [(figure[flow], {"flow": flow, "model": model}) for model in models]

    def below(
        metric: str, who: str, flow: str, models: tuple[str, ...], *rivals: str
    ) -> list[Claim]:
        return [s.least(metric, who, rivals, n, cell) for n, cell in cells(flow, models)]

    def above(
        metric: str, who: str, flow: str, models: tuple[str, ...], *rivals: str
    ) -> list[Claim]:
        return [s.most(metric, who, rivals, n, cell) for n, cell in cells(flow, models)]

    s.add(
        "http-models-align",
        "HTTP: all mechanisms have the same delay, throughput and completion time under each "
        "model, within 25 %",
        "the delay, throughput, and FCT performance align among all AQMs",
        (
            s.same(metric, EIGHT, n, cell)
            for metric in (t.delay, t.throughput, t.completion)
            for n, cell in cells("http", _MODELS)
        ),
    )
    s.add(
        "http-busy-loss-c1",
        "HTTP: dAQM_c1 loses least under each model except VBR if RED is left out",
        "dAQM_c1 has the lowest PLR, comparable to RED",
        below(t.loss, C1, "http", _BUSY, *others(RED, C1)),
    )
    s.add(
        "http-models-sojourn-c1", "HTTP except VBR: dAQM_c1's sojourn time is above COBALT's and "
        "below RED's, PIE's and FQ-CoDel's",
        "on par with CoDel, slightly higher than COBALT, but outperforms RED, PIE, and FQ-CoDel",
        below(t.sojourn, C1, "http", _BUSY, RED, PIE, FQ_CODEL),
        above(t.sojourn, C1, "http", _BUSY, COBALT),
    )  # fmt: skip
    s.add(
        "http-models-sojourn-c2", "HTTP except VBR: dAQM_c2's sojourn time is below RED's and "
        "PIE's and above CoDel's and COBALT's",
        "comparable to FQ-CoDel, lower than RED and PIE, but higher than CoDel and COBALT",
        below(t.sojourn, C2, "http", _BUSY, RED, PIE),
        above(t.sojourn, C2, "http", _BUSY, CODEL, COBALT),
    )  # fmt: skip
    s.add(
        "http-models-loss-c2", "HTTP except VBR: dAQM_c2 loses less than PIE, CoDel and COBALT "
        "and more than RED and FQ-CoDel",
        "lower than PIE, CoDel, and COBALT, but higher than RED and FQ-CoDel",
        below(t.loss, C2, "http", _BUSY, PIE, CODEL, COBALT),
        above(t.loss, C2, "http", _BUSY, RED, FQ_CODEL),
    )  # fmt: skip
    s.add(
        "http-busy-queue-c3",
        "HTTP: dAQM_c3 has the shortest queue under each model except VBR",
        "dAQM_c3 has the lowest queue length",
        below(t.queue, C3, "http", _BUSY, *others(C3)),
    )
    s.add(
        "http-models-sojourn-c3", "HTTP except VBR: dAQM_c3's sojourn time is above COBALT's and "
        "below RED's, PIE's and FQ-CoDel's",
        "on par with CoDel, higher than COBALT, but surpassing RED, PIE, and FQ-CoDel",
        below(t.sojourn, C3, "http", _BUSY, RED, PIE, FQ_CODEL),
        above(t.sojourn, C3, "http", _BUSY, COBALT),
    )  # fmt: skip
    s.add(
        "http-models-red",
        "HTTP except VBR: RED has the longest queue; under Poisson dAQM_c3's is about 80 % shorter",
        "RED has the highest queue length, especially in Poisson-distributed flow, about 80% "
        "higher than dAQM_c3",
        above(t.queue, RED, "http", _BUSY, *others(RED)),
        s.ratio(t.queue, C3, RED, better(80), 9, {"flow": "http", "model": _POISSON}),
    )
    s.add(
        "http-models-sojourn-red",
        "HTTP: RED has the longest sojourn time under CBR and Pareto",
        "the highest sojourn time under CBR traffic and Pareto-distributed traffic",
        above(t.sojourn, RED, "http", ("cbr", _PARETO), *others(RED)),
    )
    s.add(
        "http-models-sojourn-pie",
        "HTTP: PIE has the longest sojourn time under Poisson",
        "the sojourn time is the highest in Poisson-distributed traffic",
        above(t.sojourn, PIE, "http", (_POISSON,), *others(PIE)),
    )
    s.add(
        "http-models-sojourn-cobalt",
        "HTTP except VBR: COBALT has the shortest sojourn time",
        "COBALT has the lowest sojourn time",
        below(t.sojourn, COBALT, "http", _BUSY, *others(COBALT)),
    )
    s.add(
        "http-models-loss-cobalt",
        "HTTP: COBALT loses most under each model except VBR",
        "COBALT also has the worst PLR among all distributions",
        above(t.loss, COBALT, "http", _BUSY, *others(COBALT)),
    )
    s.add(
        "http-cbr-sojourn-c3",
        "HTTP, constant rate: dAQM_c3's sojourn time is below every rival's",
        "dAQM_c3 outperformed all other state-of-the-art AQMs in achieving the lowest sojourn time "
        "for CBR HTTP traffic",
        below(t.sojourn, C3, "http", ("cbr",), *RIVALS),
    )
    s.add(
        "http-weibull-sojourn-c3",
        "HTTP, Weibull: dAQM_c3's sojourn time is above RED's, PIE's, CoDel's and COBALT's",
        "it fell behind RED, PIE, CoDel, and COBALT in managing Weibull-distributed HTTP traffic",
        above(t.sojourn, C3, "http", (_WEIBULL,), RED, PIE, CODEL, COBALT),
    )
    s.add(
        "streaming-loss-c1",
        "Streaming: dAQM_c1 loses less than every rival under each model",
        "dAQM_c1 has the lowest PLR and outperforms all other state-of-the-art AQMs among all "
        "distributions",
        below(t.loss, C1, "streaming", _MODELS, *RIVALS),
    )
    s.add(
        "streaming-fct-c1",
        "Streaming: dAQM_c1 completes after RED and before CoDel, FQ-CoDel and COBALT",
        "higher than RED, on par with PIE, but outperforms CoDel, FQ-CoDel, and COBALT",
        above(t.completion, C1, "streaming", _MODELS, RED),
        below(t.completion, C1, "streaming", _MODELS, CODEL, FQ_CODEL, COBALT),
    )
    s.add(
        "streaming-loss-c2",
        "Streaming: dAQM_c2 loses less than PIE, CoDel, FQ-CoDel and COBALT",
        "outperforms PIE, CoDel, FQ-CoDel and COBALT among all distributions",
        below(t.loss, C2, "streaming", _MODELS, PIE, CODEL, FQ_CODEL, COBALT),
    )
    s.add(
        "streaming-fct-c2",
        "Streaming: dAQM_c2 completes after RED and PIE and before the other rivals",
        "lower than CoDel, FQ-CoDel, and COBALT, but higher than RED and PIE",
        above(t.completion, C2, "streaming", _MODELS, RED, PIE),
        below(t.completion, C2, "streaming", _MODELS, CODEL, FQ_CODEL, COBALT),
    )
    s.add(
        "streaming-queue-c3",
        "Streaming: dAQM_c3 has the shortest queue under Weibull and Pareto",
        "dAQM_c3 has the smallest queue length under Weibull and Pareto distributions",
        below(t.queue, C3, "streaming", (_WEIBULL, _PARETO), *others(C3)),
    )
    s.add(
        "streaming-sojourn-c3",
        "Streaming: dAQM_c3's sojourn time is below RED's and FQ-CoDel's and above COBALT's",
        "on par with PIE, CoDel, higher than COBALT, but surpassing RED, and FQ-CoDel",
        below(t.sojourn, C3, "streaming", _MODELS, RED, FQ_CODEL),
        above(t.sojourn, C3, "streaming", _MODELS, COBALT),
    )
    s.add(
        "streaming-loss-c3",
        "Streaming: dAQM_c3 loses more than RED and FQ-CoDel and less than PIE, CoDel and COBALT",
        "higher than RED and FQ-CoDel, but outperforms PIE, CoDel, and COBALT",
        above(t.loss, C3, "streaming", _MODELS, RED, FQ_CODEL),
        below(t.loss, C3, "streaming", _MODELS, PIE, CODEL, COBALT),
    )
    s.add(
        "streaming-fct-c3",
        "Streaming: dAQM_c3 completes after RED and PIE and before the other rivals",
        "FCT, higher than RED and PIE, outperforms CoDel, FQ-CoDel, and COBALT",
        above(t.completion, C3, "streaming", _MODELS, RED, PIE),
        below(t.completion, C3, "streaming", _MODELS, CODEL, FQ_CODEL, COBALT),
    )
    s.add(
        "streaming-delay-c3",
        "Streaming: dAQM_c3's delay is above CoDel's, FQ-CoDel's and COBALT's",
        "has a higher delay than CoDel, FQ-CoDel, and COBALT",
        above(t.delay, C3, "streaming", _MODELS, CODEL, FQ_CODEL, COBALT),
    )
    s.add(
        "streaming-queue-red",
        "Streaming: RED has the longest queue under each model",
        "RED has the highest queue length among all distributions",
        above(t.queue, RED, "streaming", _MODELS, *others(RED)),
    )
    s.add(
        "streaming-queue-red-c3", "Streaming: dAQM_c3's queue is shorter than RED's by more than "
        "70 % under Weibull, about 85 % under Pareto and VBR, and about 80 % under CBR",
        "more than 70% worse than dAQM_c3 under the Weibull distribution, about 85% worse under "
        "the Pareto distribution and VBR, and about 80% worst in CBR traffic",
        (
            s.ratio(t.queue, C3, RED, region, 10, {"flow": "streaming", "model": model})
            for model, region in (
                (_WEIBULL, better(70, more=True)), (_PARETO, better(85)), ("vbr", better(85)),
                ("cbr", better(80)),
            )
        ),
    )  # fmt: skip
    s.add(
        "streaming-queue-pie",
        "Streaming: PIE has the shortest queue under Poisson",
        "it has the lowest queue length under Poisson distributed traffic",
        below(t.queue, PIE, "streaming", (_POISSON,), *others(PIE)),
    )
    s.add(
        "streaming-queue-cobalt",
        "Streaming: COBALT has the shortest queue under VBR and CBR",
        "it is the lowest under VBR and CBR traffic",
        below(t.queue, COBALT, "streaming", ("vbr", "cbr"), *others(COBALT)),
    )
    s.add(
        "streaming-sojourn-cobalt",
        "Streaming: COBALT has the shortest sojourn time under each model",
        "COBALT has the lowest sojourn time",
        below(t.sojourn, COBALT, "streaming", _MODELS, *others(COBALT)),
    )
    s.add(
        "streaming-most-cobalt",
        "Streaming: COBALT has the highest throughput under CBR",
        "COBALT has the maximum throughput, especially under CBR traffic",
        above(t.throughput, COBALT, "streaming", ("cbr",), *others(COBALT)),
    )
    s.add(
        "streaming-delay-red",
        "Streaming: RED has the highest delay under CBR and VBR",
        "RED gives the worst performance in Streaming, especially under CBR and VBR flow",
        above(t.delay, RED, "streaming", ("cbr", "vbr"), *others(RED)),
    )
    s.add(
        "streaming-delay-cobalt",
        "Streaming: COBALT has the lowest delay and CoDel the second lowest",
        "CoDel gives lower delay and better performance, then COBALT gives the best performance",
        below(t.delay, COBALT, "streaming", _MODELS, *others(COBALT)),
        below(t.delay, CODEL, "streaming", _MODELS, *others(CODEL, COBALT)),
    )
    s.add(
        "pareto-c3",
        "Pareto: dAQM_c3 has the shortest queue, and the shortest sojourn time if COBALT is left "
        "out",
        "superior effectiveness under Pareto distribution, for both short and long flows, in "
        "obtaining the minimal queue length and sojourn time",
        (
            s.least(metric, C3, others(*rest, C3), figure[flow], {"flow": flow, "model": _PARETO})
            for flow in ("http", "streaming")
            for metric, rest in ((t.queue, ()), (t.sojourn, (COBALT,)))
        ),
    )
    return tuple(s.made)


UNIFORM, BY_FEATURE = "0.4 for all", "0.2 to 0.5 by derivative"


def uniform(t: Terms) -> tuple[Claim, ...]:
    """Returns the claim of section 4.3.5: a common drop rate for all features is better."""
    return (
        Every(
            id="uniform-rate",
            text="HTTP: queues and sojourn times are shorter with one drop rate for all features "
            "than with one for each derivative",
            published="noticeable improvement when a uniform drop condition was applied across all "
            "eight traffic features",
            claims=tuple(
                Ratio(id="", text=f"{d}'s {word(metric)}", metric=metric, region=LOWER,
                      scale="geometric", each=t.each,
                      a={"rates": UNIFORM, "mechanism": d},
                      b={"rates": BY_FEATURE, "mechanism": d})
                for metric in (t.sojourn, t.queue) for d in CONFIGURATIONS
            ),
        ),
    )  # fmt: skip


SECTIONS: Mapping[str, Callable[[Terms], tuple[Claim, ...]]] = {
    "features": features,
    "time": red_over_time,
    "flows": flows,
    "models": models,
    "drop-rates": sweeps.drop_rates,
    "loads": sweeps.loads,
    "payloads": sweeps.payloads,
}
"""Functions that return a section's claims, by the name of the part with the section's runs.

The names are those of the parts on the switch, as meant.
"""


def made(terms: Terms) -> tuple[Claim, ...]:
    """Returns the claims of all sections with figures, in the terms of a reading."""
    return tuple(claim for section in SECTIONS.values() for claim in section(terms))


_MERGED = "the thesis states this about two metrics in one sentence; replaced by one claim: {}"
_MARGIN = (
    "the margin of 5 % was too strict: values that the thesis calls the same differ by 22 % and "
    "more; replaced by a claim with a margin of 25 %: {}"
)
_IDLE = (
    "the thesis says of HTTP under VBR that it is hardly congested and all mechanisms are alike; "
    "replaced by a claim without VBR: {}"
)
_NOT: Verdict = "does not hold"
_OPEN: Verdict = "cannot be told"

#: The verdicts of withdrawn claims are from quick runs in reading *as meant*: 3 s, seeds 1 to 6.
WITHDRAWN = tuple(
    Withdrawn(id=name, text=text, date=FROZEN, verdict=verdict, reason=reason)
    for name, text, verdict, reason in (
        ("http-sojourn-all", "Every dAQM has a shorter sojourn time than every rival", _NOT,
         _MERGED.format("http-shortest-all")),
        ("http-queue-all", "Every dAQM has a shorter queue than every rival", _NOT,
         _MERGED.format("http-shortest-all")),
        ("http-throughput-same", "All sixteen mechanisms have the same throughput, within 5 %",
         _NOT, _MARGIN.format("http-throughput")),
        ("poisson-queue-red", "RED has the longest queue", "holds", _MERGED.format("poisson-red")),
        ("poisson-throughput-short", ("All mechanisms have the same throughput of HTTP, VoIP and "
         "gaming, within 5 %"), _NOT, _MARGIN.format("poisson-throughput-even")),
        ("http-models-throughput", ("HTTP: all mechanisms have the same throughput under each "
         "model, within 5 %"), _NOT, _MARGIN.format("http-models-align")),
        ("http-models-delay", ("HTTP: all mechanisms have the same delay under each model, "
         "within 5 %"), _NOT, _MARGIN.format("http-models-align")),
        ("http-models-loss-c1", ("HTTP: dAQM_c1 loses least under each model if RED is left "
         "out"), _NOT, _IDLE.format("http-busy-loss-c1")),
        ("http-models-queue-c3", "HTTP: dAQM_c3 has the shortest queue under each model", "holds",
         _IDLE.format("http-busy-queue-c3")),
        ("streaming-throughput-cobalt", ("Streaming, CBR: COBALT has the highest throughput, by "
         "at least 5 %"), _NOT, "the thesis states no 5 %; replaced by streaming-most-cobalt"),
        ("pareto-sojourn-c3", ("Pareto: dAQM_c3's sojourn time is below RED's, PIE's and "
         "FQ-CoDel's"), "holds",
         "the thesis' sentence is about queue and sojourn time; replaced by pareto-c3"),
        ("drop-rate-queue", "The queue shrinks as dAQM's drop rate grows", _OPEN,
         _MERGED.format("drop-rate-shorter")),
        ("drop-rate-sojourn", "The sojourn time shrinks as dAQM's drop rate grows", _OPEN,
         _MERGED.format("drop-rate-shorter")),
        ("size-queue", "Queues, in packets, shrink as packets grow", _NOT,
         ("not possible on a switch whose ports' rates grow with the packets; replaced by "
         "size-falls")),
        ("load-fct", "At twice the capacity COBALT completes HTTP and FTP flows soonest", _NOT,
         ("the thesis states by how much, and names dAQM_c3 too; replaced by load-fct-http and "
         "load-fct-ftp")),
    )
)  # fmt: skip
