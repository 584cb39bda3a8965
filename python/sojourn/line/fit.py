"""The fit of a line to a measurement: quick estimates, then two rounds of simulations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sojourn.line import RUNS
from sojourn.line.bayes import Regression, classify, regress, surprise
from sojourn.line.measured import (
    FRAME,
    PAYLOAD,
    Direction,
    Floats,
    Measurement,
    MeasurementError,
    Session,
)
from sojourn.line.model import BLOCK, FAMILIES, SMALLEST_LOSS, Family, Line, Simulated, simulate
from sojourn.line.summary import directions_of, statistics

ROUNDS = (0.35, 0.25, 0.4)
"""Share of the simulations in each round."""
UNLIKELY = 0.004
"""Probability below which the second round omits a family."""
CREDIBLE = 0.95
REACH = 3.5
"""Half the width of a parameter's range in the next round, in standard deviations."""
WIDER = 1.25
"""Factor of the errors: a regression on lines of a narrow range errs less than on all lines."""
QUEUED = 0.005
"""Queueing delay in s above which a queue has formed, so that the rate was reached."""
OUTSIDE = 1.4
"""Surprise above which the measurement is outside the model."""
MOST_LOSS = 0.03
"""Largest random loss of the prior."""


@dataclass(frozen=True)
class Range:
    """An interval of a parameter, on the scale of the simulations."""

    low: float
    high: float

    def draw(self, u: Floats) -> Floats:
        """Returns values for uniform numbers from 0 to 1."""
        return self.low + u * (self.high - self.low)


@dataclass(frozen=True)
class Estimate:
    """A parameter's estimate and 95 % interval; a limit that is infinite or zero is unknown."""

    value: float
    low: float
    high: float


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
    runs: int

    @property
    def outside(self) -> bool:
        """Returns whether no line of the model makes the measured curves."""
        return self.surprise > OUTSIDE


Waits = Mapping[int, float]
"""Quantiles of queueing delays under load in s, by percent: 5, 50, 95 and 100."""
NO_WAITS = dict.fromkeys((5, 50, 95, 100), 0.0)


@dataclass(frozen=True)
class _Quick:
    """Quick estimates, around which lines are proposed."""

    rates: Mapping[Direction, float]
    noise: Mapping[Direction, float]
    """Largest relative error of a rate, because instruments count whole blocks."""
    probes: Mapping[Direction, Waits]
    """Delays of probes."""
    flows: Mapping[Direction, Waits]
    """Delays of the load's own packets, from TCP; those of probes if TCP's are unknown."""
    filled: Mapping[Direction, bool]
    least: float
    """Smallest round-trip time in s."""
    idle: bool
    lost: float


def quick(of: Measurement) -> _Quick:
    """Returns estimates by means and quantiles: rates, delays and the least round-trip time."""
    rtts = [of.idle, *(s.course.rtt[np.isfinite(s.course.rtt)] for s in of.sessions)]
    known = np.concatenate(rtts)
    if not any(s.interval for s in of.sessions) or known.size == 0:
        raise MeasurementError(
            f"{', '.join(of.files)}: no probes during the load, by which delays could be known: "
            "run `ping -D -i 0.2 HOST > ping.txt` next to iperf3, and give both files"
        )
    least = float(known.min())
    for session in of.sessions:
        for part in session.parts:
            load = session.course.loads[part.direction]
            if part.offered is not None and not load.lost > 0.01:
                carried = f"{float(load.rate.mean()) / 1e6:.3g} Mbit/s"
                raise MeasurementError(
                    f"the UDP load lost less than 1 %, so it did not fill the line: the rate is at "
                    f"least {carried}, and nothing else shows. Raise iperf3's -b, or use TCP"
                )
    rates: dict[Direction, float] = {}
    noise: dict[Direction, float] = {}
    probes: dict[Direction, Waits] = {}
    flows: dict[Direction, Waits] = {}
    filled: dict[Direction, bool] = {}
    losses = []
    for direction in of.directions:
        # Sessions with a load in this direction only are the best.
        own = sorted((s for s in of.sessions if direction in s.directions), key=_loads)
        seconds = [w.rate[int(s.length / 3) :] for s in own for w in [s.course.loads[direction]]]
        rates[direction] = max(float(np.mean(one)) for one in seconds) * FRAME / PAYLOAD
        course, load = own[0].course, own[0].course.loads[direction]
        streams = sum(p.streams for p in own[0].parts if p.direction == direction)
        blocks = 8 * BLOCK * math.sqrt(streams) / seconds[0].size
        noise[direction] = min(blocks / rates[direction], 0.5)
        one_way = course.up if direction == "up" else course.down
        late = course.times >= own[0].length / 3
        excess = one_way - np.nanmin(one_way) if one_way.size else course.rtt - least
        probes[direction] = _waits(excess[late])
        flows[direction] = _waits(load.srtt[3:] - least) or probes[direction]
        probes[direction] = probes[direction] or flows[direction]
        losses += [s.course.loads[direction].lost for s in own]
        filled[direction] = any(not s.course.loads[direction].lost < 1e-6 for s in own)
    idle = of.idle.size >= 5 or any(s.lead > 0 for s in of.sessions)
    lost = max(0.03 if math.isnan(one) else one for one in losses)
    return _Quick(rates, noise, probes, flows, filled, least, idle, lost)


