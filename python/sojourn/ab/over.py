"""Runs of the two programs of a trial over the links of a scenario."""

from __future__ import annotations

import io
import shlex
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sojourn import engines
from sojourn.ab.alone import failure
from sojourn.ab.trial import TrialError, Which
from sojourn.data import Object
from sojourn.lab.described import described
from sojourn.lab.linked import scenario as of_words
from sojourn.lab.programs.run_setup import Options
from sojourn.metrics import Direction
from sojourn.scenario import Scenario
from sojourn.scenario.commands import APP

if TYPE_CHECKING:
    from sojourn.lab.record import LabRecord
    from sojourn.scenario.engine import Engine

NAME = "ab"
"""Name of the flow that is added to a scenario without own programs."""


@dataclass
class Over:
    """Programs over the links of a scenario, as the client of its flow with own programs."""

    scenarios: Mapping[Which, Scenario]
    commands: Mapping[Which, Sequence[str]]
    engine: Engine
    column: str
    """Name of the metric in the results of a run."""
    repeats: bool
    """Whether runs of one seed are equal."""
    violations: dict[str, int] = field(default_factory=dict)
    """Number of runs for each reason why they are not valid."""

    def measure(self, which: Which, seed: int) -> float | None:
        """Returns the number of a run, or `None` if the run is not valid.

        Raises `TrialError` if the program fails.
        """
        run = self.scenarios[which].run(seed, None, self.engine)
        record = cast("LabRecord", cast("object", run.record))
        flow = self.column.rpartition(".")[0]
        for end in described(record.real).own_programs:
            if end.failure:
                raise failure(which, self.commands[which], end.failure, _said(record, end.flow))
        value = float(run.metrics.get(self.column, "nan"))
        if value != value:
            failed = [text for text in record.violations if "did not report" in text]
            why = "; ".join(failed) or "did not end before the end of the run (--limit)"
            raise failure(which, self.commands[which], why, _said(record, flow))
        for reason in record.violations:
            self.violations[reason] = self.violations.get(reason, 0) + 1
        return None if record.violations else value


def _said(record: LabRecord, flow: str) -> str:
    """Returns the output of a flow's client, preferably its standard error."""
    try:
        with zipfile.ZipFile(io.BytesIO(record.files["programs.zip"])) as archive:
            names = sorted(archive.namelist())
            said = [archive.read(n) for n in names if n.startswith(f"command-client-{flow}")]
    except KeyError:
        return ""
    return next((text.decode("utf-8", "replace") for text in said if text.strip()), "")


def over(
    path: str,
    commands: Mapping[Which, Sequence[str]],
    engine: engines.Kind,
    metric: str | None,
    better: Direction,
    *,
    server: str | None = None,
    limit: str | None = None,
) -> Over:
    """Returns the programs over a link: that of a scenario's file, or of words (`lab.linked`).

    They take the place of the client of the scenario's first flow with own programs. A scenario
    without such a flow gets one with the hosts of its first flow. `limit` is the duration of runs.
    """
    scenario = of_words(path) if " " in path and not Path(path).exists() else Scenario.load(path)
    listed = scenario.as_dict().get("flows")
    flows: list[Object] = []
    for one in listed if isinstance(listed, list) else ():
        assert isinstance(one, dict)
        flows.append(one)
    own = [n for n, one in enumerate(flows) if str(one["app"]).split()[0] == APP]
    if not flows:
        raise TrialError(f"{path} has no flow, which would say between which hosts A and B run")
    if not own:
        own.append(len(flows))
        flows.append({"from": flows[0]["from"], "to": flows[0]["to"], "app": APP, "name": NAME})
    column = "fct_mean" if metric is None else "score" if better == "higher" else "cost"
    flow = flows[own[0]]
    name = str(flow.setdefault("name", APP))
    if server is not None:
        flow["server"] = server
    if "server" not in flow:
        flow.setdefault("folder", str(Path.cwd()))
    if engine.virtual:
        flow.setdefault("start", "uniform 0s 100ms")
    if metric is not None:
        flow["metric"] = {column: metric}
    changes: Object = {"duration": limit} if limit else {}
    made: dict[Which, Scenario] = {}
    for which, words in commands.items():
        flows[own[0]] = {**flow, "client": shlex.join(words)}
        made[which] = scenario.replace({**changes, "flows": [*flows]})
    options = {} if engine.virtual else {"options": Options(briefly=True)}
    runner = engine.make(**options)
    return Over(made, commands, runner, f"{name}.{column}", engine.virtual)
