"""`Scenario`: a checked description of a network and its traffic."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from sojourn import _core
from sojourn.arguments import checked
from sojourn.data import Json, Object
from sojourn.own.sources import is_own
from sojourn.plan.queries import bottlenecks, mean_rate
from sojourn.plan.tcp import Tcp
from sojourn.scenario import (
    capture,
    change,
    classes,
    commands,
    lateness,
    own,
    question,
    schema,
    source,
    trace,
)
from sojourn.scenario.deploy import Deployment, as_installed, deploy
from sojourn.scenario.engine import Engine, RunProgress, check_seed, single
from sojourn.scenario.errors import Problem, ScenarioError
from sojourn.scenario.findings import Finding, of_record
from sojourn.scenario.flows import DEFAULT_TCP, over_tcp
from sojourn.scenario.idle import idle_keys
from sojourn.scenario.installed import Installed, of_text
from sojourn.scenario.locate import Path
from sojourn.scenario.measured import Measured, plain
from sojourn.scenario.models import DeployFormat, Model, Question
from sojourn.scenario.placement import ADDRESS_OF, place
from sojourn.scenario.resolve import resolve
from sojourn.scenario.source import Source
from sojourn.scenario.summary import headline, page, summarise
from sojourn.scenario.topology import OneWay, links_of
from sojourn.scenario.translate import problems_of, repaired

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue

    from sojourn.plan.parts import Group, Link
    from sojourn.plan.plan import Plan

REVERSED = ".reverse"
"""End of the name of a link's other direction."""
EMPTY = {
    "htb": "limits no rate, as in Linux: all packets pass one FIFO",
    "hfsc": "drops all packets, as in Linux",
    "drr": "drops all packets, as in Linux",
}
"""Disciplines that need classes, with the fate of packets without them."""
UNSHAPED = "queues are compared without a shaper, because an own policy has none"
"""Warning of a comparison behind a modem."""
_BYTES_A_SECOND = re.compile(r"(?<!\S)([0-9.]*[0-9](?:[kmgt]i?)?)bps(?!\S)", re.IGNORECASE)


