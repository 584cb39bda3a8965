"""Claims of section 6.3 of the thesis: drop rates, offered loads, packet sizes."""

from __future__ import annotations

from sojourn.papers.daqm.mechanisms import (
    C1,
    C2,
    C3,
    COBALT,
    CODEL,
    CONFIGURATIONS,
    EIGHT,
    FQ_CODEL,
    PIE,
    RED,
    RIVALS,
)
from sojourn.papers.daqm.terms import HIGHER, LOWER, PAR, Section, Terms, better, others
from sojourn.stats.cells import Cell
from sojourn.stats.claims import Claim
from sojourn.stats.estimate import Region

_FIRST, _LAST = 0.01, 0.99


def drop_rates(t: Terms) -> tuple[Claim, ...]:
    """Returns the claims of section 6.3.1 (figures 11 and 12): dAQM's drop rate."""
    s = Section(t)
    places: tuple[tuple[int, Cell], ...] = ((11, {"flow": "http"}), (12, {"flow": "ftp"}))

    def trend(metric: str, region: Region) -> list[Claim]:
        return [
            s.moves(metric, d, n, cell, "drop_rate", (_FIRST, _LAST), region)
            for n, cell in places
            for d in CONFIGURATIONS
        ]

    http, ftp = ({**cell, "drop_rate": _LAST} for _, cell in places)
    s.add(
        "drop-rate-loss",
        "Every dAQM loses more at a drop rate of 99 % than at 1 %",
        "as the drop rate variable increases, leading to an increase in the PLR",
        trend(t.loss, HIGHER),
    )
    s.add(
        "drop-rate-shorter",
        "Every dAQM's queue and sojourn time are shorter at a drop rate of 99 % than at 1 %",
        "concurrently, both queue length and sojourn time decrease",
        trend(t.queue, LOWER),
        trend(t.sojourn, LOWER),
    )
    s.add(
        "drop-rate-delay",
        "Every dAQM's delay is lower at a drop rate of 99 % than at 1 %",
        "the trend of the delay is decreasing while dAQM's drop rate is increasing",
        trend(t.delay, LOWER),
    )
    s.add(
        "drop-rate-loss-c1",
        "At a drop rate of 99 % dAQM_c1 loses least; with HTTP RED is left out, and dAQM_c1 loses "
        "over 60 % less than PIE; with FTP it loses over 45 % less than COBALT",
        "dAQM_c1 is the lowest in both scenarios, over 60% better than PIE in the short flows; and "
        "more than 45% better than COBALT in the long flow",
        s.least(t.loss, C1, others(RED, C1), 11, http),
        s.least(t.loss, C1, others(C1), 12, ftp),
        s.ratio(t.loss, C1, PIE, better(60, more=True), 11, http),
        s.ratio(t.loss, C1, COBALT, better(45, more=True), 12, ftp),
    )
    s.add(
        "drop-rate-queue-http",
        "HTTP, drop rate of 99 %: every dAQM's queue is shorter than every rival's, and over 90 % "
        "shorter than RED's",
        "the lowest in short flows, over 90% better than the worst performance given by RED",
        (s.least(t.queue, d, RIVALS, 11, http) for d in CONFIGURATIONS),
        (s.ratio(t.queue, d, RED, better(90, more=True), 11, http) for d in CONFIGURATIONS),
    )
    s.add(
        "drop-rate-sojourn-best", "At a drop rate of 99 % every dAQM's sojourn time is below every "
        "rival's; it is about 95 % below RED's with HTTP, and 90 to 97 % with FTP",
        "the lowest in short flows as well as in the long flows, about 95% and 90% to 97% better "
        "than RED",
        (s.least(t.sojourn, d, RIVALS, n, cell) for d in CONFIGURATIONS
         for n, cell in ((11, http), (12, ftp))),
        (s.ratio(t.sojourn, d, RED, better(95), 11, http) for d in CONFIGURATIONS),
        (s.ratio(t.sojourn, d, RED, Region(0.03, 0.1), 12, ftp) for d in CONFIGURATIONS),
    )  # fmt: skip
    s.add(
        "drop-rate-throughput", "FTP: every dAQM's throughput is at least 3 % lower at a drop rate "
        "of 99 % than at 1 %",
        "in the long flows, dAQMs had a reduced throughput in its trend with increasing drop rate",
        (s.moves(t.throughput, d, 12, {"flow": "ftp"}, "drop_rate", (_FIRST, _LAST),
                 Region(high=0.97)) for d in CONFIGURATIONS),
    )  # fmt: skip
    s.add(
        "drop-rate-throughput-ftp",
        "FTP, drop rate of 99 %: every dAQM has more throughput than all rivals except COBALT, and "
        "less than COBALT; dAQM_c1 and dAQM_c3 have over 40 % more than FQ-CoDel",
        "outperformed RED, PIE, CoDel, and FQ-CoDel, with dAQM_c1 and dAQM_c3 being over 40% "
        "better than FQ-CoDel, however, slightly outperformed [by] COBALT",
        (s.most(t.throughput, d, others(COBALT, among=RIVALS), 12, ftp) for d in CONFIGURATIONS),
        (s.ratio(t.throughput, d, FQ_CODEL, Region(low=1.4), 12, ftp) for d in (C1, C3)),
        (s.least(t.throughput, d, (COBALT,), 12, ftp) for d in CONFIGURATIONS),
    )
    s.add(
        "drop-rate-fct",
        "FTP, drop rate of 99 %: every dAQM's completion time is below every rival's, and about "
        "50 % below RED's",
        "dAQMs obtained the lowest FCT across all AQMs, giving performance about 50% better than "
        "the worst AQM, RED",
        (s.least(t.completion, d, RIVALS, 12, ftp) for d in CONFIGURATIONS),
        (s.ratio(t.completion, d, RED, better(50), 12, ftp) for d in CONFIGURATIONS),
    )
    s.add(
        "drop-rate-delay-best",
        "Drop rate of 99 %: with HTTP dAQM_c2's delay is the lowest if COBALT is left out, and "
        "over 35 % below PIE's; with FTP dAQM_c1's delay is the second lowest after COBALT's, and "
        "about 55 % below RED's",
        "dAQM_c2 has obtained the lowest delay together with COBALT, more than 35% effective than "
        "PIE; the best performance was given by COBALT, followed by dAQM_c1, about 55% than RED",
        s.least(t.delay, C2, others(COBALT, C2), 11, http),
        s.ratio(t.delay, C2, PIE, better(35, more=True), 11, http),
        s.least(t.delay, COBALT, others(COBALT), 12, ftp),
        s.least(t.delay, C1, others(COBALT, C1), 12, ftp),
        s.ratio(t.delay, C1, RED, better(55), 12, ftp),
    )
    return tuple(s.made)


