"""Placement of a scenario's queue on a machine: interface, direction and shaper."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from sojourn import _core
from sojourn.own.sources import is_own
from sojourn.plan import decoding
from sojourn.plan.queries import bottlenecks, rates_of
from sojourn.plan.queue.cake import Cake
from sojourn.plan.queue.htb import Htb, HtbClass
from sojourn.plan.queue.tbf import Tbf
from sojourn.scenario.described import Described
from sojourn.scenario.errors import Problem, ScenarioError
from sojourn.scenario.topology import NO_CELLS
from sojourn.scenario.words import interface_fault

if TYPE_CHECKING:
    from sojourn.plan.queue.cake import Cells
    from sojourn.plan.queue.family import Queue
    from sojourn.scenario.installed import Installed

SHARE_PERCENT = 95
"""Rate of the shaper in percent of the line rate, so that the queue forms in the shaper."""

FRAME = 1514
"""Bytes of a full frame."""
ETHERNET = 14
"""Length of the Ethernet header in bytes: the scenario's `overhead` excludes this header, CAKE's
`overhead` includes it.
"""

LEAST = {18: 64, 38: 84}
"""Smallest length of a packet on the line in bytes, by CAKE's overhead; from tc-cake(8): `docsis`,
`ethernet`.
"""

ADDRESS_OF = "ADDRESS-OF-"
"""Beginning of the word for the address of a node whose real address is unknown."""

DEFAULT_INTERFACE = "eth0"
"""Interface in the commands if neither the user nor the scenario names an interface."""


@dataclass(frozen=True)
class Placement:
    """A queue on an interface of a machine, with its shaper."""

    queue: Queue
    """Parameters of the queue, as in the plan; those of CAKE include the rate of its shaper."""
    machine: str | None
    """Node that gets the queue; None if there are several."""
    where: str
    """Machine and interface in words, for the user."""
    other: str | None
    """Node at the other end of the bottleneck; None unless there is exactly one such node."""
    interface: str
    ingress: bool
    """Whether the machine is the receiver of the bottleneck's traffic."""
    rate: int
    """Rate of the shaper in bit/s."""
    line: int
    """Lowest rate of the line during the run, in bit/s."""
    varies: bool
    """Whether the line's rate changes during the run."""
    overhead: int
    """Bytes that each packet occupies on the line in addition to its length."""
    router: tuple[str, ...]
    """Words of CAKE that matter on a router but not in a simulation: `nat` and `fwmark MARK`."""
    own: bool
    """Whether the queue is the sending host's (`host_queue`).

    The host's interface sends at the line's rate.
    """
    cells: Cells
    """Cells into which the line divides packets: `none`, `atm` or `ptm`."""
    installed: Installed | None
    """The device of `tc` from which the queue was read; None without one."""
    addresses: list[str]
    """Addresses of the scenario's nodes for filters."""
    device_rate: int
    """Rate in bit/s from which defaults of the queue follow."""
    lowered: str = ""
    """Why `rate` replaces a higher rate of CAKE's description; empty if it does not."""

    @cached_property
    def written(self) -> Installed | None:
        """Device of `tc` whose words are those of the queue; None if it has another discipline."""
        own = self.installed
        return own if own is not None and own.has(self.name) else None

    @property
    def name(self) -> str:
        """Returns the discipline's name."""
        return self.queue.TAG

    @property
    def modelled(self) -> str:
        """The queue in `tc`'s words as simulated; raises `NoKernelEquivalent` if Linux lacks it."""
        return _core.queue_to_tc(decoding.queue_text(self.queue))

    @property
    def words(self) -> str:
        """Returns the queue in `tc`'s words, including words that matter on a router only."""
        return " ".join([self.modelled, *self.router])

    def commands(
        self, device: str, parent: str | None = None, handle: str | None = None
    ) -> list[str]:
        """Returns the `tc` commands that put the queue on `device`; raises `NoKernelEquivalent`."""
        text = decoding.queue_text(self.queue)
        if self.written is None:
            made = _core.queue_commands(text, device, parent, handle, self.addresses)
        else:
            rate = self.device_rate
            made = self.written.commands(text, rate, device, parent, self.addresses)
        first, *more = made
        router = () if self.router and self.router[0] in first.split() else self.router
        return [" ".join([first, *router]), *more]

    @property
    def is_tree(self) -> bool:
        """Returns whether several commands set the queue up: classes, filters or `txqueuelen`."""
        return len(self.commands(self.shaped)) > 1

    @property
    def is_cake(self) -> bool:
        """Returns whether the queue is CAKE.

        CAKE contains a shaper, splits merged packets and can account for overhead and cells.
        """
        return self.name == "cake"

    @property
    def shapes_itself(self) -> bool:
        """Returns whether the queue itself limits the rate below the line's rate."""
        rate = _rate_on_line(self.queue, self.overhead, self.cells)
        return self.is_cake or (rate is not None and rate < self.line)

    @property
    def added(self) -> int:
        """Bytes that a shaper other than CAKE adds to a packet's length.

        Packets of a PPP interface have no Ethernet header, which the link's overhead assumes.
        """
        return self.overhead + (ETHERNET if self.interface.startswith("ppp") else 0)

    @property
    def mpu(self) -> int:
        """Smallest length of a packet on the line in bytes, overhead included; 0 if not known."""
        return least(self.overhead, self.cells)

    @property
    def is_root(self) -> bool:
        """Returns whether the queue can be the root discipline, without a shaper around it."""
        return self.own or self.shapes_itself

    @property
    def shaped(self) -> str:
        """Returns the device that gets the queue: for incoming traffic an `ifb` device."""
        if not self.ingress:
            return self.interface
        if self.installed is not None and self.installed.is_incoming:
            return self.installed.device
        return f"ifb-{self.interface}"[:15]


