"""The data of a comparison: for JSON, and as columns of a table."""

from __future__ import annotations

from sojourn import encode, stats
from sojourn.data import Json
from sojourn.study import answer
from sojourn.study.compared import Compared


def as_dict(c: Compared) -> dict[str, Json]:
    """Returns the comparison as data for JSON."""
    own = {} if c.stopping is None else {"until": c.stopping.as_dict()}
    return {**common(c), "decided": c.decided, **own, **details(c), f"{c.noun}s": [*rows(c)]}


def common(c: Compared) -> dict[str, Json]:
    """Returns the question of a comparison, its seeds and its folder."""
    return encode.fields(
        {
            "by": c.by,
            "unit": c.unit(c.by),
            "better": c.better,
            "subject_to": c.subject_to,
            "smallest": c.interest,
            "alpha": c.alpha,
            "seeds": c.seeds,
            "folder": c.results.folder if c.results else None,
            "error": str(c.fault) if c.fault else None,
        }
    )


def details(c: Compared) -> dict[str, Json]:
    """Returns the answer, and the comparison of all pairs and groups of flows."""
    return encode.fields(
        {
            "answer": answer.answer(c),
            "findings": [one.as_dict() for one in c.findings],
            "same": c.same,
            "otherwise": [
                {
                    "metric": o.metric,
                    "unit": c.unit(o.metric),
                    c.noun: o.choice,
                    "value": _mean(o.value),
                    "best_has": _mean(o.behind),
                }
                for o in c.otherwise
            ],
            "pairs": [
                {
                    "a": a,
                    "b": b,
                    "difference": _mean(gap.interval),
                    "level": gap.interval.level,
                    "smallest": gap.smallest,
                    "verdict": c.ranking.verdict(a, b),
                }
                for (a, b), gap in c.ranking.gaps.items()
            ],
        }
    )


def rows(c: Compared) -> list[dict[str, Json]]:
    """Returns the results of each choice, the best first."""
    seeds = {choice: {"seeds_to_decide": number} for choice, number in c.seeds_to_decide.items()}
    return [
        encode.fields(
            {
                c.noun: e.choice,
                **({} if c.noun == "queue" else {"levels": e.levels}),
                "verdict": e.verdict,
                "letters": e.letters,
                "feasible": e.feasible,
                "reason": e.reason,
                "value": _mean(e.value),
                "difference_to_best": None if e.difference is None else _mean(e.difference),
                **seeds.get(e.choice, {}),
                "metrics": {m: {"unit": c.unit(m), **_mean(i)} for m, i in e.metrics.items()},
            }
        )
        for e in c.entries
    ]


def columns(c: Compared) -> dict[str, list[Json]]:
    """Returns the columns of a table with a row for each choice, the best first."""
    columns: dict[str, list[Json]] = {c.noun: [e.choice for e in c.entries]}
    if c.noun != "queue":
        columns |= {name: [e.levels[name] for e in c.entries] for name in c.table.factors}
    columns["group"] = [e.letters for e in c.entries]
    columns["verdict"] = [e.verdict for e in c.entries]
    columns["feasible"] = [e.feasible for e in c.entries]
    for metric in dict.fromkeys((c.by, *c.entries[0].metrics)):
        means = [_mean(e.value if metric == c.by else e.metrics[metric]) for e in c.entries]
        columns[metric] = [i["mean"] for i in means]
        columns[f"{metric}.low"] = [i["low"] for i in means]
        columns[f"{metric}.high"] = [i["high"] for i in means]
    return columns


def _mean(i: stats.Interval) -> dict[str, Json]:
    return encode.fields({"mean": i.estimate, "low": i.low, "high": i.high, "n": i.n})
