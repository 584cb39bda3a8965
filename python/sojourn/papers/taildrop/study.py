"""The study from settings to verdicts: what is run, at which length, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.papers.stage import Stage
from sojourn.papers.taildrop import claims, mechanisms, scenarios
from sojourn.papers.taildrop.variants import FLOWS as VARIANT_FLOWS
from sojourn.papers.taildrop.variants import VARIANTS, Variant
from sojourn.study.machine import cores
from sojourn.tune.redopt import Link, RedParameters, redopt
from sojourn.tune.verify import Verified, verified

if TYPE_CHECKING:
    import pandas as pd

    from sojourn.scenario import Scenario
    from sojourn.stats import Judgement
    from sojourn.study import Table
    from sojourn.study.cluster import Place
    from sojourn.study.progress import Report

NAME = "taildrop"
TITLE = "Tail drop against RED under bulk and Web traffic"
PAPER = (
    "Comparison of Tail Drop and Active Queue Management Performance for bulk-data and Web-like "
    "Internet Traffic, ISCC 2001"
)
#: ACKs are delayed in the study's TCP: PFTK's b.
_SEGMENTS_PER_ACK = 2
#: The buffer of the pilot that counts active Web flows: the paper's bandwidth-delay product.
_PILOT = "pfifo limit 300p"


@dataclass(frozen=True)
class Size:
    """Lengths in seconds and numbers of runs."""

    bulk: float
    bulk_warmup: float
    bulk_seeds: int
    web: float
    web_warmup: float
    web_seeds: int
    pilot: float
    pilot_seeds: int
    proof: float
    """Length of a run that verifies REDopt."""
    variant_seeds: int
    web_variant_seeds: int


#: The paper's lengths and repetitions.
FULL = Size(500, 100, 10, 5000, 100, 50, 2000, 10, 400, 10, 10)
#: At most five minutes on two cores.
QUICK = Size(150, 50, 10, 400, 100, 6, 400, 6, 150, 5, 6)


@dataclass(frozen=True)
class Setting:
    """REDopt's parameters for one load."""

    load: int
    flows: float
    """Flows that the model was given: the bulk flows, or the mean number of active Web flows."""
    found: Verified

    @property
    def parameters(self) -> RedParameters:
        """The parameters used."""
        return self.found.parameters

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        trial = self.found.best
        return {
            "load": self.load,
            "flows": self.flows,
            "kind": "reconstructed",
            "rounds": len(self.found.trials),
            **trial.as_dict(),
        }


@dataclass(frozen=True)
class Outcome:
    """What the study found."""

    size: Size
    quick: bool
    folder: Path
    bulk_settings: tuple[Setting, ...]
    web_settings: tuple[Setting, ...]
    bulk: Table
    web: Table
    variants: Mapping[str, tuple[Table, tuple[Judgement, ...]]]
    """Other readings of the paper, and how its claims look there."""
    pilot: pd.DataFrame
    """A row a load and seed of Web traffic: mean active flows and the model's max_p."""
    judgements: tuple[Judgement, ...]

    def reason(self, judgement: Judgement) -> str:
        """Why a finding may not have reproduced, as far as other readings of the paper show."""
        if judgement.verdict != "does not hold":
            return ""
        tried = [v for v in VARIANTS if v.name in self.variants]
        looks = {
            v: next((j for j in self.variants[v.name][1] if j.claim.id == judgement.claim.id), None)
            for v in tried
        }
        if not any(looks.values()):
            return "It rests on the Web distributions, whose table is lost."
        holding = [f"{v.name} ({v.text})" for v, j in looks.items() if j and j.verdict == "holds"]
        if holding:
            return f"It would hold with {' or with '.join(holding)}."
        return "No other reading tried makes it hold."

    @property
    def notes(self) -> list[str]:
        """A line for each finding that does not hold: the reason looked for."""
        found = [(j.claim.id, self.reason(j)) for j in self.judgements]
        return [f"{claim}: {reason}" for claim, reason in found if reason]

    @property
    def units(self) -> Mapping[str, str]:
        """Units of the metrics that claims speak about."""
        return {**self.bulk.units, **self.web.units}

    def as_dict(self) -> dict[str, Any]:
        """Every claim with its verdict and figures, and what they rest on."""
        from sojourn import _core

        return {
            "paper": NAME,
            "title": TITLE,
            "reference": PAPER,
            "quick": self.quick,
            "engine": _core.fingerprint(),
            "folder": str(self.folder),
            "seeds": {"bulk": self.size.bulk_seeds, "web": self.size.web_seeds},
            "duration": {"bulk": self.size.bulk, "web": self.size.web},
            "settings": {
                "bulk": [s.as_dict() for s in self.bulk_settings],
                "web": [s.as_dict() for s in self.web_settings],
            },
            "claims": [{**j.to_dict(), "reason": self.reason(j)} for j in self.judgements],
            "variants": {
                variant.name: {
                    "text": variant.text,
                    "claims": {j.claim.id: j.to_dict() for j in self.variants[variant.name][1]},
                }
                for variant in VARIANTS
            },
        }


