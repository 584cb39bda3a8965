"""The thesis' findings (its sections 6 and 7) as claims, written down before the study was run.

They are judged on the network as meant, at every load above 1: a switch whose ports are slower
than what clients offer, correct dAQM, losses counted once. What the words are taken to mean:
*lowest* and *highest* are by any amount, unless the thesis calls others *comparable*: these are
then left out of the comparison; *the same level* and *aligned* are within 5 % of each other;
*reduced* is by 3 % at least; *outperforms* is by any amount. *PLR* is the share of packets that
the ports' queues dropped.

Values differ by orders of magnitude between mechanisms, so most comparisons are of geometric
means, paired by seed. That, and the number of seeds, was settled after a first look at short runs,
in which ratios of plain means decided little; what the claims say and their margins were not
touched.

Findings about flow completion time are judged where flows complete: each client's flow ends when
all that it offered is delivered.
"""

from __future__ import annotations

from collections.abc import Iterable

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
from sojourn.stats.cells import Cell, Level
from sojourn.stats.claims import Claim, Every, Least, Monotone, PracticallyEqual, Ratio
from sojourn.stats.estimate import Region

_LOWER, _HIGHER = Region(high=1.0), Region(low=1.0)
_SAME = 0.05
#: The heaviest load of section 6.3.2.
_TWICE = 2.0
_LONG, _SHORT = ("ftp", "streaming"), ("http", "voip", "gaming")

#: Metrics of the runs that the findings speak about.
SOJOURN, QUEUE, LOSS = "sojourn_mean", "queue_mean", "loss"
DELAY = "clients.packet_delay_mean"
"""Of packets from host to host, as the thesis defines it, not of what a client wants to send."""
DELIVERED = "clients.delivered"
"""Application payload delivered per second, by TCP or UDP: `goodput` or `udp_goodput`."""
COMPLETION = "completion"
"""Mean flow completion time in seconds; a flow that did not end counts with the run's length."""
AGAINST_RED = "sojourn_against_red"
"""Sojourn time divided by RED's in the same cell and with the same seed."""


def _least(
    name: str, text: str, metric: str, who: str, among: Iterable[str], where: Cell,
    each: str | None,
    extreme: str = "smallest",
) -> Claim:  # fmt: skip
    rivals: tuple[Level, ...] = tuple(among)
    return Least(
        id=name,
        text=text,
        metric=metric,
        among="mechanism",
        who=who,
        extreme="smallest" if extreme == "smallest" else "largest",
        cell={**where, "mechanism": rivals},
        each=each,
        scale="geometric",
    )


def _every(name: str, text: str, published: str, parts: Iterable[Claim]) -> Claim:
    return Every(id=name, text=text, published=published, claims=tuple(parts))


def _others(*left_out: str, among: tuple[str, ...] = EIGHT) -> tuple[str, ...]:
    return tuple(m for m in among if m not in left_out)


def _each(
    name: str, text: str, published: str, metric: str, who: str, among: Iterable[str],
    cells: Iterable[tuple[str, str]], extreme: str = "smallest",
) -> Claim:  # fmt: skip
    """One finding about several pairs of flow and model."""
    listed = tuple(among)
    return _every(
        name, text, published,
        (
            _least(f"{name}-{flow}-{model}", f"{flow}, {model}: {text}", metric, who, listed,
                   {"flow": flow, "model": model}, "load", extreme)
            for flow, model in cells
        ),
    )  # fmt: skip


_HTTP_CBR: Cell = {"flow": "http", "model": "cbr"}
_MODELS = ("cbr", "vbr", "poisson-onoff", "pareto-onoff", "weibull-onoff")
_POISSON = "poisson-onoff"
_POISSON_FLOWS = tuple((f, _POISSON) for f in ("ftp", "streaming", "http", "voip", "gaming"))
_HTTP_MODELS = tuple(("http", m) for m in _MODELS)
_STREAMING_MODELS = tuple(("streaming", m) for m in _MODELS)


