"""Queues as a page shows them: a name and a control for each of its words."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from sojourn import _core
from sojourn.suites.disciplines import every

Json = dict[str, Any]

PACKETS = 1000
"""Room of the queues that need to be told one."""

SPANS: dict[str, tuple[float, float]] = {
    "time": (10e3, 1e9),
    "packets": (1, 20_000),
    "size": (1514, 64 * 1024**2),
    "rate": (100e3, 10e9),
    "probability": (1e-5, 1.0),
}
"""Least and greatest value of a slider, in ns, packets, bytes, bit/s and parts of one."""


@cache
def tables() -> Mapping[str, Json]:
    """All disciplines by name, with their words."""
    return {table["name"]: table for table in json.loads(_core.describe())["queue"]}


def usual(name: str, rate: int) -> str:
    """The text with which a discipline starts on a link of this rate.

    Its defaults, unless it has words that must be given.
    """
    try:
        _core.parse_queue(name, 1514, 1000, rate)
    except _core.WordError:
        return every(rate, PACKETS)[name]
    return name


def card(text: str, rate: int) -> Json:
    """A queue's name, summary, and the controls of its words."""
    written = json.loads(_core.queue_words(text))
    name, given = written["name"], dict(written["words"])
    table = tables()[name]
    return {
        "text": text,
        "name": name,
        "summary": table["summary"],
        "words": [_control(word, given.get(word["name"])) for word in table["words"]],
        "warnings": list(_core.queue_warnings(text, 1514, 1000, rate)),
    }


def changed(text: str, words: Mapping[str, str | bool | None]) -> str:
    """The text with some words set, or with their defaults again where the value is none.

    Whether the values fit is the engine's to say.
    """
    return _core.rewrite_queue(text, json.dumps(list(words.items())))


def _control(word: Json, given: str | bool | None) -> Json:
    """What a page needs to show a word."""
    kind, default = word["kind"], word["default"]
    shown: Json = {
        "name": word["name"],
        "kind": kind,
        "doc": word["doc"],
        "default": default,
        "given": given,
    }
    match kind:
        case "flag":
            shown["on"] = given is True
        case "switch":
            shown["on"] = given if given is not None else default == word["name"]
        case "one_of" | "choice":
            shown["of"] = list(word["of"])
        case "named":
            shown["of"] = [meaning["name"] for meaning in word["of"]]
        case _:
            shown["slider"] = _slider(word, given if isinstance(given, str) else default)
    return shown


def _slider(word: Json, text: str) -> Json | None:
    """Where a slider begins, ends and stands; none where the value is no plain number."""
    value = quantity(word["kind"], text)
    if value is None:
        return None
    if word["kind"] in SPANS:
        low, high = SPANS[word["kind"]]
    else:
        low, high = float(word["min"]), float(word["max"])
        if word["kind"] == "integer":
            high = min(high, max(100.0, 16 * value))
    if not (math.isfinite(low) and math.isfinite(high)) or low >= high:
        return None
    if value > 0:
        low, high = min(low, value), max(high, value)
    log = low > 0 and high > 50 * low
    return {"kind": word["kind"], "low": low, "high": high, "value": value, "log": log}


def quantity(kind: str, text: str) -> float | None:
    """A value of a word in its base unit; none if it is no number."""
    try:
        match kind:
            case "time" | "size" | "rate" | "packets":
                return float(_core.parse_quantity(kind, text))
            case "probability":
                return float(_core.parse_quantity("probability", text))
            case "integer" | "signed" | "real":
                return float(text)
    except ValueError:
        pass
    return None