def _loads(session: Session) -> int:
    return len(session.directions)


def _waits(excess: Floats) -> Waits:
    known = excess[np.isfinite(excess)]
    if known.size < 3:
        return {}
    return {q: max(float(np.percentile(known, q)), 0.0) for q in NO_WAITS}


class _Proposal:
    """The ranges from which lines are drawn."""

    def __init__(self, of: Measurement, guess: _Quick) -> None:
        self.directions = of.directions
        self.guess = guess
        self.families: dict[Direction, list[str]] = {d: list(FAMILIES) for d in self.directions}
        self.rates = {(d, f): self._rates(d, f) for d in self.directions for f in FAMILIES}
        self.sizes = {(d, f): self._sizes(d, f) for d in self.directions for f in FAMILIES}
        slack = max(5e-4, 0.02 * guess.least) if guess.idle else 0.97 * guess.least
        self.base = Range(max(guess.least - slack, 1e-5), guess.least)
        most = min(MOST_LOSS, 3 * guess.lost + 2 * SMALLEST_LOSS)
        self.loss = Range(math.log(2 * SMALLEST_LOSS), math.log(most + SMALLEST_LOSS))

    def _waits(self, direction: Direction, family: str) -> Waits:
        """Returns the delays that the queue of a family would have caused."""
        of = self.guess.flows if family.startswith("fq") else self.guess.probes
        return of[direction] or NO_WAITS

    def _rates(self, direction: Direction, family: str) -> Range:
        """Returns the range of a rate: wide unless the queue shows that TCP reached the rate."""
        middle, waits = math.log(self.guess.rates[direction]), self._waits(direction, family)
        slack = self.guess.noise[direction]
        low, high = middle - slack, middle + slack
        if FAMILIES[family].policer:
            return Range(low - 0.04, high + 1.6)
        frame = 8 * FRAME / self.guess.rates[direction]
        if waits[5] > max(1e-3, 2 * frame):
            return Range(low - 0.03, high + 0.05)
        seen = waits[95] > QUEUED or family.startswith("fq")
        return Range(low - 0.04, high + (0.3 if seen else 1.6))

    def _sizes(self, direction: Direction, family: str) -> Range:
        of, waits = FAMILIES[family], self._waits(direction, family)
        rate = self.guess.rates[direction] / 8
        low, high = of.low, of.high
        if of.unit == "s":
            blind = family.startswith("fq") and self.guess.flows == self.guess.probes
            if not blind:
                low, high = _common(of, 0.1 * waits[50], 2 * waits[50] + 1e-3)
            return Range(math.log(low), math.log(high))
        if not of.policer:
            more = (1.7 if self.guess.filled[direction] else 25) * waits[100]
            low, high = _common(of, 0.7 * waits[100], more + 0.01)
        low = max(low, 3 * FRAME / rate)
        return Range(math.log(rate * low), math.log(rate * max(high, 1.5 * low)))

    def draw(self, count: int, seed: int) -> tuple[Floats, npt.NDArray[np.int_], list[Line]]:
        """Returns parameters, numbers of families (a column for each direction), and lines."""
        random = np.random.default_rng(seed)
        values = np.empty((count, 2 * len(self.directions) + 2))
        kinds = np.empty((count, len(self.directions)), dtype=np.int_)
        lines = []
        for column, direction in enumerate(self.directions):
            own = self.families[direction]
            kinds[:, column] = random.permutation(np.arange(count) % len(own))
            v, u = _spread(random, count), _spread(random, count)
            for number, family in enumerate(own):
                mine = kinds[:, column] == number
                values[mine, 2 * column] = self.rates[direction, family].draw(v[mine])
                values[mine, 2 * column + 1] = self.sizes[direction, family].draw(u[mine])
        values[:, -2] = self.base.draw(_spread(random, count))
        some = _spread(random, count)
        none = random.random(count) < (0.5 if self.loss.low <= math.log(2.1 * SMALLEST_LOSS) else 0)
        values[:, -1] = np.where(none, math.log(SMALLEST_LOSS), self.loss.draw(some))
        for row, kind in zip(values, kinds, strict=True):
            names = [self.families[d][k] for d, k in zip(self.directions, kind, strict=True)]
            lines.append(line_of(self.directions, row, names))
        return values, kinds, lines


