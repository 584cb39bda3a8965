"""Tables from the engine's description of its components, `sojourn._core.describe()`.

`{words} SECTION NAME`   the words that a component understands, with its summary and source
                         (`:bare:`: words only; section `class`: those of a class of a queue
                         discipline)
`{tables} SECTION`       the components of a section, a line each (`:to: FOLDER`: linked to their
                         pages)
`{profiles}`             what each TCP profile sets, side by side
`{metrics}`              metrics of a link, a flow, ..., with unit, direction and definition
`{differences}`          the smallest differences of interest, with their sources
`{commands}`             each command's usage, purpose, arguments and options
`{outputs}`              the keys of each command's JSON output
`{sizes}`                lengths and repetitions of the tail-drop study
`{keys} MODEL`           the keys of a table of the scenario, from `sojourn.scenario.models`;
                         without MODEL, of the tables that the body lists

A name that the engine does not know causes a warning; under `-W`, it causes an error.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

log = logging.getLogger(__name__)


@cache
def description() -> dict[str, Any]:
    from sojourn import _core

    parsed: dict[str, Any] = json.loads(_core.describe())
    return parsed


def takes(word: dict[str, Any]) -> str:
    """Returns a description of the values after a word."""
    match word["kind"]:
        case "flag":
            return "nothing"
        case "switch":
            return f"nothing; `{word['off']}` clears it"
        case "packets":
            return "packets"
        case "one_of":
            return ", ".join(f"`{one}`" for one in word["of"]) + ", by itself"
        case "signed":
            return f"whole number from {word['min']} to {word['max']}"
        case "integer":
            top = "" if word["max"] >= 2**32 - 1 else f" to {word['max']}"
            return f"whole number from {word['min']}{top}"
        case "real":
            return f"number, {word['min']:g} to {word['max']:g}"
        case "choice":
            choices = [f"`{choice}`" for choice in word["of"]]
            return " or ".join(choices) if len(choices) == 2 else "one of " + ", ".join(choices)
        case "named":
            return "a name, see below"
        case "list":
            return "names, see below, joined by `+`; `all`; `none`"
        case "name":
            return "text, see the meaning"
        case "numbers":
            return f"up to {word['most']} whole numbers"
        case "rest":
            return "a description, up to the end"
        case other:
            return str(other)


def inline(text: str) -> list[nodes.Node]:
    """Returns nodes of a text with `code` in backquotes."""
    found: list[nodes.Node] = []
    for index, part in enumerate(text.split("`")):
        if part:
            found.append(nodes.literal(part, part) if index % 2 else nodes.Text(part))
    return found


class Cell(nodes.entry):
    """A cell with the head of its column, which narrow pages show before the text."""


def _visit_cell(translator: Any, node: Cell) -> None:
    translator.visit_entry(node)
    begun = translator.body[-1]
    translator.body[-1] = begun.replace("<td", f'<td data-head="{escape(node["head"])}"', 1)


def _depart_cell(translator: Any, node: Cell) -> None:
    translator.depart_entry(node)


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int]
) -> nodes.table:
    built = nodes.table(classes=["words", "colwidths-given"])
    group = nodes.tgroup(cols=len(heads))
    built += group
    for width in widths:
        group += nodes.colspec(colwidth=width)

    def row(cells: Sequence[str]) -> nodes.row:
        line = nodes.row()
        for head, cell in zip(heads, cells, strict=True):
            paragraph = nodes.paragraph()
            paragraph += inline(cell)
            entry = Cell(head=head)
            entry += paragraph
            line += entry
        return line

    head = nodes.thead()
    head += row(heads)
    body = nodes.tbody()
    body += [row(cells) for cells in rows]
    group += head
    group += body
    return built


def link_first(built: nodes.table, pages: Mapping[str, str], docname: str) -> None:
    """Links the names in the first column to their pages, if a page exists."""
    for row in built.findall(nodes.row):
        for name in list(row[0].findall(nodes.literal)):
            if name.astext() in pages:
                link = addnodes.pending_xref(
                    refdomain="std", reftype="doc", reftarget=f"/{pages[name.astext()]}",
                    refdoc=docname, refexplicit=True, refwarn=True,
                )  # fmt: skip
                name.replace_self(link)
                link += name


def code(text: Any) -> str:
    return f"`{text}`" if text != "" and text is not None else "–"


class Described(SphinxDirective):
    """A directive whose content comes from the engine."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        try:
            return self.build(
                {} if isinstance(self, Keys | Commands | Outputs | Sizes) else description()
            )
        except (ImportError, AttributeError, LookupError, TypeError) as error:
            log.warning(
                "%s %s: %s",
                self.name,
                " ".join(self.arguments),
                error,
                location=self.get_location(),
            )
            return []

    def build(self, engine: dict[str, Any]) -> list[nodes.Node]:
        raise NotImplementedError


