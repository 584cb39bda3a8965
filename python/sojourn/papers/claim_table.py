"""Claims of a study as a table: the file `claims.toml` in the study's folder.

A group is an array of tables, such as `[[web]]`. An entry is a claim: `id`, `text`, `published`,
`reading`, the kind of the claim with its metric (`ratio = "goodput"`), and the fields of this kind
(`sojourn.stats.claims`), such as `a`, `b`, `region` and `each`. An entry with `parts` is a
conjunction; its fields other than `id`, `text`, `published` and `reading` hold for all parts.

- `"$name"` is a value of the table `[names]`, or one that the study passes. In a list, `"*name"`
  inserts the values of a list. In texts, `{name}` is replaced.
- `repeat = { m = [...] }` makes an entry for each `m`; `"a,b"` takes pairs.
- `cells` is a table of levels, or several: one cell for each combination of its lists of levels. A
  claim of the kind `all` is about all cells; another is a conjunction with a part for each cell.
- Lists of metrics, `who`, `a`, `b`, `from` and `to` make a part for each combination, in the order
  of the keys.
- `region` is a word or a number of the paper, and `margin`, `at_least` and `tolerance` may be words
  (`sojourn.papers.words`).
- An entry with `when = "$name"` is omitted if this value is false.
- An entry of the group `conditions` is a condition of claims (`sojourn.papers.rule`): `quantity`,
  `of` (patterns of identifiers), a kind with its metric and cells as above, and, if known, `paper`,
  `scatter`, `runs` and `calibrated`. Each cell is a condition.
- An entry of the group `readings` is a `sojourn.papers.multiverse.Reading`. `written_before_runs`
  is a list of patterns of identifiers, of claims that are not exploratory.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import TypeVar

from sojourn.papers.multiverse import Declared, Reading
from sojourn.papers.rule import Condition
from sojourn.papers.words import margin, number, region
from sojourn.stats import Claim, ClaimError, claim_from_dict
from sojourn.stats.cells import Level
from sojourn.stats.claims import KINDS
from sojourn.stats.verdict import Verdict

T = TypeVar("T")
Row = dict[str, object]
"""Fields of an entry or of a claim, by name."""
Names = Mapping[str, object]

_OWN = ("id", "text", "published", "reading")
_OF_CONDITION = ("quantity", "of", "paper", "scatter", "runs", "calibrated")
_MARGINS = ("margin", "at_least", "tolerance")
_ANY = (-math.inf, math.inf)
_SPREAD = ("who", "a", "b", "from", "to", "cells")
_VERDICTS: tuple[Verdict, ...] = ("holds", "does not hold", "cannot be told")


Complete = Callable[[Row], Row | None]
"""Function that returns the changed fields of a claim, or `None` to omit it."""


def _unchanged(row: Row) -> Row | None:
    return row


@dataclass(frozen=True, kw_only=True)
class Withdrawn:
    """A withdrawn claim: it is no longer judged, but the page still lists it."""

    id: str
    text: str
    """The finding in words."""
    date: str
    """Date of the withdrawal, as YYYY-MM-DD."""
    verdict: Verdict
    """Last verdict on the claim before its withdrawal."""
    reason: str
    """Reason for the withdrawal."""

    def as_dict(self) -> dict[str, str]:
        """Returns the fields as data for JSON."""
        return asdict(self)


class ClaimTable:
    """The claims of a study, in `claims.toml` next to its module `module`, or in a TOML file.

    `kinds` has the kinds that the study adds. Methods raise `ClaimError` with the place of an entry
    that is no claim.
    """

    def __init__(self, module: str | Path, kinds: Sequence[str] = ()) -> None:
        file = Path(module)
        self._file = file if file.suffix == ".toml" else file.with_name("claims.toml")
        try:
            self._data = tomllib.loads(self._file.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise ClaimError(f"{self._file}: {error}") from error
        self._kinds = (*KINDS, *kinds)

    def claims(
        self, group: str, names: Names | None = None, complete: Complete = _unchanged
    ) -> tuple[Claim, ...]:
        """Returns the claims of a group.

        `names` are values for the group's entries. `complete` changes the fields of each claim or
        part; a claim is omitted if it returns `None` for the claim or for one of its parts.
        """

        def make(row: Row, scope: Names) -> Claim | None:
            return self._claim(row, scope, complete)

        return tuple(claim for claim in self._each(group, names, make) if claim is not None)

    def withdrawn(self, names: Names | None = None) -> tuple[Withdrawn, ...]:
        """Returns the claims of the group `withdrawn`."""
        return tuple(self._each("withdrawn", names, self._withdrawn))

    def conditions(
        self, names: Names | None = None, complete: Complete = _unchanged
    ) -> tuple[Condition, ...]:
        """Returns the conditions of the group `conditions`, one for each cell of an entry."""

        def make(row: Row, scope: Names) -> list[Condition]:
            own = {key: resolved(row[key], scope) for key in _OF_CONDITION if key in row}
            rest = {key: row[key] for key in row if key not in (*_OF_CONDITION, "repeat", "when")}
            return [
                _condition(claim_from_dict({"id": "", "text": "", **made}), own)
                for one in self._spread({**rest, "region": [*_ANY]}, scope)
                if (made := complete(one)) is not None
            ]

        if "conditions" not in self._data:
            return ()
        return tuple(one for listed in self._each("conditions", names, make) for one in listed)

    def declared(self) -> Declared:
        """Returns the readings, and which claims were written before runs of their cells."""

        def make(row: Row, scope: Names) -> Reading:
            fields = {key: resolved(value, scope) for key, value in row.items() if key != "repeat"}
            assumes, chosen = fields.pop("assumes", {}), fields.pop("calibrated", ())
            if (unknown := fields.keys() - {"name", "text"}) or not isinstance(chosen, tuple):
                raise ClaimError(f"a reading has no {', '.join(unknown) or f'{chosen!r}'}")
            (levels,) = _cells(assumes)
            text = {key: str(value) for key, value in fields.items()}
            return Reading(**text, assumes=levels, calibrated=tuple(map(str, chosen)))

        listed = self._each("readings", None, make) if "readings" in self._data else ()
        before = tuple(map(str, self._data.get("written_before_runs", ())))
        return Declared({one.name: one for one in listed}, before)

    def _each(
        self, group: str, names: Names | None, make: Callable[[Row, Names], T]
    ) -> Iterator[T]:
        """Yields the result of `make` for each entry and combination of its `repeat`."""
        known = {**self._data.get("names", {}), **(names or {})}
        for row in self._data[group]:
            try:
                for scope in _scopes(row, known):
                    if resolved(row.get("when", True), scope):
                        yield make(row, scope)
            except (ClaimError, KeyError, TypeError, ValueError) as error:
                name = row.get("id", row.get("name", row.get("quantity")))
                where = f"{self._file.parent.name}/{self._file.name}, [[{group}]], {name}"
                raise ClaimError(f"{where}: {error}") from error

    def _withdrawn(self, row: Row, scope: Names) -> Withdrawn:
        text = {key: str(resolved(row[key], scope)) for key in ("id", "text", "reason")}
        verdict = resolved(row["verdict"], scope)
        date = str(row.get("date", self._data["withdrawn_on"]))
        return Withdrawn(**text, date=date, verdict=_VERDICTS[_VERDICTS.index(verdict)])

    def _claim(self, row: Row, scope: Names, complete: Complete) -> Claim | None:
        own = {key: str(resolved(row[key], scope)) for key in _OWN if key in row}
        shared = {k: v for k, v in row.items() if k not in (*_OWN, "parts", "repeat", "when")}
        parts = row.get("parts", [{}])
        rows = [
            complete(made)
            for part in (parts if isinstance(parts, list) else ())
            for inner in _scopes(part, scope)
            for made in self._spread({**shared, **part}, inner)
        ]
        made = [{"id": "", "text": "", **one} for one in rows if one is not None]
        if len(made) < len(rows):
            return None
        if "parts" in row or ("cells" in row and "all" not in row):
            every = {"kind": "every", "metric": row.get("metric", ""), "claims": made}
            return claim_from_dict({**every, **own})
        (one,) = made
        return claim_from_dict({**one, **own})

    def _spread(self, entry: Row, scope: Names) -> Iterator[Row]:
        """Yields the claims of a part, whose lists make several, as fields."""
        row = {k: resolved(v, scope) for k, v in entry.items() if k not in ("repeat", "criterion")}
        kind = next((key for key in row if key in self._kinds), None)
        if kind is None:
            raise ClaimError(f"one of {', '.join(self._kinds)} is required")
        if "region" in row:
            row["region"] = region(row["region"])
        row |= {key: margin(row[key]) for key in _MARGINS if key in row}
        if "cells" in row:
            row["cells"] = tuple(_cells(row["cells"]))
        lists = {
            key: value
            for key, value in row.items()
            if key in (kind, *_SPREAD)
            and isinstance(value, tuple)
            and (key, kind) != ("cells", "all")
        }
        for values in product(*lists.values()):
            made = {**row, **dict(zip(lists, values, strict=True)), "kind": kind}
            made["metric"] = made.pop(kind)
            if "cells" in lists:
                cell = made["cell"] = made.pop("cells")
                levels = cell.values() if isinstance(cell, dict) else ()
                made.setdefault("text", ", ".join(map(str, levels)))
            yield made


def _condition(ours: Claim, row: Row) -> Condition:
    """Returns the condition with the fields of an entry."""
    of, paper, scatter = row["of"], row.get("paper"), row.get("scatter")
    if not isinstance(of, tuple):
        raise ClaimError(f"`of` is a list of identifiers, not {of!r}")
    return Condition(
        quantity=str(row["quantity"]), ours=ours, of=tuple(map(str, of)),
        paper=None if paper is None else number(paper),
        scatter=None if scatter is None else number(scatter),
        runs=int(number(row.get("runs", 1))), calibrated=bool(row.get("calibrated", False)),
    )  # fmt: skip


def _scopes(row: Row, scope: Names) -> Iterator[Names]:
    """Yields the names for each combination of an entry's `repeat`."""
    for cell in _cells(resolved(row.get("repeat", {}), scope)):
        yield {**scope, **cell}


