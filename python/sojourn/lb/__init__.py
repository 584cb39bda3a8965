"""A balancer of flows on an OpenFlow 1.3 switch: `sojourn lb serve`.

Clients send to a virtual address. The switch sends the first packet of each flow to the controller.
A policy of `sojourn._core.Balancer` (the same code as in simulation) chooses a server. Two rules in
the switch then rewrite all further packets of the flow. The controller is an application of os-ken
(the extra `sojourn[openflow]`).

`service` holds the settings, `packets` parses packets from the switch, `rules` writes the switch's
rules, `flows` stores the server of each flow, `director` calls the policy, `application` connects
these parts, and `serve` runs the controller.
"""