def component(engine: dict[str, Any], section: str, name: str) -> dict[str, Any]:
    for found in engine[section]:
        if found["name"] == name:
            return dict(found)
    raise LookupError(f"no {section} called {name}")


class Words(Described):
    """The words of one component; with `:bare:` without its summary and source."""

    required_arguments = 2
    option_spec: ClassVar = {"bare": directives.flag}

    def build(self, engine: dict[str, Any]) -> list[nodes.Node]:
        section, name = self.arguments
        found = component(engine, section, name)
        self.env.note_dependency(__file__)
        tables = word_tables(found["words"])
        if "bare" in self.options:
            return tables
        summary = nodes.paragraph()
        summary += nodes.literal(name, name)
        source = f" Source: {found['source'].rstrip('.')}." if found["source"] else ""
        summary += inline(f": {found['summary']}.{source}")
        return [summary, *tables]


def word_tables(words: Sequence[dict[str, Any]]) -> list[nodes.Node]:
    """Returns a table of words, and a table of names for each word that takes names."""
    rows = [(code(w["name"]), takes(w), code(w["default"]), w["doc"]) for w in words]
    built: list[nodes.Node] = [
        table(("word", "takes", "default", "meaning"), rows, (15, 20, 15, 50))
    ]
    for word in words:
        if word["kind"] in ("named", "list"):
            caption = nodes.paragraph()
            caption += inline(f"Names for `{word['name']}`:")
            named = [(code(name["name"]), name["doc"]) for name in word["of"]]
            built += [caption, table(("name", "meaning"), named, (20, 80))]
    return built


class Tables(Described):
    required_arguments = 1
    option_spec: ClassVar = {"to": directives.unchanged_required}

    def build(self, engine: dict[str, Any]) -> list[nodes.Node]:
        section = self.arguments[0]
        rows = [(code(t["name"]), t["summary"], t["source"]) for t in engine[section]]
        built = table(("name", "description", "source"), rows, (15, 50, 35))
        if "to" not in self.options:
            return [built]
        pages = self.pages(section)
        link_first(built, pages, self.env.docname)
        names: dict[str, list[str]] = {}
        for found in engine[section]:
            names.setdefault(pages[found["name"]], []).append(found["name"])
        listed = "".join(f"{', '.join(of)} </{page}>\n" for page, of in names.items())
        return [built, *self.parse_text_to_nodes(f"```{{toctree}}\n:hidden:\n\n{listed}```\n")]

    def pages(self, section: str) -> dict[str, str]:
        """Returns the page of each component's words."""
        source = Path(self.env.srcdir)
        folder = source / Path(self.env.docname).parent / self.options["to"]
        found = {}
        for page in sorted(folder.resolve().glob("*.md")):
            name = page.relative_to(source.resolve()).with_suffix("").as_posix()
            for word in _components(page, section):
                found[word] = name
        return found


def _components(page: Path, section: str) -> list[str]:
    """Returns the names of a section's components that a page shows by `{component}`."""
    found = re.findall(rf"{{component}} {section} (.+)\n", page.read_text("utf-8"))
    return [name for names in found for name in names.split()]