def link(flows: float) -> Link:
    """The study's bottleneck under `flows` TCP flows, as REDopt's model sees it."""
    return Link(
        rate=scenarios.RATE,
        rtts=scenarios.ROUND_TRIPS,
        flows=flows,
        packet=scenarios.FRAME,
        unresponsive=scenarios.UDP_RATE,
        segments_per_ack=_SEGMENTS_PER_ACK,
    )


def settings_for(
    loads: Mapping[int, float],
    proof: float,
    spacing: str,
    workers: int | None,
    report: Report | None,
) -> tuple[Setting, ...]:
    """REDopt for each load, by its number of active flows, proved by runs of `proof` seconds."""
    import time

    from sojourn.study.progress import Progress

    begin, done = time.perf_counter(), 0

    def one(item: tuple[int, float]) -> Setting:
        load, flows = item
        found = verified(link(flows), 2, proof, proof / 3, words=spacing)
        return Setting(load, flows, found)

    made = []
    with ThreadPoolExecutor(workers or cores()) as pool:
        for setting in pool.map(one, loads.items()):
            made.append(setting)
            done += 1
            if report is not None:
                seconds = time.perf_counter() - begin
                report(Progress(done, len(loads), 0, 0.0, seconds, 0))
    return tuple(made)


def _study(
    name: str,
    factor: str,
    settings: tuple[Setting, ...],
    queues: Callable[[RedParameters], Mapping[str, str]],
    scenario: Callable[[int], Scenario],
    seeds: int,
    folder: Path,
    workers: int | None,
    report: Report | None,
    on: Place | None,
) -> Table:
    from sojourn.study import Study

    cells: list[tuple[Mapping[str, str | int], Scenario]] = []
    for setting in settings:
        base = scenario(setting.load)
        for mechanism, queue in queues(setting.parameters).items():
            factors: dict[str, str | int] = {factor: setting.load, "mechanism": mechanism}
            cells.append((factors, base.with_queue(queue)))
    study = Study.of_cells(name, cells, kind="paper", question={"paper": NAME})
    return study.seeds(seeds).run(out=folder, workers=workers, progress=report, on=on)


def _pilot(
    size: Size, folder: Path, workers: int | None, report: Report | None, on: Place | None
) -> pd.DataFrame:
    """Mean number of active Web flows by load and seed, and the max_p that follows from it."""
    from sojourn.study import Study

    cells = [
        ({"sessions": n}, scenarios.web(n, size.pilot, size.web_warmup, _PILOT))
        for n in scenarios.SESSIONS
    ]
    study = Study.of_cells("taildrop Web pilot", cells, kind="paper", question={"paper": NAME})
    table = study.seeds(size.pilot_seeds).run(out=folder, workers=workers, progress=report, on=on)
    active = [f"web{frame}.active_mean" for frame in scenarios.WEB_FRAMES]
    frame = table.frame[["sessions", "seed"]].copy()
    frame["active"] = table.frame[active].sum(axis=1)
    frame["max_p"] = [redopt(link(max(n, 1.0))).max_p for n in frame["active"]]
    return frame


