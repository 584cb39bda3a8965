"""Recorded results of the published studies: verdicts, dates and CPU times.

`docs/studies/record.py` writes `recorded/NAME.json`, and the runs with their trace hashes to
`recorded/runs` (`sojourn.papers.replay`).
`recorded/quick/NAME.json` contains the verdicts of quick runs with other seeds
(`sojourn.papers.steady`).
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NotRequired, TypedDict, get_args

import pandas as pd

from sojourn import _core, engines
from sojourn.data import Object
from sojourn.papers import NAMES, frozen, load
from sojourn.papers.frozen import Seeds
from sojourn.papers.length import LENGTHS, Length
from sojourn.papers.multiverse import EXPLORATORY
from sojourn.papers.rule import Ruling, answered, rule
from sojourn.papers.steady import FOLDER
from sojourn.scenario import Scenario
from sojourn.stats import NOT_SUPPORTED
from sojourn.stats.verdict import Verdict
from sojourn.study.machine import cores

COLUMNS = {"verdict": "simulated", "linux": "Linux in virtual time", "real": "real"}
"""Names of the engines, by the key of the engine's verdict in a recorded claim."""
_SHORT = {"linux": "Linux"}
"""Shorter names of engines for column heads in terminals."""
WORDS: tuple[Verdict, ...] = get_args(Verdict)
GROUPS: dict[str, tuple[Ruling, ...]] = {
    "holds": ("holds",),
    "does not hold": ("does not hold",),
    "not reproduced": ("not reproduced",),
    "in our network": ("holds in our network", "does not hold in our network"),
    "cannot be told": ("cannot be told",),
}
"""Verdicts of the rule that are counted together, by the name of the group."""
NOTHING = "–"
_CALIBRATION = """\
duration = "60s"
[links.line]
from = "a"
to = "b"
rate = "50mbit"
netem = "delay 10ms"
queue = "fq_codel"
[[flows]]
from = "a"
to = "b"
count = 4
app = "bulk"
"""


class Claim(TypedDict):
    """A claim of a record, with the verdicts by the keys of `COLUMNS`."""

    id: str
    finding: str
    paper: str
    here: str
    verdict: str
    """Verdict on the contrast alone."""
    conditions: NotRequired[list[Object]]
    """The fields of `rule.Measured`; absent if none was measured."""
    ruling: NotRequired[str]
    """Verdict of the rule; absent if no condition was measured."""
    real: NotRequired[str]
    linux: NotRequired[str]
    own_table: NotRequired[str]
    asides: NotRequired[list[str]]
    labels: NotRequired[list[str]]
    comparisons: NotRequired[list[str]]
    """All quantities as from `show.terminal.comparisons`, their texts separated by tabs."""


class Listed(TypedDict):
    """A table of a study."""

    title: str
    rows: list[str]
    """Rows with the head first, their cells separated by tabs."""


class Replayed(TypedDict):
    """Runs of a record that were repeated with equal trace hashes."""

    engine: str
    on: str
    """Date, as YYYY-MM-DD."""
    runs: int
    of: int
    """Number of runs of the record."""


class Record(TypedDict):
    """The record of a study."""

    study: str
    command: str
    how: str
    commands: NotRequired[dict[str, str]]
    """Commands of the other engines' verdicts, by the key of the verdict."""
    engine: str
    """Fingerprint of the engine that made the runs."""
    replayed: NotRequired[Replayed]
    made: str
    took: NotRequired[dict[str, dict[str, float]]]
    """CPU times by size, as from `took`."""
    wall_clock: NotRequired[Object]
    """The fields of `side_by_side.WallClock`."""
    withdrawn: NotRequired[list[dict[str, str]]]
    seeds: NotRequired[Seeds]
    """Seeds that follow from the frozen claims; absent if the runs are exploratory."""
    near: NotRequired[list[Object]]
    """How near our numbers are to the paper's, as from `rule.nearness`."""
    tried: NotRequired[list[str]]
    """Names of the other readings that were run."""
    tables: NotRequired[list[Listed]]
    claims: list[Claim]


def path(name: str) -> Path:
    """Returns the file of a study's record."""
    return FOLDER / f"{name}.json"


def record(name: str) -> Record | None:
    """Returns the record of a study; `None` if the study was not recorded."""
    if not path(name).exists():
        return None
    found: Record = json.loads(path(name).read_text(encoding="utf-8"))
    return found


def ruling(claim: Mapping[str, object]) -> str:
    """Returns the verdict of the rule on a recorded claim.

    A contrast without a measured condition is one in our network only.
    """
    found = claim.get("ruling")
    if found is not None:
        return str(found)
    contrast = WORDS[[str(word) for word in WORDS].index(str(claim["verdict"]))]
    return rule(contrast, None)


