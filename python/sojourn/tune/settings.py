"""Settings of the searches of this package: what is varied, its aim, and the effort."""

from __future__ import annotations

from typing import Annotated, Literal

from sojourn.settings import Option, Seconds, SettingError, settings
from sojourn.tune.redopt import LARGEST_WEIGHT


@settings
class Goal:
    """The parameters that a search varies, and its aim."""

    vary: Annotated[list[str] | None, Option('"WORD RANGE"')] = None
    """Parameter to vary, with its range: "target 1ms..50ms log", a parameter alone (a tenth to ten
    times its default), a pattern such as "s*rate", or alternatives such as "ecn | noecn". Repeat
    for more.
    """
    queue: Annotated[str | None, Option("QUEUE", complete="queues")] = None
    """Queue whose parameters are varied. By default the scenario's own queue."""
    objective: Annotated[str | None, Option("METRIC")] = None
    """Metric to optimise, for example "p95 sojourn". By default the scenario's question.by,
    otherwise sojourn_p95.
    """
    subject_to: Annotated[str | None, Option("EXPR")] = None
    """Conditions that a setting must meet, for example "goodput >= 0.95 best and loss <= 1%". By
    default the scenario's question.subject_to, otherwise goodput >= 95% of best.
    """
    against: Annotated[list[str] | None, Option("QUEUE")] = None
    """Additional queue with which the best setting is compared. Repeat for more."""


@settings
class Effort:
    """Effort of a search."""

    trials: Annotated[int, Option(min=1)] = 100
    """Number of settings to try, rounded up to whole batches."""
    seconds: Annotated[Seconds | None, Option(flag="--time", min=1e-9)] = None
    """Time after which no new batch starts."""
    seeds: Annotated[int, Option(min=1)] = 5
    """Number of runs (seeds) of each tried setting."""
    proof: Annotated[int, Option(min=2)] = 20
    """Number of new seeds for the verification of the best setting."""
    batch: Annotated[int, Option(min=1)] = 8
    """Number of settings that are proposed and tried together."""
    finalists: Annotated[int, Option(min=1)] = 4
    """Number of best settings that are run with further seeds before the best is chosen."""
    seed: Annotated[int, Option(min=0)] = 1
    """Seed of the random proposals of settings."""


@settings
class Verification:
    """Runs that verify a setting of RED."""

    duration: Annotated[Seconds, Option(min=1)] = 200.0
    """Simulated duration of a verification run."""
    seeds: Annotated[int, Option(min=1)] = 2
    """Number of verification runs of each setting."""
    warmup: Annotated[Seconds | None, Option(command=False)] = None
    """Initial part of a run that is not measured; a quarter of the run by default."""
    tcp: Annotated[str, Option(command=False)] = "reno profile sack-2001"
    """TCP of the senders."""
    words: Annotated[str, Option(command=False)] = ""
    """Further words of `red`, such as `wait`."""
    largest_weight: Annotated[float, Option(command=False)] = LARGEST_WEIGHT
    """Largest averaging weight."""

    def __post_init__(self) -> None:
        if not 0 <= self.begin < self.duration:
            why = f"less than the duration, {self.duration:g} s; found {self.begin:g} s"
            raise SettingError("warmup", f"must be {why}")

    @property
    def begin(self) -> float:
        """Returns the time in seconds from which a run is measured."""
        return self.duration / 4 if self.warmup is None else self.warmup


By = Literal["mean", "p95", "p99"]
"""Measure of latency."""


@settings
class Asked:
    """Requirements on a store."""

    survive: Annotated[int, Option(min=0)] = 1
    """Number of nodes that may fail permanently without loss of an acknowledged write."""
    sites: Annotated[int, Option(flag="--survive-sites", min=0)] = 0
    """Number of data centres that may be lost without loss of an acknowledged write."""
    node_up: Annotated[float, Option(min=0.0, max=1.0)] = 0.99
    """Probability that a node is up."""
    down: Annotated[int, Option(min=0)] = 1
    """Number of replicas of a record that may be down while its reads and writes still succeed."""
    stale: Annotated[float, Option(min=0.0, max=1.0)] = 0.0
    """Largest allowed probability that a read right after an acknowledged write does not return it.
    With 0, every read returns the latest acknowledged write, with several data centres that of its
    own data centre.
    """
    reads: Annotated[float | None, Option(min=0.0, max=1.0)] = None
    """Share of reads among the requests, 0 to 1. By default the share in the scenario's workload,
    or 0.5 if the workload has no reads.
    """
    unavailable: Annotated[float, Option(min=0.0, max=1.0)] = 1.0
    """Largest allowed probability that too few replicas are up for a request."""
    by: Annotated[By, Option("MEASURE")] = "p99"
    """Statistic of latency that ranks the choices: mean, p95 or p99."""
    seeds: Annotated[int, Option(min=2)] = 10
    """Number of runs (seeds) of each choice."""
    max_seeds: Annotated[int | None, Option(min=2)] = None
    """Largest number of seeds, 160 by default. While it is undecided whether a choice with fewer
    copies is fast, such choices and the fast ones are run with twice as many seeds.
    """
