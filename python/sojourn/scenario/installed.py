"""Commands of `tc` from which a queue was read: the user's words for the same queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sojourn import _core


@dataclass(frozen=True, slots=True)
class Installed:
    """A device in files of `tc`, whose queue is the queue of a link."""

    reading: _core.TcReading
    name: str
    """Name of the device in the files, after the namespace, container or host to which it belongs.
    """
    hosts: Mapping[int, int] = field(default_factory=dict)
    """Numbers of the scenario's nodes by address, with which the filters were read."""
    passed: bool = True
    """Whether packets pass the firewall before the device."""
    outgoing: str | None = None
    """Device that redirects its incoming packets to this device; None without one."""

    @property
    def device(self) -> str:
        """Returns the name of the device in commands."""
        return self._split(self.name)[1]

    @property
    def location(self) -> str:
        """Returns the namespace, container or host of the device; empty for this machine."""
        return self._split(self.name)[0]

    @property
    def is_incoming(self) -> bool:
        """Returns whether the device gets the incoming packets of another device."""
        return self.outgoing is not None or self.device.startswith("ifb")

    @property
    def interface(self) -> str | None:
        """Returns the interface of the machine to the link; None if the files do not name it."""
        if self.outgoing is not None:
            return self._split(self.outgoing)[1] or None
        return None if self.is_incoming else self.device or None

    def _split(self, name: str) -> tuple[str, str]:
        """Returns the location and the name of a device; of a transmit queue, its device's."""
        if name not in {one.name for one in self.reading.devices}:
            name = name.rpartition(":")[0]
        location, _, device = name.rpartition(":")
        return location, device

    def commands(
        self,
        params: str,
        rate: int,
        device: str,
        parent: str | None,
        addresses: list[str],
    ) -> list[str]:
        """Returns the commands for this queue, or for a variant of it.

        `params` are the parameters as JSON, `rate` is the rate in bit/s for defaults that depend
        on it, `addresses` are those of the scenario's nodes for filters that are not of the files.
        """
        return self.reading.commands(
            self.name, dict(self.hosts), self.passed, rate, params, device, parent, addresses
        )

    def redirections(self, device: str) -> list[str]:
        """Returns the commands for the filters that redirect the incoming packets of `device`."""
        return self.reading.redirections(self.outgoing, device) if self.outgoing else []

    def has(self, discipline: str) -> bool:
        """Returns whether the device's queue is of this discipline."""
        built = self.reading.build(self.name, dict(self.hosts), self.passed)
        return built is not None and (built.queue or "").split()[:1] == [discipline]

    def free_number(self) -> str:
        """Returns a number for a discipline around the queue that none of its disciplines has."""
        taken = self.reading.handles(self.name)
        return f"{next(n for n in (1, *range(0xF0, 0xFFFF)) if n not in taken):x}"


def of_text(text: str) -> Installed | None:
    """Returns the device that the text of a queue sets up; None for a text without a device."""
    reading = _core.read_tc([("", text.encode())], {}, [])
    holding = [one for one in reading.devices if one.holds]
    devices = [one for one in holding if one.is_configured] or holding
    return Installed(reading, devices[0].name) if len(devices) == 1 else None
