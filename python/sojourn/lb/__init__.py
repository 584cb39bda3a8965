"""A balancer of flows on an OpenFlow 1.3 switch: `sojourn lb serve`.

Clients speak to a virtual address; the first packet of each flow comes to us, a policy of
`sojourn._core.Balancer` (the same code as in simulation) chooses a server, and two rules in the
switch rewrite all further packets. The controller is an application of os-ken (the extra
`sojourn[lab]`).

`service` says what is wanted, `packets` reads what the switch sends us, `rules` writes what it is
to do, `flows` remembers who is where, `director` asks the policy, `application` holds them
together, `serve` runs it.
"""
