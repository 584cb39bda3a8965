"""Placement of a scenario's queue: machine, interface and direction."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn import _core
from sojourn.own.sources import is_own
from sojourn.scenario.errors import Problem, ScenarioError
from sojourn.scenario.summary import rates_of
from sojourn.scenario.topology import NO_CELLS
from sojourn.scenario.words import interface_fault

if TYPE_CHECKING:
    from sojourn.scenario.scenario import Scenario

SHARE_PERCENT = 95
"""Rate of the shaper in percent of the line rate, so that the queue forms in the shaper."""

ETHERNET = 14
"""Bytes of the Ethernet header: lengths here include it, CAKE's `overhead` does not."""

DEFAULT_INTERFACE = "eth0"
"""The interface in commands if none is given."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A queue inside a shaper, on an interface of a machine."""

    queue: dict[str, Any]
    """The queue's parameters in the plan; for CAKE including its shaper."""
    machine: str | None
    """The node; None if several machines get the queue."""
    where: str
    """Machine and interface in words."""
    other: str | None
    """The node at the other end, if there is exactly one."""
    interface: str
    ingress: bool
    """Whether the machine is the receiver of the bottleneck's traffic."""
    rate: int
    """Rate of the shaper in bit/s."""
    line: int
    """Lowest rate of the line in bit/s."""
    varies: bool
    """Whether the line's rate changes during the run."""
    overhead: int
    """Bytes that each packet occupies on the line in addition to its length."""
    router: tuple[str, ...]
    """Words of the user's that matter on a router but not in a simulation, such as `nat`."""
    own: bool
    """Whether the queue is the machine's own (`host_queue`), at an interface of the line's rate."""
    cells: str
    """Cells into which the line divides packets: `none`, `atm`, `ptm`."""

    @property
    def name(self) -> str:
        """Returns the discipline's name."""
        return str(self.queue["name"])

    @property
    def modelled(self) -> str:
        """The kernel's words for the queue; raises `NoKernelEquivalent` if Linux lacks it."""
        return _core.queue_to_tc(json.dumps(self.queue))

    @property
    def words(self) -> str:
        """Returns the queue in the kernel's words, with words that matter on a router only."""
        return " ".join([self.modelled, *self.router])

    def commands(
        self, device: str, parent: str | None = None, handle: str | None = None
    ) -> list[str]:
        """Returns the commands that put the queue on a device; raises `NoKernelEquivalent`."""
        first, *more = _core.queue_commands(json.dumps(self.queue), device, parent, handle)
        return [" ".join([first, *self.router]), *more]

    @property
    def is_tree(self) -> bool:
        """Returns whether the queue takes several commands of `tc`."""
        return len(self.commands(self.shaped)) > 1

    @property
    def is_cake(self) -> bool:
        """Returns whether the queue is CAKE.

        CAKE shapes, splits merged packets and knows framings.
        """
        return self.name == "cake"

    @property
    def shapes_itself(self) -> bool:
        """Returns whether the queue sends slower than the line."""
        rate = _core.queue_rate(json.dumps(self.queue))
        return self.is_cake or (rate is not None and rate < self.line)

    @property
    def is_root(self) -> bool:
        """Returns whether the queue needs no shaper around it."""
        return self.own or self.shapes_itself

    @property
    def shaped(self) -> str:
        """Returns the device that has the queue: for incoming traffic an `ifb` device."""
        return f"ifb-{self.interface}"[:15] if self.ingress else self.interface


def senders_receivers(scenario: Scenario) -> tuple[list[str], list[str]]:
    """Returns the senders and the receivers at the bottleneck, each node once."""
    plan = scenario.plan()
    links = [plan["links"][i] for i in plan["observe"]["bottleneck"]["links"]]

    def names(end: str) -> list[str]:
        indices = dict.fromkeys(link[end] for link in links if link[end] is not None)
        return [plan["nodes"][index]["name"] for index in indices]

    return names("from"), names("to")


