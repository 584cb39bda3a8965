"""The space of a search: the variables of a queue and their ranges.

A variable is one of three: a word with a range, such as `target 1ms..50ms log`; a word without a
range, whose range follows from its default; or alternatives, such as `ecn | noecn`, of which the
queue contains one. A word may be a pattern: `*-rate` means all words with this ending.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from itertools import pairwise
from typing import Any, Literal, cast

from sojourn import _core
from sojourn.metrics import nearest
from sojourn.own.sources import Read, is_own
from sojourn.own.text import own, read_file
from sojourn.study.errors import StudyError

Scale = Literal["log", "linear"]
Value = float | str
"""Value of a variable: a number in the word's base unit (ns, bit/s, bytes, packets), or a text."""

AROUND = 10.0
"""Factor of a default range: from the default divided by this to the default times this."""
DIGITS = 3
"""Number of significant digits of tried values, except counts, so that users can type them."""

EDGE = 0.05
"""Share of a range at either end; a value in it is at the edge of the range."""

_QUANTITIES = ("time", "rate", "size", "packets")
_WHOLE = ("time", "rate", "size", "packets", "integer")
_COUNTS = ("packets", "integer")
_NUMBERS = (*_QUANTITIES, "integer", "real", "probability")
_BARE = ("flag", "switch")
_RANGE = re.compile(r"(?P<low>\S+?)\s*\.\.\s*(?P<high>\S+)(?:\s+(?P<scale>log|linear))?")


@dataclass(frozen=True)
class Range:
    """A variable with numbers from `low` to `high` as the value of a word."""

    word: str
    kind: str
    """Kind of the number, such as `time` or `rate`."""
    low: float
    high: float
    scale: Scale
    """Scale on which values are proposed."""

    @property
    def name(self) -> str:
        """Returns the name of the variable."""
        return self.word

    def text(self, value: Value) -> str:
        """Returns the word with this value, as words of a queue."""
        return f"{self.word} {_written(self.kind, float(value))}"

    def rounded(self, value: Value) -> Value:
        """Returns the value within the range, rounded to `DIGITS` digits (counts: to integers)."""
        near = round(float(value)) if self.kind in _WHOLE else float(value)
        if self.kind not in _COUNTS:
            near = float(f"{near:.{DIGITS}g}")
        return min(max(near, self.low), self.high)

    def at_edge(self, value: Value) -> bool:
        """Returns whether a value is so near a limit that better values may be beyond the limit."""
        low, high, x = self.low, self.high, float(value)
        if self.scale == "log":
            low, high, x = math.log(low), math.log(high), math.log(x)
        near = EDGE * (high - low)
        certain = self.kind == "probability" and self.high == 1  # probabilities end at 1
        return x - low < near or (high - x < near and not certain)

    def __str__(self) -> str:
        limits = (_written(self.kind, x) for x in (self.low, self.high))
        return f"{self.word} {'..'.join(limits)} {self.scale}"


@dataclass(frozen=True)
class Choice:
    """A variable with alternative texts, of which the queue contains one; a text may be empty."""

    texts: tuple[str, ...]

    @property
    def name(self) -> str:
        """Returns the name of the variable."""
        return " | ".join(self.texts)

    @property
    def words(self) -> tuple[str, ...]:
        """Returns the first words of the texts, which are the words that the variable sets."""
        return tuple(dict.fromkeys(word for text in self.texts for word in text.split()[:1]))

    def text(self, value: Value) -> str:
        """Returns the chosen text."""
        return str(value)

    def rounded(self, value: Value) -> Value:
        """Returns the text unchanged."""
        return value

    def __str__(self) -> str:
        return self.name


Variable = Range | Choice


@dataclass(frozen=True)
class Word:
    """A word of a queue, as far as a search varies it."""

    name: str
    kind: str
    """Kind of the value, such as `time`, or `flag` and `switch` for words without a value."""
    default: str
    min: float | None = None
    max: float | None = None
    off: str | None = None
    """Word that clears a switch."""