def _cells(levels: object) -> Iterator[dict[str, Level]]:
    """Yields the combinations of a table of levels, or of several tables."""
    if isinstance(levels, tuple):
        for one in levels:
            yield from _cells(one)
        return
    if not isinstance(levels, Mapping):
        raise ClaimError(f"levels are a table of factors, not {levels!r}")
    lists = (value if isinstance(value, tuple) else (value,) for value in levels.values())
    for values in product(*lists):
        found: dict[str, Level] = {}
        for key, value in zip(levels, values, strict=True):
            found |= zip(key.split(","), value if "," in key else (value,), strict=True)
        yield found


def resolved(value: object, scope: Names) -> object:
    """Returns a value of the file with its names replaced; lists become tuples."""
    match value:
        case str() if value.startswith("$"):
            return resolved(_named(value[1:], scope), scope)
        case str() if re.fullmatch(r"\{[\w-]+\}", value):
            return _named(value[1:-1], scope)
        case str():
            return re.sub(r"\{([\w-]+)\}", lambda name: str(_named(name[1], scope)), value)
        case Mapping():
            return {key: resolved(one, scope) for key, one in value.items()}
        case list() | tuple():
            found: list[object] = []
            for one in value:
                spliced = isinstance(one, str) and one.startswith("*")
                made = resolved(f"${one[1:]}" if spliced else one, scope)
                found += made if spliced and isinstance(made, tuple) else [made]
            return tuple(found)
    return value


def _named(name: str, scope: Names) -> object:
    if name not in scope:
        raise ClaimError(f"no name `{name}`; existing: {', '.join(scope)}")
    return scope[name]
