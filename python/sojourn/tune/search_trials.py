"""The trials of a search, which a file in the folder of results stores, and the next proposals.

Proposals depend only on the stored trials and a seed. So a search that was killed continues as if
it had not been interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from sojourn.data import Object
from sojourn.metrics import Direction
from sojourn.study import disk
from sojourn.study.errors import ResultsError, StudyError
from sojourn.tune.search_space import Choice, Space, Value, Variable

FORMAT = 1
NAME = "search.json"
RANDOM_FIRST = 10
"""Minimum number of random proposals at the beginning of a search."""
REFUSED = 10.0
"""Violation with which an invalid queue counts, as a share of a condition's bound."""


@dataclass(frozen=True)
class Trial:
    """A trial of a search: values of the variables and their results."""

    number: int
    """Number of the trial, from 0 on."""
    queue: str
    """The queue with the values."""
    values: Mapping[str, Value]
    """Values by the name of the variable."""
    state: Literal["complete", "pruned", "refused"]
    """`complete`, `pruned` (stopped after the first seeds) or `refused` (no valid queue)."""
    value: float | None = None
    """Mean of the objective over the seeds that were run; `None` if a value is missing."""
    early: float | None = None
    """Mean of the objective over the first seeds; `None` if a value is missing."""
    violation: Mapping[str, float] = field(default_factory=dict)
    """Violation of each condition as a share of its bound; 0 or less if it is met."""
    reason: str = ""
    """Reason why the trial was stopped or refused; empty for complete trials."""

    @property
    def feasible(self) -> bool:
        """Returns whether the trial meets all conditions with the seeds that were run."""
        return self.value is not None and all(v <= 0 for v in self.violation.values())


def load(folder: Path, question: Object) -> list[Trial]:
    """Returns the stored trials of a search; empty if there is no file.

    Raises `ResultsError` if the file is of another search or cannot be read.
    """
    path = folder / NAME
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        mark = data["sojourn"]["format"]
        there: Object = data["question"]
        listed = [Trial(**trial) for trial in data["trials"]] if mark == FORMAT else []
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"not a search of Sojourn ({error}); choose another folder"
        raise ResultsError(path, message) from error
    if mark != FORMAT:
        message = (
            f"written in format {mark}; this version reads format {FORMAT}: use the version that "
            "wrote it, or choose another folder"
        )
        raise ResultsError(path, message)
    for key, value in question.items():
        if there.get(key) != value:
            raise ResultsError(
                path,
                f"another search, with {key} = {there.get(key)!r}, not {value!r}; choose another "
                "folder",
            )
    return listed


def save(folder: Path, question: Object, trials: Sequence[Trial]) -> None:
    """Stores the trials of a search; the file is replaced atomically."""
    data = {
        "sojourn": {"format": FORMAT},
        "question": dict(question),
        "trials": [asdict(trial) for trial in trials],
    }
    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
    disk.replace_file(folder / NAME, text.encode())


def propose(
    space: Space, trials: Sequence[Trial], count: int, seed: int, better: Direction
) -> list[dict[str, Value]]:
    """Returns the values of the next `count` trials, by tree-structured Parzen estimators (Optuna).

    The first trial of a search has the values of the original queue, if they are in the ranges.
    """
    optuna = _optuna()
    limits = {v.name: _distribution(v) for v in space.variables}
    # Each batch has a new sampler, so that only stored trials influence the proposals.
    sampler = optuna.samplers.TPESampler(
        seed=(seed * 1_000_003 + len(trials)) % 2**32,
        n_startup_trials=max(RANDOM_FIRST, len(space.variables)),
    )
    study = optuna.create_study(
        direction="minimize" if better == "lower" else "maximize", sampler=sampler
    )
    for trial in trials:
        study.add_trial(_frozen_trial(trial, limits))
    if not trials and space.start is not None:
        study.enqueue_trial(dict(space.start))
    asked = [study.ask(limits) for _ in range(count)]
    start = space.start or {}
    return [
        {
            v.name: value if value == start.get(v.name) else v.rounded(value)
            for v, value in ((v, trial.params[v.name]) for v in space.variables)
        }
        for trial in asked
    ]


def _optuna() -> Any:
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise StudyError(
            f"a search needs Optuna ({error.name} is not installed): "
            "pip install 'sojourn[tune]', or pip install optuna"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _distribution(variable: Variable) -> object:
    distributions = _optuna().distributions
    if isinstance(variable, Choice):
        return distributions.CategoricalDistribution(variable.texts)
    return distributions.FloatDistribution(variable.low, variable.high, log=variable.scale == "log")


def _frozen_trial(trial: Trial, limits: Mapping[str, object]) -> object:
    """Returns a trial as an object of Optuna."""
    optuna = _optuna()
    complete = trial.state == "complete" and trial.value is not None
    frozen = optuna.trial.create_trial(
        params=dict(trial.values),
        distributions=dict(limits),
        value=trial.value if complete else None,
        state=optuna.trial.TrialState.COMPLETE if complete else optuna.trial.TrialState.PRUNED,
        intermediate_values={} if trial.early is None else {1: trial.early},
    )
    for name, violation in trial.violation.items():
        frozen.set_constraint(name, violation)
    if trial.value is None:
        frozen.set_constraint("refused", REFUSED)
    return frozen