class Profiles(Described):
    """Table of TCP profiles: a column for each profile, a row for each parameter."""

    def build(self, engine: dict[str, Any]) -> list[nodes.Node]:
        profiles = engine["profiles"]
        values = [dict(p["shown"]) for p in profiles]
        rows = [(code(name), *(value[name] for value in values)) for name in values[0]]
        summaries = nodes.bullet_list()
        for profile in profiles:
            item = nodes.list_item()
            line = nodes.paragraph()
            line += inline(f"`{profile['name']}`: {profile['summary']}")
            item += line
            summaries += item
        heads = ("", *(p["name"] for p in profiles))
        return [summaries, table(heads, rows, (20, *(80 // len(profiles) for _ in profiles)))]


class Sources(Described):
    """The smallest differences of interest with their sources."""

    def build(self, _engine: dict[str, Any]) -> list[nodes.Node]:
        from sojourn.metrics import registry

        found: dict[tuple[str, str], list[str]] = {}
        for metric in registry().values():
            if metric.smallest:
                found.setdefault((metric.smallest, metric.interest.source), []).append(metric.name)
        rows = [
            (", ".join(map(code, names)), difference, source)
            for (difference, source), names in found.items()
        ]
        return [table(("metrics", "smallest difference", "source"), rows, (45, 20, 35))]


def section(directive: SphinxDirective, title: str, text: str = "") -> nodes.section:
    """Returns a section of the page with a title and an optional text in Markdown."""
    built = nodes.section(
        ids=[nodes.make_id(title)], names=[nodes.fully_normalize_name(title.replace("`", ""))]
    )
    built += nodes.title(title, "", *inline(title))
    directive.state.document.note_implicit_target(built, built)
    if text:
        built += directive.parse_text_to_nodes(text)
    return built


class Metrics(Described):
    """Sections of metrics. A body line is `KIND: TITLE | TEXT`, where TEXT is optional Markdown.

    Each metric is a target, `metric-NAME`, for links.
    """

    has_content = True

    def build(self, _engine: dict[str, Any]) -> list[nodes.Node]:
        from sojourn.metrics import registry

        built: list[nodes.Node] = []
        for line in self.content:
            kind, _, title = line.partition(": ")
            title, _, text = title.partition(" | ")
            found = [m for m in registry().values() if m.of == kind]
            if not found:
                raise LookupError(f"no metric is of {kind}")
            rows = [(code(m.name), m.unit or "–", m.better, m.definition) for m in found]
            metrics = table(("metric", "unit", "better", "definition"), rows, (22, 8, 10, 60))
            body = next(metrics.findall(nodes.tbody))
            for metric, row in zip(found, body.findall(nodes.row), strict=True):
                row["ids"].append(f"metric-{metric.name.replace('_', '-')}")
            built.append(section(self, title, text))
            built[-1] += metrics
        return built


def example(schema: dict[str, Any]) -> str:
    """Returns a short description of a key's values."""
    if "anyOf" in schema:
        shown = [example(s) for s in schema["anyOf"] if s.get("type") != "null"]
        return " or ".join(dict.fromkeys(shown))
    if "enum" in schema:
        return "a name such as " + code(f'"{schema["enum"][-1]}"')
    if schema.get("examples"):
        return code(f'"{schema["examples"][0]}"')
    match schema.get("type"):
        case "integer":
            low, high = (
                schema.get(a, schema.get(b)) for a, b in (("minimum", "ge"), ("maximum", "le"))
            )
            return "whole number" if low is None else f"whole number, {low} to {high}"
        case "boolean":
            return "`true` or `false`"
        case "array":
            items = schema["items"]
            return "list of tables" if "$ref" in items else f"{example(items)} or a list"
        case "string":
            return code(f'"{schema["const"]}"') if "const" in schema else "text"
        case _:
            return "table"


class Keys(Described):
    """Tables of keys. A body line is `MODEL`, or `MODEL: TEXT` with Markdown above the table."""

    optional_arguments = 1
    has_content = True

    def build(self, _engine: dict[str, Any]) -> list[nodes.Node]:
        built: list[nodes.Node] = []
        for line in [*self.arguments, *self.content]:
            model, _, text = line.partition(": ")
            built += [*(self.parse_text_to_nodes(text) if text else []), self.table(model)]
        return built

    @staticmethod
    def table(name: str) -> nodes.table:
        from sojourn.scenario import models

        model = getattr(models, name)
        properties = model.model_json_schema()["properties"]
        documentation = model.documentation()
        rows = []
        for name, field in model.model_fields.items():
            key = field.alias or name
            if field.is_required():
                default = "required"
            elif isinstance(field.default, str | int) and field.default not in ("", None):
                default = code(json.dumps(field.default))
            else:
                default = "–"
            rows.append((code(key), example(properties[key]), default, documentation[name]))
        return table(("key", "takes", "default", "meaning"), rows, (13, 25, 15, 47))


class Sizes(Described):
    """The runs of `sojourn paper taildrop`, in full and with `--quick`."""

    def build(self, _engine: dict[str, Any]) -> list[nodes.Node]:
        from sojourn.papers.taildrop import mechanisms, scenarios
        from sojourn.papers.taildrop.study import FULL, QUARTER, QUICK, TailDropSize

        def listed(values: Iterable[Any]) -> str:
            return ", ".join(map(str, values))

        def lengths(length: float, warmup: float, seeds: int) -> str:
            return f"{length:g} s, the first {warmup:g} s not measured, {seeds} seeds"

        def row(name: str, size: TailDropSize) -> tuple[str, str, str]:
            bulk = lengths(size.bulk, size.bulk_warmup, size.seeds)
            return name, bulk, lengths(size.web, size.web_warmup, size.web_seeds)

        rows = [
            ("load", f"{listed(scenarios.FLOWS)} flows", f"{listed(scenarios.SESSIONS)} sessions"),
            ("mechanisms", listed(mechanisms.MECHANISMS), "the same"),
            row("full", FULL),
            row("judged", QUARTER),
            row("`--quick`", QUICK),
        ]
        return [table(("", "bulk", "Web"), rows, (16, 42, 42))]


class RealSizes(Described):
    """The runs of `sojourn paper taildrop --real`, in full and with `--quick`."""

    def build(self, _engine: dict[str, Any]) -> list[nodes.Node]:
        from sojourn.papers.taildrop import study

        rows = [
            (
                name,
                ", ".join(map(str, size.flows)),
                f"{size.bulk:g} s, the first {size.bulk_warmup:g} s not measured",
                str(size.seeds),
                study.lasting(size).rpartition(": ")[2],
            )
            for name, size in (("full", study.REAL_FULL), ("`--quick`", study.REAL_QUICK))
        ]
        return [table(("", "flows", "each run", "seeds", "takes"), rows, (14, 26, 36, 8, 16))]


class Outputs(Described):
    """A section for each command with JSON output, each type and the object of an error."""

    def build(self, _engine: dict[str, Any]) -> list[nodes.Node]:
        from sojourn.cli import outputs

        built = []
        for name, lines in outputs.declared().items():
            command, _, form = name.partition(":")
            is_command = name[0].islower() and name != "error"
            title = f"`sojourn {command}`{f',{form}' if form else ''}" if is_command else name
            rows = [row for path, line in lines.items() for row in self.rows(path, line)]
            built.append(section(self, title))
            built[-1] += table(("key", "type", "meaning"), rows, (30, 20, 50))
        return built

    def rows(self, path: str, line: str) -> Iterator[tuple[str, str, str]]:
        """Generates the row of a line, or a row for each field of the class that it names."""
        from sojourn.cli import outputs

        kinds, _, text = line.partition(": ")
        path = "" if path == "like" else path
        if ":" in kinds:
            yield from self.fields(path, outputs.schema_of(kinds))
        else:
            yield code(path) if path else "–", kinds, text

    def fields(self, path: str, schema: Any) -> Iterator[tuple[str, str, str]]:
        for name, one in schema["properties"].items():
            below = f"{path}.{name}".strip(".")
            yield code(below), self.kind(one), one.get("description", "")
            inner, mark = (one["items"], "[]") if "items" in one else (one, "")
            for choice in inner.get("anyOf", [inner]):
                if "properties" in choice:
                    yield from self.fields(below + mark, choice)

    def kind(self, schema: Any) -> str:
        if "anyOf" in schema:
            return " or ".join(map(self.kind, schema["anyOf"]))
        kinds = schema.get("type", "string" if "enum" in schema else "any")
        return " or ".join([kinds] if isinstance(kinds, str) else kinds)


class Commands(Described):
    """A section for each command: usage, purpose, arguments and options.

    A line `NAME: TEXT` of the body adds a text in Markdown to the section of a command.
    """

    has_content = True

    def build(self, _engine: dict[str, Any]) -> list[nodes.Node]:
        import typer

        from sojourn.cli.app import app

        texts = dict(line.split(": ", 1) for line in self.content)
        built = []
        for name, command in self.leaves(typer.main.get_command(app), ""):
            built.append(section(self, f"`sojourn {name}`"))
            built[-1] += self.described(name, command)
            built[-1] += self.parse_text_to_nodes(texts.pop(name, ""))
        if texts:
            raise LookupError(f"no command {', '.join(texts)}")
        return built

    def leaves(self, command: Any, name: str) -> Iterator[tuple[str, Any]]:
        """Generates the full name of each command, such as `study run`, with the command."""
        family = getattr(command, "commands", None)
        if family is None:
            yield name, command
            return
        for key, inner in family.items():
            if not inner.hidden:
                yield from self.leaves(inner, f"{name} {key}".strip())

    def described(self, name: str, command: Any) -> list[nodes.Node]:
        """Returns usage and purpose of a command, and the table of its options."""
        rows, usage = [], f"sojourn {name}"
        for parameter in command.params:
            if getattr(parameter, "hidden", False):
                continue
            if parameter.param_type_name == "argument":
                name = parameter.metavar or parameter.name.upper()
                usage += f" {name}"
                written = f"`{name}`"
            else:
                value = "" if parameter.is_flag else f" {parameter.metavar or self.kind(parameter)}"
                written = ", ".join(f"`{option}{value}`" for option in parameter.opts)
            default = parameter.default
            shown = code(default) if isinstance(default, str | int | float) else "–"
            if isinstance(default, bool):
                shown = "–"
            rows.append((written, shown, parameter.help or ""))
        line = nodes.literal_block(f"{usage} [OPTIONS]", f"{usage} [OPTIONS]", language="text")
        text = (command.help or "").split("\n\n")
        paragraphs = [nodes.paragraph("", "", *inline(" ".join(p.split()))) for p in text if p]
        built: list[nodes.Node] = [line, *paragraphs]
        if rows:
            built.append(table(("argument or option", "default", "meaning"), rows, (33, 15, 52)))
        return built

    @staticmethod
    def kind(parameter: Any) -> str:
        annotation = parameter.type_descriptor.annotation
        return {"int": "NUMBER", "float": "NUMBER", "Path": "PATH"}.get(
            getattr(annotation, "__name__", ""), "TEXT"
        )


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_node(Cell, html=(_visit_cell, _depart_cell))
    app.add_directive("words", Words)
    app.add_directive("tables", Tables)
    app.add_directive("profiles", Profiles)
    app.add_directive("metrics", Metrics)
    app.add_directive("differences", Sources)
    app.add_directive("sizes", Sizes)
    app.add_directive("real-sizes", RealSizes)
    app.add_directive("commands", Commands)
    app.add_directive("keys", Keys)
    app.add_directive("outputs", Outputs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