def run(
    out: Path,
    quick: bool = False,
    workers: int | None = None,
    stage: Stage = lambda _: None,
    size: Size | None = None,
    on: Place | None = None,
) -> Outcome:
    """Runs the study and judges the paper's findings; what is in `out` already is not run again.

    `size` sets lengths and seeds other than the two that `quick` chooses between. `on` is a Dask
    cluster that makes the runs; REDopt's settings are found here.
    """
    from sojourn.stats import judge, judge_components

    size = size or (QUICK if quick else FULL)
    counts = {n: float(n) for n in scenarios.FLOWS}
    bulk_settings = settings_for(
        counts, size.proof, mechanisms.DUMMYNET, workers, stage("REDopt for bulk flows")
    )
    pilot = _pilot(size, out / "pilot", workers, stage("active Web flows"), on)
    active = pilot.groupby("sessions")["active"].mean()
    loads = {n: max(float(active[n]), 1.0) for n in scenarios.SESSIONS}
    web_settings = settings_for(
        loads, size.proof, mechanisms.NS2, workers, stage("REDopt for Web sessions")
    )

    def bulk(flows: int) -> Scenario:
        return scenarios.bulk(flows, size.bulk, size.bulk_warmup)

    def web(sessions: int) -> Scenario:
        return scenarios.web(sessions, size.web, size.web_warmup)

    def measured_with(spacing: str) -> Callable[[RedParameters], Mapping[str, str]]:
        return lambda parameters: mechanisms.queues(parameters, spacing)

    bulk_table = _study(
        "taildrop bulk", "flows", bulk_settings,
        measured_with(mechanisms.DUMMYNET), bulk,
        size.bulk_seeds, out / "bulk", workers, stage("bulk traffic"), on,
    )  # fmt: skip
    web_table = _study(
        "taildrop Web", "sessions", web_settings,
        measured_with(mechanisms.NS2), web,
        size.web_seeds, out / "web", workers, stage("Web traffic"), on,
    )  # fmt: skip
    variants = {}
    for variant in VARIANTS:
        of_bulk = variant.world == "bulk"

        def other(load: int, variant: Variant = variant) -> Scenario:
            if variant.world == "web":
                return variant.scenario(web(load))
            plain = scenarios.bulk(load, size.bulk, size.bulk_warmup, tcp=variant.tcp)
            return variant.scenario(plain)

        chosen = [s for s in bulk_settings if s.load in VARIANT_FLOWS] if of_bulk else web_settings
        table = _study(
            f"taildrop, {variant.name}", "flows" if of_bulk else "sessions",
            tuple(chosen), variant.queues, other,
            size.variant_seeds if of_bulk else size.web_variant_seeds,
            out / "variants" / variant.name.lower().replace(" ", "-").replace(",", ""),
            workers, stage(variant.name), on,
        )  # fmt: skip
        looks = judge(claims.BULK if of_bulk else claims.WEB, table.frame)
        variants[variant.name] = (table, tuple(looks))
    measured = [
        (claim, claim.components(frame))
        for listed, frame in (
            (claims.BULK, bulk_table.frame),
            (claims.WEB, web_table.frame),
            (claims.SETTINGS, pilot),
        )
        for claim in listed
    ]
    return Outcome(
        size=size,
        quick=quick,
        folder=out,
        bulk_settings=bulk_settings,
        web_settings=web_settings,
        bulk=bulk_table,
        web=web_table,
        variants=variants,
        pilot=pilot,
        judgements=tuple(judge_components(measured)),
    )
