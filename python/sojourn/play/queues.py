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
    name, given = _given(text)
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
    name, given = _given(text)
    known = {word["name"]: word for word in tables()[name]["words"]}
    for key, value in words.items():
        if key not in known:
            raise ValueError(f"`{name}` has no word `{key}`")
        if value is None or value == "":
            given.pop(key, None)
        else:
            given[key] = value
    parts = [name]
    for key, value in given.items():
        parts += _spelled(known[key], value)
    return " ".join(parts)


def _spelled(word: Json, value: str | bool) -> list[str]:
    match word["kind"]:
        case "flag":
            return [word["name"]] if value is True else []
        case "switch":
            return [word["name"] if value is True else word["off"]]
        case "one_of":
            return [str(value)]
        case _:
            text = str(value)
            quoted = f'"{text}"' if any(c.isspace() for c in text) else text
            return [word["name"], quoted]


def _given(text: str) -> tuple[str, dict[str, str | bool]]:
    """The name and the words of a text that the engine has read without complaint."""
    tokens = iter(_core.split_words(text))
    name = next(tokens, "")
    words = tables()[name]["words"]
    given: dict[str, str | bool] = {}
    for token in tokens:
        for word in words:
            match word["kind"]:
                case "flag" if token == word["name"]:
                    given[token] = True
                case "switch" if token in (word["name"], word["off"]):
                    given[word["name"]] = token == word["name"]
                case "one_of" if token in word["of"]:
                    given[word["name"]] = token
                case "flag" | "switch" | "one_of":
                    continue
                case _ if token == word["name"]:
                    given[token] = next(tokens, "")
                case _:
                    continue
            break
    return name, given


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
