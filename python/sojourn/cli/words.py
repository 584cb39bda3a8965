"""`sojourn list`, `sojourn explain` and `sojourn schema`: names and their meanings."""

from __future__ import annotations

import json
from typing import (
    TYPE_CHECKING,
    Annotated,
    Literal,
    Required,
    TypedDict,
    get_args,
    get_origin,
)

import typer

from sojourn import _core
from sojourn.arguments import hint
from sojourn.cli import candidates, exits, options, output
from sojourn.data import Object
from sojourn.metrics import registry
from sojourn.settings import Option

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic.fields import FieldInfo

    from sojourn.scenario.models import Part


class Named(TypedDict):
    """A name that a parameter accepts, with its meaning."""

    name: str
    doc: str


class Word(TypedDict, total=False):
    """A parameter, as the engine describes it, or a key of a table."""

    name: Required[str]
    kind: Required[str]
    default: Required[str]
    doc: Required[str]
    required: bool
    off: str
    """Word that clears a switch."""
    min: float
    max: float
    of: Sequence[str | Named]
    """Accepted words or names."""


class Item(TypedDict, total=False):
    """A described name, as the engine describes it; optional keys depend on the kind."""

    name: Required[str]
    summary: Required[str]
    family: str
    source: str
    unit: str
    words: Sequence[Word] | str
    """Parameters, or the words of a preset."""
    class_words: Sequence[Word]
    presets: Sequence[Mapping[str, str]]
    shown: Sequence[tuple[str, str]]
    params: Object


KINDS = {
    "queue": "queue disciplines",
    "tcp": "congestion controls",
    "app": "applications",
    "netem": "impairments of links",
    "medium": "access methods of a medium",
    "host": "lateness of hosts that serve a queue",
    "buffer": "policies for the size of a receive buffer",
    "balancer": "policies that select a server for a new flow",
    "profile": "TCP profiles",
    "preset": "application presets",
    "consistency": "consistency levels of a store",
    "coordinator": "policies by which a store's client selects a node",
    "workload": "workloads of a store",
    "metric": "metrics",
    "template": "topology templates",
    "table": "tables of a scenario file",
}


CONSISTENCY = {
    "one": "A request succeeds when one replica has answered.",
    "two": "A request succeeds when two replicas have answered.",
    "three": "A request succeeds when three replicas have answered.",
    "quorum": "A request succeeds when more than half of all replicas have answered, in any "
    "data centre.",
    "local_one": "A request succeeds when one replica in the coordinator's data centre has "
    "answered.",
    "local_quorum": "A request succeeds when more than half of the replicas in the "
    "coordinator's data centre have answered.",
    "each_quorum": "A request succeeds when more than half of the replicas in each data centre "
    "have answered.",
    "all": "A request succeeds when all replicas have answered.",
}
COORDINATORS = {
    "round-robin": "The client uses all nodes that are up, in turn.",
    "dc-aware": "The client uses the nodes of its data centre in turn; if all are down, any node.",
    "token-aware": "The client uses the record's replicas in turn; if all are down, any node.",
    "token-dc-aware": "The client uses the record's replicas in its data centre in turn; if all "
    "are down, the policy is dc-aware.",
}


def catalogue() -> dict[str, list[Item]]:
    """Returns all names with their descriptions, by kind."""
    from sojourn.scenario.models import (
        TEMPLATES,
        WORKLOADS,
        Balancer,
        Deploy,
        Flow,
        Link,
        Model,
        Observe,
        Question,
        Store,
    )

    tables: dict[str, type[Part]] = {
        "scenario": Model,
        "links": Link,
        "balancers": Balancer,
        "flows": Flow,
        "store": Store,
        "observe": Observe,
        "question": Question,
        "deploy": Deploy,
    }
    known = json.loads(_core.describe())
    of_classes = {table["name"]: table["words"] for table in known["class"]}
    for queue in known["queue"]:
        queue["class_words"] = of_classes.get(queue["name"], [])
    for app in known["app"]:
        app["presets"] = [p for p in known["presets"] if p["app"] == app["name"]]
    families = ("queue", "tcp", "app", "netem", "medium", "host", "buffer", "balancer")
    return {
        **{kind: known[kind] for kind in families},
        "profile": known["profiles"],
        "preset": known["presets"],
        "consistency": _meanings(CONSISTENCY),
        "coordinator": _meanings(COORDINATORS),
        "workload": _meanings({name: _shares(shares) for name, (shares, _) in WORKLOADS.items()}),
        "metric": [m | {"summary": m["definition"]} for m in known["metrics"]],
        "template": [_keys(name, model) for name, model in TEMPLATES.items()],
        "table": [_keys(name, model) for name, model in tables.items()],
    }


def _meanings(words: dict[str, str]) -> list[Item]:
    return [{"name": name, "summary": meaning} for name, meaning in words.items()]


def _shares(workload: dict[str, float]) -> str:
    return ", ".join(f"{100 * share:g} % {kind}" for kind, share in workload.items() if share)


