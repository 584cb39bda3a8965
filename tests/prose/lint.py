"""A linter of prose: the rules of `rules.toml` on passages.

`python -m tests.prose.lint [PATH ...]` lists each breach with its place. Without paths it checks
all files. It skips quoted text, code in backquotes, and the messages of files that quote papers.
"""

from __future__ import annotations

import fnmatch
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.prose.passages import KINDS, NAME, Passage, passages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# Words as others wrote them, and code.
_QUOTED = re.compile(r"`+[^`]+`+|“[^”]*”|\"[^\"]*\"|\]\([^)]*\)|\*\*[^*]+\*\*|\*[^*]+\*")


@dataclass(frozen=True)
class Rule:
    """A pattern that prose avoids, with the reason and the remedy."""

    name: str
    pattern: re.Pattern[str]
    example: str
    """A breach of this rule, and of no other."""
    wrong: str
    write: str
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Breach:
    """One place where a rule is broken."""

    passage: Passage
    rule: Rule
    found: str

    def __str__(self) -> str:
        """Returns place, finding and remedy on one line."""
        rule = self.rule
        return (
            f"{self.passage.place}: {rule.name}: `{self.found}`: {rule.wrong}; write {rule.write}"
        )


def read(path: Path = HERE / "rules.toml") -> tuple[list[Rule], list[str]]:
    """Returns the rules, and the patterns of the paths whose messages quote papers."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    rules = [
        Rule(
            row["name"],
            re.compile(row["pattern"]),
            row["example"],
            row["wrong"],
            row["write"],
            tuple(row.get("kinds", (*KINDS, NAME))),
        )
        for row in content["rule"]
    ]
    return rules, content["quoting"]


def breaches(found: Iterable[Passage], rules: Sequence[Rule]) -> Iterator[Breach]:
    """Yields the breaches of `rules` in the passages, in their order."""
    for passage in found:
        text = _QUOTED.sub("X", passage.text)
        for rule in rules:
            if passage.kind in rule.kinds and (match := rule.pattern.search(text)):
                yield Breach(passage, rule, match[0].strip())


def _matches(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatch(path, pattern) for pattern in patterns)


def everywhere(found: Iterable[Passage]) -> list[Breach]:
    """Returns the breaches in passages, without the messages of files that quote papers."""
    rules, quoting = read()
    read_by_people = (
        passage
        for passage in found
        if passage.kind != "message" or not _matches(passage.path, quoting)
    )
    return list(breaches(read_by_people, rules))


def main(arguments: Sequence[str]) -> int:
    """Lists the breaches in files whose paths match a pattern; returns 1 if there are any."""
    patterns = list(arguments) or ["*"]
    listed = [
        breach for breach in everywhere(passages(ROOT)) if _matches(breach.passage.path, patterns)
    ]
    for breach in listed:
        print(breach)
    return 1 if listed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
