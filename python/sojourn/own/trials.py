"""How the policies of each family are tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.own.check_queue import QueueTrial

if TYPE_CHECKING:
    from sojourn.own.check import Trial
    from sojourn.own.text import Own

TRIALS = {"queue": QueueTrial}


def trial_of(own: Own) -> Trial:
    """How a policy is tried."""
    return TRIALS[own.declaration.family](own)
