"""The fit of a line to a measurement: quick estimates, then three rounds of simulations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc

from sojourn.line import RUNS
from sojourn.line.bayes import Regression, classify, regress, surprise
from sojourn.line.measured import (
    FRAME,
    Direction,
    Floats,
    Measurement,
    MeasurementError,
    Session,
)
from sojourn.line.model import BLOCK, FAMILIES, SMALLEST_LOSS, Family, Line, Simulated, simulate
from sojourn.line.summary import checks, directions_of, statistics

ROUNDS = (0.35, 0.25, 0.4)
"""Share of the simulations in each round."""
UNLIKELY = 0.004
"""Probability below which the next round omits a family."""
CREDIBLE = 0.95
REACH = 3.5
"""Half the width of a parameter's range in the next round, in standard deviations."""
QUEUED = 0.005
"""Queueing delay in s above which a queue has formed, so that the rate was reached."""
OUTSIDE = 1.5
"""Surprise above which the measurement is outside the model."""
MOST_LOSS = 0.03
"""Largest random loss of the prior."""
RATE, SIZE, BASE, LOSS = range(4)
"""Parameters of a line in one direction; all but the round-trip time are logarithms."""
LEAST = np.array([0.01, 0.05, 1e-4, 0.5])
"""Smallest half of a parameter's range."""
SKEW = 4.0
"""Power by which rates are nearer to the lower end of their range, if delays prove nothing."""
CHEAP = 40_000
"""Packets of a measurement that takes a few hundredths of a second to simulate."""
SAMPLE, DRAWS = 400, 40
"""Numbers of parameters that represent a posterior, and of lines that are drawn from it."""

Box: TypeAlias = Floats
"""Lower and upper limits of the parameters: two rows of four."""
Boxes: TypeAlias = dict[Direction, dict[str, Box]]
"""Ranges from which lines are drawn, by family of the queue in each direction."""


@dataclass(frozen=True)
class Estimate:
    """A parameter's estimate and 95 % interval; a limit that is infinite or zero is unknown."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, sample: Floats) -> Estimate:
        """Returns the median and the interval of a sample."""
        tail = (1 - CREDIBLE) / 2
        low, value, high = np.quantile(sample, [tail, 0.5, 1 - tail])
        return cls(float(value), float(low), float(high))


@dataclass(frozen=True)
class Way:
    """Estimates of a direction."""

    rate: Estimate
    """Rate in bit/s of full frames."""
    families: Mapping[str, float]
    """Probabilities of the families, the greatest first."""
    sizes: Mapping[str, Estimate]
    """Free parameter of each family in the set."""
    filled: bool
    """Whether the buffer was filled: otherwise its size is only bounded below."""
    varies: tuple[float, float] | None
    """10 % and 90 % quantiles of the rate in a second, in bit/s, if the rate was not constant."""

    @property
    def likely(self) -> list[str]:
        """Smallest set of families with a probability of at least 95 %."""
        chosen: list[str] = []
        for name in self.families:
            if sum(self.families[n] for n in chosen) < CREDIBLE:
                chosen.append(name)
        return chosen


@dataclass(frozen=True)
class Fit:
    """A fitted line."""

    of: Measurement
    ways: Mapping[Direction, Way]
    base: Estimate
    """Base round-trip time in s."""
    loss: Estimate
    """Random loss of the line."""
    draws: tuple[Line, ...]
    """Lines drawn from the posterior."""
    surprise: float
    """Distance of the measured curves from those of the drawn lines, in standard deviations."""
    runs: int

    @property
    def outside(self) -> bool:
        """Returns whether no line of the model makes the measured curves."""
        return self.surprise > OUTSIDE


class _Waits(NamedTuple):
    """Quantiles of queueing delays under load in s."""

    p5: float
    p50: float
    p95: float
    most: float


@dataclass(frozen=True)
class _Quick:
    """Quick estimates of a direction, around which lines are proposed."""

    rate: float
    shared: bool
    """Whether the delays are sums of those of both directions."""
    noise: float
    """Largest relative error of the rate, because instruments count whole blocks."""
    probes: _Waits | None
    """Delays of probes."""
    flows: _Waits | None
    """Delays of the load's own packets, if TCP measured them."""
    lost: float
    """Share of the load's packets that were lost; NaN if it is unknown."""
    over: float
    """Rate that UDP offers as a multiple of the line's rate; 0 for TCP, which adapts to queues."""

    @property
    def filled(self) -> bool:
        """Returns whether the load lost packets, or may have lost some."""
        return not self.lost < 1e-6


