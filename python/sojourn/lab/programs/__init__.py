"""Real programs for a plan's flows, and numbers from their output.

    setup = prepare(plan_json, seed)      # or NotPossible, MissingProgram: nothing is started
    setup.settings                        # sysctls and route attributes, by host
    with Execution(setup, hosts, folder) as execution:
        execution.configure()           # applies the settings
        execution.ready()               # starts servers and waits until they are ready
        execution.play()                # starts clients at the times that the simulator drew
        found = execution.collect()     # a FlowResult for each flow, in the plan's order

`hosts` are the plan's nodes by index, each with the address 10.0.0.0 + node + 1; flow `f` uses the
port 20000 + `f`.

| application | programs |
|---|---|
| `bulk` | iperf3, a server and a client for each flow |
| `web` | nginx at the servers, libcurl (pycurl) at the clients, users by the engine's model |
| `transfer` | Sojourn's endpoints |
| `cbr`, `voip`, `packets`, `replay`, `client`, over UDP or TCP | Sojourn's endpoints |

An endpoint is one process per host. It sends and receives real packets with the same code as the
simulator's hosts (`crates/endpoint`).

`stack` maps a plan's TCP to settings of the kernel, `installed` finds the installed programs.
"""

from sojourn import lazy

__getattr__, __dir__, __all__ = lazy.exports(__name__)