def loads(t: Terms) -> tuple[Claim, ...]:
    """Returns the claims of section 6.3.2 (figures 13 and 14): offered loads, constant rates."""
    s = Section(t)
    http: Cell = {"flow": "http", **t.full["http"]}
    ftp: Cell = {"flow": "ftp", **t.full["ftp"]}
    s.add(
        "load-throughput",
        "Full load: all mechanisms except COBALT have the same throughput, within 25 %; COBALT has "
        "the highest",
        "roughly the same across all AQMs in both scenarios, except that COBALT gives a slightly "
        "higher throughput",
        *(
            part
            for n, cell in ((13, http), (14, ftp))
            for part in (
                s.same(t.throughput, others(COBALT), n, cell),
                s.most(t.throughput, COBALT, others(COBALT), n, cell),
            )
        ),
    )
    s.add(
        "load-fct-http",
        "HTTP, full load: COBALT's completion time is over 15 % below all others'",
        "a performance that is more than 15% better (at 100% load) in achieving a lower FCT "
        "compared to other AQMs",
        s.least(t.completion, COBALT, others(COBALT), 13, http, margin=0.15),
    )
    s.add(
        "load-fct-ftp",
        "FTP, full load: dAQM_c3's completion time is the second lowest if FQ-CoDel is left out; "
        "it is about 10 % below RED's, and COBALT's is over 10 % below dAQM_c3's",
        "dAQM_c3 gives the second-lowest FCT, on par with FQ-CoDel. It outperforms RED by "
        "approximately 10%, whereas COBALT surpasses dAQM_c3 by more than 10%",
        s.least(t.completion, C3, others(FQ_CODEL, COBALT, C3), 14, ftp),
        s.ratio(t.completion, C3, RED, better(10), 14, ftp),
        s.ratio(t.completion, COBALT, C3, better(10, more=True), 14, ftp),
    )
    s.add(
        "load-short-http",
        "HTTP, full load: the queues of dAQM_c1 and dAQM_c3 are about 85 % shorter than RED's, "
        "their sojourn times about 95 % shorter",
        "about 85% better in terms of obtaining the lowest queue length, and about 95% better in "
        "obtaining the lowest sojourn time, compared to the poorest performance given by RED",
        (s.ratio(t.queue, d, RED, better(85), 13, http) for d in (C1, C3)),
        (s.ratio(t.sojourn, d, RED, better(95), 13, http) for d in (C1, C3)),
    )
    s.add(
        "load-short-ftp",
        "FTP, full load: the queues of dAQM_c2 and dAQM_c3 are over 75 % shorter than RED's, and "
        "dAQM_c3's sojourn time is over 95 % shorter",
        "more than 75% smaller queue length, and dAQM_c3 gives more than 95% smaller sojourn time "
        "than the worst performance given by RED",
        (s.ratio(t.queue, d, RED, better(75, more=True), 14, ftp) for d in (C2, C3)),
        s.ratio(t.sojourn, C3, RED, better(95, more=True), 14, ftp),
    )
    s.add(
        "load-sojourn",
        "Full load: RED has the longest sojourn time with HTTP and with FTP",
        "the poorest performance given by RED",
        s.most(t.sojourn, RED, others(RED), 13, http),
        s.most(t.sojourn, RED, others(RED), 14, ftp),
    )
    s.add(
        "load-loss-c1",
        "Full load: dAQM_c1 loses least with FTP, and with HTTP if RED is left out",
        "in both scenarios, dAQM_c1 gives the lowest PLR",
        s.least(t.loss, C1, others(RED, C1), 13, http),
        s.least(t.loss, C1, others(C1), 14, ftp),
    )
    s.add(
        "load-loss-c1-by",
        "Full load: dAQM_c1 loses about 99 % less than PIE with HTTP, and over 75 % less than "
        "COBALT with FTP",
        "outperforms the least effective AQM, PIE, by about 99%; more than 75% better than the "
        "worst performance given by COBALT",
        s.ratio(t.loss, C1, PIE, Region(high=0.11), 13, http),
        s.ratio(t.loss, C1, COBALT, better(75, more=True), 14, ftp),
    )
    s.add(
        "load-loss-c3",
        "HTTP, full load: dAQM_c3 and PIE lose most, the same within 5 %",
        "dAQM_c3 had the highest PLR, on par with PIE in the short flows",
        s.most(t.loss, C3, others(PIE, C3), 13, http),
        s.ratio(t.loss, C3, PIE, Region(1 / (1 + PAR), 1 + PAR), 13, http),
    )
    s.add(
        "load-delay", "Full load: every dAQM's delay is below that of all rivals except COBALT",
        "the delay given by the dAQMs are relatively good, surpassing all other AQMs with the "
        "exception of COBALT",
        (s.least(t.delay, d, others(COBALT, among=RIVALS), n, cell)
         for d in CONFIGURATIONS for n, cell in ((13, http), (14, ftp))),
    )  # fmt: skip
    s.add(
        "load-delay-by",
        "Full load: with HTTP, COBALT's delay is about 20 % below dAQM_c1's, and dAQM_c1's about "
        "35 % below RED's and FQ-CoDel's; with FTP, COBALT's is about 48 % below dAQM_c3's, and "
        "dAQM_c3's about 50 % below RED's",
        "COBALT outperforms dAQM_c1 by approximately 20%, whereas dAQM_c1 is around 35% superior "
        "to RED, and FQ-CoDel. COBALT is about 48% more efficient than dAQM_c3, about 50% better "
        "than RED",
        s.ratio(t.delay, COBALT, C1, better(20), 13, http),
        s.ratio(t.delay, C1, RED, better(35), 13, http),
        s.ratio(t.delay, C1, FQ_CODEL, better(35), 13, http),
        s.ratio(t.delay, COBALT, C3, better(48), 14, ftp),
        s.ratio(t.delay, C3, RED, better(50), 14, ftp),
    )
    # Only in the reading *as published*: on the switch the port's rate would depend on the load.
    if t.figures:
        s.add(
            "load-peaks", "FTP: the queues and sojourn times of dAQM_c1 and dAQM_c2 are longer at "
            "5 and 10 % of the full load than at the full load",
            "observed peaks within the initial 10% range of the FTP load, most obvious with "
            "dAQM_c1 and dAQM_c2",
            (s.moves(metric, d, 14, {"flow": "ftp"}, "rate", (10_000, rate), HIGHER)
             for metric in (t.queue, t.sojourn) for d in (C1, C2) for rate in (500, 1000)),
        )  # fmt: skip
        s.add(
            "load-peak-cobalt", "FTP: COBALT's throughput is higher at half the full load than at "
            "a fifth of it and at the full load",
            "a peak at COBALT throughput at 50% load. Then, it slowly decreases",
            (s.moves(t.throughput, COBALT, 14, {"flow": "ftp"}, "rate", (rate, 5000), HIGHER)
             for rate in (2000, 10_000)),
        )  # fmt: skip
    return tuple(s.made)


