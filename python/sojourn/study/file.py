"""A study described in a TOML file.

The file is either a scenario with a table `[study]`, or it names its scenario::

    scenario = "home.toml"

    [study]
    seeds = 30

    [study.vary]
    "links.uplink.queue" = ["pfifo limit 1000p", "codel", "fq_codel"]
    "links.uplink.rate" = ["10mbit", "20mbit"]

    [study.keep]
    metrics = ["sojourn_*", "goodput"]

A study without factors varies the queues of the scenario's `[question]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sojourn.metrics import nearest
from sojourn.scenario import Scenario, change, source
from sojourn.study.errors import StudyError
from sojourn.study.question import asked_of
from sojourn.study.study import Study

_KEYS = ("name", "seeds", "vary", "keep")
_KEEP = ("metrics", "tables")
_OWN = "study."
"""Beginning of the names of the table's own keys, where a scenario's keys are changed too."""


def load(path: str | Path, changes: Mapping[str, object] | None = None) -> Study:
    """Returns the study that a TOML file describes; raises `StudyError` if it describes none.

    `changes` are changes of keys by their dotted names, as in `Scenario.replace`; those that begin
    with `study.` concern the table `[study]`.
    """
    file = Path(path)
    name, text = source.read_file(file)
    data, _ = source.parse(text, name)
    study = data.pop("study", None)
    if not isinstance(study, dict):
        raise StudyError(
            f"{file}: there is no table [study] with factors to vary: add one, or run the "
            f"scenario once with `sojourn run {file}`"
        )
    named = data.pop("scenario", None)
    if named is None:
        scenario = Scenario.from_toml(text, file=name)
    elif not isinstance(named, str):
        raise StudyError(f"{file}: scenario must be the name of a file, not {named!r}")
    else:
        if data:
            raise StudyError(
                f"{file}: the file names a scenario file: move {', '.join(data)} there"
            )
        scenario = Scenario.load(file.parent / named)
    of_study = {k[len(_OWN) :]: v for k, v in (changes or {}).items() if k.startswith(_OWN)}
    others = {k: v for k, v in (changes or {}).items() if not k.startswith(_OWN)}
    study, _ = change.apply(study, of_study)
    made = from_data(scenario.replace(others) if others else scenario, study, str(file))
    for key in others:
        if made.varies(key):
            raise StudyError(f"{file}: the study varies {key}, so it cannot be set")
    return made


def from_data(scenario: Scenario, data: Mapping[str, object], where: str = "study") -> Study:
    """Returns the study of a scenario with the data of a table `[study]`.

    `where` is the name of the file for errors. Raises `StudyError` for invalid data.
    """
    for key in data:
        if key not in _KEYS:
            close = nearest(key, _KEYS)
            hint = f": did you mean `{close}`?" if close else f"; allowed: {', '.join(_KEYS)}"
            raise StudyError(f"{where}: [study] has no key `{key}`{hint}")
    name, seeds, vary = data.get("name"), data.get("seeds", 10), data.get("vary", {})
    if name is not None and not isinstance(name, str):
        raise StudyError(f"{where}: study.name must be a text, not `{name}`")
    if not isinstance(seeds, (int, list)):
        raise StudyError(
            f"{where}: study.seeds must be a number or a list of numbers, not {seeds!r}"
        )
    if not isinstance(vary, dict):
        raise StudyError(f"{where}: [study.vary] must be a table of factors")
    keep = data.get("keep", {})
    if not isinstance(keep, dict) or not set(keep) <= set(_KEEP):
        raise StudyError(
            f"{where}: [study.keep] must be a table with the lists {' and '.join(_KEEP)}"
        )
    try:
        if not vary and (queues := scenario.asked_queues):
            vary = {"queue": queues}
        study = Study(scenario, name).vary(vary).seeds(seeds)
        study = study.keep(keep.get("metrics"), keep.get("tables"))
        return study.asking("study", asked_of(scenario).as_dict())
    except StudyError as error:
        raise StudyError(f"{where}: {error}") from error
