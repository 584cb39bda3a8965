"""Real programs for the flows of a plan, and measurements from their output.

setup = prepare(plan, seed)         # raises NotPossible or MissingProgram
    setup.settings                      # sysctls and route attributes, by host
    with Execution(setup, hosts, folder) as execution:
        execution.configure()           # applies the settings
        execution.ready()               # starts servers and waits until they are ready
        execution.play()                # starts clients at the times that the seed draws
        found = execution.collect()     # a FlowResult for each flow, in the plan's order

`hosts` are the plan's nodes by number. Node `n` has the address 10.0.0.0 + `n` + 1. Flow `f` uses
the port 20000 + `f`.

| application | programs |
|---|---|
| `bulk` | iperf3, a server and a client for each flow |
| `web` | nginx at the servers, libcurl (pycurl) at the clients; the engine's model of users |
| `transfer`, `cbr`, `voip`, `packets`, `replay`, `client`, a user's source | Sojourn's endpoints |
| `command` | the user's programs |

A host runs at most one endpoint: a process that sends and receives real packets, with the code of
the simulator's hosts (`crates/endpoint`).

The module `stack` maps a plan's TCP to settings of the kernel. The module `installed` finds the
installed programs.
"""

from sojourn import lazy

__getattr__, __dir__, __all__ = lazy.exports(__name__)