def _common(of: Family, low: float, high: float) -> tuple[float, float]:
    """Returns the part of a range in the prior of a family, at least its nearer end."""
    low, high = max(low, of.low), min(high, of.high)
    if low < high:
        return low, high
    return (of.low, 1.1 * of.low) if high <= of.low else (0.9 * of.high, of.high)


def _spread(random: np.random.Generator, count: int) -> Floats:
    """Returns a stratified sample of uniform numbers."""
    return np.asarray((random.permutation(count) + random.random(count)) / count)


def line_of(directions: Sequence[Direction], row: Floats, families: Sequence[str]) -> Line:
    """Returns the line with these parameters."""
    loss = math.exp(row[-1]) - SMALLEST_LOSS
    return Line(
        {d: math.exp(row[2 * i]) for i, d in enumerate(directions)},
        dict(zip(directions, families, strict=True)),
        {d: math.exp(row[2 * i + 1]) for i, d in enumerate(directions)},
        float(row[-2]),
        loss if loss > 0.3 * SMALLEST_LOSS else 0.0,
    )


@dataclass(frozen=True)
class _Round:
    """The simulated measurements of a round, and the statistics of the measurement."""

    values: Floats
    """Parameters; a row for each line."""
    kinds: npt.NDArray[np.int_]
    """Numbers of the families; a column for each direction."""
    stats: Floats
    seen: Floats
    columns: Mapping[Direction, Sequence[int]]
    """Numbers of the statistics that depend on each direction."""

    def of(self, way: int, kind: int) -> tuple[Floats, Floats, Floats]:
        """Returns statistics and parameters of lines with a family, and the seen statistics.

        The statistics are those of the direction; the parameters are its rate and size,
        round-trip time and loss.
        """
        mine = self.kinds[:, way] == kind
        columns = [*self.columns.values()][way]
        own = self.values[mine][:, [2 * way, 2 * way + 1, -2, -1]]
        return self.stats[mine][:, columns], own, self.seen[columns]


def table(of: Measurement, courses: Sequence[Simulated]) -> Floats:
    """Returns the statistics of measurements, a row for each."""
    return np.array([list(statistics(of, one).values()) for one in courses])


