"""Conditions such as `goodput >= 95% of best and loss <= 1%`, parsed and never executed as code.

    condition  = comparison { "and" comparison }
    comparison = METRIC ( ">=" | "<=" | ">" | "<" ) bound
    bound      = QUANTITY | SHARE "of" NAME | SHARE [ "of" ] "best"

A quantity has the metric's unit (`5ms`, `8mbit`); a metric without a unit takes a number or a
percentage. A share is a percentage or a number: `95%`, `0.95`. `p95 sojourn` means `sojourn_p95`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from sojourn import _core
from sojourn.metrics import STATISTIC, Interest, Metric, spelled
from sojourn.scenario.errors import QuestionError

Operator = Literal[">=", "<=", ">", "<"]

_COMPARISON = re.compile(
    rf"\s*(?P<metric>(?:(?:{STATISTIC})\s+)?[^\s<>=!]+)\s*(?P<op>[<>=!]+)\s*(?P<bound>\S.*?)\s*",
    re.DOTALL,
)
_PERCENT = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*%")
_SHARE = re.compile(
    r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<percent>%)?\s*(?:of\s+(?P<of>\S.*)|(?P<best>best))",
    re.DOTALL,
)
_LARGEST_SHARE = 10
"""Largest share accepted without `%`; a larger number was probably meant as a percentage."""
ASKED = "asked for"
"""Source of a smallest difference of interest that the user states."""
_EXAMPLES = {"s": "5ms", "bit/s": "8mbit", "B": "30kb"}
_KINDS: dict[str, Literal["time", "rate", "size"]] = {"s": "time", "bit/s": "rate", "B": "size"}
_OPERATORS: dict[str, Operator] = {">=": ">=", "<=": "<=", ">": ">", "<": "<"}
_LONGEST = 2000


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison of a metric with a bound."""

    metric: str
    operator: Operator
    text: str
    """The bound as the user wrote it."""
    share: float | None = None
    """The bound as a share of the value of `of`; None if the bound is an amount."""
    of: str | None = None
    """The choice whose value the share refers to: `best` or a choice's name; None for an amount."""

    def __str__(self) -> str:
        return f"{self.metric} {self.operator} {self.text}"

    def met(self, value: float, bound: float) -> bool:
        """Returns whether the value satisfies the bound."""
        match self.operator:
            case ">=":
                return value >= bound
            case "<=":
                return value <= bound
            case ">":
                return value > bound
            case "<":
                return value < bound

    def absolute(self, unit: str) -> float:
        """Returns the bound as a number in the metric's unit."""
        percent = _PERCENT.fullmatch(self.text)
        if percent:
            if unit not in ("1", ""):
                raise QuestionError(
                    f"`{self}`: the percentage needs a reference value: write `{self.text} of "
                    f"best`, or a value in {unit}"
                )
            return float(percent["number"]) / 100
        if unit in _KINDS:
            return _quantity(self.text, unit, str(self))
        try:
            return float(self.text)
        except ValueError:
            raise QuestionError(f"`{self}`: `{self.text}` is not a number or percentage") from None


def _quantity(text: str, unit: str, where: str) -> float:
    try:
        amount = float(_core.parse_quantity(_KINDS[unit], text))
    except ValueError as error:
        message = getattr(error, "message", None) or str(error)
        hint = "" if _EXAMPLES[unit] in message else f" (such as {_EXAMPLES[unit]})"
        raise QuestionError(f"`{where}`: {message}{hint}") from None
    return amount / 1e9 if unit == "s" else amount


def smallest(text: str, metric: Metric) -> Interest:
    """Returns the smallest difference of interest that `text` states for a metric.

    `5%` is a share of the reference value. Any other text is an amount in the metric's unit.
    """
    percent = _PERCENT.fullmatch(text.strip())
    if percent:
        return Interest(float(percent["number"]) / 100, 0.0, ASKED)
    if metric.unit in _KINDS:
        return Interest(0.0, _quantity(text, metric.unit, text), ASKED)
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not 0 <= amount < math.inf:
        raise QuestionError(
            f"`{text}` is not a valid difference of {metric.name}: write a number such as "
            f"{metric.interest.absolute or 0.1:g}, or a share such as 5%"
        )
    return Interest(0.0, amount, ASKED)


def parse(text: str) -> tuple[Condition, ...]:
    """Returns the comparisons in the text of a condition; an empty text gives none."""
    if len(text) > _LONGEST:
        raise QuestionError(f"the condition is longer than {_LONGEST} characters")
    if not text.strip():
        return ()
    return tuple(_comparison(part) for part in re.split(r"\band\b", text))


def _comparison(text: str) -> Condition:
    found = _COMPARISON.fullmatch(text)
    if found is None:
        raise QuestionError(
            f"`{text.strip()}` is not a condition: write METRIC >= VALUE, as in `goodput >= 95% "
            "of best`; join several with `and`"
        )
    metric, operator, bound = found["metric"], found["op"], found["bound"]
    if operator not in _OPERATORS:
        raise QuestionError(
            f"`{text.strip()}`: unknown operator `{operator}`; allowed: >=, <=, >, <"
        )
    part = _SHARE.fullmatch(bound)
    share = of = None
    if part:
        share = float(part["number"]) / (100 if part["percent"] else 1)
        of = " ".join((part["of"] or part["best"]).split())
        if not part["percent"] and share > _LARGEST_SHARE:
            raise QuestionError(
                f"`{text.strip()}`: a share above {_LARGEST_SHARE} must be a "
                f"percentage: write {part['number']}% of {of}"
            )
    return Condition(spelled(metric), _OPERATORS[operator], bound, share, of)
