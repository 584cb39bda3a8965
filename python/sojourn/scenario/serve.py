"""The command by which a real switch selects servers by a scenario's policy."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from math import gcd

from sojourn import _core
from sojourn.own.errors import OwnError
from sojourn.own.sources import is_own
from sojourn.own.text import balancer_text, described
from sojourn.plan import Plan
from sojourn.plan.balance import Policy
from sojourn.plan.link import Params
from sojourn.plan.queries import mean_rate
from sojourn.scenario.models import MOST_WEIGHT
from sojourn.scenario.scenario import Scenario

SEEN = "backlog"
"""Signal of policies that observe backlogs, which OpenFlow does not report."""


COUNTED = ("connections", "latency")
"""Signals of policies that a controller derives from the ends of flows."""


def looks_at(policy: str) -> str:
    """Returns the signal that a policy of the engine or of the user observes."""
    if not is_own(policy):
        return str(_core.Balancer(policy, ["a"]).needs["look"])
    try:
        return str(described(policy).options.get("look", ""))
    except OwnError:  # the user may have moved the file
        return ""


def looks_at_queues(policy: str) -> bool:
    """Returns whether a policy uses backlogs, which OpenFlow does not report."""
    return looks_at(policy) == SEEN


def chosen_by(scenario: Scenario, balancer: str, policy: str) -> dict[str, object]:
    """Returns the changes of the scenario that give a balancer a policy for a comparison.

    If the policy uses weights and the scenario sets none, the rates of the servers' links become
    the weights.
    """
    key = f"balancers.{balancer}"
    changes: dict[str, object] = {f"{key}.policy": policy}
    if "weights" in scenario.model.balancers[balancer].model_fields_set:
        return changes
    changed = scenario.replace(changes).plan
    chosen = next(b for b in changed.balancers if b.name == balancer)
    if not _needs(chosen.policy, changed)["weights"]:
        return changes
    ports = [changed.links[server.port].params for server in chosen.servers]
    weights = _reduced([mean_rate(port) for port in ports])
    return changes if len(set(weights)) == 1 else changes | {f"{key}.weights": weights}


def unweighted(scenario: Scenario, balancer: str) -> bool:
    """Returns whether servers have different service times and the scenario sets no weights."""
    given = scenario.model.balancers[balancer]
    return len(set(given.service or ())) > 1 and "weights" not in given.model_fields_set


def _reduced(rates: list[int]) -> list[int]:
    """Returns the rates divided by a common unit, as whole numbers within the bounds of weights."""
    unit = max(gcd(*rates), -(-max(rates) // MOST_WEIGHT))
    return [max(1, round(rate / unit)) for rate in rates]


def _needs(policy: Policy, plan: Plan) -> Mapping[str, object]:
    """Returns the inputs that the policy of a plan's balancer needs, by name."""
    return _core.Balancer(balancer_text(policy, plan.sources), ["a"]).needs


def serve_command(scenario: Scenario, balancer: str) -> str:
    """Returns the `sojourn lb serve` command for a balancer, with placeholders in capitals."""
    plan = scenario.plan
    chosen = next(b for b in plan.balancers if b.name == balancer)
    policy = scenario.model.balancers[balancer].policy
    needs = _needs(chosen.policy, plan)
    lines = [f"sojourn lb serve --policy {shlex.quote(policy)} --address VIRTUAL-ADDRESS"]
    for n, server in enumerate(chosen.servers, 1):
        said = [f"{plan.nodes[server.node].name}=ADDRESS{n}@PORT{n}"]
        if server.weight != 1 and needs["weights"]:
            said.append(f"weight={server.weight}")
        said += _of_port(plan.links[server.port].params, needs)
        lines.append(f"  --server {','.join(said)}")
    if needs["look"] == SEEN:
        ports = ",".join(f"INTERFACE{n}" for n in range(1, len(chosen.servers) + 1))
        lines.append(f"  --backlog netlink:{ports}")
    return " \\\n".join(lines)


def _of_port(params: Params, needs: Mapping[str, object]) -> list[str]:
    """Returns the words on a port's rate and queue limit that the policy needs."""
    said = []
    if needs["rates"] and params.rate:
        said.append(f"rate={_core.format_quantity('rate', params.rate)}")
    limit = getattr(params.queue, "limit", None)
    if needs["limits"] and limit:
        unit = "p" if getattr(params.queue, "unit", "") == "packets" else ""
        said.append(f"limit={limit}{unit}")
    return said
