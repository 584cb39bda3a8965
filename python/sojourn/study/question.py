"""What is asked of a comparison: which metric decides, and which conditions are kept to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sojourn.metrics import base, direction, unit
from sojourn.plans import store_in
from sojourn.scenario import Scenario
from sojourn.study.errors import StudyError
from sojourn.study.expression import Comparison as Condition
from sojourn.study.metrics import expect, nearest

BY = "sojourn_p95"
SUBJECT_TO = "goodput >= 95% of best"


def usual(scenario: Scenario) -> tuple[str, str]:
    """Return what is asked if nobody says: a metric and a condition.

    Of a store it is the tail of the latency. Requests that are not acknowledged have none, so who
    gives up more of them would look faster: hence the condition.
    """
    store = store_in(json.loads(scenario.plan_json))
    if store is None:
        return BY, SUBJECT_TO
    return f"{store['name']}.latency_p99", f"{store['name']}.acknowledged >= 99% of best"


def _several(metric: str, bottleneck: Mapping[str, Any]) -> None:
    """Refuse a metric that compares the bottleneck's links, if it is one, and of others."""
    here = bottleneck["name"]
    if len(bottleneck["links"]) < 2 or metric not in (base(metric), f"{here}.{base(metric)}"):
        raise StudyError(
            f"{metric}: compares the links of a bottleneck that is several, such as "
            f'bottleneck = "servers"; here that is {here}'
        )


def sensible(
    scenario: Scenario, by: str, conditions: Sequence[Condition], compared: Sequence[str]
) -> None:
    """Refuse what can be known to be wrong with a question before any run is made."""
    plan = json.loads(scenario.plan_json)
    subject = plan["observe"]["bottleneck"]["name"]
    links = list(dict.fromkeys([*(link["name"] for link in plan["links"]), subject]))
    media = [medium["name"] for medium in plan.get("media", [])]
    groups = {group["name"]: group["app"]["name"] for group in plan["groups"]}
    store = store_in(plan)
    stores: list[str] = []
    if store is not None:
        name = store["name"]
        hosts = [plan["nodes"][node["node"]] for node in store["nodes"]]
        stores = [name, f"{name}.writes", f"{name}.reads", *(f"{name}.{host}" for host in hosts)]
    balancers = [balancer["name"] for balancer in plan.get("balancers", [])]
    for metric in (by, *(c.metric for c in conditions)):
        expect(metric, links, groups, media, stores, balancers)
        if base(metric) == "utilisation_jain":
            _several(metric, plan["observe"]["bottleneck"])
    if direction(by) is None:
        raise StudyError(f"{by}: whether less or more of it is better cannot be said")
    for condition in conditions:
        if condition.of is None:
            condition.absolute(unit(condition.metric))
        elif condition.of != "best" and condition.of not in compared:
            close = nearest(condition.of, compared)
            hint = f": did you mean `{close}`?" if close else f"; there are {', '.join(compared)}"
            raise StudyError(f"`{condition}`: `{condition.of}` is not compared{hint}")
        elif condition.of == "best" and direction(condition.metric) is None:
            raise StudyError(f"`{condition}`: of {condition.metric} there is no best")