@dataclass(frozen=True)
class Space:
    """A queue with its variables."""

    base: str
    """The original queue."""
    fixed: str
    """The original queue without the words of the variables."""
    variables: tuple[Variable, ...]
    start: Mapping[str, Value] | None
    """Values of the variables in `base`; `None` if one is outside its range or unknown."""

    @classmethod
    def of(cls, base: str, vary: Sequence[str], read: Read = read_file) -> Space:
        """Returns the space of a queue with the variables `vary`.

        `read` reads the files of a user's own queue.

        Raises:
            StudyError: for an invalid word or range; the message states what is allowed.
        """
        _parsed(base, read)  # reports errors of the queue first
        words = _words(base, read)
        if not vary:
            raise StudyError(f"nothing varies; name words of {_kind(base)}: {_usable(words)}")
        try:
            variables = [made for text in vary for made in _read(text, words, base)]
        except StudyError as error:
            raise StudyError(f"vary: {error}") from None
        seen: set[str] = set()
        for variable in variables:
            for word in _set_by(variable):
                if word in seen:
                    raise StudyError(f"`{word}` is varied twice")
                seen.add(word)
        space = cls(base, _without(base, seen, words), tuple(variables), None)
        start = _start(base, variables, words)
        # A word such as `preset` sets other words. The defaults in the table of words are then not
        # the queue's values, so the search has no start.
        true = start is not None and _parsed(space.queue(start), read) == _parsed(base, read)
        return replace(space, start=start) if true else space

    def queue(self, values: Mapping[str, Value]) -> str:
        """Returns the queue with these values of the variables."""
        parts = [v.text(values[v.name]) for v in self.variables]
        return " ".join([self.fixed, *filter(None, parts)])

    def edges(self, values: Mapping[str, Value]) -> list[str]:
        """Returns the ranges whose value is at the edge."""
        ranges = [v for v in self.variables if isinstance(v, Range)]
        return [str(v) for v in ranges if v.at_edge(values[v.name])]


def _parsed(queue: str, read: Read) -> object:
    """Returns the parameters of a queue, which can be compared for equality."""
    return own("queue", queue, read).values if is_own(queue) else _core.parse_queue(queue)


def _kind(base: str) -> str:
    return base.split(maxsplit=1)[0]


def _words(base: str, read: Read) -> Mapping[str, Word]:
    """Returns the words that a queue accepts, by name."""
    if is_own(base):
        declared = own("queue", base, read).declaration.words
        offs = {word.name: f"no{word.name}" for word in declared if word.kind == "switch"}
        return {w.name: Word(w.name, w.kind, w.default, off=offs.get(w.name)) for w in declared}
    return _tables()[_kind(base)]


@cache
def _tables() -> dict[str, dict[str, Word]]:
    known = json.loads(_core.describe())["queue"]
    names = [field.name for field in fields(Word)]
    return {
        table["name"]: {
            word["name"]: Word(**{key: word[key] for key in names if key in word})
            for word in table["words"]
        }
        for table in known
    }


def _usable(words: Mapping[str, Word]) -> str:
    listed = [str(found) for w in words.values() if (found := _around(w)) is not None]
    return "; ".join(listed) or "none has a default range, so write WORD LOW..HIGH"


def _read(text: str, words: Mapping[str, Word], base: str) -> list[Variable]:
    if "|" in text:
        return [_choice(text, words, base)]
    name, _, rest = text.strip().partition(" ")
    pattern = any(c in name for c in "*?[")
    if pattern:
        named = [w for w in words.values() if fnmatchcase(w.name, name)]
        named = [w for w in named if (w.kind in _NUMBERS if rest else _around(w))]
        if not named:
            raise StudyError(f"`{name}`: no word of {_kind(base)} that can vary matches")
    else:
        named = [_known(name, words, base)]
    return [_range(w, rest.strip(), text) for w in named]


def _known(name: str, words: Mapping[str, Word], base: str) -> Word:
    if name in words:
        return words[name]
    close = nearest(name, words)
    hint = f": did you mean `{close}`?" if close else f"; existing: {', '.join(words)}"
    raise StudyError(f"`{_kind(base)}` has no word `{name}`{hint}")


def _choice(text: str, words: Mapping[str, Word], base: str) -> Choice:
    texts = tuple(" ".join(part.split()) for part in text.split("|"))
    if len(set(texts)) < len(texts):
        raise StudyError(f"`{text}`: an alternative is listed twice")
    offs = {w.off for w in words.values() if w.off}
    choice = Choice(texts)
    for word in choice.words:
        if word not in offs:
            _known(word, words, base)
    return choice


