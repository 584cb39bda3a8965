"""Short names of compared choices, for sentences and figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sojourn.study.cells import Level


def in_words(levels: Mapping[str, Level]) -> str:
    """Returns levels in words: only the level if a single factor varies and its level is a text.

    A level that begins with `{` or `[` is a table or a list, not a text. A factor is named by the
    last part of its key if no other factor has the same last part.
    """
    texts = {
        factor: str(level).lower() if isinstance(level, bool) else str(level)
        for factor, level in levels.items()
    }
    only = next(iter(levels.values())) if len(levels) == 1 else None
    if isinstance(only, str) and not only.startswith(("{", "[")):
        return only
    last = [factor.rpartition(".")[2] for factor in texts]
    names = last if len(set(last)) == len(last) else list(texts)
    return ", ".join(f"{name} {text}" for name, text in zip(names, texts.values(), strict=True))


def short_names(queues: Sequence[str]) -> dict[str, str]:
    """Returns a short name for each queue.

    A name is the queue's kind, with the parameters that distinguish it from other queues of this
    kind. All names are different.
    """
    kinds: dict[str, list[str]] = defaultdict(list)
    for queue in queues:
        kinds[(queue.split() or [queue])[0]].append(queue)
    names: dict[str, str] = {}
    for kind, members in kinds.items():
        if len(members) == 1:
            names[members[0]] = kind
            continue
        common = set.intersection(*(set(_pairs(q)) for q in members))
        for queue in members:
            rest = [" ".join(pair) for pair in _pairs(queue) if pair not in common]
            names[queue] = " ".join([kind, *rest])
    if len(set(names.values())) < len(names):
        return {q: q for q in queues}
    return {q: names[q] for q in queues}


LABEL = 24
"""Largest number of characters of a label in a table."""


def labels(queues: Sequence[str]) -> dict[str, str]:
    """Returns a label of each queue for a table: its text if it is short, otherwise its short name.

    The switches of a queue follow its kind in parentheses: `red (adaptive)`.
    """
    found = {}
    for queue, short in short_names(queues).items():
        switches = [pair[0] for pair in _pairs(queue) if len(pair) == 1]
        noted = f"{short} ({', '.join(switches)})" if switches and " " not in short else short
        found[queue] = next((text for text in (queue, noted) if len(text) <= LABEL), short)
    return found if len(set(found.values())) == len(found) else {q: q for q in queues}


def elided(queue: str, kept: str, longest: int) -> str:
    """Returns the words of a queue, shortened to `longest` characters by an ellipsis in the middle.

    The words of its short name `kept` are always included. If the queue has several statements and
    its short name is only its kind, the result is the whole first statement with an ellipsis.
    """
    first, statements, _ = queue.partition(";")
    if statements and kept == first.split(maxsplit=1)[0]:
        return f"{first.strip()}; …"
    pairs = [(queue.split(maxsplit=1)[0],), *_pairs(queue)]
    stay = {0, *(i for i, pair in enumerate(pairs) if pair in set(_pairs(kept)))}

    def written(places: set[int]) -> str:
        text = ""
        for i, pair in enumerate(pairs):
            if i in places:
                text += f" {' '.join(pair)}"
            elif not text.endswith("…"):
                text += " …"
        return text.strip()

    last = len(pairs) - 1
    for i in range(1, len(pairs)):  # words are added from both ends alternately
        more = {*stay, (i + 1) // 2 if i % 2 else last + 1 - i // 2}
        if len(written(more)) > longest:
            break
        stay = more
    return written(stay)


def _pairs(queue: str) -> list[tuple[str, ...]]:
    """Returns the words after the kind of a queue; a number is joined to the word before it."""
    pairs: list[tuple[str, ...]] = []
    for word in queue.split()[1:]:
        if pairs and len(pairs[-1]) == 1 and word[:1].isdigit():
            pairs[-1] = (*pairs[-1], word)
        else:
            pairs.append((word,))
    return pairs
