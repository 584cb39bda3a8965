"""The answer of a comparison in words, and as a plain-text table."""

from __future__ import annotations

import math

from sojourn.metrics import Interest, base, find, label, percent, quality, views
from sojourn.scenario.serve import COUNTED, looks_at, looks_at_queues
from sojourn.study import quantities
from sojourn.study.causes import Cause
from sojourn.study.compared import Compared, Entry
from sojourn.study.metrics import store_of


def words(metric: str) -> str:
    """Returns the readable name of a metric, with the link or group of flows that it concerns."""
    owner = metric.rpartition(".")[0]
    return f"{label(metric)} of {owner}" if owner else label(metric)


def listed(names: list[str]) -> str:
    """Returns names joined by commas and "and"."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def interest_text(metric: str, interest: Interest) -> str:
    """Returns the smallest difference of interest of a metric in words, with its source."""
    entry = find(metric)
    if entry is None:
        return "any difference"
    text = entry.interest_text(interest)
    return f"{text} ({interest.source.partition(';')[0].partition(':')[0]})"


def answer(c: Compared) -> str:
    """Returns the answer in sentences: what limited the runs, the best choice, and the others.

    Classes that no packet reached limited nothing, and come last.
    """
    said = {cause: _cause(c, cause) for cause in c.causes}
    last = [text for cause, text in said.items() if cause.kind == "unreached"]
    first = [text for cause, text in said.items() if cause.kind != "unreached"]
    return " ".join([*first, _ranked(c), *last])


def _cause(c: Compared, cause: Cause) -> str:
    """Returns the sentences on a cause, with the choices concerned unless it concerns all."""
    if len(cause.choices) == len(c.entries):
        return cause.text
    return f"With {listed([c.short[choice] for choice in cause.choices])}: {cause.text}"


def _ranked(c: Compared) -> str:
    unit = c.unit(c.by)
    fit = [e for e in c.entries if e.feasible]
    if not fit:
        if not any(math.isfinite(e.value.estimate) for e in c.entries):
            return " ".join([f"No run has a value of {c.by}.", *_found(c)])
        return " ".join([f"No {c.noun} meets the condition {c.subject_to}.", _outs(c), *_found(c)])
    best, extreme = fit[0], "lowest" if c.better == "lower" else "highest"
    names = c.short
    value = quantities.mean(best.value, unit, c.by) + _opinion(c, best)
    text = f"{names[best.choice]} has the {extreme} {words(c.by)}: {value}"
    if not c.decided and len(c.seeds) > 1:
        text = f"Inconclusive. {text}"
    if len(c.seeds) == 1:
        text += ", in one run. One seed gives no interval, so nothing is decided."
        return " ".join(filter(None, [text, _outs(c), *_found(c)]))
    some = f"{best.value.n} of " if best.value.n < len(c.seeds) else ""
    text += f" (mean of {some}{len(c.seeds)} seeds ± half of the 95 % interval)."
    text += " " * best.value.wide + quantities.wide([best.value])
    as_good = [names[e.choice] for e in fit if e.verdict == "as good as"]
    if as_good:
        text += f" {listed(as_good)} {'performs' if len(as_good) == 1 else 'perform'} equally well."
    behind = [e for e in fit if e.verdict == "worse"]
    if behind:
        text += f" {_gap(behind[0], best, c, unit)}{_present(c, behind)}"
    text += _open(c, fit)
    stopped = c.stopping.description(names) if c.stopping else ""
    parts = [text, _otherwise(c), _outs(c), _same(c), _alike(c), stopped, *_found(c)]
    return " ".join(filter(None, parts))


def _found(c: Compared) -> list[str]:
    """Returns sentences on runs that say too little."""
    return [one.text for one in c.findings]


def _otherwise(c: Compared) -> str:
    """Returns sentences on groups of flows for which another choice is better."""
    names = c.short
    said = []
    for found in c.otherwise:
        unit = c.unit(found.metric)
        value, behind = (
            quantities.estimate(i, unit, found.metric) for i in (found.value, found.behind)
        )
        said.append(
            f"But for {found.metric.rpartition('.')[0]}, {names[found.choice]} is better: "
            f"{words(base(found.metric))} {value}, against {behind} with "
            f"{names[c.winners[0].choice]} (`--by {found.metric}` ranks by it)."
        )
    return " ".join(said)


def _same(c: Compared) -> str:
    """Returns sentences on choices that gave identical results."""
    names = c.short
    if c.all_equal:
        text = f"All {c.noun}s gave identical results in every run"
        busy = "the bottleneck was never busy enough for a difference"
        return f"{text}: {busy}." if c.noun == "queue" and c.idle else f"{text}."
    return " ".join(
        f"{listed([names[q] for q in queues])} gave identical results in every run."
        for queues in c.same
    )


def blind(c: Compared) -> str:
    """Returns a note on inputs of the best policy that OpenFlow reports late or not at all.

    For queue lengths, the note names an alternative policy if there is one. The note is empty if no
    policies are compared or the best policy has no such inputs.
    """
    factor = f"balancers.{c.policy_of}.policy"
    if c.policy_of is None or not c.winners:
        return ""
    best = str(c.winners[0].levels[factor])
    if looks_at(best) in COUNTED:
        return (
            f"On a switch, {best} counts a flow until the flow has been silent for --idle "
            "seconds, 30 by default. For shorter flows, set --idle just above their longest "
            "silence. Otherwise finished flows count, and servers look equally busy."
        )
    if not looks_at_queues(best):
        return ""
    text = (
        f"{best} needs queue lengths, which OpenFlow does not report. Use --backlog on a switch "
        "whose queues this machine can read."
    )
    others = (e for e in c.entries if e.feasible and not looks_at_queues(str(e.levels[factor])))
    other = next(others, None)
    if other is None:
        return f"{text} No policy in the ranking works without queue lengths."
    least = f"{other.choice} is the best"
    return f"{text} Of the policies that need no queue lengths, {least}."


def _open(c: Compared, fit: list[Entry]) -> str:
    """Returns a sentence on undecided choices, with the number of seeds that would decide them."""
    undecided = [e.choice for e in fit if e.verdict == "inconclusive"]
    if not undecided:
        return ""
    names, seeds = c.short, c.seeds_to_decide
    texts = [
        names[q] + (f" (about {seeds[q]} seeds would decide)" if q in seeds else "")
        for q in undecided
    ]
    return f" Inconclusive with {len(c.seeds)} seeds: {listed(texts)}."


def _alike(c: Compared) -> str:
    if not c.alike:
        return ""
    names = c.short
    text = "All seeds gave the same result"
    if len(c.alike) < len(c.choices):
        text = f"With {listed([names[q] for q in c.alike])} all seeds gave the same result"
    text += " because nothing random affects it. The confidence interval is meaningless."
    if store_of(c.by, c.table.metrics) is not None:
        return text
    spread = 'such as `start = "uniform 0s 1s"`'
    return f"{text} Randomise the flows' start times, {spread}, so that seeds differ."


def _gap(second: Entry, best: Entry, c: Compared, unit: str) -> str:
    name = c.short[second.choice]
    name += ", your present queue," if second.choice == c.own else ""
    value = quantities.estimate(second.value, unit, c.by)
    text = f"Next comes {name} with {value}{_opinion(c, second)}"
    a, b = second.value.estimate, best.value.estimate
    half = second.difference.half_width if second.difference else math.nan
    if a > 0 and b > 0:
        ratio = a / b
        if base(c.by) == "mos":  # its scale begins at 1, so ratios have no meaning
            text += f", {quantities.rounded(b - a, half)} lower"
        elif ratio >= 1.5:
            text += f", {quantities.rounded(ratio, half / b)} times as much"
        elif math.isfinite(ratio):
            text += f", {percent(abs(1 - ratio))} {'more' if ratio > 1 else 'less'}"
    return text + "."


def _opinion(c: Compared, entry: Entry) -> str:
    """Returns the word for the quality of a call, after a comma; empty for other metrics."""
    found = entry.value.estimate
    return f", {quality(found)}" if base(c.by) == "mos" and math.isfinite(found) else ""


def _present(c: Compared, behind: list[Entry]) -> str:
    """Returns the value of the present queue, unless the answer has it already."""
    entry = next((e for e in behind[1:] if e.choice == c.own), None)
    if entry is None:
        return ""
    value = quantities.estimate(entry.value, c.unit(c.by), c.by)
    return f" {c.short[entry.choice]}, your present queue, has {value}{_opinion(c, entry)}."


def _outs(c: Compared) -> str:
    names = c.short
    groups: dict[str, list[str]] = {}
    edge = [names[e.choice] for e in c.entries if any(k.borderline for k in e.checks)]
    for e in c.entries:
        if not e.feasible:
            broken = [k.condition for k in e.checks if not k.met]
            reason = f"missed: {' and '.join(broken)}" if broken else f"{c.by} was not measured"
            groups.setdefault(reason, []).append(names[e.choice])
    parts = [f"{listed(found)} ({reason})" for reason, found in groups.items()]
    text = f"Out of the ranking: {'; '.join(parts)}.{_price(c)}" if parts else ""
    if edge:
        text += (
            f" The condition is met or missed narrowly by {listed(edge)}: more seeds may decide "
            "otherwise."
        )
    return text.strip()


def _price(c: Compared) -> str:
    """Returns a note on the best excluded choice if it is at least 10 % better than the winner."""
    # Of the excluded choices, the best comes first.
    out = next((e for e in c.entries if not e.feasible), None)
    if out is None or not c.winners:
        return ""
    if store_of(c.by, c.table.metrics) is not None:
        return ""  # only acknowledged requests have a latency, so a failing store appears fast
    mine, best = out.value.estimate, c.winners[0].value.estimate
    gain = (best - mine) * (1.0 if c.better == "lower" else -1.0)
    if not gain >= 0.1 * abs(best):
        return ""
    value = quantities.estimate(out.value, c.unit(c.by), c.by)
    return (
        f" Without this condition, {c.short[out.choice]} would lead with {value}. "
        "`--subject-to` changes the condition."
    )


def undecided(c: Compared, own: str) -> str:
    """Returns advice for a comparison that decides nothing; `own` is the scenario's own choice."""
    wanted = max(c.seeds_to_decide.values(), default=4 * len(c.seeds))
    there = f", {c.short[own]}," if own in c.choices else ""
    return (
        f"No commands: with {len(c.seeds)} seeds no {c.noun} is significantly worse than "
        f"{c.short[c.winners[0].choice]}, and none performs equally well. Use more seeds, such "
        f"as --seeds {wanted}, longer runs, or a metric with less variation (--by). If the "
        f"result stays inconclusive, keep the current {c.noun}{there} or take the simplest."
    )