_SMALL, _LARGE = 50, 1400
_SIZES = (50, 200, 600, 1400)


def payloads(t: Terms) -> tuple[Claim, ...]:
    """Returns the claims of section 6.3.3 (figures 15 and 16): packet sizes."""
    s = Section(t)
    small: Cell = {"flow": "http", "payload": _SMALL}
    http: Cell = {"flow": "http", "payload": _LARGE}
    ftp: Cell = {"flow": "ftp", "payload": _LARGE}
    # Only in the reading *as published*: on the switch the ports' rates grow with packet sizes.
    if t.figures:
        s.add(
            "size-falls", "Queue, sojourn time, loss and delay are lower with packets of 1400 B "
            "than of 50 B, and throughput is higher",
            "as the packet sizes increase, those former metrics would decrease, while the "
            "throughput would increase",
            (
                s.moves(metric, m, n, {"flow": flow}, "payload", (_SMALL, _LARGE), region)
                for n, flow in ((15, "http"), (16, "ftp"))
                for metric, region in (
                    (t.queue, LOWER), (t.sojourn, LOWER), (t.loss, LOWER), (t.delay, LOWER),
                    (t.throughput, HIGHER),
                )
                for m in EIGHT
            ),
        )  # fmt: skip
    s.add(
        "size-fct-http",
        "HTTP at 1400 B: all mechanisms have the same completion time, within 25 %",
        "in the short flows, the FCT of all AQMs are approximately the same",
        s.same(t.completion, EIGHT, 15, http),
    )
    s.add(
        "size-fct-ftp",
        "FTP at 1400 B: COBALT's completion time is about 14 % below dAQM_c3's, and dAQM_c3's at "
        "least 10 % below all others'",
        "COBALT approximately 14% better than dAQM_c3, where dAQM_c3 is the second best option "
        "being at least 10% better than other AQMs",
        s.ratio(t.completion, COBALT, C3, better(14), 16, ftp),
        s.least(t.completion, C3, others(COBALT, C3), 16, ftp, margin=0.1),
    )
    s.add(
        "size-delay-http", "HTTP at 1400 B: the delays of every dAQM and of COBALT are below those "
        "of the other mechanisms",
        "three dAQMs give the lowest delay at large packet size together with COBALT, and "
        "outperform RED, PIE, CoDel, and FQ-CoDel",
        (s.least(t.delay, m, (RED, PIE, CODEL, FQ_CODEL), 15, http)
         for m in (*CONFIGURATIONS, COBALT)),
    )  # fmt: skip
    s.add(
        "size-delay-small",
        "HTTP at 50 B: dAQM_c3's delay is about 50 % below that of each rival except COBALT",
        "about 50% lower than FQ-CoDel, PIE, CoDel, and RED at very small packet sizes",
        (s.ratio(t.delay, C3, m, better(50), 15, small) for m in (FQ_CODEL, PIE, CODEL, RED)),
    )
    s.add(
        "size-delay-ftp",
        "FTP at 1400 B: dAQM_c3's delay is the second lowest after COBALT's, and about 47 % below "
        "RED's",
        "dAQM_c3 gives the second lowest delay, worse than COBALT, but outperforms RED by about "
        "47%",
        s.least(t.delay, C3, others(COBALT, C3), 16, ftp),
        s.least(t.delay, COBALT, (C3,), 16, ftp),
        s.ratio(t.delay, C3, RED, better(47), 16, ftp),
    )
    s.add(
        "size-loss-c1", "dAQM_c1 loses least from 50 to 1400 B; with HTTP RED is left out",
        "dAQM_c1 consistently delivers the lowest PLR across all packet sizes, from small to large",
        (s.least(t.loss, C1, others(RED, C1), 15, {"flow": "http", "payload": size})
         for size in _SIZES),
        (s.least(t.loss, C1, others(C1), 16, {"flow": "ftp", "payload": size}) for size in _SIZES),
    )  # fmt: skip
    s.add(
        "size-loss-c1-by",
        "At 1400 B dAQM_c1 loses over 90 % less than PIE with HTTP, and about 55 % less than RED "
        "with FTP",
        "more than 90% better than PIE; leads all the AQMs, outperforming RED (second lowest) by "
        "about 55%",
        s.ratio(t.loss, C1, PIE, better(90, more=True), 15, http),
        s.ratio(t.loss, C1, RED, better(55), 16, ftp),
    )
    s.add(
        "size-queue-c3", "dAQM_c3 has the shortest queue from 50 to 1400 B",
        "dAQM_c3 consistently maintains the lowest queue length starting from small packet sizes "
        "to large sizes",
        (s.least(t.queue, C3, others(C3), n, {"flow": flow, "payload": size})
         for n, flow in ((15, "http"), (16, "ftp")) for size in _SIZES),
    )  # fmt: skip
    s.add(
        "size-queue-small",
        "At 50 B dAQM_c3's queue is, with HTTP, about 95 % shorter than RED's and 92 % shorter "
        "than COBALT's; with FTP, about 80 % shorter than RED's and 65 % shorter than PIE's",
        "about 95% better than RED and 92% better than COBALT; around 80% better than RED and 65% "
        "than PIE in the long flows",
        s.ratio(t.queue, C3, RED, better(95), 15, small),
        s.ratio(t.queue, C3, COBALT, better(92), 15, small),
        s.ratio(t.queue, C3, RED, better(80), 16, {"flow": "ftp", "payload": _SMALL}),
        s.ratio(t.queue, C3, PIE, better(65), 16, {"flow": "ftp", "payload": _SMALL}),
    )
    s.add(
        "size-sojourn-c3",
        "HTTP at 1400 B: dAQM_c3's sojourn time is about 70 % and dAQM_c2's "
        "about 65 % below COBALT's",
        "dAQM_c3 (best) is about 70%, and dAQM_c2 (second best) is about 65% better than COBALT",
        s.ratio(t.sojourn, C3, COBALT, better(70), 15, http),
        s.ratio(t.sojourn, C2, COBALT, better(65), 15, http),
    )
    s.add(
        "size-sojourn-ftp",
        "FTP at 1400 B: COBALT's sojourn time is about 70 % below dAQM_c3's",
        "COBALT became about 70% better than dAQM_c3 in the long flows",
        s.ratio(t.sojourn, COBALT, C3, better(70), 16, ftp),
    )
    s.add(
        "size-sojourn-red",
        "At 1400 B dAQM_c3's sojourn time is over 95 % below RED's",
        "more than 95% improved performance than given by the worst case RED, in both flows",
        s.ratio(t.sojourn, C3, RED, better(95, more=True), 15, http),
        s.ratio(t.sojourn, C3, RED, better(95, more=True), 16, ftp),
    )
    s.add(
        "size-throughput",
        "At 1400 B all mechanisms have the same throughput with HTTP, within 25 %; with FTP COBALT "
        "has 8 to 23 % more than the others",
        "for short flows, all AQMs achieve a similar, maximized throughput level; outperformed by "
        "COBALT by approximately 8% to 23%",
        s.same(t.throughput, EIGHT, 15, http),
        (s.ratio(t.throughput, COBALT, m, Region(1.03, 1.28), 16, ftp) for m in others(COBALT)),
    )
    return tuple(s.made)
