"""`sojourn compare`: the queue or other setting that serves a scenario best."""

from __future__ import annotations

import json
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn import _core, study
from sojourn.cli import answers, bars, deploy, exits, options, output
from sojourn.data import Json
from sojourn.plan.queries import the_store
from sojourn.settings import Option, settings
from sojourn.study import StudyError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sojourn.cli.leaves import Leaves
    from sojourn.cli.options import Chosen, Factors
    from sojourn.cli.words import Word
    from sojourn.scenario import Scenario
    from sojourn.study import AcrossEngines, Comparison
    from sojourn.study.cells import Level


SEEDS = 10
"""Default number of runs (seeds) of each choice."""


@settings
class Candidates:
    """Options that select the compared choices."""

    queues: Annotated[list[str] | None, Option('"QUEUE" ...', complete="queues")] = None
    """Queues to compare, in tc's words; takes all words up to the next option. By default the
    scenario's question.queues, otherwise its own queue, pfifo, red, codel, fq_codel, pie, cobalt
    and cake.
    """
    vary: Annotated[list[str] | None, Option("KEY=A,B")] = None
    """Compare these values of a key, such as store.replication=2,3. Repeat for all combinations of
    several keys. Queues are then compared only with --queues. By default, a store's consistency
    levels are compared.
    """
    policies: Annotated[list[str] | None, Option('"POLICY" ...', complete="policies")] = None
    """Compare policies by which the scenario's balancer selects servers; takes all words up to the
    next option. `all` is the scenario's policy and one of each other kind (`sojourn list
    balancer`).
    """


@settings
class Question:
    """Options for the number of runs, the metric, the conditions and the results."""

    seeds: Annotated[int | None, Option(min=2)] = None
    """Number of runs (seeds) of each choice; 10 by default."""
    by: Annotated[str | None, Option("METRIC", complete="metrics")] = None
    """Metric that ranks the choices (`sojourn list metric`). By default the scenario's question.by,
    otherwise a metric of the interactive flows (of the group with the worst value) or of the store,
    or else sojourn_p95.
    """
    subject_to: Annotated[str | None, Option("EXPR")] = None
    """Conditions that a choice must meet, such as "goodput >= 95% of best and loss <= 1%". By
    default the scenario's question.subject_to, otherwise goodput >= 95% of best (for a store,
    acknowledged >= 99% of best).
    """
    smallest: options.Smallest = None
    settings: options.Settings = None
    warmup: options.Warmup = None
    out: Annotated[Path | None, Option("DIR")] = None
    """Save results in DIR and reuse existing results."""
    confirm: bool = False
    """Run the two best choices on Linux in virtual time too (5 seeds), and say whether the order is
    the same there. Needs a kernel (`sojourn doctor linux`).
    """


