"""Names and problems that all parts of the resolver share while they make a plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Unpack

from sojourn import _core
from sojourn.data import Object
from sojourn.own.sources import is_own
from sojourn.scenario import own
from sojourn.scenario.errors import Placed, Problem
from sojourn.scenario.locate import Path
from sojourn.scenario.models import Model
from sojourn.scenario.source import Source
from sojourn.scenario.topology import aliases_of, link_aliases_of, links_of, media_of, nodes_of


class Context:
    """The names of one model, and all problems found so far in the scenario."""

    def __init__(self, model: Model, source: Source) -> None:
        self.model = model
        self.source = source
        self.problems: list[Problem] = []
        self.paths: set[Path] = set()
        """Scenario paths of the problems."""
        self.origins: dict[Path, Path] = {}
        """Scenario paths by plan path, for parts whose plan path does not determine the scenario
        path."""
        self.links = links_of(model)
        self.nodes = nodes_of(self.links)
        self.node_index = {name: i for i, name in enumerate(self.nodes)}
        self.link_index = {link.name: i for i, link in enumerate(self.links)}
        self.media = media_of(model)
        self.medium_index = {name: i for i, name in enumerate(self.media)}
        self.aliases = aliases_of(model)
        self.link_aliases = link_aliases_of(model)
        self.changes: list[list[Object]] = [[] for _ in self.links]
        """The plan's changes of each link."""
        self.servers: dict[str, list[int]] = {}
        """Nodes of each balancer's servers."""
        self.parsed: dict[tuple[object, ...], Object] = {}
        self.sources: dict[str, dict[str, str]] = {}
        """Source texts of the user's policies, by digest of all texts of a policy."""

    def complain(self, path: Path, message: str, **details: Unpack[Placed]) -> None:
        """Adds a problem at the scenario path `path`."""
        self.paths.add(path)
        self.problems.append(self.source.problem(path, message, **details))

    def words(
        self, path: Path, parse: Callable[..., str], text: str, *args: object, instead: str = ""
    ) -> Object:
        """Returns `text` parsed by `parse`; if it is invalid, adds a problem and parses `instead`.

        Each distinct text is parsed once.
        """
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
        *args: object,
        instead: str,
    ) -> Object:
        """Returns `text` parsed as `words` does; also accepts a policy of the user in `family`."""
        if not is_own(text):
            return self.words(path, parse, text, *args, instead=instead)
        # A file named on the command line is searched first in the command's working folder.
        changed = any(path[: len(c)] == c for c in self.source.changed)
        key = (family, text, changed)
        if key not in self.parsed:
            try:
                entry, sources = own.entry(family, text, self.source, here_first=changed)
            except own.Unusable as problem:
                self.complain(path, str(problem), **problem.details)
                spare: Object = json.loads(parse(instead, *args))
                return spare
            self.parsed[key] = entry
            self.sources |= sources
        return self.parsed[key]

    def nearest(self, word: str, known: Iterable[str]) -> Placed:
        """Returns the details of a problem with the unknown name `word`."""
        names = list(known)
        near = _core.nearest(word, names[:1000])
        allowed = tuple(names[:50])
        return Placed(start=0, end=len(word), found=word, allowed=allowed, nearest=near)

    def unknown(self, path: Path, message: str, word: str, known: list[str]) -> None:
        """Adds the problem of an unknown name.

        The problem states the nearest known name, otherwise up to 12 known names.
        """
        near = self.nearest(word, known)
        few = f"; known: {', '.join(known)}" if len(known) <= 12 else ""
        self.complain(path, message + ("" if near["nearest"] else few), **near)

    def hosts(self, path: Path, names: list[str]) -> list[int]:
        """Returns the node numbers of hosts.

        A name may also be a template's name for several hosts.
        """
        found: list[int] = []
        for i, name in enumerate(names):
            if name in self.aliases:
                found += [self.node_index[host] for host in self.aliases[name]]
            elif name in self.node_index:
                found.append(self.node_index[name])
            else:
                known = [*self.aliases, *self.nodes, *self.model.balancers]
                self.unknown(
                    (*path, i), f"unknown host `{name}`: no link has this end", name, known
                )
        return found

    def find_link(self, path: Path, name: str, aliases: Iterable[str] = ()) -> list[int]:
        """Returns the number of a link as a list.

        An unknown link is a problem, and the list is empty.
        """
        if name in self.link_index:
            return [self.link_index[name]]
        self.unknown(path, f"unknown link `{name}`", name, [*aliases, *self.link_index])
        return []