FEATURE_CLAIMS: tuple[Claim, ...] = (
    _every(
        "http-sojourn-all", "Every dAQM has a shorter sojourn time than every rival",
        "all 11 dAQMs outperformed the others in sojourn time and queue length",
        (
            _least(f"http-sojourn-{d}", f"{d} has a shorter sojourn time", SOJOURN, d,
                   (d, *RIVALS), _HTTP_CBR, "load")
            for d in (*FEATURES, *CONFIGURATIONS)
        ),
    ),
    _every(
        "http-queue-all", "Every dAQM has a shorter queue than every rival",
        "all 11 dAQMs outperformed the others in sojourn time and queue length",
        (
            _least(f"http-queue-{d}", f"{d} has a shorter queue", QUEUE, d,
                   (d, *RIVALS), _HTTP_CBR, "load")
            for d in (*FEATURES, *CONFIGURATIONS)
        ),
    ),
    _every(
        "http-delay-c2", "dAQM_c2 has the lowest delay, on par with COBALT",
        "dAQM_c2 achieved the lowest delay, on par with COBALT",
        (
            _least("http-delay-c2-lowest", "lower than all but COBALT", DELAY, C2,
                   _others(COBALT, among=SIXTEEN), _HTTP_CBR, "load"),
            Ratio(id="http-delay-c2-cobalt", text="within 5 % of COBALT", metric=DELAY,
                  a={**_HTTP_CBR, "mechanism": C2}, b={**_HTTP_CBR, "mechanism": COBALT},
                  region=Region(1 / (1 + _SAME), 1 + _SAME), each="load"),
        ),
    ),
    Least(
        id="http-loss-c1", text="dAQM_c1 loses least, RED left out", metric=LOSS,
        published="dAQM_c1 attained the lowest PLR, comparable to RED",
        among="mechanism", who=C1, each="load",
        cell={**_HTTP_CBR, "mechanism": _others(RED, among=SIXTEEN)}, scale="geometric",
    ),
    _every(
        "http-c3-shortest", "dAQM_c3 has the shortest sojourn time and queue of all dAQMs",
        "dAQM_c3 obtained the lowest sojourn time and queue length",
        (
            _least(f"http-c3-{metric}", f"{metric}: dAQM_c3 the lowest", metric, C3,
                   (*FEATURES, *CONFIGURATIONS), _HTTP_CBR, "load")
            for metric in (SOJOURN, QUEUE)
        ),
    ),
    PracticallyEqual(
        id="http-throughput-same", text="All sixteen deliver the same, within 5 %",
        metric=DELIVERED, published="all AQMs managed to maximize throughput",
        among="mechanism", margin=_SAME,
        cell={**_HTTP_CBR, "mechanism": SIXTEEN}, each="load",
    ),
)  # fmt: skip
"""Section 6.1: HTTP at a constant rate, sixteen mechanisms."""


FLOW_CLAIMS: tuple[Claim, ...] = (
    _each(
        "poisson-loss-c1", "dAQM_c1 loses least, RED and FQ-CoDel left out",
        "dAQM_c1 has the lowest PLR, comparable to both RED and FQ-CoDel",
        LOSS, C1, _others(RED, FQ_CODEL), _POISSON_FLOWS,
    ),
    _each(
        "poisson-queue-c3", "dAQM_c3 has the shortest queue, PIE, CoDel, COBALT left out",
        "dAQM_c3 presents the lowest queue length comparable to PIE, CoDel, and COBALT",
        QUEUE, C3, _others(PIE, CODEL, COBALT), _POISSON_FLOWS,
    ),
    _each(
        "poisson-sojourn-cobalt", "COBALT has the shortest sojourn time",
        "COBALT has the lowest delay and the lowest sojourn time",
        SOJOURN, COBALT, EIGHT, _POISSON_FLOWS,
    ),
    _each(
        "poisson-loss-cobalt", "COBALT loses most, PIE and CoDel left out",
        "COBALT has the highest PLR, together with PIE and CoDel",
        LOSS, COBALT, _others(PIE, CODEL), _POISSON_FLOWS, "largest",
    ),
    _each(
        "poisson-queue-red", "RED has the longest queue",
        "RED has the highest queue length and sojourn time",
        QUEUE, RED, EIGHT, _POISSON_FLOWS, "largest",
    ),
    _every(
        "poisson-throughput-long", "dAQM delivers less than the rivals in FTP and streaming",
        "a noticeable reduction in throughput for heavy traffic and long flows",
        (
            Ratio(id=f"poisson-throughput-{d}", text=f"{d} delivers less", metric=DELIVERED,
                  a={"flow": flow, "model": _POISSON, "mechanism": d},
                  b={"flow": flow, "model": _POISSON, "mechanism": RIVALS},
                  region=Region(high=0.97), each="load")
            for flow in _LONG for d in CONFIGURATIONS
        ),
    ),
    _every(
        "poisson-throughput-short", "All deliver the same for HTTP, VoIP and gaming, within 5 %",
        "under short flows the throughput is more consistent across all AQM techniques",
        (
            PracticallyEqual(id=f"poisson-throughput-{flow}", text=flow, metric=DELIVERED,
                             among="mechanism", margin=_SAME, each="load",
                             cell={"flow": flow, "model": _POISSON, "mechanism": EIGHT})
            for flow in _SHORT
        ),
    ),
    _every(
        "tcp-udp", "dAQM shortens sojourn times, relative to RED, more with TCP than with UDP",
        "the dAQM algorithm is more efficient when employed with the TCP as opposed to the UDP",
        (
            Ratio(id=f"tcp-udp-{d}", text=d, metric=AGAINST_RED, region=_LOWER, each="load",
                  scale="geometric",
                  a={"flow": ("ftp", "streaming", "http"), "model": _POISSON, "mechanism": d},
                  b={"flow": ("voip", "gaming"), "model": _POISSON, "mechanism": d})
            for d in CONFIGURATIONS
        ),
    ),
)  # fmt: skip
"""Section 6.2.1: five flows whose periods are exponential."""