@exits.command
def compare(
    file: options.ScenarioFile,
    candidates: Candidates,
    question: Question,
    precise: options.Precise,
    tc: options.FromTc,
    made: options.Made,
    printed: options.Printed,
    as_json: options.AsJson = False,
) -> None:
    """Find the best queue, or the best value of another setting, for a scenario.

    All choices are run with the same seeds. Choices that share a letter in the table do not differ
    significantly. Results are discarded without --out. With --tc, the queue in a file of `tc` is
    compared with the others.
    """
    from sojourn.cli.confirm import confirmation
    from sojourn.cli.leaves import slow

    rule, out = precise.rule(question.seeds), question.out
    seeds = question.seeds or SEEDS
    scenario = tc.loaded(file, question.settings, prints=True)
    plain = options.load(file, question.settings) if tc.tc else scenario
    queues = chosen_queues(tc.queues(plain, candidates.queues or []))
    factors = tc.varied(plain, varied(candidates.vary or []))
    if candidates.policies is not None:
        factors |= of_policies(scenario, candidates.policies)
    if not queues and not factors and scenario.model.store is not None:
        scenario, factors = consistency_levels(scenario)
    if scenario.model.balancers and not factors:
        output.note(
            "queues are compared; to compare balancing policies instead, use `--policies all`"
        )
    stated = scenario
    held = slow(scenario, asked=bool(queues or factors))
    scenario = held.scenario
    listed = queues or ([] if factors else held.beside(default_queues(scenario)))
    listed = tc.beside(scenario, listed)
    many = prod(len(levels) for levels in (listed, *factors.values()) if levels)
    # Mistakes in any queue are reported before the first run.
    with options.blamed("--queues" if queues else None, scenario.queue_keys):
        choices = {queue: scenario.with_queue(queue) for queue in listed}
    warn(scenario, choices, of_policies=candidates.policies is not None)
    precise.check_alone(made.engine)
    levels = [{"queue": listed}, factors] if listed else [factors]
    scenario = warmed(scenario, question.warmup, made.workers, *levels)
    chosen = made.engines()
    chosen.check_simulated(required=question.confirm)
    with (
        made.cluster.connected() as cluster,
        bars.study_progress(f"comparing {many} {'choices' if factors else 'queues'}") as report,
        chosen.refusals(scenario.with_queue(queue).plan for queue in listed or [scenario.queue]),
    ):
        found: Comparison | AcrossEngines
        wanted = study.Comparing(
            listed,
            seeds,
            question.by,
            question.subject_to,
            made.workers,
            out,
            report,
            None if chosen.several else chosen.one,
            cluster,
            factors,
            question.smallest,
            rule,
        )
        if chosen.several:
            found = study.compare_engines(scenario, chosen.by_name, wanted)
        else:
            found = study.comparison_of(scenario, wanted)
    chosen.report_violations()
    keep(found, stated, held)
    if question.by is None and scenario.question.by is None:
        tell_metric(found)
    caution = advised(found, scenario, factors)
    confirmed = confirmation(found, scenario, wanted) if question.confirm else ""
    if as_json:
        data = as_data(found, scenario, chosen, held, out) | (
            {"caution": caution} if caution else {}
        )
        data |= held.as_dict() | ({"confirmation": confirmed} if confirmed else {})
        output.print_data(data, data.get("queues") or data.get("choices"))
    else:
        show(found, scenario, chosen, held, printed, confirmed)
        if caution:
            output.console().print(f"\n{caution}", markup=False, highlight=False)
        if out is not None:
            page = f"`sojourn report {out}` makes figures and a page."
            typer.echo(f"\nThe runs are in {out}; {page}")
    if found.fault is not None:
        exits.fail(str(found.fault))
    chosen.exit_if_invalid()
    exits.negative(not found.ranked)


def tell_metric(found: Comparison | AcrossEngines) -> None:
    """Reports by which metric the choices are compared, if none was asked for."""
    from sojourn.study.question import BY_OTHERWISE

    why = (
        "not every engine measures the usual metric"
        if found.by == BY_OTHERWISE
        else "the default; change it with --by METRIC or [question]"
    )
    output.note(f"compared by {found.by}: {why}")


def warn(scenario: Scenario, choices: Mapping[str, Scenario], *, of_policies: bool) -> None:
    """Prints the warnings on the scenario, on the queues together, and on each.

    `choices` are the scenarios with the queues, by their words. `of_policies` leaves out warnings
    on balancers, because other policies use other keys.
    """
    found = scenario.warnings()
    if of_policies:
        found = [text for text in found if not text.startswith("balancers.")]
    found += [*scenario.shaper_warnings([*choices.values()]), *lifted(scenario, choices)]
    for warning in found:
        output.note(warning)
    for queue, choice in choices.items():
        for warning in choice.warnings():
            if warning not in found:
                output.note(f"{queue}: {warning}")


def lifted(scenario: Scenario, choices: Mapping[str, Scenario]) -> list[str]:
    """Returns a warning if some of the queues do not have the limit of the scenario's queue."""
    from sojourn.cli.leaves import limit

    if (rate := limit(scenario)) is None:
        return []
    faster = [q for q, one in choices.items() if (own := limit(one)) is None or own > rate]
    if not faster:
        return []
    written, line = (_core.format_quantity("rate", one) for one in (rate, scenario.bottleneck_rate))
    told = (
        f"the scenario's queue limits the rate to {written}, and these do not: "
        f"{', '.join(faster)}. They send at up to the line's {line}. To compare them with the same "
        f"limit, put them in a shaper, such as `{in_bucket(rate, 'codel')}`, or give "
        f"`cake bandwidth {written}`"
    )
    return [told]