def senders_receivers(scenario: Described) -> tuple[list[str], list[str]]:
    """Returns the nodes that send and those that receive at the bottleneck, each node once."""
    plan = scenario.plan

    def names(ends: Iterable[int | None]) -> list[str]:
        return [plan.nodes[end].name for end in dict.fromkeys(ends) if end is not None]

    links = bottlenecks(plan)
    return names(link.from_ for link in links), names(link.to for link in links)


def place(scenario: Described, interface: str | None, machine: str | None) -> Placement:
    """Returns the placement of the bottleneck's queue on the machine of the node `machine`.

    An argument that is None has the value in the scenario's `[deploy]`; without such a value, the
    machine is the sender, and the interface is that of the files of `tc`, or else `eth0`.
    """
    asked = scenario.model.deploy
    installed = scenario.installed
    dev = interface if interface is not None else asked.interface
    own_device = installed.interface if installed is not None and dev is None else None
    if dev is None:
        dev = own_device or DEFAULT_INTERFACE
    if fault := interface_fault(dev):
        raise ScenarioError([Problem(fault)])
    machine = machine or asked.machine
    plan = scenario.plan
    links = bottlenecks(plan)
    if any(link.params.trace is not None for link in links):
        text = "follows a trace, but a shaper needs a constant rate: set the rate of the bottleneck"
        raise ScenarioError([Problem(f"`{scenario.bottleneck}` {text}")])
    senders, receivers = senders_receivers(scenario)
    ingress = machine is not None and machine not in senders
    if ingress and machine not in receivers:
        raise ScenarioError([Problem(_no_end(scenario, machine, senders, receivers))])
    own_side = ingress
    if installed is not None and (installed.is_incoming or own_device is not None):
        ingress = installed.is_incoming
    medium = None
    if any(link.to is None for link in links):
        media = {plan.media[link.medium or 0].name for link in links}
        medium = f"the shared medium `{media.pop()}`"
    here, there = (receivers, senders) if ingress else (senders, receivers)
    named = f"`{machine}`" if machine else _called(here)
    where = f"on {named}, on its interface towards {medium or _called(there)}"
    if own_side and not ingress:
        where = f"on {named}, on {dev}, which sends these packets on"
    least = {link.name: min(rates_of(link, plan.duration)) for link in links}
    link = min(links, key=lambda link: least[link.name])
    line = least[link.name]
    at_line = not ingress and all(link.host_queue for link in links)
    rate = line if at_line else line * SHARE_PERCENT // 100
    cells = link.params.cells
    queue = link.params.queue
    if not is_own(scenario.queue):
        # The queue is parsed with the shaper's rate, because defaults of RED depend on the rate.
        queue = decoding.queue(_core.parse_queue(scenario.queue, 1514, 1000, rate))
    overhead = link.params.overhead
    own, device_rate = _core.queue_rate(decoding.queue_text(queue)), rate
    is_of_file = installed is not None and own is not None and installed.has(queue.TAG)
    lowered = ""
    if is_of_file and own is not None and own <= rate:
        rate = own
    elif isinstance(queue, Cake):
        rate = min(own or rate, line * SHARE_PERCENT // 100)
        if own is not None and own > rate:
            stated, whole = (_core.format_quantity("rate", one) for one in (own, line))
            lowered = (
                f"`bandwidth {stated}` is too near the line rate, {whole}, or above it, so packets "
                f"would wait behind the shaper: the rate is {rate_text(rate)} here"
            )
        queue = _shaped(queue, rate, overhead, cells, ingress=ingress)
    elif own is not None and (_rate_on_line(queue, overhead, cells) or 0) < line:
        rate = own
    elif cells == "ptm":
        rate = rate * 64 // 65  # other shapers cannot account for PTM cells
    return Placement(
        queue=queue,
        machine=machine or (here[0] if len(here) == 1 else None),
        where=f"{where} ({scenario.bottleneck})",
        other=there[0] if len(there) == 1 and not medium else None,
        interface=dev,
        ingress=ingress,
        rate=rate,
        line=line,
        varies=line != link.params.rate,
        overhead=overhead,
        router=_router_words(scenario.queue) if isinstance(queue, Cake) else (),
        own=at_line,
        cells=cells,
        installed=installed,
        addresses=scenario.addresses,
        device_rate=device_rate,
        lowered=lowered,
    )


def _rate_on_line(queue: Queue, overhead: int, cells: Cells) -> int | None:
    """Returns the rate at which full frames of a queue with a rate of its own occupy the line.

    A shaper that accounts for an overhead or cells itself states this rate; another one counts the
    frames only. The result is `None` for a queue without a rate.
    """
    rate = _core.queue_rate(decoding.queue_text(queue))
    shapers = queue.tree.classes if isinstance(queue, Htb) else [queue]
    counted = (one for one in shapers if isinstance(one, HtbClass | Tbf))
    if rate is None or any(one.overhead or one.layer == "atm" for one in counted):
        return rate
    length = FRAME + overhead
    if cells == "atm":
        length = 53 * -(-length // 48)
    elif cells == "ptm":
        length = -(-length * 65 // 64)
    return rate * length // FRAME


def least(overhead: int, cells: Cells) -> int:
    """Returns the smallest length of a packet on a line with this overhead; 0 if not known."""
    return LEAST.get(overhead + ETHERNET, 0) if cells == NO_CELLS else 0


def rate_text(rate: int) -> str:
    """Returns a rate in `tc`'s words: multiples of 1 kbit/s in kbit/s, other rates in bit/s."""
    return f"{rate}bit" if rate % 1000 else f"{rate // 1000}kbit"


def _router_words(queue: str) -> tuple[str, ...]:
    """Returns CAKE's words `nat` and `fwmark MARK`, as far as the description has them."""
    words = queue.split()
    found = ["nat"] if "nat" in words else []
    if "fwmark" in words[:-1]:
        found += words[words.index("fwmark") :][:2]
    return tuple(found)


def _no_end(
    scenario: Described, machine: str | None, senders: list[str], receivers: list[str]
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


def _shaped(cake: Cake, rate: int, overhead: int, cells: Cells, *, ingress: bool) -> Cake:
    """Returns CAKE with the shaper's rate and the link's overhead and cells."""
    framing = cake.framing
    if (overhead or cells != NO_CELLS) and framing.overhead is None:
        mpu = framing.mpu or least(overhead, cells)
        framing = replace(framing, overhead=overhead + ETHERNET, cells=cells, mpu=mpu)
    elif framing.cells == NO_CELLS:
        framing = replace(framing, cells=cells)  # an overhead of its own does not replace cells
    return replace(cake, bandwidth=rate, ingress=cake.ingress or ingress, framing=framing)
