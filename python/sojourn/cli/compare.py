"""`sojourn compare`: which queue, or which of anything varied, serves a scenario best."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sojourn import _core, study
from sojourn._core import NoKernelEquivalent
from sojourn.cli import bars, exits, options, output
from sojourn.plans import the_store
from sojourn.study import StudyError

if TYPE_CHECKING:
    from sojourn.scenario import Scenario
    from sojourn.study import Comparison


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(compare)


@dataclass(frozen=True)
class Candidates:
    """What is compared."""

    queues: Annotated[
        list[str] | None,
        typer.Option(
            "--queues",
            metavar='"QUEUE" ...',
            help="Queues in tc's words, all words up to the next option; without it the "
            "scenario's own, pfifo, red, codel, fq_codel, pie, cobalt and cake.",
        ),
    ] = None
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="KEY=A,B",
            help="Compare these values of a key instead, such as store.replication=2,3. Repeat "
            "for all combinations. A store's consistency levels by default.",
        ),
    ] = None
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policies",
            metavar='"POLICY" ...',
            help="Compare policies that choose servers behind the scenario's balancer, all words "
            "up to the next option; `all` is one of each kind (`sojourn list balancer`).",
        ),
    ] = None


@dataclass(frozen=True)
class Question:
    """What decides."""

    seeds: Annotated[int, typer.Option("--seeds", min=2, help="Runs of each.")] = 10
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="METRIC",
            help="What decides: see `sojourn list metric`. By default sojourn_p95, of a store "
            "its latency_p99.",
        ),
    ] = None
    subject_to: Annotated[
        str | None,
        typer.Option(
            "--subject-to",
            metavar="EXPR",
            help='What is to be kept to, such as "goodput >= 95% of best and loss <= 1%". By '
            "default goodput >= 95% of best, of a store acknowledged >= 99% of best.",
        ),
    ] = None


@exits.command
def compare(
    file: options.ScenarioFile,
    candidates: Candidates,
    question: Question,
    settings: options.Settings = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Keep the runs here; what is there is used."),
    ] = None,
    *,
    made: options.Made,
    as_json: options.AsJson = False,
) -> None:
    """Find the queue that serves a scenario best, or another setting.

    All meet the same seeds, hence the same arrivals; those that cannot be told apart share a rank.
    Without --out the runs are forgotten.
    """
    scenario = options.load(file, settings)
    queues = candidates.queues
    factors = varied(candidates.vary or [])
    if candidates.policies is not None:
        factors |= of_policies(scenario, candidates.policies)
    if not queues and not factors and scenario.model.store is not None:
        scenario, factors = consistency_levels(scenario)
    if scenario.model.balancers and not factors:
        output.note("queues are compared; `--policies all` compares how servers are chosen")
    listed = queues or ([] if factors else default_queues(scenario))
    many = prod(len(levels) for levels in (listed, *factors.values()) if levels)
    general = scenario.warnings()
    for warning in general:
        output.note(warning)
    for queue in listed:  # what is wrong with one of them is told before anything runs
        for warning in scenario.with_queue(queue).warnings():
            if warning not in general:
                output.note(f"{queue}: {warning}")
    engine = made.engine(as_json)
    with (
        made.cluster.connected() as cluster,
        bars.study_progress(f"comparing {many} {'choices' if factors else 'queues'}") as report,
    ):
        found = study.compare(
            scenario, listed, question.seeds, question.by, question.subject_to, vary=factors,
            out=out, workers=made.workers, progress=report, engine=engine, on=cluster,
        )  # fmt: skip
    options.tell_doubts(engine)
    if as_json:
        kept = {"folder": str(out) if out is not None else None}
        output.print_json(found.to_dict() | kept)
    else:
        show(found, scenario)
        if out is not None:
            told = f"`sojourn report {out}` makes figures and a page."
            typer.echo(f"\nThe runs are in {out}; {told}")
    if found.fault is not None:
        exits.fail(str(found.fault))


def varied(texts: list[str]) -> dict[str, dict[Any, dict[str, Any]]]:
    """What `--vary` says: the levels of each key, with what is to be changed for each."""
    from sojourn.scenario import Problem, ScenarioError
    from sojourn.scenario.change import levels

    factors: dict[str, dict[Any, dict[str, Any]]] = {}
    problems: list[Problem] = []
    for text in texts:
        try:
            key, values = levels(text)
        except ScenarioError as error:
            problems += error.problems
            continue
        named = {inline(value): {key: value} for value in values}
        if key in factors:
            problems.append(Problem("is varied already: give all its values at once", key))
        if key == "queue":
            problems.append(Problem("is what `--queues` varies", key))
        if len(named) < len(values):
            problems.append(Problem("a value stands there twice", key))
        factors[key] = named
    if problems:
        raise ScenarioError(problems)
    return factors


def inline(value: Any) -> str | int | float | bool:
    """A value as it can be a level: what is no plain value, as TOML has it on one line."""
    if isinstance(value, dict):
        parts = (f"{key} = {inline(inner)}" for key, inner in value.items())
        return f"{{ {', '.join(parts)} }}"
    if isinstance(value, list):
        return f"[{', '.join(str(inline(inner)) for inner in value)}]"
    return value if isinstance(value, (str, int, float, bool)) else str(value)


def consistency_levels(
    scenario: Scenario,
) -> tuple[Scenario, dict[str, dict[Any, dict[str, Any]]]]:
    """The usual consistency levels of a store, its own first, and the scenario that they vary."""
    store = the_store(scenario.plan())
    usual = ["one", "quorum", "all"]
    if store["placement"]["strategy"] != "simple" and len(store["data_centres"]) > 1:
        usual = ["local_one", "local_quorum", "quorum", "each_quorum"]
    key = "store.consistency"
    own = scenario.replace({"store.write_consistency": None, "store.read_consistency": None})
    first = the_store(own.plan())["write_level"]
    return own, {key: {level: {key: level} for level in dict.fromkeys([first, *usual])}}


def of_policies(scenario: Scenario, policies: list[str]) -> dict[str, dict[Any, dict[str, Any]]]:
    """The policies of the scenario's balancer, as levels of its key."""
    names = list(scenario.model.balancers)
    if not names:
        raise StudyError(
            "policies choose servers, and this scenario has no balancer: add [balancers.NAME] with "
            '`servers` and `policy`, and let flows go to it (`to = "NAME"`)'
        )
    if len(names) > 1:
        raise StudyError(
            f"policies of which balancer? There are {', '.join(names)}; `--vary "
            f"'balancers.{names[0]}.policy=iqlb,jsq'` says which"
        )
    key = f"balancers.{names[0]}.policy"
    if policies == ["all"]:
        own = scenario.model.balancers[names[0]].policy
        kinds = [table["name"] for table in json.loads(_core.describe())["balancer"]]
        policies = [own, *(kind for kind in kinds if kind != own.split()[0])]
    if len(set(policies)) < len(policies):
        raise StudyError("a policy stands twice in the list")
    return {key: {policy: {key: policy} for policy in policies}}


