"""The last answer to each scenario's question, from which `sojourn tc` takes the best queue."""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn.scenario import Scenario

MOST = 200
"""Number of answers that are kept; the oldest are removed."""


@dataclass(frozen=True)
class Answer:
    """The best queue that a comparison has found."""

    queue: str
    """Description of the queue, or its name in the scenario."""
    by: str
    """Metric that ranked the queues."""
    when: str
    """Time of the answer."""


def folder() -> Path | None:
    """Returns sojourn/answers in $XDG_STATE_HOME (~/.local/state); None without a home."""
    home = Path(os.environ.get("XDG_STATE_HOME", ""))
    with contextlib.suppress(RuntimeError):
        root = home if home.is_absolute() else Path.home() / ".local" / "state"
        return root / "sojourn" / "answers"
    return None


def _file(scenario: Scenario) -> Path | None:
    """Returns the file for a scenario's answer: another plan or question has another file."""
    place, question = folder(), scenario.question.model_dump_json()
    text = f"{scenario.digest()} {question} {scenario.model.deploy.model_dump_json()}"
    return None if place is None else place / f"{hashlib.sha256(text.encode()).hexdigest()}.json"


def keep(scenario: Scenario, queue: str, by: str) -> None:
    """Keeps the best queue for a scenario; without a writable folder nothing is kept."""
    file = _file(scenario)
    if file is None:
        return
    now = dt.datetime.now().astimezone().isoformat(" ", "minutes")
    with contextlib.suppress(OSError):
        file.parent.mkdir(0o700, parents=True, exist_ok=True)
        number, part = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(number, "w", encoding="utf-8") as opened:
            json.dump(asdict(Answer(queue, by, now)), opened)
        Path(part).replace(file)
        # Parts that a killed command left grow old and are removed like answers.
        kept = sorted(file.parent.iterdir(), key=lambda one: one.stat().st_mtime)
        for old in kept[:-MOST]:
            old.unlink(missing_ok=True)


def kept(scenario: Scenario) -> Answer | None:
    """Returns the last answer to the question of an unchanged scenario; None without one."""
    file = _file(scenario)
    try:
        data = {} if file is None else json.loads(file.read_text("utf-8"))
        return Answer(str(data["queue"]), str(data["by"]), str(data["when"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None