def _quick(of: Measurement, direction: Direction, least: float) -> _Quick:
    """Returns the quick estimates of a direction, where `least` is the least round-trip time."""
    # Sessions with a load in this direction only are the best.
    own = [s for s in of.sessions if direction in s.directions]
    best = min(own, key=lambda s: len(s.directions))
    loads = [s.course.loads[direction] for s in own]
    rate = max(
        x.gross * float(x.rate[int(s.length / 3) :].mean()) for s, x in zip(own, loads, strict=True)
    )
    course = best.course
    one_way = course.up if direction == "up" else course.down
    excess = one_way - np.nanmin(one_way) if one_way.size else course.rtt - least
    return _Quick(
        rate,
        len(best.directions) > 1 and not one_way.size,
        min(1.5 * _block(best, direction) / best.length / rate, 0.5),
        _waits(excess[course.times >= best.length / 3]),
        _waits(course.loads[direction].srtt[3:] - least),
        float(np.max([one.lost for one in loads])),
        max(
            (p.offered or 0.0) * p.frame / p.payload
            for s in own
            for p in s.parts
            if p.direction == direction
        )
        / rate,
    )


def _block(session: Session, direction: Direction) -> float:
    """Returns the bits by which a direction's count errs, as all streams write whole blocks."""
    streams = sum(p.streams for p in session.parts if p.direction == direction)
    return 8 * BLOCK * math.sqrt(streams)


def _waits(excess: Floats) -> _Waits | None:
    known = excess[np.isfinite(excess)]
    if known.size < 3:
        return None
    return _Waits(*(max(float(q), 0.0) for q in np.percentile(known, [5, 50, 95, 100])))


def _checked(of: Measurement) -> None:
    """Raises `MeasurementError` if a measurement shows nothing that is sure."""
    names = ", ".join(of.files)
    if not any(np.isfinite(s.course.rtt).any() for s in of.sessions):
        raise MeasurementError(
            f"{names}: no probes during the load, by which delays could be known: "
            "run `ping -D -i 0.2 HOST > ping.txt` next to iperf3, and give both files"
        )
    for session in of.sessions:
        for part in session.parts:
            load = session.course.loads[part.direction]
            if part.offered is not None and not load.lost > 0.01:
                carried = f"{float(load.rate.mean()) / 1e6:.3g} Mbit/s"
                raise MeasurementError(
                    f"the UDP load lost less than 1 %, so it did not fill the line: the rate is at "
                    f"least {carried}, and nothing else shows. Raise iperf3's -b, or use TCP"
                )


def proposed(of: Measurement) -> tuple[dict[Direction, _Quick], Boxes]:
    """Returns quick estimates, and the ranges of the first round by them."""
    least = float(np.nanmin(np.concatenate([of.idle, *(s.course.rtt for s in of.sessions)])))
    quick = {d: _quick(of, d, least) for d in of.directions}
    idle = of.idle.size >= 5 or any(s.lead > 0 for s in of.sessions)
    # Idle probes take their transmission times longer than the base round-trip time.
    sent = 2 * 8 * max(s.size for s in of.sessions) / min(q.rate for q in quick.values())
    slack = max(5e-4, 0.02 * least) + sent if idle else 0.97 * least
    lost = max(0.03 if math.isnan(q.lost) else q.lost for q in quick.values())
    most = min(MOST_LOSS, 3 * lost + 2 * SMALLEST_LOSS)
    shared = np.array(
        [
            [max(least - slack, 1e-5), math.log(2 * SMALLEST_LOSS)],
            [least, math.log(most + SMALLEST_LOSS)],
        ]
    )

    def box(seen: _Quick, family: Family) -> Box:
        # Behind fair queueing, only the load's own packets wait.
        waits = (family.fair and seen.flows) or seen.probes or seen.flows or _Waits(0, 0, 0, 0)
        own = [_rates(seen, family, waits), _sizes(seen, family, waits)]
        return np.hstack([np.array(own).T, shared])

    boxes = {d: {f: box(quick[d], family) for f, family in FAMILIES.items()} for d in quick}
    return quick, boxes