def default_queues(scenario: Scenario) -> list[str]:
    """The scenario's own queue and the usual ones, RED with thresholds that suit the rate."""
    from sojourn.suites.disciplines import FULL_FRAME, adaptive_red

    rate = scenario.bottleneck_rate
    red = adaptive_red(rate, 1000 * FULL_FRAME)
    usual = ["pfifo limit 1000p", red, "codel", "fq_codel", "pie", "cobalt", "cake"]
    own = scenario.bottleneck_link["params"]["queue"]
    tried = {q: scenario.with_queue(q).bottleneck_link["params"]["queue"] for q in usual}
    others = [q for q in usual if tried[q] != own]
    return [scenario.queue, *others]


def show(found: Comparison, scenario: Scenario) -> None:
    """Prints the answer, the ranked table, and how to put the best queue to work."""
    from sojourn.show import print_comparison

    print_comparison(found, output.console())
    if found.winners and found.noun == "queue":
        deployment(scenario.with_queue(found.winners[0].choice))
    if found.winners and found.policy_of is not None:
        serving(found, scenario, found.policy_of)


def deployment(scenario: Scenario) -> None:
    """Prints the commands that put a scenario's queue to work, or why there are none."""
    from sojourn.scenario.errors import ScenarioError

    try:
        commands = scenario.to_tc().commands
    except (NoKernelEquivalent, ScenarioError) as error:  # such as a link that follows a trace
        typer.echo(f"\n{error}")
        return
    typer.echo(f"\nTo use {scenario.queue}:\n")
    for command in commands:
        typer.echo(f"  {command}")


def serving(found: Comparison, scenario: Scenario, balancer: str) -> None:
    """Prints the command that has a switch choose servers by the best policy."""
    from sojourn.scenario.serve import serve_command
    from sojourn.study.answer import blind

    best, key = found.winners[0], f"balancers.{balancer}.policy"
    typer.echo(
        f"\nTo use {best.choice} on an OpenFlow 1.3 switch (what is in capitals is yours):\n"
    )
    chosen = scenario.replace({key: best.levels[key]})
    for line in serve_command(chosen, balancer).splitlines():
        typer.echo(f"  {line}")
    if note := blind(found):
        typer.echo(f"\n{note}")