def _range(word: Word, rest: str, text: str) -> Range:
    name = word.name
    if not rest:
        made = _around(word)
        if made is None:
            raise StudyError(f"`{name}` has no default range: write `{name} LOW..HIGH`")
        return made
    found = _RANGE.fullmatch(rest)
    if found is None:
        raise StudyError(
            f"`{text}`: `{rest}` is not a range; write `{name} LOW..HIGH`, optionally followed "
            "by `log` or `linear`"
        )
    kind = word.kind if word.kind in _NUMBERS else _guessed(found["low"])
    low, high = (_number(kind, found[end], text) for end in ("low", "high"))
    if not low < high:
        raise StudyError(f"`{text}`: the lower limit must be below the upper limit")
    least, most = word.min, word.max
    if (least is not None and low < least) or (most is not None and high > most):
        raise StudyError(f"`{text}`: {name} must be from {least:g} to {most:g}")
    scale: Scale = cast("Scale | None", found["scale"]) or _natural(low, high)
    if scale == "log" and low <= 0:
        raise StudyError(f"`{text}`: a logarithmic range must begin above 0")
    return Range(name, kind, low, high, scale)


def _around(word: Word) -> Range | None:
    """Returns the default range of a word; `None` if its default determines no range."""
    kind = word.kind
    middle = _read_number(kind, word.default) if kind in _NUMBERS else None
    if middle is None or middle <= 0:
        return None
    low, high = (float(f"{x:.{DIGITS}g}") for x in (middle / AROUND, middle * AROUND))
    if kind == "probability":
        high = min(high, 1.0)
    if word.min is not None and word.max is not None:
        low, high = max(low, word.min), min(high, word.max)
    if kind in _WHOLE:
        low, high = max(round(low), 1), round(high)
    return Range(word.name, kind, low, high, _natural(low, high)) if low < high else None


def _natural(low: float, high: float) -> Scale:
    return "log" if low > 0 and high / low >= AROUND else "linear"


def _guessed(text: str) -> str:
    """Returns the kind of number of a range's limit, for a word that accepts several kinds."""
    for kind in ("packets", "size", "time", "rate"):
        try:
            float(text)
        except ValueError:
            if _read_number(kind, text) is not None:
                return kind
    return "integer" if text.isdigit() else "real"


def _read_number(kind: str, text: str) -> float | None:
    try:
        if kind in ("integer", "real"):
            return float(text)
        return float(_core.parse_quantity(cast("Any", kind), text))
    except ValueError:
        return None


def _number(kind: str, bound: str, text: str) -> float:
    value = _read_number(kind, bound)
    if value is None:
        example = {"time": "5ms", "rate": "10mbit", "size": "30kb", "packets": "300p"}
        wanted = f"{kind}, such as {example[kind]}" if kind in example else kind
        raise StudyError(f"`{text}`: `{bound}` is no {wanted}")
    return value


def _written(kind: str, value: float) -> str:
    if kind in _QUANTITIES:
        return _core.format_quantity(cast("Any", kind), round(value))
    # Queues do not accept numbers with an exponent.
    shown = format(Decimal(repr(value)), "f")
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def _set_by(variable: Variable) -> tuple[str, ...]:
    return (variable.word,) if isinstance(variable, Range) else variable.words


def _without(base: str, gone: set[str], words: Mapping[str, Word]) -> str:
    """Returns a queue without the words `gone` and their values."""
    # If a switch varies, both of its words are removed.
    for entry in words.values():
        if entry.off and gone & {entry.name, entry.off}:
            gone = gone | {entry.name, entry.off}
    head, *rest = base.split()
    kept = [head]
    position = 0
    while position < len(rest):
        word = rest[position]
        width = 1 if _takes_nothing(word, words) else 2
        if word not in gone:
            kept += rest[position : position + width]
        position += width
    return " ".join(kept)


def _takes_nothing(word: str, words: Mapping[str, Word]) -> bool:
    entry = words.get(word)
    return entry.kind in _BARE if entry else any(word == w.off for w in words.values())


def _start(
    base: str, variables: Sequence[Variable], words: Mapping[str, Word]
) -> Mapping[str, Value] | None:
    _, *rest = base.split()
    given = dict(pairwise(rest))
    start: dict[str, Value] = {}
    for variable in variables:
        value: Value | None
        if isinstance(variable, Choice):
            defaults = [_standing(w) for name, w in words.items() if name not in rest]
            stands = f" {' '.join(rest)} {' '.join(defaults)} "
            standing = [t for t in variable.texts if t and f" {t} " in stands]
            value = standing[0] if standing else "" if "" in variable.texts else None
        else:
            written = given.get(variable.word, words[variable.word].default)
            value = _read_number(variable.kind, written)
            if value is not None and not variable.low <= value <= variable.high:
                value = None
        if value is None:
            return None
        start[variable.name] = value
    return start


def _standing(word: Word) -> str:
    """Returns the text with the default of a word, which a queue without the word implies."""
    return word.default if word.kind in _BARE else f"{word.name} {word.default}"
