"""Verifies REDopt's parameters by simulation, and corrects them if they are not accepted.

By the paper's definition, with endless transfers the average queue converges to the middle between
the thresholds with small oscillation. Here *converges* means that the mean of the average is within
a tenth of the middle, and *small* that its standard deviation is below an eighth of the ramp's
width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

from sojourn.arguments import checked
from sojourn.data import Object
from sojourn.scenario import Scenario
from sojourn.tune.redopt import (
    UNRESPONSIVE_FACTOR,
    Link,
    RedParameters,
    redopt,
)
from sojourn.tune.settings import Verification

#: Scale of the average queue in `red`'s state, a fixed-point number with 24 fraction bits if the
#: queue has the word `weight`.
_FRACTION = 1 << 24
#: Maximum distance of the average queue's mean from the ramp's middle, as a share of the middle.
MEAN_WITHIN = 0.10
#: Limit of the standard deviation of the average queue, as a share of the ramp's width.
DEVIATION_BELOW = 1 / 8
#: Maximum factor by which corrections widen the ramp of the model.
LARGEST_KAPPA = 16.0
#: Maximum number of settings that are tried.
ROUNDS = 10
#: Length of a frame of the unresponsive traffic in bytes, as in the paper.
_UDP_FRAME = 573
#: Length of Ethernet, IPv4 and TCP headers without options, in bytes.
_HEADERS = 54


@dataclass(frozen=True)
class Trial:
    """A setting with the behaviour of the average queue in simulations.

    Attributes:
        parameters: the setting.
        average: mean over time of RED's average queue, in packets.
        deviation: standard deviation over time of RED's average queue, in packets.
        loss: share of the arriving packets that were dropped.
        goodput: TCP payload delivered in order, in bit/s.
    """

    parameters: RedParameters
    average: float
    deviation: float
    loss: float
    goodput: float

    @property
    def width(self) -> int:
        """Returns the width of the ramp in packets."""
        return self.parameters.maximum - self.parameters.minimum

    @property
    def middle(self) -> float:
        """Returns the middle of the ramp in packets."""
        return (self.parameters.maximum + self.parameters.minimum) / 2

    @property
    def off_middle(self) -> float:
        """Returns the distance of `average` from the middle, as a share of the middle."""
        return abs(self.average - self.middle) / self.middle

    @property
    def oscillation(self) -> float:
        """Returns `deviation` as a share of the ramp's width."""
        return self.deviation / self.width

    @property
    def accepted(self) -> bool:
        """Returns whether the setting meets the definition of REDopt."""
        return self.off_middle <= MEAN_WITHIN and self.oscillation < DEVIATION_BELOW

    def as_dict(self) -> Object:
        """Returns the trial as data for JSON."""
        return {
            "queue": self.parameters.queue(),
            "min": self.parameters.minimum,
            "max": self.parameters.maximum,
            "limit": self.parameters.limit,
            "max_p": self.parameters.max_p,
            "weight": self.parameters.weight,
            "kappa": self.parameters.kappa,
            "drop_probability": self.parameters.drop_probability,
            "measured": {
                "average": self.average,
                "middle": self.middle,
                "off_middle": self.off_middle,
                "deviation": self.deviation,
                "oscillation": self.oscillation,
                "loss": self.loss,
                "goodput": self.goodput,
            },
            "accepted": self.accepted,
        }


@dataclass(frozen=True)
class Verified:
    """The trials of a verification, from which the best setting is taken."""

    link: Link
    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial:
        """Returns the trial farthest within the limits of `off_middle` and `oscillation`."""
        return min(
            self.trials,
            key=lambda t: max(t.off_middle / MEAN_WITHIN, t.oscillation / DEVIATION_BELOW),
        )

    @property
    def accepted(self) -> bool:
        """Returns whether the best setting meets the definition of REDopt."""
        return self.best.accepted

    @property
    def parameters(self) -> RedParameters:
        """Returns the best setting."""
        return self.best.parameters


