"""Searches parameters of a queue for a scenario, and verifies the result.

Tree-structured Parzen estimators (Optuna) propose trials in batches. All trials are run with the
same few seeds, so they have the same random draws. Trials that are worse than the median after the
first seeds are stopped. The best trials are run with further seeds, because the best of many means
is biased. The winner is compared with the original queue and with rivals, with seeds that the
search has not used.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sojourn import temporary
from sojourn.arguments import checked
from sojourn.data import Object
from sojourn.metrics import spelled
from sojourn.scenario.engine import Engine
from sojourn.study.cells import Given
from sojourn.study.cluster import Place, connected
from sojourn.study.comparing import Comparing, comparison_of
from sojourn.study.comparison import Comparison
from sojourn.study.progress import Report
from sojourn.study.question import BY, Asked, conditions, sensible
from sojourn.study.session import Session
from sojourn.tune.search_loop import Overall, Search
from sojourn.tune.search_proof import Verdict, verdicts
from sojourn.tune.search_space import Space
from sojourn.tune.search_trials import Trial
from sojourn.tune.settings import Effort, Goal

FIFO = "pfifo limit 1000p"
"""Queue that is added to the references if a condition requires a share of the best."""
FRESH = 2_000_000
"""Number before the first of the seeds that verify the winner."""


@dataclass(frozen=True)
class Found:
    """Result of a search with its verification."""

    space: Space
    """The original queue and the searched ranges."""
    objective: str
    """Metric that was optimised."""
    subject_to: str
    """Conditions; empty without conditions."""
    effort: Effort
    trials: tuple[Trial, ...]
    """All trials in their order."""
    winner: Trial | None
    """The best trial; `None` if no setting met the conditions."""
    proof: Comparison | None
    """Comparison of the winner with the original queue and the rivals, with fresh seeds.

    `None` if there is no winner or the winner is the original queue.
    """
    verdicts: tuple[Verdict, ...]
    """Verdicts on the winner: against the original queue, then against the rivals."""
    folder: Path | None
    """Folder of results; `None` without one."""

    @property
    def queue(self) -> str | None:
        """Returns the winner's queue; `None` without a winner."""
        return self.winner.queue if self.winner else None

    @property
    def sure(self) -> bool:
        """Returns whether the winner is verified with fresh seeds.

        The winner must meet the conditions and be significantly better than the original queue.
        """
        if self.proof is None or self.winner is None or not self.verdicts:
            return False
        return self.proof.entry(self.winner.queue).feasible and self.verdicts[0].wins

    def answer(self) -> str:
        """Returns the result in sentences."""
        tried = f"{len(self.trials)} settings tried"
        if self.winner is None:
            return f"No setting meets the condition {self.subject_to} ({tried})."
        if self.proof is None:
            return f"{tried}: none is better than the original queue ({self.space.base})."
        lines = [f"{self.winner.queue} ({tried})."]
        entry = self.proof.entry(self.winner.queue)
        if not entry.feasible:
            lines.append(f"On new seeds this queue misses the condition ({entry.reason}).")
        lines += [v.sentence for v in self.verdicts]
        if edges := self.space.edges(self.winner.values):
            lines.append(
                f"At the edge of its range: {', '.join(edges)}; values outside the "
                "range may be better."
            )
        return " ".join(lines)

    def as_dict(self) -> Object:
        """Returns the result as data for JSON."""
        return {
            "queue": self.queue,
            "values": dict(self.winner.values) if self.winner else None,
            "sure": self.sure,
            "answer": self.answer(),
            "objective": self.objective,
            "subject_to": self.subject_to,
            "default": self.space.base,
            "varied": [str(v) for v in self.space.variables],
            "effort": dict(self.effort.__dict__),
            "verdicts": [v.as_dict() for v in self.verdicts],
            "proof": self.proof.to_dict() if self.proof else None,
            "trials": [t.__dict__ for t in self.trials],
            "folder": str(self.folder) if self.folder else None,
        }


@checked
def search(
    scenario: Given,
    goal: Goal,
    effort: Effort | None = None,
    *,
    out: str | Path | None = None,
    workers: int | None = None,
    on: Place | None = None,
    progress: Report | None = None,
    engine: Engine | str | None = None,
) -> Found:
    """Searches values of a queue's words for a scenario, and verifies the best values.

    In a condition of the goal, `of best` refers to the best of the original queue, the rivals
    `against`, a FIFO and the trial itself. Without conditions here or in the scenario, every
    setting qualifies. `out` is the folder for runs and trials; the same call continues an
    interrupted search in it. `workers`, `on`, `engine` and `progress` are those of `Study.run`.
    """
    base = " ".join((goal.queue or scenario.queue).split())
    space = Space.of(base, goal.vary or (), scenario.policy_reader())
    rivals = tuple(dict.fromkeys(" ".join(r.split()) for r in goal.against or ()))
    objective = spelled(goal.objective or scenario.question.by or BY)
    subject_to = goal.subject_to
    if subject_to is None:
        subject_to = scenario.question.subject_to or ""
    asked = Asked(objective, subject_to)
    references = list(dict.fromkeys((base, *rivals)))
    if any(c.of == "best" for c in conditions(subject_to)) and FIFO not in references:
        references.append(FIFO)
    sensible(scenario, asked, references)
    for reference in references:
        scenario.with_queue(reference)
    effort = effort or Effort()
    with ExitStack() as stack:
        if on is not None:
            on = stack.enter_context(connected(on))
        folder = Path(out) if out is not None else None
        place = folder or stack.enter_context(temporary.folder())
        overall = Overall(progress, effort, len(references))
        with Session(place, workers, engine, on, summarise=False) as session:
            hunt = Search(
                session, scenario, space, objective, subject_to, references, effort, overall
            )
            winner = hunt.run()
        unbeaten = winner is None or hunt.same(winner.queue, base)
        proof = None
        if winner is not None and not unbeaten:
            queues = list(dict.fromkeys((winner.queue, *references)))
            overall.left(0, effort.proof * len(queues))
            seeds = range(FRESH + 1, FRESH + 1 + effort.proof)
            kept = place / "proof" if folder else None
            proof = comparison_of(
                scenario,
                Comparing(queues, seeds, objective, subject_to, workers, kept, overall, engine, on),
            )
    named = {base: f"the original queue ({base})", **{r: r for r in rivals if r != base}}
    found = verdicts(proof, winner.queue, named) if proof is not None and winner else []
    return Found(
        space, objective, subject_to, effort, tuple(hunt.trials), winner, proof,
        tuple(found), folder,
    )  # fmt: skip