def fit(
    of: Measurement,
    runs: int = RUNS,
    seed: int = 1,
    workers: int = 1,
    told: Callable[[int, int], None] = lambda _a, _b: None,
) -> Fit:
    """Fits a line to a measurement by `runs` simulations of the whole measurement."""
    seen_by_name = statistics(of, [s.course for s in of.sessions])
    names, seen = list(seen_by_name), np.array(list(seen_by_name.values()))
    proposal = _Proposal(of, quick(of))
    done = 0

    def tell(count: int) -> None:
        nonlocal done
        done += count
        told(done, runs)

    columns = {d: directions_of(names, d, of) for d in of.directions}

    def round_(number: int) -> _Round:
        count = round(ROUNDS[number] * runs)
        values, kinds, lines = proposal.draw(count, 1000 * seed + number)
        seeds = [10_000_000 * seed + 100_000 * number + i for i in range(count)]
        stats = table(of, simulate(of.sessions, lines, seeds, workers, tell))
        return _Round(values, kinds, stats, seen, columns)

    made = round_(0)
    for number in range(1, len(ROUNDS)):
        _narrow(proposal, made)
        made = round_(number)
    return _fitted(of, proposal, made, runs, seed)


def _chances(proposal: _Proposal, way: int, made: _Round) -> dict[str, float]:
    """Returns the probability of each family of a direction, the greatest first."""
    direction = proposal.directions[way]
    own, columns = proposal.families[direction], made.columns[direction]
    prior = np.array([FAMILIES[f].share for f in own])
    kinds = made.kinds[:, way]
    found = classify(made.stats[:, columns], kinds, prior / prior.sum(), made.seen[columns])
    return {own[i]: float(found[i]) for i in np.argsort(-found)}


def _narrow(proposal: _Proposal, made: _Round) -> None:
    """Leaves families and ranges that a round has not excluded."""
    bases, losses = [], []
    for way, direction in enumerate(proposal.directions):
        own = proposal.families[direction]
        chances = _chances(proposal, way, made)
        kept = [f for f, chance in chances.items() if chance >= UNLIKELY]
        for family in kept:
            key = (direction, family)
            found = regress(*made.of(way, own.index(family)))
            reach = REACH * found.errors.std(axis=0)
            rate, size, base, loss = (
                Range(float(e - r), float(e + r))
                for e, r in zip(found.estimate, reach, strict=True)
            )
            proposal.rates[key] = _within(proposal.rates[key], rate, 0.01)
            proposal.sizes[key] = _within(proposal.sizes[key], size, 0.05)
            bases.append(_within(proposal.base, base, 1e-4))
            losses.append(_within(proposal.loss, loss, 0.5))
        proposal.families[direction] = kept
    proposal.base, proposal.loss = _cover(bases), _cover(losses)


def _within(old: Range, new: Range, least: float) -> Range:
    """Returns the part of an old range in a new one, with `least` on either side of its middle.

    A round narrows a range at most to a fifth: estimates beyond the old range are extrapolated.
    """
    least = max(least, 0.1 * (old.high - old.low))
    middle = min(max((new.low + new.high) / 2, old.low), old.high)
    low, high = min(new.low, middle - least), max(new.high, middle + least)
    return Range(max(old.low, low), min(old.high, high))


def _cover(ranges: Sequence[Range]) -> Range:
    return Range(min(r.low for r in ranges), max(r.high for r in ranges))


def _fitted(of: Measurement, proposal: _Proposal, made: _Round, runs: int, seed: int) -> Fit:
    """Returns the posterior of the last round."""
    random = np.random.default_rng(seed)
    samples: dict[Direction, tuple[list[str], Floats]] = {}
    ways: dict[Direction, Way] = {}
    strange: list[float] = []
    shared: list[Estimate] = []
    for way, direction in enumerate(of.directions):
        chances = _chances(proposal, way, made)
        found: dict[str, Regression] = {}
        sizes: dict[str, Estimate] = {}
        names: list[str] = []
        rows: list[Floats] = []
        for family, chance in chances.items():
            stats, values, seen = made.of(way, proposal.families[direction].index(family))
            one = regress(stats, values, seen)
            if chance >= 0.05:
                strange.append(surprise(stats, values, seen, one))
            one = found[family] = replace(one, errors=WIDER * one.errors)
            size = _estimate(one, 1, proposal.sizes[direction, family])
            if FAMILIES[family].unit == "s":
                size = _limited(size, FAMILIES[family])
            sizes[family] = _exponential(size)
            count = round(400 * chance)
            share = one.weights / one.weights.sum()
            rows.append(one.estimate + one.errors[random.choice(len(share), size=count, p=share)])
            names += [family] * count
        samples[direction] = names, np.concatenate(rows)
        rate, filled = _exponential(_mixed(found, chances, 0)), proposal.guess.filled[direction]
        ways[direction] = Way(rate, chances, sizes, filled, _variation(of, direction))
        shared += [_mixed(found, chances, 2), _exponential(_mixed(found, chances, 3))]
    base, added = shared[:2]
    low, value, high = (
        min(max(x - SMALLEST_LOSS, 0.0), MOST_LOSS) for x in (added.low, added.value, added.high)
    )
    low = low if low > SMALLEST_LOSS else 0.0
    draws = _draws(of, proposal, samples, random)
    return Fit(of, ways, base, Estimate(value, low, high), draws, min(strange), runs)