NO_COMMANDS = "No commands: these runs do not show which {} is best (see above)."
"""Sentence in place of commands if the runs say too little; takes the noun of the choices."""


def kept(c: Compared, own: str) -> str:
    """Returns a note if the scenario's own choice `own` is not significantly worse than the best.

    The note is empty if this choice is the best, is worse or was not compared.
    """
    verdict = next((e.verdict for e in c.entries if e.choice == own), None)
    if verdict == "as good as":
        return f"{c.short[own]}, the current {c.noun}, performs equally well: no change is needed."
    if verdict == "inconclusive":
        best = c.short[c.winners[0].choice]
        there = f"{c.short[own]}, the current {c.noun}"
        return f"Inconclusive: {best} may or may not be better than {there}. Use more seeds first."
    return ""


def table_metrics(c: Compared, most: int = 7) -> list[str]:
    """Returns at most `most` metrics, for a table that fits a terminal."""
    if store_of(c.by, c.table.metrics) is not None:
        return list(c.shown_metrics[:most])
    first = [m for m in c.shown_metrics if "." not in m and m != "utilisation"]
    felt = {metric for metrics in views("felt").values() for metric in metrics}
    apps = [m for m in c.shown_metrics if "." in m and base(m) in felt]
    return list(dict.fromkeys([c.by, *first[: most - min(len(apps), 3)], *apps]))[:most]


def plain_table(c: Compared) -> str:
    """Returns the ranking as plain text in aligned columns: letters, choice, and metrics."""
    return quantities.text_table(table_columns(c), 2)


def table_columns(c: Compared) -> list[list[str]]:
    """Returns the ranking as columns of texts: letters, choice, and metrics."""
    columns = [
        ["", "group", *(e.letters or quantities.NOTHING for e in c.entries)],
        ["", c.noun, *(c.labels[e.choice] for e in c.entries)],
    ]
    for metric in table_metrics(c):
        found = [e.value if metric == c.by else e.metrics[metric] for e in c.entries]
        columns.append(quantities.text_column(metric, c.unit(metric), found))
    return columns
