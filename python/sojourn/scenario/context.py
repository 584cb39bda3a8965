"""What the parts of a scenario know of each other while they become a plan: names and problems."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from sojourn import _core
from sojourn.own.sources import is_own
from sojourn.scenario import own
from sojourn.scenario.errors import Problem
from sojourn.scenario.locate import Path
from sojourn.scenario.models import Model
from sojourn.scenario.source import Source
from sojourn.scenario.topology import aliases_of, link_aliases_of, links_of, media_of, nodes_of

Json = dict[str, Any]


class Context:
    """The names of one model; collects all problems on the way."""

    def __init__(self, model: Model, source: Source) -> None:
        self.model = model
        self.source = source
        self.problems: list[Problem] = []
        self.paths: set[Path] = set()
        """Where problems are."""
        self.origins: dict[Path, Path] = {}
        """Where parts of the plan come from, if their place there does not tell."""
        self.links = links_of(model)
        self.nodes = nodes_of(self.links)
        self.node_index = {name: i for i, name in enumerate(self.nodes)}
        self.link_index = {link.name: i for i, link in enumerate(self.links)}
        self.media = media_of(model)
        self.medium_index = {name: i for i, name in enumerate(self.media)}
        self.aliases = aliases_of(model)
        self.link_aliases = link_aliases_of(model)
        self.parsed: dict[tuple[Any, ...], Any] = {}
        self.sources: dict[str, dict[str, str]] = {}
        """Sources of the user's own policies, by their digests."""

    def complain(self, path: Path, message: str, **details: Any) -> None:
        """Note a problem."""
        self.paths.add(path)
        self.problems.append(self.source.problem(path, message, **details))

    def words(
        self, path: Path, parse: Callable[..., str], text: str, *args: Any, instead: str = ""
    ) -> Any:
        """Parse `text`, each different text once; `instead` stands for one that cannot be read."""
        key = (parse.__name__, text, *args)
        if key not in self.parsed:
            try:
                self.parsed[key] = json.loads(parse(text, *args))
            except _core.WordError as e:
                self.complain(
                    path,
                    e.message,
                    start=e.start,
                    end=e.end,
                    found=e.found,
                    allowed=tuple(e.allowed),
                    nearest=e.nearest,
                )
                self.parsed[key] = json.loads(parse(instead, *args))
        return self.parsed[key]

    def policy(
        self,
        family: str,
        path: Path,
        parse: Callable[..., str],
        text: str,
        *args: Any,
        instead: str,
    ) -> Any:
        """As `words`, where a policy of the user's own may stand, too."""
        if not is_own(text):
            return self.words(path, parse, text, *args, instead=instead)
        # What a command has set was written in its folder, not in the file's.
        changed = any(path[: len(c)] == c for c in self.source.changed)
        key = (family, text, changed)
        if key not in self.parsed:
            try:
                entry, sources = own.entry(family, text, self.source, here_first=changed)
            except own.Unusable as problem:
                self.complain(path, str(problem), **problem.details)
                return json.loads(parse(instead, *args))
            self.parsed[key] = entry
            self.sources |= sources
        return self.parsed[key]

    def nearest(self, word: str, known: Iterable[str]) -> dict[str, Any]:
        """Return the details of a problem with an unknown name."""
        names = list(known)
        near = _core.nearest(word, names[:1000])
        place = {"start": 0, "end": len(word)}
        return place | {"found": word, "allowed": tuple(names[:50]), "nearest": near}

    def unknown(self, path: Path, message: str, word: str, known: list[str]) -> None:
        """Note that a name is unknown, with the nearest known name, or all if they are few."""
        near = self.nearest(word, known)
        few = f"; known: {', '.join(known)}" if len(known) <= 12 else ""
        self.complain(path, message + ("" if near["nearest"] else few), **near)

    def hosts(self, path: Path, names: list[str]) -> list[int]:
        """Return the nodes of a list of hosts and of names that stand for several."""
        found: list[int] = []
        for i, name in enumerate(names):
            if name in self.aliases:
                found += [self.node_index[host] for host in self.aliases[name]]
            elif name in self.node_index:
                found.append(self.node_index[name])
            else:
                known = [*self.aliases, *self.nodes, *self.model.balancers]
                self.unknown((*path, i), f"no link ends at `{name}`", name, known)
        return found

    def find_link(self, path: Path, name: str, aliases: Iterable[str] = ()) -> list[int]:
        """Return the index of a link; none if there is no such link."""
        if name in self.link_index:
            return [self.link_index[name]]
        self.unknown(path, f"unknown link `{name}`", name, [*aliases, *self.link_index])
        return []
