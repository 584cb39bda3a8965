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

from sojourn import lazy

__getattr__, __dir__, __all__ = lazy.exports(__name__)