def in_bucket(rate: int, queue: str) -> str:
    """Returns a queue in a shaper with this rate, in bit/s, and bursts of 4 ms."""
    from sojourn.suites.disciplines import FULL_FRAME

    burst = max(rate // 2000, 2 * FULL_FRAME)
    return f"tbf rate {_core.format_quantity('rate', rate)} burst {burst}b child {queue}"


def warmed(
    scenario: Scenario, warmup: str | None, workers: int | None, *factors: Mapping[str, object]
) -> Scenario:
    """Returns the scenario with the warm-up of `--warmup` for all choices."""
    choices = study.Study(scenario)
    for some in factors if warmup is not None else ():
        choices = choices.vary(some)
    return options.warmed(choices, warmup, workers).scenario


def chosen_queues(texts: list[str]) -> list[str]:
    """Returns the description of each queue in `--queues`.

    A word of a queue without quotes, as in `--queues codel target 5ms`, raises StudyError with the
    remedy.
    """
    from sojourn.scenario.words import queue_description

    words = {
        table["name"]: spellings(table["words"]) for table in json.loads(_core.describe())["queue"]
    }
    first = [text.split(maxsplit=1)[0] if text.strip() else "" for text in texts]
    for number, (before, word) in enumerate(pairwise(first)):
        if word not in words and word in words.get(before, ()):
            rest = range(number + 1, len(texts))
            end = next((n for n in rest if first[n] in words), len(texts))
            raise StudyError(
                f"--queues: `{word}` is a word of {before} and not a queue; a queue of several "
                f'words needs quotes: --queues "{" ".join(texts[number:end])}"'
            )
    return [queue_description(text) for text in texts]


def spellings(words: list[Word]) -> set[str]:
    """Returns the words that a discipline's description may contain."""
    found: set[str] = set()
    for word in words:
        found |= set(map(str, word["of"])) if word["kind"] == "one_of" else {word["name"]}
        found |= {word["off"]} if word["kind"] == "switch" else set()
    return found


def varied(texts: list[str]) -> Factors:
    """Returns the levels of each key in `--vary`, with the changes for each level."""
    from sojourn.scenario import Problem, ScenarioError
    from sojourn.scenario.change import levels

    factors: Factors = {}
    problems: list[Problem] = []
    for text in texts:
        try:
            key, values = levels(text)
        except ScenarioError as error:
            problems += error.problems
            continue
        named: dict[Level, Mapping[str, object]] = {inline(value): {key: value} for value in values}
        if key in factors:
            problems.append(Problem("is already varied: list all its values in one `--vary`", key))
        if key == "queue":
            problems.append(Problem("is varied by `--queues`, not by `--vary`", key))
        if len(named) < len(values):
            problems.append(Problem("a value is listed twice", key))
        factors[key] = named
    if problems:
        raise ScenarioError(problems)
    return factors


def inline(value: Json) -> str | int | float | bool:
    """Returns a value as a level: a list or table as TOML on one line, other values unchanged."""
    if isinstance(value, dict):
        parts = (f"{key} = {inline(inner)}" for key, inner in value.items())
        return f"{{ {', '.join(parts)} }}"
    if isinstance(value, list):
        return f"[{', '.join(str(inline(inner)) for inner in value)}]"
    return value if isinstance(value, (str, int, float, bool)) else str(value)


def consistency_levels(
    scenario: Scenario,
) -> tuple[Scenario, Factors]:
    """Returns the scenario with `consistency` for all requests, and the usual levels as a factor.

    The first level is the scenario's own `consistency`, and the usual levels follow.
    """
    store = the_store(scenario.plan)
    usual = ["one", "quorum", "all"]
    if store.placement.TAG != "simple" and len(store.data_centres) > 1:
        usual = ["local_one", "local_quorum", "quorum", "each_quorum"]
    key = "store.consistency"
    own = scenario.replace({"store.write_consistency": None, "store.read_consistency": None})
    first = the_store(own.plan).write_level
    return own, {key: {level: {key: level} for level in dict.fromkeys([first, *usual])}}


def of_policies(scenario: Scenario, policies: list[str]) -> Factors:
    """Returns the policies as levels of the balancer's key, with the changes for each policy."""
    names = list(scenario.model.balancers)
    if not names:
        raise StudyError(
            "`--policies` requires a balancer, and this scenario has none: add [balancers.NAME] "
            'with `servers` and `policy`, and let flows go to it (`to = "NAME"`)'
        )
    if len(names) > 1:
        raise StudyError(
            "`--policies` requires a scenario with one balancer; this one has "
            f"{', '.join(names)}: select one with `--vary 'balancers.{names[0]}.policy=iqlb,jsq'`"
        )
    from sojourn.scenario.serve import chosen_by, unweighted

    key = f"balancers.{names[0]}.policy"
    if policies == ["all"]:
        own = scenario.model.balancers[names[0]].policy
        kinds = [table["name"] for table in json.loads(_core.describe())["balancer"]]
        policies = [own, *(kind for kind in kinds if kind != own.split()[0])]
    if len(set(policies)) < len(policies):
        raise StudyError("`--policies` lists a policy twice: remove one")
    changes = {policy: chosen_by(scenario, names[0], policy) for policy in policies}
    weighted = {str(one[k]): k for one in changes.values() for k in one if k != key}
    for weights in weighted:
        heeding = [policy for policy, one in changes.items() if len(one) > 1]
        output.note(
            f"weights from the rates of the servers' links, {weights[1:-1]}, are used by "
            f"{', '.join(heeding)}; `--set 'balancers.{names[0]}.weights=[...]'` sets other "
            "weights"
        )
    if unweighted(scenario, names[0]):
        output.note(
            "the servers have different values of `service` but no weights: give faster servers "
            f"more weight with `--set 'balancers.{names[0]}.weights=[...]'`"
        )
    return {key: {policy: changes[policy] for policy in policies}}


def default_queues(scenario: Scenario) -> list[str]:
    """Returns the queues of the scenario's question, otherwise its own queue and the usual ones.

    The usual RED has thresholds computed from the bottleneck's rate. If the own queue limits the
    line's rate, the usual ones have the same limit, with bursts of 4 ms.
    """
    if asked := scenario.asked_queues:
        return asked
    from sojourn.cli.leaves import limit
    from sojourn.suites.disciplines import FULL_FRAME, adaptive_red

    rate = limit(scenario)
    red = adaptive_red(rate or scenario.bottleneck_rate, 1000 * FULL_FRAME)
    usual = ["pfifo limit 1000p", red, "codel", "fq_codel", "pie", "cobalt"]
    if rate is None:
        usual.append("cake")
    else:
        usual = [in_bucket(rate, queue) for queue in usual]
        usual.append(f"cake bandwidth {_core.format_quantity('rate', rate)}")
    own = scenario.bottleneck_link.params.queue
    tried = {q: scenario.with_queue(q).bottleneck_link.params.queue for q in usual}
    others = [q for q in usual if tried[q] != own]
    return [scenario.queue_name, *others]


def keep(found: Comparison | AcrossEngines, scenario: Scenario, held: Leaves) -> None:
    """Keeps the best queue of the scenario in the file and of `--set` for `sojourn tc`."""
    from sojourn.study import AcrossEngines

    if isinstance(found, AcrossEngines) or found.noun != "queue" or not found.winners:
        return
    best = held.best_of([str(one.choice) for one in found.winners])
    if found.decided and best not in held.queues and not (found.is_misplaced or found.meaningless):
        answers.keep(scenario, best, found.by)


def as_data(
    found: Comparison | AcrossEngines,
    scenario: Scenario,
    chosen: Chosen,
    held: Leaves,
    out: Path | None,
) -> dict[str, Json]:
    """Returns a comparison, its folder and the engines' limits as plain data."""
    from sojourn.study import AcrossEngines, ping

    data: dict[str, Json] = {**found.to_dict(), "folder": None if out is None else str(out)}
    if chosen.limits and not chosen.several:
        data["limits"] = {**chosen.limits}
    if known := calibrated(found, scenario, chosen):
        data["calibration"] = known
    if isinstance(found, AcrossEngines) or not (found.winners and found.decided):
        return data
    if found.noun == "queue" and not (found.is_misplaced or found.meaningless):
        best = held.best_of([str(one.choice) for one in found.winners])
        if times := ping.before_after(scenario, best):
            data["ping"] = {"before": times[0], "after": times[1]}
    return data


def show(
    found: Comparison | AcrossEngines,
    scenario: Scenario,
    chosen: Chosen,
    held: Leaves,
    printed: options.Printed,
    confirmed: str,
) -> None:
    """Prints the comparison; for one engine also how to deploy the best queue or policy.

    `confirmed` is the sentence of `--confirm`. If one of the best queues is a tree of `held`, only
    its changed classes are deployed.
    """
    from sojourn.show import print_across, print_comparison
    from sojourn.study import AcrossEngines, ping
    from sojourn.study.answer import NO_COMMANDS, kept, undecided

    if isinstance(found, AcrossEngines):
        print_across(found, output.console())
        return
    print_comparison(found, output.console())
    chosen.tell_limits()
    if known := calibrated(found, scenario, chosen):
        output.console().print(f"\n{known}", markup=False, highlight=False)
    if confirmed:
        output.console().print(f"\n{confirmed}", markup=False, highlight=False)
    own = own_choice(found, scenario)
    if found.is_misplaced or not found.winners:
        return
    if found.noun != "queue" and found.policy_of is None:
        return
    unclear = NO_COMMANDS.format(found.noun) if found.meaningless else ""
    verdict = kept(found, own) if found.decided else undecided(found, own)
    if sentence := unclear or verdict:
        output.console().print(f"\n{sentence}", markup=False, highlight=False)
    if unclear:
        return
    best = own
    if found.decided and found.policy_of is not None:
        serving(found, scenario, found.policy_of)
    elif found.decided:
        best = held.best_of([str(one.choice) for one in found.winners])
        if times := ping.before_after(scenario, best):
            typer.echo(f"\n{ping.sentence(scenario, best, times)}")
        if not held.is_change(best):
            deploy.show(scenario.with_queue(best), printed.interface, printed.form)
    if held.after:
        typer.echo(f"\n{held.advice(printed.interface, best)}")


def own_choice(found: Comparison, scenario: Scenario) -> str:
    """Returns the name of the scenario's own choice, even if it was not compared."""
    if found.policy_of is None:
        return scenario.queue_name
    own = scenario.model.balancers[found.policy_of].policy
    key = f"balancers.{found.policy_of}.policy"
    return next((e.choice for e in found.entries if e.levels[key] == own), own)


def calibrated(found: Comparison | AcrossEngines, scenario: Scenario, chosen: Chosen) -> str | None:
    """Returns what runs by Linux say about the simulated differences; None if not applicable."""
    from sojourn.study import AcrossEngines
    from sojourn.study.calibration import description

    if isinstance(found, AcrossEngines) or chosen.one is not None or found.noun != "queue":
        return None
    return description(found, scenario)


def advised(
    found: Comparison | AcrossEngines,
    scenario: Scenario,
    factors: Factors,
) -> str:
    """Returns which guarantees of a store the best choice lacks; empty for other comparisons."""
    from sojourn.study import AcrossEngines
    from sojourn.study.durability import caution

    def made(levels: Mapping[str, Level]) -> Scenario:
        changes = [factors[key][level] for key, level in levels.items() if key in factors]
        changed = scenario.replace({k: v for one in changes for k, v in one.items()})
        return changed.with_queue(str(levels["queue"])) if "queue" in levels else changed

    return caution(found.first if isinstance(found, AcrossEngines) else found, made)


def serving(found: Comparison, scenario: Scenario, balancer: str) -> None:
    """Prints the command by which an OpenFlow switch uses the best balancing policy."""
    from sojourn.scenario.serve import chosen_by, serve_command
    from sojourn.study.answer import blind

    best, key = found.winners[0], f"balancers.{balancer}.policy"
    typer.echo(
        f"\nTo use {best.choice} on an OpenFlow 1.3 switch (replace the words in capitals):\n"
    )
    chosen = scenario.replace(chosen_by(scenario, balancer, str(best.levels[key])))
    for line in serve_command(chosen, balancer).splitlines():
        typer.echo(f"  {line}")
    if note := blind(found):
        typer.echo(f"\n{note}")
