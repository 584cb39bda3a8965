"""The machine, interface and direction at which a scenario's queue is put to work."""

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
"""Part of the line's rate at which the shaper sends, so that the queue forms before the line."""

ETHERNET = 14
"""Bytes of the header that lengths here count and CAKE's `overhead` does not."""

DEFAULT_INTERFACE = "eth0"
"""The interface that commands name where none is known."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A queue inside a shaper, on an interface of a machine."""

    queue: dict[str, Any]
    """The queue's parameters in the plan, those of CAKE with its shaper."""
    machine: str | None
    """The node, or None where several machines get the queue."""
    where: str
    """Machine and interface in words."""
    other: str | None
    """The node at the other end, if it is one."""
    interface: str
    ingress: bool
    """Whether the machine receives what the bottleneck carries."""
    rate: int
    """Rate of the shaper in bit/s."""
    line: int
    """The least rate of the line in bit/s."""
    varies: bool
    """Whether the line's rate changes during the run."""
    overhead: int
    """Bytes that each packet takes on the line beyond its length."""
    router: tuple[str, ...]
    """The user's words that have no effect in a simulation, but on a router, such as `nat`."""
    own: bool
    """Whether the queue is the machine's own (`host_queue`), at an interface of the line's rate."""
    cells: str
    """Cells into which the line cuts packets: `none`, `atm`, `ptm`."""

    @property
    def name(self) -> str:
        """The discipline's name."""
        return str(self.queue["name"])

    @property
    def modelled(self) -> str:
        """The queue in the kernel's words; raises `NoKernelEquivalent` where Linux has none."""
        return _core.queue_to_tc(json.dumps(self.queue))

    @property
    def words(self) -> str:
        """The same with the words that matter on a router only."""
        return " ".join([self.modelled, *self.router])

    def commands(
        self, device: str, parent: str | None = None, handle: str | None = None
    ) -> list[str]:
        """The commands that put it on a device; raises `NoKernelEquivalent`."""
        first, *more = _core.queue_commands(json.dumps(self.queue), device, parent, handle)
        return [" ".join([first, *self.router]), *more]

    @property
    def is_tree(self) -> bool:
        """Whether it takes several commands of `tc`."""
        return len(self.commands(self.shaped)) > 1

    @property
    def is_cake(self) -> bool:
        """Whether it is a CAKE, which shapes, splits merged packets and knows framings."""
        return self.name == "cake"

    @property
    def shapes_itself(self) -> bool:
        """Whether the queue sends slower than the line."""
        rate = _core.queue_rate(json.dumps(self.queue))
        return self.is_cake or (rate is not None and rate < self.line)

    @property
    def is_root(self) -> bool:
        """Whether the queue needs no shaper around it."""
        return self.own or self.shapes_itself

    @property
    def shaped(self) -> str:
        """The device that carries the queue: for incoming traffic an `ifb` device."""
        return f"ifb-{self.interface}"[:15] if self.ingress else self.interface


def senders_receivers(scenario: Scenario) -> tuple[list[str], list[str]]:
    """The nodes that send on the bottleneck and those that receive, each once."""
    plan = scenario.plan()
    links = [plan["links"][i] for i in plan["observe"]["bottleneck"]["links"]]

    def names(end: str) -> list[str]:
        indices = dict.fromkeys(link[end] for link in links if link[end] is not None)
        return [plan["nodes"][index]["name"] for index in indices]

    return names("from"), names("to")


def place(scenario: Scenario, interface: str | None, machine: str | None) -> Placement:
    """Finds where the bottleneck's queue belongs if `machine` is the user's own.

    `interface` and `machine` default to those of the scenario's `[deploy]`, and without these to
    the machine that sends.
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
        # Read again for the shaper's rate: RED's idle time follows from the rate it drains at.
        params = json.loads(_core.parse_queue(scenario.queue, 1514, 1000, rate))
    overhead = link["params"]["overhead"]
    own = _core.queue_rate(json.dumps(params))
    if params["name"] == "cake":
        rate = min(own or rate, line * SHARE_PERCENT // 100)
        _shape(params, rate, overhead, cells, ingress=ingress)
    elif own is not None and own < line:
        rate = own
    elif cells == "ptm":
        rate = rate * 64 // 65  # no other shaper has words for it
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
    """A rate in `tc`'s words, which counts in whole kbit/s where it can."""
    return f"{rate}bit" if rate % 1000 else f"{rate // 1000}kbit"


def _router_words(queue: str) -> tuple[str, ...]:
    """CAKE's words about translated addresses and the firewall's marks, as they were given."""
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
    """Has a CAKE do what the link does in the scenario."""
    cake["bandwidth"] = rate
    cake["ingress"] = cake["ingress"] or ingress
    if (overhead or cells != NO_CELLS) and cake["framing"]["overhead"] is None:
        cake["framing"] |= {"overhead": overhead + ETHERNET, "cells": cells}