@checked
class Scenario:
    """A network, its traffic and the length of a run; cannot be changed.

    A scenario comes from a file (`load`), a text (`from_toml`) or the same keys in Python. A
    description that cannot be run raises `ScenarioError` with every mistake.

    >>> sojourn.Scenario(
    ...     duration="10s",
    ...     links={"uplink": {"from": "home", "to": "isp", "rate": "20mbit", "queue": "codel"}},
    ...     flows=[{"from": "home", "to": "isp", "app": "bulk", "count": 4}],
    ... )
    <Scenario 'scenario': 10s, 1 link, 4 flows>
    """

    def __init__(self, **keys: Any) -> None:
        self._build(source.plain(keys, Source()), Source())

    @classmethod
    def load(cls, path: str | FilePath) -> Scenario:
        """Returns the scenario in the TOML file `path`.

        The table `[study]` of a study's file is ignored. If the file only names a scenario's file,
        this file is loaded. A file that cannot be read raises `ScenarioError` too.

        >>> scenario = sojourn.Scenario.load("home.toml")
        >>> scenario.bottleneck, scenario.queue
        ('uplink', 'pfifo limit 1000p')
        """
        name, text = source.read_file(path)
        data, _ = source.parse(text, name)
        named = data.get("scenario")
        if isinstance(named, str) and data.keys() <= {"scenario", "study"}:
            name, text = source.read_file(FilePath(path).parent / named)
        return cls.from_toml(text, file=name)

    @classmethod
    def from_toml(cls, text: str, *, file: str | None = None) -> Scenario:
        """Returns the scenario in a TOML text; `file` is the name in error messages.

        >>> sojourn.Scenario.from_toml('duration = "ten"')
        Traceback (most recent call last):
        sojourn...ScenarioError: 1: duration: expected a time, such as 5ms; found `ten`
            1 | duration = "ten"
              |             ^^^
        """
        data, origin = source.parse(text, file)
        if isinstance(data.pop("study", None), dict):
            origin = dataclasses.replace(origin, has_study=True)
        return cls._made(data, origin)

    @classmethod
    def from_dict(
        cls, data: Mapping[str, object], *, files: Mapping[str, bytes] | None = None
    ) -> Scenario:
        """Returns the scenario from the data of `as_dict`.

        With `files` (contents by name), the scenario may use only these files; another one raises
        `ScenarioError`.

        >>> scenario = sojourn.Scenario.load("home.toml")
        >>> sojourn.Scenario.from_dict(scenario.as_dict()) == scenario
        True
        """
        origin = Source(handed=files)
        return cls._made(source.plain(data, origin), origin)

    @classmethod
    def _made(cls, data: Object, origin: Source) -> Scenario:
        scenario = cls.__new__(cls)
        scenario._build(data, origin)
        return scenario

    def _build(self, data: Object, origin: Source) -> None:
        try:
            model = Model.of(data)
        except ValidationError as error:
            raise ScenarioError(_all_problems(error, data, origin)) from None
        plan = resolve(model, origin)
        question.check(model.question, plan, origin)
        self.__dict__.update(_data=data, _source=origin, _model=model, _plan=plan)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Scenario is immutable: use `replace`")

    # Content

    @property
    def model(self) -> Model:
        """Model of the scenario: all keys, with defaults."""
        return self.__dict__["_model"]  # type: ignore[no-any-return]

    @property
    def name(self) -> str:
        """Name of the scenario, otherwise of its file."""
        if self.model.name:
            return self.model.name
        # The name of a file may not be valid Unicode.
        stem = os.fsencode(FilePath(self.file).stem if self.file else "scenario")
        return stem.decode("utf-8", "backslashreplace")

    @property
    def file(self) -> str | None:
        """Path of the file from which the scenario was loaded; None without a file."""
        return self._source.file

    @property
    def _source(self) -> Source:
        return self.__dict__["_source"]  # type: ignore[no-any-return]

    @property
    def question(self) -> Question:
        """Question of the scenario: metric, conditions and queues."""
        return self.model.question

    @property
    def bottleneck(self) -> str:
        """Name of the link whose queue is studied; `NAME.reverse` is a link's other direction.

        If several links are studied together, it is their common name.
        """
        return self.plan.observe.bottleneck.name

    @property
    def bottleneck_link(self) -> Link:
        """The bottleneck's entry in the plan; of several links, the first link's entry."""
        return bottlenecks(self.plan)[0]

    @property
    def bottleneck_rate(self) -> int:
        """Initial rate of the bottleneck in bit/s; with a trace, its mean rate."""
        return mean_rate(self.bottleneck_link.params)

    @property
    def bottlenecks(self) -> list[str]:
        """Names of the links whose queues are studied, usually one."""
        return [link.name for link in self._subjects]

    def as_dict(self) -> Object:
        """Returns the description as plain data with absolute file names, for use in any folder."""
        if self._source.handed is not None:
            return self._renamed(lambda name: name)
        folder = self._source.folder
        data = self._renamed(lambda name: str((folder / name).absolute()))
        for given, flow in zip(self.model.flows, _flows(data), strict=True):
            if commands.is_command(given.app):
                flow["folder"] = str((folder / (given.folder or "")).resolve())
        return data

    def _renamed(self, rename: Callable[[str], str]) -> Object:
        """Returns the description as plain data, with its files renamed."""
        data: Object = json.loads(json.dumps(self.__dict__["_data"]))
        for given, flow in zip(self.model.flows, _flows(data), strict=True):
            flow["app"] = capture.renamed(given.app, rename)
        _rename_in_links([data.get("links"), data.get("topology")], rename)
        own.rename(data, rename)
        return data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash(self.plan)

    def __repr__(self) -> str:
        links = sum(not link.name.endswith(".reverse") for link in links_of(self.model))
        flows = sum(f.count for f in self.model.flows)
        return (
            f"<Scenario {self.name!r}: {self.model.duration}, {links} link{'s'[: links != 1]}, "
            f"{flows} flow{'s'[: flows != 1]}>"
        )

    def __getstate__(self) -> dict[str, object]:
        return {key: self.__dict__[key] for key in ("_data", "_source", "_model", "_plan")}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    def warnings(self) -> list[str]:
        """Returns warnings, for example about values that the engine chose.

        >>> scenario = sojourn.Scenario.load("home.toml").with_queue("htb default 10")
        >>> print(scenario.warnings()[0])
        links.uplink.queue: `htb` has no class here: all packets bypass all classes, ...
        """
        found: list[str] = []
        if self._source.has_study:
            found.append(f"[study] is ignored here; `sojourn study run {self.file}` runs the study")
        rates = {link.name: mean_rate(link.params) for link in self.plan.links}
        for link in links_of(self.model):
            if link.explicit_queue:
                rate, key = rates[link.name], source.dotted(link.queue_at)
                texts = _core.queue_warnings(link.queue, 1514, 1000, rate)
                found.extend(f"{key}: {text}" for text in texts)
            if link.netem is not None:
                key = source.dotted(link.netem_at)
                found.extend(f"{key}: {text}" for text in _core.netem_warnings(link.netem))
        for link, planned in zip(links_of(self.model), self.plan.links, strict=True):
            queue = planned.params.queue
            tree = getattr(queue, "tree", None)
            if queue.TAG in EMPTY and tree is not None and not tree.classes:
                key, fate = source.dotted(link.queue_at), EMPTY[queue.TAG]
                found.append(f"{key}: {queue.TAG} without classes {fate}: add `; class ...`")
        for i, group in enumerate(self.plan.groups):
            late = _never_started(group, self.plan.duration)
            if late:
                key = source.dotted(("flows", i, "start"))
                text = (
                    f"{late} of {group.count} flows never start: their start time is after "
                    "the run's end or `stop`"
                )
                found.append(f"{key}: {text}")
        data = self.__dict__["_data"]
        parts = {key: data[key] for key in ("topology", "links", "flows") if key in data}
        found.extend(idle_keys(self.model))
        found.extend(f"{key}: {text}" for key, text in over_tcp(self.model.flows))
        found.extend(_rates_in_bytes(parts, ()))
        return list(dict.fromkeys(found))

    # Changed copies

    def replace(self, changes: Mapping[str, object] | None = None, /, **keys: Any) -> Scenario:
        """Returns the scenario with changed keys, each given by its dotted name.

        `None` removes a key. An unknown key or a wrong value raises `ScenarioError`.

        >>> scenario = sojourn.Scenario.load("home.toml")
        >>> scenario.replace(**{"links.uplink.rate": "10mbit", "flows.0.count": 8}).bottleneck_rate
        10000000
        """
        changes = self._of_classes({**(changes or {}), **keys})
        data, paths = change.apply(self.__dict__["_data"], changes)
        origin = self._source
        origin = dataclasses.replace(origin, changed=(*origin.changed, *paths))
        return self._made(source.plain(data, origin), origin)

    def _of_classes(self, changes: Mapping[str, object]) -> Mapping[str, object]:
        """Returns changes in which keys of classes are replaced by their queues' descriptions."""
        if not any(".class[" in key for key in changes):
            return changes
        kept: dict[str, object] = {}
        for key, value in changes.items():
            if (found := classes.KEY.fullmatch(key)) is None:
                kept[key] = value
                continue
            ways = {source.dotted(link.queue_at): link for link in links_of(self.model)}
            of = found["queue"]
            for at in self.queue_keys if of == "queue" else (of,):
                if at not in ways:
                    near = _core.nearest(at, list(ways))
                    message = f"`{at}` is no queue; queues: queue, {', '.join(ways)}"
                    raise ScenarioError([Problem(message, key, found=at, nearest=near)])
                text = str(kept.get(at, ways[at].queue))
                kept[at] = classes.changed(text, key, found["name"], found["word"], value)
        return kept

    def with_queue(self, queue: str | type) -> Scenario:
        """Returns the scenario with another queue at the bottleneck.

        `queue` is a description, a name in `[queues]`, or the class of your own queue.

        >>> sojourn.Scenario.load("home.toml").with_queue("fq_codle")
        Traceback (most recent call last):
        sojourn...ScenarioError: ...: unknown queue `fq_codle`: did you mean `fq_codel`?
        """
        changed = self.replace(dict.fromkeys(self.queue_keys, queue))
        own = self.installed
        return changed if own is None else changed.on_devices({self._subjects[0].name: own})

    def with_stack(self, words: Mapping[str, str]) -> Scenario:
        """Returns the scenario whose TCP has these words, such as an engine's `tcp_words`.

        Flows keep words that `tcp` has, and profiles without ticks, which are not Linux's.
        """
        changes = {}
        for number, group in enumerate(self.plan.groups):
            text, transport = self.model.flows[number].tcp or DEFAULT_TCP, group.transport
            if isinstance(transport, Tcp) and transport.hz:
                added = [f"{k} {v}" for k, v in words.items() if k not in text.split()]
                changes[f"flows.{number}.tcp"] = " ".join([text, *added])
        return self.replace(changes) if changes else self

    def on_devices(
        self, devices: Mapping[str, Installed], addresses: Mapping[str, str] | None = None
    ) -> Scenario:
        """Returns the scenario with the devices of `tc` from which the queues of links were read.

        `addresses` are real addresses of nodes. Commands that install a queue are for these
        devices, and have the words and addresses of their files.
        """
        own = self._source
        origin = dataclasses.replace(
            own,
            installed={**own.installed, **devices},
            addresses={**own.addresses, **(addresses or {})},
        )
        changed = Scenario.__new__(Scenario)
        changed.__dict__.update(self.__dict__, _source=origin)
        return changed

    @property
    def installed(self) -> Installed | None:
        """The device of `tc` from which the bottleneck's queue was read; None without one."""
        link = self._subjects[0]
        text: Json = self.__dict__["_data"]
        for key in link.described_at:
            text = text.get(str(key)) if isinstance(text, dict) else None
        if isinstance(text, str) and " " in text.strip() and text.strip() != link.queue:
            own = of_text(text)
            if own is not None:
                return own
        return self._source.installed.get(link.name)

    @property
    def addresses(self) -> list[str]:
        """Real address of each node, in the order of the plan; a word that names a missing one."""
        known = self._source.addresses
        names = [node.name for node in self.plan.nodes]
        return [known.get(name, f"{ADDRESS_OF}{name}") for name in names]

    def policy_reader(self) -> Callable[[str], bytes]:
        """Returns a function that reads files of policies which a command names."""
        return own.reader(self._source, here_first=True)

    @property
    def _subjects(self) -> list[OneWay]:
        links = links_of(self.model)
        return [links[i] for i in self.plan.observe.bottleneck.links]

    @property
    def queue_keys(self) -> tuple[str, ...]:
        """Dotted keys that set the bottleneck's queue; several links can have the same one."""
        return tuple(dict.fromkeys(source.dotted(link.queue_at) for link in self._subjects))

    @property
    def queue(self) -> str:
        """Description of the bottleneck's queue."""
        return self._subjects[0].queue

    @property
    def queue_name(self) -> str:
        """Name of the bottleneck's queue in `[queues]`; its description if it has no name."""
        return self._subjects[0].queue_name or self.queue

    @property
    def has_classes(self) -> bool:
        """Whether the bottleneck's queue has classes."""
        return hasattr(self.bottleneck_link.params.queue, "tree")

    @property
    def asked_queues(self) -> list[str]:
        """Queues in the question; the scenario's own queue is added if it has classes."""
        named = list(self.question.queues)
        if not named or not self.has_classes:
            return named
        own = self.bottleneck_link.params.queue
        others = (self.with_queue(queue).bottleneck_link.params.queue for queue in named)
        return named if own in others else [self.queue_name, *named]

    @property
    def asks_for_queue(self) -> bool:
        """Whether the scenario asks for the best queue, and `replace` has chosen none."""
        asked = self.question
        paths = self._source.changed
        changed = any(way.described_at == path for way in self._subjects for path in paths)
        changed |= any(way.queue_at == path for way in self._subjects for path in paths)
        return bool(asked.queues or asked.by or asked.text) and not changed

    # Plan and runs

    @property
    def plan(self) -> Plan:
        """The plan: the scenario in numbers.

        Units are nanoseconds, bytes and bits per second; hosts are numbers of nodes.
        """
        return self.__dict__["_plan"]  # type: ignore[no-any-return]

    @property
    def plan_json(self) -> str:
        """The plan as canonical JSON: equal plans give equal texts."""
        return self.plan.text

    def digest(self) -> str:
        """Returns the SHA-256 hash of the plan."""
        return self.plan.digest

    def run(
        self,
        seed: int = 1,
        progress: RunProgress | None = None,
        engine: Engine | str | None = None,
    ) -> Run:
        """Returns the result of one run by an engine or the name of one, by default the simulator.

        `progress(fraction, events)` is called several times. If it returns `False`, the run stops
        and the result has the measurements so far; engines in virtual time raise `Stopped`. A
        scenario that the engine cannot run raises `ScenarioError`.

        >>> run = sojourn.Scenario.load("home.toml").run(seed=1)
        >>> round(run.metrics["voip.mos"], 1), round(run.metrics["goodput"] / 1e6)
        (2.5, 19)
        """
        check_seed(seed)
        begin = time.perf_counter()
        try:
            # A laboratory's record has all attributes that the simulator's has.
            record: Any = single(engine).simulate(self.plan, seed, progress)
        except _core.PlanError as error:
            raise ScenarioError(self._problems(error)) from None
        return Run(seed, time.perf_counter() - begin, record, self)

    def _problems(self, error: _core.PlanError) -> list[Problem]:
        """Returns the problems of an engine's error, at the applications that they concern."""
        found = []
        for path, message in getattr(error, "problems", ()):
            match path:
                case ("groups", int(number), "app"):
                    found.append(self._source.problem(("flows", number, "app"), message))
                case _:
                    return [self._source.problem((), str(error))]
        return found or [self._source.problem((), str(error))]

    def to_tc(
        self,
        interface: str | None = None,
        *,
        machine: str | None = None,
        form: DeployFormat | None = None,
    ) -> Deployment:
        """Returns the steps that put the bottleneck's queue on a real interface.

        `machine` is the node that is your machine; if this node receives, its incoming traffic is
        shaped. Arguments that are None have the values in `[deploy]`. A queue that Linux lacks
        raises `NoKernelEquivalent`.

        >>> scenario = sojourn.Scenario.load("home.toml").with_queue("fq_codel")
        >>> scenario.to_tc("eth1").undo
        ('tc qdisc del dev eth1 root',)
        """
        back = self._back() if (form or self.model.deploy.format) == "sqm" else None
        return deploy(self, interface, machine, form, back)

    def _back(self) -> Scenario | None:
        """Returns the scenario whose bottleneck is the other direction, with the same discipline.

        The result is None if there is no such direction, or if the queue has a rate of its own.
        """
        queue = re.sub(r"\bbandwidth \S+", "", self.queue)
        ways = {link.name: link for link in links_of(self.model)}
        way = ways.get(f"{self.bottleneck}{REVERSED}".replace(REVERSED * 2, ""))
        if way is None or len(self._subjects) > 1 or "rate" in queue.split():
            return None
        try:
            other = self.replace({"bottleneck": way.name})
            if other.queue.split()[0] == self.queue.split()[0]:
                return other  # the same discipline with words of its own
            return self.replace({"bottleneck": way.name, source.dotted(way.queue_at): queue})
        except ScenarioError:
            return None

    def has_modem(self, others: Iterable[Scenario] = ()) -> bool:
        """Returns whether these scenarios' queues need a shaper, because a modem holds the present.

        This is `modem` in `[deploy]`, unless a queue is an own policy, which no shaper can contain.
        """
        return self.model.deploy.modem and not any(is_own(made.queue) for made in others)

    def shaper_warnings(self, others: Sequence[Scenario]) -> list[str]:
        """Returns warnings on these scenarios' queues, if a modem holds the present queue.

        An own policy has no shaper; a rate of CAKE that would not shape is lowered.
        """
        if not self.has_modem() or not others:
            return []
        if not self.has_modem(others):
            return [UNSHAPED]
        made = [other for other in others if other.queue != self.queue]
        lowered = {other.queue_name: place(other, None, None).lowered for other in made}
        return [f"{queue}: {why}" for queue, why in lowered.items() if why]

    def behind_modem(self, others: Sequence[Scenario]) -> list[Scenario]:
        """Returns scenarios with other queues, each in the shaper that is installed with it.

        The present queue is in a modem. Without `has_modem` nothing changes.
        """
        if not self.has_modem(others):
            return list(others)
        own = self.installed
        devices = {} if own is None else {self._subjects[0].name: own}
        return [
            made
            if made.queue == self.queue
            else made.replace(
                dict.fromkeys(made.queue_keys, as_installed(made.on_devices(devices)))
            )
            for made in others
        ]

    @staticmethod
    def json_schema() -> JsonSchemaValue:
        """Returns the JSON Schema of scenario files, for editors."""
        return schema.json_schema()


