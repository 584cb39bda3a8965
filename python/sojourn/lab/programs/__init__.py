"""Real programs for a plan's flows, and their output turned into numbers.

    lineup = prepare(plan_json, seed)      # or NotPossible, MissingProgram: nothing is started
    lineup.settings                        # sysctls and route attributes, by host
    with Stage(lineup, hosts, folder) as stage:
        stage.configure()                  # settings are told
        stage.ready()                      # servers are started and waited for
        stage.play()                       # clients at the times that the simulator draws
        found = stage.collect()            # a FlowResult for each flow, in the plan's order

`hosts` are the plan's nodes by their index, each with the address 10.0.0.0 + node + 1; flow `f` has
the port 20000 + `f`.

| application | programs |
|---|---|
| `bulk` | iperf3, a server and a client for each flow |
| `web` | nginx at the servers, libcurl (pycurl) at the clients, users by the engine's model |
| `transfer` | our endpoints |
| `cbr`, `voip`, `packets`, `replay`, `client`, over UDP or TCP | our endpoints |

An endpoint is a process of ours, one a host, that sends and takes real packets by the very machines
that drive the simulator's hosts (`crates/endpoint`).

`stack` says what of a plan's TCP the kernel can do, `installed` which programs there are.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sojourn.lab.programs.errors import MissingProgram, NotPossible, Problem
    from sojourn.lab.programs.lineup import Collected, Lineup, Options, prepare
    from sojourn.lab.programs.ping import Ping
    from sojourn.lab.programs.play import Stage
    from sojourn.lab.programs.probe import Probe
    from sojourn.lab.programs.results import (
        BulkResult,
        EndpointResult,
        FlowResult,
        GroupStats,
        PingResult,
        WebResult,
    )
    from sojourn.lab.programs.stack import HostSettings, Kernel, Route

_HOME = {
    "BulkResult": "results",
    "Collected": "lineup",
    "EndpointResult": "results",
    "FlowResult": "results",
    "GroupStats": "results",
    "HostSettings": "stack",
    "Kernel": "stack",
    "Lineup": "lineup",
    "MissingProgram": "errors",
    "NotPossible": "errors",
    "Options": "lineup",
    "Ping": "ping",
    "PingResult": "results",
    "Probe": "probe",
    "Problem": "errors",
    "Route": "stack",
    "Stage": "play",
    "WebResult": "results",
    "prepare": "lineup",
}

__all__ = [
    "BulkResult",
    "Collected",
    "EndpointResult",
    "FlowResult",
    "GroupStats",
    "HostSettings",
    "Kernel",
    "Lineup",
    "MissingProgram",
    "NotPossible",
    "Options",
    "Ping",
    "PingResult",
    "Probe",
    "Problem",
    "Route",
    "Stage",
    "WebResult",
    "prepare",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"sojourn.lab.programs.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