def proving_ground(link: Link, queue: str, duration: float, warmup: float, tcp: str) -> Scenario:
    """Returns the scenario that verifies a setting: endless transfers and unresponsive traffic.

    Transfers are divided equally between the round-trip times of `link`. Times are in seconds.
    """
    flows: list[Object] = [
        {
            "name": "bulk",
            "from": "left",
            "to": "right",
            "app": "bulk",
            "tcp": f"{tcp} mss {link.packet - _HEADERS}",
            "count": max(1, round(link.flows)),
            "start": "uniform 0s 10s",
        }
    ]
    if link.unresponsive:
        flows.append(
            {
                "name": "udp",
                "from": "left",
                "to": "right",
                "app": f"cbr rate {round(link.unresponsive / 4)}bit size {_UDP_FRAME}",
                "count": 4,
                "start": "uniform 0s 10s",
            }
        )
    delays = [f"delay {round(rtt * 1e6)}us" for rtt in link.rtts]
    return Scenario(
        name="REDopt's proving ground",
        duration=f"{duration:g}s",
        warmup=f"{warmup:g}s",
        topology={
            "template": "dumbbell",
            "rate": f"{round(link.rate)}bit",
            "queue": queue,
            "left": {
                "hosts": len(delays),
                "rate": f"{round(link.rate * 10)}bit",
                "forward": {"netem": delays},
            },
            "right": {"hosts": len(delays), "rate": f"{round(link.rate * 10)}bit"},
        },
        flows=flows,
        observe={"series": "100ms"},
    )


def queue(link: Link, parameters: RedParameters, words: str = "") -> str:
    """Returns the queue as words of a scenario, with further `words` of ``red``."""
    return parameters.queue(f"avpkt {link.packet} bandwidth {round(link.rate)}bit {words}".strip())


def measure(
    link: Link,
    parameters: RedParameters,
    settings: Verification,
    progress: Callable[[float], None] | None = None,
) -> Trial:
    """Returns the behaviour of a setting in simulations.

    Results are means over the seeds; `deviation` is a mean of deviations over time. `progress`
    receives the completed fraction of all runs.
    """
    words = queue(link, parameters, settings.words)
    scenario = proving_ground(link, words, settings.duration, settings.begin, settings.tcp)
    averages, deviations, losses, goodputs = [], [], [], []
    for number in range(settings.seeds):

        def report(fraction: float, _events: int, before: int = number) -> None:
            if progress is not None:
                progress((before + fraction) / settings.seeds)

        run = scenario.run(number + 1, report)
        columns = {name: values for name, _, values in run.columns("series")}
        average = columns["bottleneck.state.qavg"][columns["time"] >= settings.begin] / _FRACTION
        averages.append(float(average.mean()))
        deviations.append(float(average.std()))
        losses.append(float(run.metrics["loss"]))
        goodputs.append(float(run.metrics["goodput"]))

    return Trial(parameters, fmean(averages), fmean(deviations), fmean(losses), fmean(goodputs))


@checked
def verified(
    link: Link,
    settings: Verification | None = None,
    *,
    progress: Callable[[Trial], None] | None = None,
    simulated: Callable[[int, float], None] | None = None,
) -> Verified:
    """Returns up to `ROUNDS` trials of REDopt's parameters, corrected until a trial is accepted.

    If the average queue is not in the middle, the estimated drop probability is wrong, and
    ``max_p`` is corrected by the measured average. If the average oscillates, the ramp is too
    narrow for the feedback delay, and the factor ``kappa`` of its width is increased. A trial
    without drops is the last, since no correction would change it. `progress` receives each trial;
    `simulated` receives the number of finished trials and the completed fraction of the next
    trial's runs.
    """
    settings = settings or Verification()
    factor = UNRESPONSIVE_FACTOR if link.unresponsive else 1.0
    parameters = redopt(link, largest_weight=settings.largest_weight)
    correction = 1.0
    trials: list[Trial] = []
    for _ in range(ROUNDS):
        watch = None if simulated is None else partial(simulated, len(trials))
        trial = measure(link, parameters, settings, watch)
        trials.append(trial)
        if progress is not None:
            progress(trial)
        if trial.accepted or trial.loss == 0:
            break  # without drops the probability has no effect
        kappa = parameters.kappa
        if trial.oscillation >= DEVIATION_BELOW:
            kappa *= max(1.15, min(2.0, trial.oscillation / DEVIATION_BELOW))
            kappa = min(kappa, LARGEST_KAPPA)
        model = redopt(link, kappa, settings.largest_weight)
        # The measured average had the drop probability max_p * share. The middle has the same
        # probability if max_p is 2 * share times as large.
        share = (trial.average - parameters.minimum) / trial.width
        needed = 2 * parameters.max_p * min(max(share, 0.05), 1.5)
        correction *= (needed / parameters.max_p) ** 0.8
        parameters = replace(model, max_p=min(1.0, model.max_p * correction))
        parameters = replace(parameters, drop_probability=parameters.max_p / (2 * factor))
    return Verified(link, tuple(trials))