def _keys(name: str, model: type[Part]) -> Item:
    doc = " ".join((model.__doc__ or "").split("\n\n")[0].split())
    documentation = model.documentation()
    words: list[Word] = [
        {
            "name": field.alias or key,
            "kind": "key",
            "required": field.is_required(),
            "default": ""
            if field.is_required()
            else _default(field.get_default(call_default_factory=True)),
            "doc": documentation[key],
            "of": _allowed(field),
        }
        for key, field in model.model_fields.items()
        if key != "template"
    ]
    return {"name": name, "summary": doc, "source": "", "words": words}


def _allowed(field: FieldInfo) -> list[str]:
    """Returns the words that a key accepts; empty if it accepts others."""
    schemas = [getattr(part, "json_schema", None) or {} for part in field.metadata]
    listed = [names for schema in schemas for names in schema.get("enum", ())]
    kinds = [field.annotation, *get_args(field.annotation)]
    literals = [kind for kind in kinds if get_origin(kind) is Literal]
    return listed or [name for kind in literals for name in get_args(kind)]


def _default(value: object) -> str:
    from pydantic import BaseModel

    if value is None or value == {} or isinstance(value, BaseModel):
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def kinds_beginning(incomplete: str) -> list[tuple[str, str]]:
    """Returns the kinds that begin with a prefix, for completion in a shell."""
    return candidates.starting(KINDS.items(), incomplete)


def names_beginning(incomplete: str) -> list[tuple[str, str]]:
    """Returns the names that begin with a prefix, for completion in a shell."""
    known = {item["name"]: item["summary"] for items in catalogue().values() for item in items}
    return candidates.starting(sorted(known.items()), incomplete)


