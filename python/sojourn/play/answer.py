"""A page's request to its answer: read, change, simulate, tell."""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sojourn._core import NoKernelEquivalent
from sojourn.play import controls, shape, simulation
from sojourn.play.state import CHARACTERS, State
from sojourn.play.style import looks
from sojourn.scenario import Scenario, ScenarioError
from sojourn.show.html import toml

Json = dict[str, Any]

BODY = CHARACTERS + 16 * 1024
"""Bytes of a request."""


class RequestError(ValueError):
    """A request that says nothing."""


class Request(BaseModel):
    """What a page asks."""

    model_config = ConfigDict(extra="forbid", strict=True)

    page: str = Field(pattern=r"^[A-Za-z0-9]{1,64}$")
    """The page's own name, so that its newer request ends its older one."""
    number: int = Field(ge=0, le=2**53 - 1)
    fragment: str | None = None
    """The state from which the changes go; the server's own if there is none."""
    changes: controls.Changes = controls.Changes()

    @classmethod
    def read(cls, body: bytes) -> Request:
        """The request in a body; raises `RequestError`."""
        try:
            return cls.model_validate_json(body)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            key = ".".join(str(part) for part in first["loc"])[:80]
            raise RequestError(f"{key}: {first['msg']}" if key else first["msg"]) from None


def state_of(request: Request, start: State) -> State:
    """The state that a request asks for; raises `StateError` or `ScenarioError`."""
    fragment = request.fragment
    base = start if fragment is None else State.read(fragment, start.scenario.held)
    return controls.apply(base, request.changes)


def answer(state: State, meter: simulation.Meter) -> Json:
    """Everything that a page shows of a state.

    Raises `Cancelled`. Where a request would cost too much there is an `error` in place of runs.
    """
    found = _described(state)
    try:
        return {"runs": _runs(state, meter), **found}
    except simulation.TooMuch as error:
        return {"error": str(error), **found}


def _runs(state: State, meter: simulation.Meter) -> list[Json]:
    scenario, compared = state.scenario, state.compared
    simulation.check(scenario, meter.bounds)
    runs = [simulation.simulate(scenario, state.seed, meter)]
    if compared is not None:
        runs.append(simulation.simulate(compared, state.seed, meter))
    return runs


def _described(state: State) -> Json:
    scenario = state.scenario
    plan = scenario.plan()
    return {
        "fragment": state.fragment,
        "name": scenario.name,
        "description": scenario.model.description,
        "duration": plan["duration"] / 1e9,
        "warmup": plan["warmup"] / 1e9,
        "bottleneck": scenario.bottleneck,
        "shape": shape.shape(scenario),
        "controls": controls.shown(state),
        "colours": looks([q for q in (scenario.queue, state.pinned) if q is not None]),
        "tc": _tc(state),
        "toml": saved(state),
        "file": f"{_slug(scenario.name)}.toml",
        "notes": [*(note for note in scenario.warnings() if note), *_beside(scenario)],
    }


def _beside(scenario: Scenario) -> list[str]:
    """What to know of the files that a scenario names."""
    return [
        f"it reads `{name}`, which must lie beside the scenario where that is saved; the address "
        "of this page opens only where this scenario's file is played"
        for name in scenario.files
    ]


def saved(state: State) -> str:
    """The scenario as a file."""
    head = [
        "# Saved by `sojourn play`.",
        "#",
        "#   sojourn run FILE",
        "#   sojourn compare FILE",
    ]
    return "\n".join(head) + "\n\n" + toml.dump(state.scenario.as_dict())


def _tc(state: State) -> Json:
    try:
        return {"text": str(state.scenario.to_tc())}
    except NoKernelEquivalent as error:
        return {"none": str(error)}
    except ScenarioError as error:
        return {"none": "\n".join(problem.message for problem in error.problems)}


def _slug(name: str) -> str:
    """A name as a file's: letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "scenario"


def text(value: Json) -> bytes:
    """An answer as JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
