"""The command that has a real switch choose servers by a scenario's policy."""

from __future__ import annotations

import shlex
from typing import Any

from sojourn import _core
from sojourn.own.errors import OwnError
from sojourn.own.sources import is_own
from sojourn.own.text import balancer_text, described
from sojourn.scenario.scenario import Scenario

SEEN = "backlog"
"""What policies look at that OpenFlow has no statistic for."""


def looks_at_queues(policy: str) -> bool:
    """Return whether a policy goes by backlogs, which OpenFlow does not tell."""
    if not is_own(policy):
        return bool(_core.Balancer(policy, ["a"]).needs["look"] == SEEN)
    try:
        return bool(described(policy).options.get("look") == SEEN)
    except OwnError:  # the file may be elsewhere by now
        return False


def serve_command(scenario: Scenario, balancer: str) -> str:
    """Return the `sojourn lb serve` for a balancer; what a scenario cannot know is in capitals."""
    plan = scenario.plan()
    chosen = next(b for b in plan["balancers"] if b["name"] == balancer)
    policy = scenario.model.balancers[balancer].policy
    needs = _core.Balancer(balancer_text(chosen["policy"], plan.get("sources", {})), ["a"]).needs
    lines = [f"sojourn lb serve --policy {shlex.quote(policy)} --address VIRTUAL-ADDRESS"]
    for n, server in enumerate(chosen["servers"], 1):
        said = [f"{plan['nodes'][server['node']]['name']}=ADDRESS{n}@PORT{n}"]
        if server["weight"] != 1 and needs["weights"]:
            said.append(f"weight={server['weight']}")
        said += _of_port(plan["links"][server["port"]]["params"], needs)
        lines.append(f"  --server {','.join(said)}")
    if needs["look"] == SEEN:
        ports = ",".join(f"INTERFACE{n}" for n in range(1, len(chosen["servers"]) + 1))
        lines.append(f"  --backlog netlink:{ports}")
    return " \\\n".join(lines)


def _of_port(params: dict[str, Any], needs: dict[str, Any]) -> list[str]:
    """Return what a policy must be told of a port's queue."""
    said = []
    if needs["rates"] and params["rate"]:
        said.append(f"rate={_core.format_quantity('rate', params['rate'])}")
    queue = params["queue"]
    if needs["limits"] and queue.get("limit"):
        said.append(f"limit={queue['limit']}{'p' if queue.get('unit') == 'packets' else ''}")
    return said