@exits.command
def list_(
    kind: Annotated[
        str | None,
        Option(
            "[KIND]",
            positional=True,
            help=f"Kind to list: {', '.join(KINDS)}. By default all.",
            complete=kinds_beginning,
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """List queues, transports, policies and metrics."""
    known = catalogue()
    if kind is not None:
        kind = kind.removesuffix("s") if kind.removesuffix("s") in known else kind
        if kind not in known:
            _unknown("kind", kind, list(known))
        known = {kind: known[kind]}
    if as_json:
        output.print_data(
            {k: [{"name": i["name"], "summary": i["summary"]} for i in v] for k, v in known.items()}
        )
        return
    for number, (one, items) in enumerate(known.items()):
        if number:
            typer.echo()
        output.table(
            [{"name": item["name"], "what": item["summary"]} for item in items],
            ["name", "what"],
            title=KINDS[one],
        )


@exits.command
def explain(
    name: Annotated[
        str,
        Option(
            "NAME",
            positional=True,
            help="Name of a queue, metric or other item in `sojourn list`, or a key of a scenario, "
            "such as store.coordinator.",
            complete=names_beginning,
        ),
    ],
    as_json: options.AsJson = False,
) -> None:
    """Explain a queue, metric or key and its values."""
    from sojourn.own.sources import is_own

    known = {"own": [_own(name)]} if is_own(name) else catalogue()
    found = [
        (kind, item) for kind, items in known.items() for item in items if item["name"] == name
    ]
    if not found:  # a metric after a name and a dot, as in a column: `calls.mos`
        metric = name.rpartition(".")[2]
        found = [
            ("metric", item) for item in known["metric"] if "." in name and item["name"] == metric
        ]
    if not found and (places := _places(name, known)):
        if as_json:
            output.print_data(places)
        else:
            output.table(places, ["in", "word", "takes", "default", "meaning"])
        return
    if not found:
        words = [word["name"] for _, _, word in _words_of(known)]
        names = [item["name"] for items in known.values() for item in items]
        _unknown("name", name, [*names, *words])
    if as_json:
        output.print_data([{"what": kind, **item} for kind, item in found])
        return
    for number, (kind, item) in enumerate(found):
        if number:
            typer.echo()
        _show(kind, item)


def _words_of(known: Mapping[str, list[Item]]) -> Iterator[tuple[str, Item, Word]]:
    """Yields each key of a table and each word of another item, with the kind and the item."""
    for kind, items in known.items():
        for item in items:
            words = item.get("words", ())
            yield from ((kind, item, word) for word in words if not isinstance(word, str))


def _places(name: str, known: Mapping[str, list[Item]]) -> list[dict[str, str]]:
    """Returns a row for each key or word with a name, or that accepts it as a value.

    `links.uplink.rate` is the key `rate` of the table `links`.
    """
    owner, _, leaf = name.rpartition(".")
    rows = []
    for kind, item, word in _words_of(known):
        values = [one if isinstance(one, str) else one["name"] for one in word.get("of", ())]
        if (owner and owner.partition(".")[0] != item["name"]) or (
            leaf != word["name"] and (owner or leaf not in values)
        ):
            continue
        rows.append({
            "in": f"[{item['name']}]" if kind == "table" else f"{item['name']} ({kind})",
            "word": word["name"],
            "takes": f"one of {', '.join(values)}" if values else takes(word),
            "default": word["default"],
            "meaning": word["doc"],
        })  # fmt: skip
    return rows


def _own(name: str) -> Item:
    """Returns the description of a user's policy, in the form of the engine's descriptions."""
    from sojourn.own.text import described

    found = described(name)
    words: list[Word] = [
        {"name": w.name, "kind": w.kind, "off": f"no{w.name}", "default": w.default, "doc": ""}
        for w in found.words
    ]
    for word in words:
        word["kind"] = {"integer": "whole", "real": "number"}.get(word["kind"], word["kind"])
    return {
        "name": name,
        "family": found.family,
        "summary": found.summary or f"a {found.noun}, `{found.name}`",
        "source": "",
        "words": words,
    }


def _unknown(what: str, word: str, names: list[str]) -> None:
    if reason := _core.not_modelled(word):
        exits.fail(reason)
    named = len(names) <= 12 or _core.nearest(word, names)
    rest = hint(word, names) if named else "; `sojourn list` shows all"
    exits.fail(f"unknown {what} `{word}`{rest}")


def _show(kind: str, item: Item) -> None:
    typer.echo(f"{item['name']}: {item['summary']}")
    if kind == "metric":
        typer.echo(f"Unit: {item['unit'] or 'none (a text)'}")
        _show_metric(item["name"])
    if item.get("source"):
        typer.echo(f"Source: {item['source']}")
    words = item.get("words", ())
    if isinstance(words, str):
        typer.echo(f"Equivalent to: {words}")
    elif words:
        _show_words(words)
    if item.get("class_words"):
        _show_words(item["class_words"], title="words of a class")
    if shown := item.get("shown") or _flat(item.get("params", {})):
        typer.echo()
        output.table([{"value": k, "is": v} for k, v in shown], ["value", "is"])
    if item.get("presets"):
        typer.echo()
        output.table(item["presets"], ["name", "words", "source"], title="presets")


def _show_words(words: Sequence[Word], title: str = "") -> None:
    typer.echo()
    rows = [
        {
            "parameter": word["name"],
            "takes": takes(word),
            "default": word["default"],
            "meaning": word["doc"],
        }
        for word in words
    ]
    output.table(rows, ["parameter", "takes", "default", "meaning"], title=title)
    for word in words:
        if word["kind"] in ("named", "list"):
            typer.echo()
            named = [
                {"name": n["name"], "meaning": n["doc"]}
                for n in word["of"]
                if not isinstance(n, str)
            ]
            also = ", or all, or none" if word["kind"] == "list" else ""
            title = f"names for {word['name']}{also}"
            output.table(named, ["name", "meaning"], title=title)


def _show_metric(name: str) -> None:
    metric = registry()[name]
    if metric.unit:
        typer.echo(f"Better: {metric.better}")
    if metric.smallest:
        typer.echo(f"Smallest difference of interest: {metric.smallest}")
        typer.echo(f"Source: {metric.interest.source}")


def _flat(value: Object, prefix: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for key, inner in value.items():
        if isinstance(inner, dict):
            rows += _flat(inner, f"{prefix}{key}.")
        else:
            rows.append((prefix + key, json.dumps(inner)))
    return rows


_TAKES = {
    "flag": "nothing",
    "packets": "packets, such as 300p",
    "size": "size, such as 30kb",
    "time": "time, such as 5ms",
    "rate": "rate, such as 10mbit",
    "probability": "0 to 1, or percent",
    "whole": "whole number",
    "number": "number",
    "named": "a name, see below",
    "list": "names joined by +, see below",
    "rest": "a description, up to the end of the text",
    "numbers": "whole numbers, separated by spaces",
}
"""Description of the values that a parameter takes, by its kind."""


def takes(word: Word) -> str:
    """Returns a description of the values that a parameter takes."""
    match word["kind"]:
        case "switch":
            return f"nothing; {word['off']} clears it"
        case "one_of":
            return "one of these words alone: " + ", ".join(map(str, word["of"]))
        case "integer" | "signed":
            return f"whole number, {word['min']} to {word['max']}"
        case "real":
            return f"number, {word['min']:g} to {word['max']:g}"
        case "choice":
            return "one of " + ", ".join(map(str, word["of"]))
        case "key":
            return "required" if word["required"] else "optional"
        case kind:
            return _TAKES.get(kind, "a word")


@exits.command
def schema(
    command: Annotated[
        list[str] | None,
        Option("COMMAND", positional=True, help="Command, such as `study run`, without options."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Print the JSON Schema of scenario files, or of a command's JSON output.

    A command that prints several lines has a schema for its lines.
    """
    del as_json  # always JSON
    if command:
        from sojourn.cli import outputs

        name = " ".join(command)
        if not outputs.forms(name):
            found = {one.partition(":")[0] for one in outputs.declared() if one[0].islower()}
            rest = hint(name, sorted(found - {"error"}), "existing")
            exits.fail(f"no command `{name}` with JSON output{rest}")
        output.print_data(outputs.schema(name))
        return
    from sojourn.scenario import Scenario

    output.print_data(Scenario.json_schema())