def _rates(seen: _Quick, family: Family, waits: _Waits) -> tuple[float, float]:
    """Returns the range of a rate: wide unless the queue shows that TCP reached the rate."""
    low, high = math.log(seen.rate) - seen.noise, math.log(seen.rate) + seen.noise
    if family.policer:
        return low - 0.04, high + 1.6
    if seen.shared:  # the other direction may be the one that waits (`_Round.drawn`)
        return low - 0.04, high + 1.6
    if waits.p5 > max(1e-3, 2 * 8 * FRAME / seen.rate):
        return low - 0.03, high + 0.05
    reached = waits.p95 > QUEUED or family.fair
    return low - 0.04, high + (0.3 if reached else 1.6)


def _sizes(seen: _Quick, family: Family, waits: _Waits) -> tuple[float, float]:
    """Returns the range of a target, buffer or burst; the delays only show a buffer's."""
    low, high, rate = family.low, family.high, seen.rate / 8
    if family.unit == "s":
        return math.log(low), math.log(high)
    if not family.policer and (seen.flows or not family.fair):
        # Drops of the oldest packets let the others leave before the queue has sent its length.
        over = max(seen.over, 1.0) if family.name == "head-drop" else 1.0
        # The line itself may lose packets: delays that seldom near their peak fill no buffer.
        full = seen.filled and waits.p95 > 0.9 * waits.most and not seen.shared
        high = min(high, (2.5 if full else 25) * over * waits.most + 0.01)
        # TCP's own delays contain transmission times and those of its acknowledgements.
        least = 0.0 if seen.shared else 0.7 * waits.most - 2 * FRAME / rate
        low = min(max(low, least), high / 1.1)
    low = max(low, 3 * FRAME / rate)
    return math.log(rate * low), math.log(rate * max(high, 1.5 * low))


@dataclass(frozen=True)
class _Round:
    """Simulated measurements of lines from boxes."""

    boxes: Boxes
    values: Floats
    """Parameters: rate and size for each direction, then round-trip time and loss."""
    kinds: npt.NDArray[np.int_]
    """Numbers of the families; a column for each direction."""

    @classmethod
    def drawn(
        cls, boxes: Boxes, count: int, seed: int, skewed: Mapping[Direction, tuple[float, float]]
    ) -> _Round:
        """Draws parameters from boxes; rates of `skewed` directions have these whole ranges.

        Their prior is densest at the lower end, as most loads nearly reach the rate.
        """
        random = np.random.default_rng(seed)
        ways = len(boxes)
        u = qmc.LatinHypercube(2 * ways + 2, rng=random).random(count)
        places = np.arange(count)
        kinds = np.stack([random.permutation(places % len(own)) for own in boxes.values()], axis=1)
        values = np.empty_like(u)
        for way, (direction, own) in enumerate(boxes.items()):
            low, high = np.stack([*own.values()])[kinds[:, way]].swapaxes(0, 1)
            mine = [2 * way, 2 * way + 1, -2, -1]
            values[:, mine] = low + u[:, mine] * (high - low)
            if direction in skewed:
                least, most = skewed[direction]
                ends = np.clip((np.stack([low, high])[:, :, RATE] - least) / (most - least), 0, 1)
                first, last = ends ** (1 / SKEW)
                shares = (first + u[:, 2 * way] * (last - first)) ** SKEW
                values[:, 2 * way] = least + shares * (most - least)
        # Half of the lines lose no packets, unless the range excludes these.
        none = (random.random(count) < 0.5) & (low[:, LOSS] <= math.log(2.1 * SMALLEST_LOSS))
        values[none, -1] = math.log(SMALLEST_LOSS)
        return cls(boxes, values, kinds)

    def lines(self, frame: int) -> list[Line]:
        """Returns the drawn lines, whose limits in packets count `frame` bytes."""
        names = [[*own] for own in self.boxes.values()]
        own = [*self.boxes]
        return [
            line_of(own, row, [its[k] for its, k in zip(names, kinds, strict=True)], frame)
            for row, kinds in zip(self.values, self.kinds, strict=True)
        ]


def line_of(
    directions: Sequence[Direction], row: Floats, families: Sequence[str], frame: int = FRAME
) -> Line:
    """Returns the line with these parameters."""
    loss = math.exp(row[-1]) - SMALLEST_LOSS
    return Line(
        {d: math.exp(row[2 * i]) for i, d in enumerate(directions)},
        dict(zip(directions, families, strict=True)),
        {d: math.exp(row[2 * i + 1]) for i, d in enumerate(directions)},
        float(row[-2]),
        loss if loss > 0.3 * SMALLEST_LOSS else 0.0,
        frame,
    )


