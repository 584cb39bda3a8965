"""The trials of policies by family."""

from __future__ import annotations

from collections.abc import Callable

from sojourn.own.check import Trial
from sojourn.own.check_balancer import BalancerTrial
from sojourn.own.check_buffer import BufferTrial
from sojourn.own.check_congestion import ControlTrial
from sojourn.own.check_queue import QueueTrial
from sojourn.own.check_source import SourceTrial
from sojourn.own.text import Own

TRIALS: dict[str, Callable[[Own], Trial]] = {
    "queue": QueueTrial,
    "congestion": ControlTrial,
    "balancer": BalancerTrial,
    "buffer": BufferTrial,
    "source": SourceTrial,
}
"""Classes of trials by the name of the family."""


def trial_of(own: Own) -> Trial:
    """Returns the trial of a policy."""
    return TRIALS[own.declaration.family](own)