@checked
@dataclass(frozen=True, repr=False)
class Run(Measured):
    """The result of one run of a scenario with one seed.

    Tables are returned as data frames. The unit of each metric is in `units`. An unknown metric or
    table raises an error that names the nearest one.

    >>> sojourn.Scenario.load("home.toml").run().metrics["voip.moss"]
    Traceback (most recent call last):
    sojourn.arguments.UnknownName: no metric `voip.moss`: did you mean `voip.mos`?
    """

    scenario: Scenario

    def __repr__(self) -> str:
        named = ", ".join(f"{name} {value}" for name, value in headline(self, self.scenario))
        lines = [f"<Run of {self.scenario.name!r} with seed {self.seed}>", f"  {named}"]
        return "\n".join([*lines, *(f"  NOT VALID: {text}" for text in self.violations)])

    def _repr_html_(self) -> str:
        return page(self, self.scenario)

    @property
    def violations(self) -> list[str]:
        """Returns why a run with real parts is not valid; empty for a valid or simulated run."""
        return list(getattr(self.record, "violations", ()))

    @property
    def captures(self) -> Mapping[str, bytes]:
        """Returns the pcap file of each link in `observe.capture`."""
        names = self.scenario.model.observe.capture or []
        return dict(zip(names, self.record.captures, strict=True))

    @cached_property
    def findings(self) -> list[Finding]:
        """Returns what makes the run say too little, such as a warm-up that is too short."""
        return of_record(self.scenario.plan, self.record) if self.complete else []

    def summary(self) -> str:
        """Returns the main results in a few lines of text.

        >>> print(sojourn.Scenario.load("home.toml").run(seed=1).summary().splitlines()[0])
        video call behind an upload: seed 1, 60 s
        """
        invalid = [f"NOT VALID: {text}." for text in self.violations]
        return summarise(self, self.scenario, [*invalid, *(one.text for one in self.findings)])

    def as_dict(self) -> Object:
        """Returns the run's identity and metrics as plain data; an unmeasured metric is None.

        Runs with real parts have `violations` too.
        """
        real = {"violations": self.violations} if hasattr(self.record, "violations") else {}
        return {
            "scenario": self.scenario.name,
            "seed": self.seed,
            "complete": self.complete,
            "seconds": self.seconds,
            "events": self.events,
            "trace_hash": self.trace_hash,
            "engine": _core.fingerprint(),
            "metrics": {name: plain(value) for name, value in self.metrics.items()},
            "units": {name: unit for name, unit in self.units.items() if unit},
            "findings": [one.as_dict() for one in self.findings],
            **real,
        }