def grouped(claims: Sequence[Mapping[str, object]]) -> dict[str, int]:
    """Returns the numbers of verdicts of the rule by group, as in `GROUPS`."""
    found = Counter(map(ruling, claims))
    return {group: sum(found[word] for word in words) for group, words in GROUPS.items()}


def judged(kept: Record) -> bool:
    """Returns whether the seeds of a record follow from the study's frozen claims."""
    return kept.get("seeds") == frozen.seeds(kept["study"])


def answer(kept: Record) -> str:
    """Returns the answer to a paper's question, which follows from the table of verdicts."""
    near = pd.DataFrame(kept.get("near", []))
    return answered([ruling(claim) for claim in kept["claims"]], near, kept.get("tried", []))


def reproduced(kept: Record) -> str | None:
    """Returns how the runs of a record are known to be those of this version; `None` if unknown."""
    fingerprint, replayed = _core.fingerprint(), kept.get("replayed")
    if kept["engine"] == fingerprint:
        return "made by it"
    if replayed is None or replayed["engine"] != fingerprint:
        return None
    return f"{replayed['runs']} of {replayed['of']} runs repeated on {replayed['on']}"


def length(kept: Record) -> Length:
    """Returns the length of a record's runs."""
    return next((one for one in LENGTHS if f"--{one}" in kept["command"]), "full")


def commands(name: str) -> dict[str, str]:
    """Returns the command that makes each column of a study's verdicts, by the key of the column.

    The commands that made a record precede those of the study's own engines.
    """
    kept, real = record(name), load(name).real
    found = {"verdict": kept["command"] if kept else f"sojourn paper {name}"}
    words = " --judged" * (kept is not None and judged(kept))
    for key, kinds in (("linux", engines.VIRTUAL), ("real", (engines.WIRE,))):
        able = [kind for kind in (real.engines if real else ()) if kind in kinds]
        if able and (key != "linux" or not real or real.linux):
            how = "--real" if key == "real" else f"--engine {able[0]}"
            found[key] = f"sojourn paper {name} {how}{words}"
    return found | (kept.get("commands", {}) if kept else {})


def counts(claims: Sequence[Mapping[str, object]], column: str = "verdict") -> list[int]:
    """Returns how many claims hold, how many do not hold, and how many are undecided.

    `column` is the key of an engine's verdict, as in `COLUMNS`.
    """
    found = Counter(claim.get(column) for claim in claims)
    return [found[word] for word in WORDS]


def age(made: str, today: date) -> str:
    """Returns the age of a record in days as text; `made` is the record's date, as YYYY-MM-DD."""
    days = (today - date.fromisoformat(made)).days
    return "today" if days <= 0 else f"{days} d"