def _estimate(one: Regression, number: int, inside: Range) -> Estimate:
    half = one.half_width(number, CREDIBLE)
    value = min(max(one.estimate[number], inside.low), inside.high)
    return Estimate(float(value), float(value - half), float(value + half))


def _limited(of: Estimate, family: Family) -> Estimate:
    """Returns the interval of a target within its prior."""
    low, high = math.log(family.low), math.log(family.high)
    return Estimate(of.value, max(of.low, low), min(of.high, high))


def _mixed(found: Mapping[str, Regression], chances: Mapping[str, float], number: int) -> Estimate:
    """Returns the interval of a parameter over the likely families."""
    parts = [(found[f], chance) for f, chance in chances.items() if chance >= 0.02]
    first = parts[0][0]
    if len(parts) == 1:
        half = first.half_width(number, CREDIBLE)
        return Estimate(
            float(first.estimate[number]),
            float(first.estimate[number] - half),
            float(first.estimate[number] + half),
        )
    points, weights = [], []
    for one, chance in parts:
        points.append(one.estimate[number] + one.errors[:, number])
        weights.append(chance * one.weights / one.weights.sum())
    every, share = np.concatenate(points), np.concatenate(weights)
    order = np.argsort(every)
    cumulated = np.cumsum(share[order]) / share.sum()
    low, middle, high = np.interp([0.025, 0.5, 0.975], cumulated, every[order])
    return Estimate(float(middle), float(low), float(high))


def _exponential(of: Estimate) -> Estimate:
    return Estimate(math.exp(of.value), math.exp(of.low), math.exp(of.high))


def _variation(of: Measurement, direction: Direction) -> tuple[float, float] | None:
    """Returns the range of a rate that changes between seconds more than TCP alone explains."""
    for session in of.sessions:
        if direction in session.directions and len(session.directions) == 1:
            late = session.course.loads[direction].rate[int(session.length / 3) :]
            low, middle, high = np.quantile(late, [0.1, 0.5, 0.9]) * FRAME / PAYLOAD
            streams = sum(p.streams for p in session.parts if p.direction == direction)
            counted = 1.05 * 8 * BLOCK * math.sqrt(streams)  # 80 % range of the counting noise
            varies = high - low > 0.25 * middle + counted
            return (float(low), float(high)) if varies else None
    return None


def _draws(
    of: Measurement,
    proposal: _Proposal,
    samples: Mapping[Direction, tuple[list[str], Floats]],
    random: np.random.Generator,
    count: int = 40,
) -> tuple[Line, ...]:
    """Returns lines drawn from the posterior."""
    lines = []
    top = of.directions[0]
    for _ in range(count):
        row = np.empty(2 * len(of.directions) + 2)
        families = []
        for way, direction in enumerate(of.directions):
            names, rows = samples[direction]
            pick = int(random.integers(len(names)))
            families.append(names[pick])
            size = proposal.sizes[direction, names[pick]]
            row[2 * way] = rows[pick][0]
            row[2 * way + 1] = min(max(rows[pick][1], size.low - 0.5), size.high + 0.5)
            if direction == top:
                row[-2:] = max(rows[pick][2], 1e-5), min(rows[pick][3], math.log(MOST_LOSS))
        lines.append(line_of(of.directions, row, families))
    return tuple(lines)