@dataclass(frozen=True)
class _Known:
    """Knowledge of a family in one direction after a round."""

    chance: float
    """Probability of the family."""
    regression: Regression


def _learnt(made: _Round, stats: Floats, seen: Floats, way: int) -> dict[str, _Known]:
    """Returns what a round shows of each family in a direction, the most likely first."""
    own = list([*made.boxes.values()][way])
    prior = np.array([FAMILIES[f].share for f in own])
    kinds = made.kinds[:, way]
    chances = classify(stats, kinds, prior / prior.sum(), seen)
    found = {}
    for number in np.argsort(-chances):
        mine = kinds == number
        values = made.values[mine][:, [2 * way, 2 * way + 1, -2, -1]]
        one = regress(stats[mine], values, seen)
        found[own[number]] = _Known(float(chances[number]), one)
    return found


def _narrowed(boxes: Boxes, known: Mapping[Direction, Mapping[str, _Known]]) -> Boxes:
    """Returns the families and ranges that a round has not excluded."""
    found: Boxes = {d: {} for d in boxes}
    for direction, families in known.items():
        for family, one in families.items():
            if one.chance < UNLIKELY:
                continue
            old, guess = boxes[direction][family], one.regression.estimate
            reach = REACH * one.regression.errors.std(axis=0)
            # A round narrows a range at most to a fifth: estimates beyond it are extrapolated.
            least = np.maximum(LEAST, 0.1 * (old[1] - old[0]))
            middle = np.clip(guess, *old)
            low = np.minimum(guess - reach, middle - least)
            high = np.maximum(guess + reach, middle + least)
            found[direction][family] = np.stack([np.maximum(low, old[0]), np.minimum(high, old[1])])
    every = [box for own in found.values() for box in own.values()]
    for box in every:
        box[0, BASE:] = np.min([one[0, BASE:] for one in every], axis=0)
        box[1, BASE:] = np.max([one[1, BASE:] for one in every], axis=0)
    return found


def table(of: Measurement, courses: Sequence[Simulated]) -> Floats:
    """Returns the statistics of measurements, a row for each."""
    return np.array([list(statistics(of, one).values()) for one in courses])


def usual_runs(of: Measurement, quick: Mapping[Direction, _Quick]) -> int:
    """Returns the usual number of simulations of a measurement.

    Sums of the delays of both directions need thrice as many, as far as these take seconds only.
    """
    if not any(one.shared for one in quick.values()):
        return RUNS
    packets = sum(
        float(load.rate.sum()) * load.gross / (8 * FRAME)
        for session in of.sessions
        for load in session.course.loads.values()
    )
    return round(RUNS * min(max(3 * CHEAP / packets, 1.0), 3.0))


def fit(
    of: Measurement,
    runs: int | None = None,
    seed: int = 1,
    workers: int = 1,
    told: Callable[[int, int], None] = lambda _a, _b: None,
) -> Fit:
    """Fits a line to a measurement by `runs` simulations of it, or `usual_runs`."""
    _checked(of)
    seen_by_name = statistics(of, [s.course for s in of.sessions])
    names, seen = list(seen_by_name), np.array(list(seen_by_name.values()))
    columns = [directions_of(names, d, of) for d in of.directions]
    quick, boxes = proposed(of)
    runs = runs or usual_runs(of, quick)
    rates = {d: next(iter(own.values()))[:, RATE] for d, own in boxes.items()}
    skewed = {d: (float(x[0]), float(x[1])) for d, x in rates.items() if quick[d].shared}
    done = 0

    def tell(count: int) -> None:
        nonlocal done
        done += count
        told(done, runs + DRAWS)

    known: dict[Direction, dict[str, _Known]] = {}
    for number, share in enumerate(ROUNDS):
        boxes = _narrowed(boxes, known) if known else boxes
        made = _Round.drawn(boxes, round(share * runs), 1000 * seed + number, skewed)
        seeds = [10_000_000 * seed + 100_000 * number + i for i in range(len(made.values))]
        stats = table(of, simulate(of.sessions, made.lines(of.frame), seeds, workers, tell))
        known = {
            d: _learnt(made, stats[:, own], seen[own], way)
            for way, (d, own) in enumerate(zip(of.directions, columns, strict=True))
        }
    random = np.random.default_rng(seed)
    least = {d: low for d, (low, _) in skewed.items()}
    found = _fitted(of, {d: quick[d].filled for d in quick}, known, least, random, runs)
    seeds = [10_000_000 * seed + 100_000 * len(ROUNDS) + i for i in range(DRAWS)]
    again = simulate(of.sessions, found.draws, seeds, workers, tell)
    drawn, own = (
        np.array([list(checks(of, one).values()) for one in courses])
        for courses in (again, [[s.course for s in of.sessions]])
    )
    return replace(found, surprise=surprise(drawn, own[0]))


