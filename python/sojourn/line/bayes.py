"""Approximate Bayesian computation: families by classification, parameters by regression.

Simulated measurements of lines from a proposal have summary statistics. A Gaussian model of the
statistics of each family gives the families' probabilities; a temperature, found by cross-fitting,
corrects probabilities that are too sharp. A ridge regression of a parameter on the statistics gives
its estimate (Beaumont et al. 2002; Fearnhead and Prangle 2012), and its errors on simulated lines
that it has not seen give the interval, as in conformal prediction (Barber et al. 2021). They are
widened if the observation is further from the simulated statistics than these are from each other,
as the slopes are uncertain too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg
from scipy.special import softmax
from scipy.stats import multivariate_t

from sojourn.line.measured import Floats

RIDGES = 10.0 ** np.arange(-2, 4.1, 0.5)
NEAR = 0.6
"""Share of the simulated lines that count as near the observation."""
ALIKE = 0.05
"""Deviation of a check between lines that count as alike."""
TEMPERATURES = (1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0)


@dataclass(frozen=True)
class Regression:
    """An estimate from observed statistics, and its errors on the simulated lines."""

    estimate: Floats
    """Estimates of the parameters."""
    errors: Floats
    """Parameters minus their estimates without the line itself, widened; a row for each line."""
    fitted: Floats
    """Estimates of the lines' parameters, each without the line itself."""
    weights: Floats
    """Weights of the lines: those near the observation count most."""

    def sample(self, count: int) -> Floats:
        """Returns errors of lines, each line as often as its weight says."""
        places = (np.arange(count) + 0.5) / count * self.weights.sum()
        return np.asarray(self.errors[np.searchsorted(np.cumsum(self.weights), places)])


def standardised(stats: Floats, seen: Floats) -> tuple[Floats, Floats]:
    """Returns statistics of simulations and observation with mean 0 and deviation 1.

    The observation is limited to 8 deviations, so that a line outside the model extrapolates less.
    """
    mean, sd = stats.mean(axis=0), stats.std(axis=0)
    sd = np.where(sd > 1e-9, sd, 1.0)
    return (stats - mean) / sd, np.clip((seen - mean) / sd, -8, 8)


def regress(stats: Floats, values: Floats, seen: Floats) -> Regression:
    """Regresses the parameters on the statistics; the ridge is that with the smallest errors.

    A second regression weights lines by the nearness of their estimates to the observation's.
    """
    first = _ridge(stats, values, seen, np.ones(len(stats)))
    scale = first.errors.std(axis=0) + 0.02 * first.fitted.std(axis=0) + 1e-12
    away = (np.abs(first.fitted - first.estimate) / scale).max(axis=1)
    reach = max(float(np.quantile(away, NEAR)), 1e-9)
    return _ridge(stats, values, seen, np.maximum(1 - (away / reach / 1.2) ** 2, 0.02))


def _ridge(stats: Floats, values: Floats, seen: Floats, weights: Floats) -> Regression:
    x, x0 = standardised(stats, seen)
    root = np.sqrt(weights)[:, None]
    mean = np.average(values, axis=0, weights=weights)
    middle = np.average(x, axis=0, weights=weights)
    u, s, vt = np.linalg.svd(root * (x - middle), full_matrices=False)
    projected = u.T @ (root * (values - mean))
    across = vt @ (x0 - middle)
    estimate, fitted, errors = np.empty(values.shape[1]), values.copy(), np.empty_like(values)
    for number in range(values.shape[1]):
        best = math.inf
        for ridge in RIDGES:
            shrunk = s**2 / (s**2 + ridge)
            fit = (u @ (shrunk * projected[:, number])) / root[:, 0]
            leverage = (u**2 * shrunk).sum(axis=1) + weights / weights.sum()
            own = (values[:, number] - mean[number] - fit) / (1 - np.minimum(leverage, 1 - 1e-9))
            if (size := float(np.average(own**2, weights=weights))) < best:
                best = size
                reach = across * s / (s**2 + ridge)
                estimate[number] = mean[number] + reach @ projected[:, number]
                fitted[:, number] = values[:, number] - own
                far, usual = (reach**2).sum(), (shrunk**2).sum() / weights.sum()
                errors[:, number] = own * math.sqrt(max((1 + far) / (1 + usual), 1.0))
    return Regression(estimate, errors, fitted, weights)


def _densities(x: Floats, kinds: npt.NDArray[np.int_], count: int, at: Floats) -> Floats:
    """Returns the logarithm of each kind's density, a column for each kind.

    The statistics are projected on the directions that distinguish the kinds best (Fisher). The
    densities there have the tails of Student's t with 5 degrees of freedom.
    """
    means = np.array([x[kinds == k].mean(axis=0) for k in range(count)])
    within = np.cov(x - means[kinds], rowvar=False)
    within = 0.8 * within + 0.2 * np.diag(np.diag(within)) + 0.01 * np.eye(len(within))
    between = np.cov(means, rowvar=False)
    _, vectors = linalg.eigh(between, within)
    axes = vectors[:, -min(count - 1, len(within)) :]
    z, z0 = x @ axes, at @ axes
    found = np.empty((len(at), count))
    for k in range(count):
        own = z[kinds == k]
        cov = np.atleast_2d(np.cov(own, rowvar=False))
        cov = 0.75 * cov + 0.25 * np.diag(np.diag(cov)) + 0.02 * np.eye(len(cov))
        found[:, k] = multivariate_t.logpdf(z0, own.mean(axis=0), cov, df=5)
    return found


def classify(stats: Floats, kinds: npt.NDArray[np.int_], prior: Floats, seen: Floats) -> Floats:
    """Returns the probability of each kind, given the observed statistics."""
    count = len(prior)
    if count == 1:
        return np.ones(1)
    x, x0 = standardised(stats, seen)
    places = np.arange(len(x))
    crossed = np.empty((len(x), count))
    for fold in range(4):
        mine = places % 4 == fold
        crossed[mine] = _densities(x[~mine], kinds[~mine], count, x[mine])
    own = np.bincount(kinds, minlength=count) / len(kinds)

    def score(tried: float) -> float:
        chances = softmax(crossed / tried + np.log(own), axis=1)
        return float(np.log(chances[places, kinds] + 1e-6).mean())

    logs = _densities(x, kinds, count, x0[None, :])[0] / max(TEMPERATURES, key=score)
    return np.asarray(0.99 * softmax(logs + np.log(prior)) + 0.01 * prior)


def surprise(drawn: Floats, seen: Floats) -> float:
    """Returns how far observed checks are from those of lines drawn from the posterior.

    The value is a Mahalanobis distance, per root of the number of checks: in standard deviations.
    """
    scale = np.hypot(drawn.std(axis=0, ddof=1), ALIKE)
    z = (drawn - drawn.mean(axis=0)) / scale
    z0 = np.clip((seen - drawn.mean(axis=0)) / scale, -20, 20)
    cov = 0.5 * np.atleast_2d(np.cov(z, rowvar=False)) + 0.5 * np.diag(z.var(axis=0, ddof=1))
    cov += 1e-2 * np.eye(z0.size)
    return float(np.sqrt(z0 @ linalg.solve(cov, z0, assume_a="pos") / z0.size))