def _flows(data: Object) -> list[Object]:
    """Returns the tables of flows in a scenario's data, which has been checked."""
    found = data.get("flows")
    return [flow for flow in found if isinstance(flow, dict)] if isinstance(found, list) else []


def _rename_in_links(data: Any, rename: Callable[[str], str]) -> None:
    """Renames traces and files of measured lateness in tables of links, in place."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(value, str) and (key == "rate" or isinstance(key, int)):
            data[key] = trace.renamed(value, rename)
        elif isinstance(value, str) and key == "host":
            data[key] = lateness.renamed(value, rename)
        elif isinstance(value, dict | list):
            _rename_in_links(value, rename)


def _rates_in_bytes(data: Any, path: Path) -> Iterator[str]:
    """Yields warnings about rates such as `20mbps`, which `tc` reads as bytes per second."""
    if isinstance(data, str):
        for rate in _BYTES_A_SECOND.finditer(data):
            bits = _core.format_quantity("rate", _core.parse_quantity("rate", rate[0]))
            yield (
                f"{source.dotted(path)}: `{rate[0]}` is {bits}, because `bps` means bytes per "
                f"second, as in `tc`; for bits write `{rate[1]}bit`"
            )
    elif isinstance(data, dict | list):
        items = data.items() if isinstance(data, dict) else enumerate(data)
        for key, value in items:
            yield from _rates_in_bytes(value, (*path, key))


def _never_started(group: Group, duration: int) -> int:
    """Returns the number of a group's flows that would start after the run's end or their stop."""
    if group.start_every == 0:
        return 0
    last = min(duration, group.stop or duration)
    return max(0, group.count + (group.start - last) // group.start_every)


def _all_problems(error: ValidationError, data: Object, origin: Source) -> list[Problem]:
    """Returns the model's problems, and further problems that appear after their repair."""
    problems = problems_of(error, data, origin)
    mended = repaired(error, data)
    if mended is not None:
        try:
            resolve(Model.of(mended), origin)
        except ScenarioError as more:
            seen = {problem.key for problem in problems}
            problems += [p for p in more.problems if p.key and p.key not in seen]
        except ValidationError:
            pass
    return sorted(problems, key=lambda p: (p.line or 0, p.column or 0))