MODEL_CLAIMS: tuple[Claim, ...] = (
    _every(
        "http-models-throughput", "HTTP: all deliver the same under each model, within 5 %",
        "the delay, throughput, and FCT performance align among all AQMs",
        (
            PracticallyEqual(id=f"http-models-throughput-{model}", text=model, metric=DELIVERED,
                             among="mechanism", margin=_SAME, each="load",
                             cell={"flow": "http", "model": model, "mechanism": EIGHT})
            for model in _MODELS
        ),
    ),
    _every(
        "http-models-delay", "HTTP: all have the same delay under each model, within 5 %",
        "the delay, throughput, and FCT performance align among all AQMs",
        (
            PracticallyEqual(id=f"http-models-delay-{model}", text=model, metric=DELAY,
                             among="mechanism", margin=_SAME, each="load",
                             cell={"flow": "http", "model": model, "mechanism": EIGHT})
            for model in _MODELS
        ),
    ),
    _each(
        "http-models-loss-c1", "HTTP: dAQM_c1 loses least under each model, RED left out",
        "dAQM_c1 has the lowest PLR, comparable to RED",
        LOSS, C1, _others(RED), _HTTP_MODELS,
    ),
    _each(
        "http-models-queue-c3", "HTTP: dAQM_c3 has the shortest queue under each model",
        "dAQM_c3 has the lowest queue length",
        QUEUE, C3, EIGHT, _HTTP_MODELS,
    ),
    _each(
        "streaming-loss-c1", "Streaming: dAQM_c1 loses least under each model",
        "dAQM_c1 has the lowest PLR and outperforms all other AQMs among all distributions",
        LOSS, C1, EIGHT, _STREAMING_MODELS,
    ),
    _each(
        "streaming-queue-c3", "Streaming: dAQM_c3 has the shortest queue under Weibull and Pareto",
        "dAQM_c3 has the smallest queue length under Weibull and Pareto",
        QUEUE, C3, EIGHT, (("streaming", "weibull-onoff"), ("streaming", "pareto-onoff")),
    ),
    _each(
        "streaming-queue-red", "Streaming: RED has the longest queue under each model",
        "RED has the highest queue length among all distributions",
        QUEUE, RED, EIGHT, _STREAMING_MODELS, "largest",
    ),
    _each(
        "streaming-sojourn-cobalt", "Streaming: COBALT has the shortest sojourn time under each",
        "COBALT has the lowest sojourn time",
        SOJOURN, COBALT, EIGHT, _STREAMING_MODELS,
    ),
    Least(
        id="streaming-throughput-cobalt", text="Streaming CBR: COBALT delivers most, by 5 %",
        metric=DELIVERED, published="COBALT has the maximum throughput, especially under CBR",
        among="mechanism", who=COBALT, extreme="largest", margin=_SAME, each="load",
        cell={"flow": "streaming", "model": "cbr", "mechanism": EIGHT},
    ),
    _every(
        "pareto-sojourn-c3", "Pareto: dAQM_c3's sojourn time is below RED's, PIE's, FQ-CoDel's",
        "superior effectiveness under Pareto distribution, for both short and long flows",
        (
            _least(f"pareto-sojourn-c3-{flow}", flow, SOJOURN, C3, (RED, PIE, FQ_CODEL, C3),
                   {"flow": flow, "model": "pareto-onoff"}, "load")
            for flow in ("http", "streaming")
        ),
    ),
)  # fmt: skip
"""Section 6.2.2: five traffic models, HTTP and streaming; section 7's finding on Pareto."""


