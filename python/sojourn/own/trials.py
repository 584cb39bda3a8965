"""The trials of policies by family."""

from __future__ import annotations

from collections.abc import Callable

from sojourn.own import repeat
from sojourn.own.check import Trial, histories
from sojourn.own.check_balancer import BalancerTrial
from sojourn.own.check_buffer import BufferTrial
from sojourn.own.check_congestion import ControlTrial
from sojourn.own.check_queue import QueueTrial
from sojourn.own.check_source import SourceTrial
from sojourn.own.text import Own, family_of, own

TRIALS: dict[str, Callable[[Own], Trial]] = {
    "queue": QueueTrial,
    "congestion": ControlTrial,
    "balancer": BalancerTrial,
    "buffer": BufferTrial,
    "source": SourceTrial,
}
"""Classes of trials by the name of the family."""


def trial_of(policy: Own) -> Trial:
    """Returns the trial of a policy."""
    return TRIALS[policy.declaration.family](policy)


def _histories(policy: str, schedules: int, seed: int) -> list[str]:
    return histories(trial_of(own(family_of(policy), policy)), schedules, seed)


if __name__ == "__main__":
    repeat.serve(_histories)