def seconds_shown(seconds: float) -> str:
    """Returns a duration as text in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def _verdicts(claims: Sequence[Claim]) -> dict[str, dict[str, int]]:
    """Returns the numbers of verdicts by engine."""
    return {
        engine: grouped(claims)
        if key == "verdict"
        else dict(zip(WORDS, counts(claims, key), strict=True))
        for key, engine in COLUMNS.items()
        if any(key in claim for claim in claims)
    }


def listed() -> list[Object]:
    """Returns a summary of each study's record.

    A summary has the numbers of verdicts by engine, the date and the CPU time. A study without a
    record has `None` as `command`, `made` and `engine`.
    """
    found: list[Object] = []
    for name in NAMES:
        kept = record(name)
        claims = kept["claims"] if kept else []
        found.append({
            "study": name,
            "claims": len(claims),
            "columns": _verdicts(claims),
            NOT_SUPPORTED: sum(claim.get("own_table") == NOT_SUPPORTED for claim in claims),
            "withdrawn": len(kept.get("withdrawn", ())) if kept else 0,
            "command": kept["command"] if kept else None,
            "made": kept["made"] if kept else None,
            "took": kept.get("took", {}) if kept else {},
            "engine": kept["engine"] if kept else None,
            "reproduced": reproduced(kept) if kept else None,
            "judged": kept is not None and judged(kept),
        })  # fmt: skip
    return found


def rows(today: date | None = None) -> list[dict[str, str]]:
    """Returns the records of all studies as texts for a terminal.

    `today` is the date from which the age is counted; by default, the date in UTC.
    """
    now = today or datetime.now(UTC).date()

    def row(name: str) -> dict[str, str]:
        kept = record(name)
        verdicts = _verdicts(kept["claims"] if kept else [])
        cells = {
            _SHORT.get(key, column): "/".join(map(str, verdicts[column].values()))
            if column in verdicts
            else NOTHING
            for key, column in COLUMNS.items()
        }
        if kept is None:
            return {"study": name, **cells, **dict.fromkeys(("runs", "age", "time"), NOTHING)}
        size = length(kept)
        took = kept.get("took", {}).get(size)
        time = seconds_shown(took["cpu"]) if took else NOTHING
        return {"study": name, **cells, "runs": size, "age": age(kept["made"], now), "time": time}

    return [row(name) for name in NAMES]


def footnotes() -> list[str]:
    """Returns notes on the table of `rows`, such as which records this version reproduces."""
    notes = ["Linux: in virtual time. time: CPU time of the simulated runs."]
    kept = {name: record(name) for name in NAMES}
    seen = {name: reproduced(one) for name, one in kept.items() if one}
    same = [f"{name} ({how})" for name, how in seen.items() if how]
    if same:
        notes.append(f"Reproduced by this version: {', '.join(same)}.")
    other = [name for name, how in seen.items() if not how]
    if other:
        notes.append(f"Made by another version, and not yet repeated: {', '.join(other)}.")
    open_ = [name for name, one in kept.items() if one and not judged(one)]
    if open_:
        notes.append(
            "Exploratory, because the seeds do not follow from the frozen claims: "
            f"{', '.join(open_)}."
        )
    claims = {name: one["claims"] for name, one in kept.items() if one}
    late = {k: sum(EXPLORATORY in c.get("labels", ()) for c in v) for k, v in claims.items()}
    listed = ", ".join(f"{name} {n} of {len(claims[name])}" for name, n in late.items() if n)
    if listed:
        notes.append(f"Exploratory claims, written after runs of the same cells: {listed}.")
    contrasts = "Linux, real: the contrast alone holds / does not hold / cannot be told."
    return [*notes, f"simulated: {' / '.join(GROUPS)}. {contrasts}"]


def calibrated() -> float:
    """Returns the CPU time of a fixed simulation, in seconds: the minimum of three runs.

    This time measures the speed of the machine.
    """
    plan = Scenario.from_toml(_CALIBRATION).plan_json

    def once() -> float:
        begin = time.thread_time()
        _core.simulate(plan, 1)
        return time.thread_time() - begin

    return min(once() for _ in range(3))


class Meter:
    """Measures the CPU time of runs; a file stores it, so that a later process can continue."""

    def __init__(self, file: Path) -> None:
        self._file = file
        kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        self._before = {"cpu": 0.0, "serial": 0.0, **kept}
        self._begin = self._now()

    @staticmethod
    def _now() -> dict[str, float]:
        ended = os.times()
        programs = ended.children_user + ended.children_system
        return {"cpu": time.process_time() + programs, "serial": time.thread_time()}

    def spent(self) -> dict[str, float]:
        """Returns CPU times in seconds, including those in the file.

        `cpu` is the time of all threads and child processes, `serial` the time of this thread.
        """
        now = self._now()
        return {k: now[k] - self._begin[k] + self._before[k] for k in now}

    def keep(self) -> None:
        """Writes the CPU times to the file."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(self.spent()), encoding="utf-8")


def took(spent: Mapping[str, float]) -> dict[str, float]:
    """Returns CPU times for a record, with this machine's `calibration`.

    A CPU time divided by `calibration` is approximately equal on all machines.
    """
    return {**{k: round(v, 1) for k, v in spent.items()}, "calibration": round(calibrated(), 4)}


def expected(name: str, size: str) -> dict[str, float] | None:
    """Returns the expected CPU time of a study on this machine, in seconds.

    `cpu` is the time of all threads, `serial` the time that cannot be divided between cores. Both
    follow from the recorded times of `size` (one of `LENGTHS`, or `linux`). If another length is
    recorded, they follow from the ratio of the work. Returns `None` if no recorded times determine
    the result.
    """
    kept = record(name)
    known = kept.get("took", {}) if kept else {}
    study, more = load(name), 1.0
    if size not in known:
        others = [one for one in LENGTHS if one in known]
        wanted = [one for one in LENGTHS if one == size]
        if study.work is None or not wanted or not others:
            return None
        more = study.work(study.sized(wanted[0])) / study.work(study.sized(others[0]))
        size = others[0]
    one = known[size]
    more *= calibrated() / one["calibration"]
    return {"cpu": one["cpu"] * more, "serial": one.get("serial", 0.0) * more}


def estimate(name: str, size: str, workers: int | None = None) -> str:
    """Describes the expected duration of a study with `workers` idle cores of this machine.

    The default of `workers` is the number of cores.
    """
    here, about = expected(name, size), "about"
    if here is None and size == "quick":
        here, about = expected(name, "full"), "less than"
    if here is None:
        return f"{name}: duration unknown, because no time is recorded for this size"
    number = workers or cores()
    wall = here["serial"] + (here["cpu"] - here["serial"]) / number
    return f"{name}: {about} {seconds_shown(wall)} on {number} idle core{'s'[: number != 1]}"
