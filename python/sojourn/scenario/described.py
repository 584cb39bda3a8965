"""The part of a scenario that functions on scenarios read."""

from __future__ import annotations

from typing import Protocol

from sojourn.plan.plan import Plan
from sojourn.scenario.installed import Installed
from sojourn.scenario.models import Model


class Described(Protocol):
    """A checked description of a network and its traffic, with its plan."""

    @property
    def name(self) -> str:
        """Name of the scenario."""

    @property
    def model(self) -> Model:
        """Model of the scenario: all keys, with defaults."""

    @property
    def bottleneck(self) -> str:
        """Name of the link whose queue is studied."""

    @property
    def queue(self) -> str:
        """Description of the bottleneck's queue."""

    @property
    def queue_name(self) -> str:
        """Name of the bottleneck's queue in `[queues]`; its description if it has no name."""

    @property
    def plan(self) -> Plan:
        """The plan: the scenario in numbers."""

    @property
    def installed(self) -> Installed | None:
        """The device of `tc` from which the bottleneck's queue was read; None without one."""

    @property
    def addresses(self) -> list[str]:
        """Real address of each node, in the order of the plan; a word that names a missing one."""
