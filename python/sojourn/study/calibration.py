"""Checks whether simulated differences between queues exceed the expected error against Linux."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.metrics import unit
from sojourn.study import quantities
from sojourn.study.answer import listed, words
from sojourn.study.expected import TOLD, Expected, Unlike, bars, expected, recorded_name

if TYPE_CHECKING:
    from sojourn.scenario import Scenario
    from sojourn.study.compared import Entry
    from sojourn.study.comparison import Comparison


@dataclass(frozen=True)
class Calibration:
    """The queues' differences from the best queue, compared with the simulator's errors."""

    within: dict[str, float]
    """Expected error of the difference by queue, for queues whose difference is at most this error.
    """
    beyond: dict[str, float]
    """Expected error of the difference by queue, for queues whose difference exceeds this error."""
    unknown: dict[str, str]
    """Reasons by queue, for queues without similar cells."""
    expected: Expected
    """Expected errors of the best queue."""


def calibration(found: Comparison, scenario: Scenario) -> Calibration:
    """Checks whether the differences between simulated queues exceed the simulator's error.

    The errors of two queues are taken as independent of each other.

    Raises:
        Unlike: if no queue has similar cells; the message states the reason.
    """
    if found.noun != "queue":
        raise Unlike("only queues have been compared with Linux")
    if found.present is not None:
        raise Unlike("the queues were in a shaper, and Linux was measured without one")
    name = recorded_name(found.by)
    if name not in TOLD:
        raise Unlike(f"{listed([*TOLD])} were checked against Linux, {found.by} was not")
    within: dict[str, float] = {}
    beyond: dict[str, float] = {}
    unknown: dict[str, str] = {}

    def errors(entry: Entry) -> tuple[Expected, float]:
        one = expected(scenario.with_queue(entry.choice).plan)
        error = one.error(found.by, entry.value.estimate)
        if math.isnan(error):
            raise Unlike(f"no similar cell has {found.by}")
        return one, error

    first, own = errors(found.entries[0])
    for entry in found.entries[1:]:
        try:
            error = math.hypot(own, errors(entry)[1])
        except Unlike as reason:
            unknown[entry.choice] = str(reason)
            continue
        gap = abs(entry.value.estimate - found.entries[0].value.estimate)
        (within if gap <= error else beyond)[entry.choice] = error
    return Calibration(within, beyond, unknown, first)


def description(found: Comparison, scenario: Scenario) -> str:
    """Returns the expected errors of the best queue, and the result of `calibration`."""
    try:
        known = calibration(found, scenario)
    except Unlike as reason:
        return f"Simulated; the error against Linux is not known for this answer: {reason}."
    names, units = found.short, found.table.units
    best = found.entries[0]
    values = {found.by: best.value.estimate}
    values |= {metric: one.estimate for metric, one in best.metrics.items()}
    said = bars(known.expected, values, units).removesuffix(".") + f" ({names[best.choice]})."
    text = []
    for queues, is_where in ((known.within, "not larger"), (known.beyond, "larger")):
        for queue, error in queues.items():
            most = quantities.value(error, units.get(found.by, unit(found.by)), found.by)
            text.append(f"{names[queue]}: {is_where} than {most}")
    if text:
        said += (
            f" Differences to {names[best.choice]} in {words(found.by)}, compared with their "
            f"error: {'; '.join(text)}."
        )
    if known.within:
        said += " Simulation cannot decide a difference that is not larger than its error."
    if known.unknown:
        said += f" The error is not known for {listed([names[q] for q in known.unknown])}."
    return said