DROP_RATE_CLAIMS: tuple[Claim, ...] = (
    *(
        _every(
            f"drop-rate-{what}", f"{text} as dAQM's drop rate grows, HTTP and FTP", published,
            (
                Monotone(id=f"drop-rate-{what}-{flow}-{d}", text=f"{flow}, {d}", metric=metric,
                         over="drop_rate", direction=direction,  # type: ignore[arg-type]
                         scale="geometric", cell={"flow": flow, "mechanism": d})
                for flow in ("http", "ftp") for d in CONFIGURATIONS
            ),
        )
        for what, text, metric, direction, published in (
            ("loss", "Loss rises", LOSS, "rises",
             "as the drop rate increases, the PLR increases"),
            ("queue", "The queue shrinks", QUEUE, "falls",
             "concurrently, both queue length and sojourn time decrease"),
            ("sojourn", "The sojourn time shrinks", SOJOURN, "falls",
             "concurrently, both queue length and sojourn time decrease"),
        )
    ),
    _every(
        "drop-rate-throughput", "FTP's throughput falls as dAQM's drop rate grows",
        "in the long flows, dAQMs had a reduced throughput with increasing drop rate",
        (
            Ratio(id=f"drop-rate-throughput-{d}", text=d, metric=DELIVERED,
                  region=Region(high=0.97), a={"flow": "ftp", "mechanism": d, "drop_rate": 0.99},
                  b={"flow": "ftp", "mechanism": d, "drop_rate": 0.01})
            for d in CONFIGURATIONS
        ),
    ),
)  # fmt: skip
"""Section 6.3.1: dAQM's drop rate."""


SIZE_CLAIMS: tuple[Claim, ...] = (
    _every(
        "size-queue", "Queues, in packets, shrink as packets grow, HTTP and FTP",
        "as the packet sizes increase, queue length, sojourn time, PLR, and delay decrease",
        (
            Monotone(id=f"size-queue-{flow}-{m}", text=f"{flow}, {m}", metric=QUEUE,
                     over="payload", direction="falls", scale="geometric",
                     cell={"flow": flow, "mechanism": m})
            for flow in ("http", "ftp") for m in EIGHT
        ),
    ),
    _every(
        "size-queue-c3", "dAQM_c3 has the shortest queue at every packet size",
        "dAQM_c3 consistently maintains the lowest queue length from small packets to large",
        (
            _least(f"size-queue-c3-{flow}", flow, QUEUE, C3, EIGHT, {"flow": flow}, "payload")
            for flow in ("http", "ftp")
        ),
    ),
    _every(
        "size-loss-c1", "dAQM_c1 loses least at every packet size, RED left out for HTTP",
        "dAQM_c1 gives the lowest PLR in both scenarios, across all packet sizes",
        (
            _least("size-loss-c1-http", "http", LOSS, C1, _others(RED), {"flow": "http"},
                   "payload"),
            _least("size-loss-c1-ftp", "ftp", LOSS, C1, EIGHT, {"flow": "ftp"}, "payload"),
        ),
    ),
)  # fmt: skip
"""Section 6.3.3: packet sizes."""


LOAD_CLAIMS: tuple[Claim, ...] = (
    _every(
        "load-loss-c1", "At twice the capacity dAQM_c1 loses least, HTTP and FTP, RED left out",
        "in both scenarios, dAQM_c1 gives the lowest PLR",
        (
            _least(f"load-loss-c1-{flow}", flow, LOSS, C1, _others(RED),
                   {"flow": flow, "load": _TWICE}, None)
            for flow in ("http", "ftp")
        ),
    ),
    _every(
        "load-sojourn", "At twice the capacity RED has the longest sojourn time, HTTP and FTP",
        "the poorest performance given by RED",
        (
            _least(f"load-sojourn-{flow}", flow, SOJOURN, RED, EIGHT,
                   {"flow": flow, "load": _TWICE}, None, "largest")
            for flow in ("http", "ftp")
        ),
    ),
)  # fmt: skip
"""Section 6.3.2: the offered load, constant rates."""


COMPLETION_CLAIMS: tuple[Claim, ...] = (
    _every(
        "load-fct", "At twice the capacity COBALT completes flows soonest, HTTP and FTP",
        "COBALT performs more than 15 % (HTTP) and 10 % (FTP) better in FCT",
        (
            _least(f"load-fct-{flow}", flow, COMPLETION, COBALT, EIGHT, {"flow": flow},
                   None)
            for flow in ("http", "ftp")
        ),
    ),
)  # fmt: skip
"""Section 6.3.2: clients that offer for a while and then wait until all is delivered, at load 2."""