def place(scenario: Scenario, interface: str | None, machine: str | None) -> Placement:
    """Returns the place of the bottleneck's queue if `machine` is the user's own.

    `interface` and `machine` default to those of the scenario's `[deploy]`, then to the sender's.
    """
    asked = scenario.model.deploy
    dev = interface if interface is not None else asked.interface or DEFAULT_INTERFACE
    if fault := interface_fault(dev):
        raise ScenarioError([Problem(fault)])
    machine = machine or asked.machine
    plan = scenario.plan()
    links = [plan["links"][i] for i in plan["observe"]["bottleneck"]["links"]]
    if any("trace" in link["params"] for link in links):
        text = "follows a trace, and a shaper needs one rate: give the bottleneck a rate"
        raise ScenarioError([Problem(f"`{scenario.bottleneck}` {text}")])
    senders, receivers = senders_receivers(scenario)
    ingress = machine is not None and machine not in senders
    if ingress and machine not in receivers:
        raise ScenarioError([Problem(_no_end(scenario, machine, senders, receivers))])
    medium = None
    if any(link["to"] is None for link in links):
        media = {plan["media"][link["medium"]]["name"] for link in links}
        medium = f"the shared medium `{media.pop()}`"
    here, there = (receivers, senders) if ingress else (senders, receivers)
    named = f"`{machine}`" if machine else _called(here)
    where = f"on {named}, on its interface towards {medium or _called(there)}"
    least = {link["name"]: min(rates_of(link, plan["duration"])) for link in links}
    link = min(links, key=lambda link: least[link["name"]])
    line = least[link["name"]]
    at_line = not ingress and all(link.get("host_queue", False) for link in links)
    rate = line if at_line else line * SHARE_PERCENT // 100
    cells = link["params"].get("cells", NO_CELLS)
    params = link["params"]["queue"]
    if not is_own(scenario.queue):
        # Parsed again for the shaper's rate, because RED's idle time depends on it.
        params = json.loads(_core.parse_queue(scenario.queue, 1514, 1000, rate))
    overhead = link["params"]["overhead"]
    own = _core.queue_rate(json.dumps(params))
    if params["name"] == "cake":
        rate = min(own or rate, line * SHARE_PERCENT // 100)
        _shape(params, rate, overhead, cells, ingress=ingress)
    elif own is not None and own < line:
        rate = own
    elif cells == "ptm":
        rate = rate * 64 // 65  # other shapers cannot express these cells
    return Placement(
        queue=params,
        machine=machine or (here[0] if len(here) == 1 else None),
        where=f"{where} ({scenario.bottleneck})",
        other=there[0] if len(there) == 1 and not medium else None,
        interface=dev,
        ingress=ingress,
        rate=rate,
        line=line,
        varies=line != link["params"]["rate"],
        overhead=overhead,
        router=_router_words(scenario.queue) if params["name"] == "cake" else (),
        own=at_line,
        cells=cells,
    )


def rate_text(rate: int) -> str:
    """Returns a rate in `tc`'s words, in whole kbit/s where possible."""
    return f"{rate}bit" if rate % 1000 else f"{rate // 1000}kbit"


def _router_words(queue: str) -> tuple[str, ...]:
    """Returns CAKE's words on address translation and firewall marks, as given."""
    words = queue.split()
    found = ["nat"] if "nat" in words else []
    if "fwmark" in words[:-1]:
        found += words[words.index("fwmark") :][:2]
    return tuple(found)


def _no_end(
    scenario: Scenario, machine: str | None, senders: list[str], receivers: list[str]
) -> str:
    ends = [f"{_called(senders)} sends"]
    if receivers:
        ends.append(f"{_called(receivers)} receives")
    return (
        f"`{machine}` is at neither end of `{scenario.bottleneck}`, where the queue belongs: "
        f"{' and '.join(ends)}"
    )


def _called(names: list[str]) -> str:
    return f"each of `{names[0]}` to `{names[-1]}`" if len(names) > 1 else f"`{names[0]}`"


def _shape(cake: dict[str, Any], rate: int, overhead: int, cells: str, *, ingress: bool) -> None:
    """Gives CAKE the rate, overhead and cells of the scenario's link."""
    cake["bandwidth"] = rate
    cake["ingress"] = cake["ingress"] or ingress
    if (overhead or cells != NO_CELLS) and cake["framing"]["overhead"] is None:
        cake["framing"] |= {"overhead": overhead + ETHERNET, "cells": cells}