def _fitted(
    of: Measurement,
    filled: Mapping[Direction, bool],
    known: Mapping[Direction, Mapping[str, _Known]],
    least: Mapping[Direction, float],
    random: np.random.Generator,
    runs: int,
) -> Fit:
    """Returns the posterior of the last round; rates are at least those carried, `least`."""
    ways: dict[Direction, Way] = {}
    names: list[npt.NDArray[np.str_]] = []
    rows: list[Floats] = []
    for direction, families in known.items():
        samples = {f: posterior(FAMILIES[f], one.regression) for f, one in families.items()}
        for sample in samples.values():
            sample[:, RATE] = np.maximum(sample[:, RATE], least.get(direction, -math.inf))
        chances = {f: one.chance for f, one in families.items()}
        counts = [round(SAMPLE * p) for p in chances.values()]
        parts = [random.permutation(s)[:n] for s, n in zip(samples.values(), counts, strict=True)]
        order = random.permutation(sum(counts))
        names.append(np.repeat([*chances], counts)[order])
        rows.append(np.concatenate(parts)[order])
        ways[direction] = Way(
            Estimate.of(np.exp(rows[-1][:, RATE])),
            chances,
            {
                f: Estimate.of(FAMILIES[f].whole(np.exp(one[:, SIZE]), of.frame))
                for f, one in samples.items()
            },
            filled[direction],
            _variation(of, direction),
        )
    lost = Estimate.of(np.exp(rows[0][:, LOSS]) - SMALLEST_LOSS)
    lost = replace(lost, low=lost.low if lost.low > SMALLEST_LOSS else 0.0)
    drawn = [
        np.concatenate([*(own[n, :BASE] for own in rows), rows[0][n, BASE:]]) for n in range(DRAWS)
    ]
    lines = [
        line_of(of.directions, row, [str(own[n]) for own in names], of.frame)
        for n, row in enumerate(drawn)
    ]
    return Fit(of, ways, Estimate.of(rows[0][:, BASE]), lost, tuple(lines), 0.0, runs)


def posterior(of: Family, found: Regression) -> Floats:
    """Returns parameters from the posterior of a family, within the limits of its prior."""
    errors = found.sample(SAMPLE // 2)
    middle = _limited(of, found.estimate[None, :])
    return _limited(of, middle + np.concatenate([errors, -errors]))


def _limited(of: Family, rows: Floats) -> Floats:
    """Returns the parameters within the limits of a family's prior, or the nearest to them."""
    target = (of.low, of.high) if of.unit == "s" else (2.0 * FRAME, math.inf)
    limits = [
        (1.0, 1e12),
        target,
        (math.exp(1e-5), math.inf),
        (SMALLEST_LOSS, MOST_LOSS + SMALLEST_LOSS),
    ]
    found = np.clip(rows, *np.log(limits).T)
    if of.unit == "B":
        found[:, SIZE] = np.minimum(found[:, SIZE], found[:, RATE] + math.log(of.high / 8))
    return found


def _variation(of: Measurement, direction: Direction) -> tuple[float, float] | None:
    """Returns the range of a rate that changes between seconds more than TCP alone explains."""
    for session in of.sessions:
        if direction in session.directions and len(session.directions) == 1:
            late = session.course.loads[direction].rate[int(session.length / 3) :]
            gross = session.course.loads[direction].gross
            low, middle, high = gross * np.quantile(late, [0.1, 0.5, 0.9])
            counted = 1.05 * _block(session, direction)  # 80 % range of the counting noise
            varies = high - low > 0.25 * middle + counted
            return (float(low), float(high)) if varies else None
    return None
