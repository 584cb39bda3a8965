"""Figures that the reader's browser simulates, and the playground.

`{live} SCENARIO`     a ready-made scenario (`:queue: TEXT`, `:against: TEXT`: the queues side by
                      side, by default against `pfifo limit 1000p`; without `:queue:` the figure
                      answers the scenario's own question; `:file:`: the scenario's file follows,
                      with the command that writes it)
`{minute}`            the steps of "A queue in one minute", each with a figure
{playground}`TEXT`    a link to the page that has all scenarios and all controls

The element of a figure holds a sentence with a link, which readers see where scripts do not run and
in the text and manual builders. A scenario or a queue that the engine refuses is a warning, which
is an error under `-W`. `make wasm` builds the engine for browsers. Without it there is no
playground: figures are static, and links lead to the guide.
"""

from functools import cache
from html import escape
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole
from words import inline

from sojourn.play import files
from sojourn.play.catalogue import catalogue, minute
from sojourn.scenario import ScenarioError
from sojourn.templates import TEMPLATES
from sojourn.wasm import ModuleMissing

log = logging.getLogger(__name__)

GUIDE = "/guides/play"
FOLDER = "playground"
"""Folder of the site with the files that `sojourn play` serves; the figures use its scripts."""
AGAINST = "pfifo limit 1000p"
"""Queue that a live figure without `:against:` compares with `:queue:`."""
STYLE = "live.css"


@cache
def playground() -> dict[str, bytes]:
    """Returns the playground's files by name; empty without the engine for browsers."""
    try:
        return files.page(catalogue(docs="../index.html"))
    except ModuleMissing:
        return {}


def guide(text: str, docname: str) -> addnodes.pending_xref:
    """Returns a link to the guide of `sojourn play`."""
    link = addnodes.pending_xref(
        refdomain="std", reftype="doc", reftarget=GUIDE,
        refdoc=docname, refexplicit=True, refwarn=True,
    )  # fmt: skip
    link += inline(text)
    return link


class Live(nodes.General, nodes.Element):
    """A live figure; its children are shown until it runs."""


class LiveDirective(SphinxDirective):
    """Returns the figure; warns about an unknown scenario or queue."""

    required_arguments = 1
    option_spec: ClassVar = {
        "queue": directives.unchanged_required,
        "against": directives.unchanged_required,
        "file": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        try:
            queues = self.queues(name)
        except (KeyError, ScenarioError) as error:
            log.warning("live %s: %s", name, error, location=self.get_location())
            return []
        figure = Live("", scenario=name, **queues)
        figure += self.still(name)
        self.set_source_info(figure)
        if "file" not in self.options:
            return [figure]
        file = TEMPLATES[name].text().rstrip()
        text = f"```console\n$ sojourn new --template {name}\n```\n\n```toml\n{file}\n```\n"
        return [figure, *self.parse_text_to_nodes(text)]

    def queues(self, name: str) -> dict[str, str]:
        """Returns the queues' descriptions; raises an error for an unknown scenario or queue."""
        if name not in TEMPLATES:
            raise KeyError(f"no scenario called {name}: one of {', '.join(TEMPLATES)}")
        scenario = TEMPLATES[name].scenario()
        if "queue" in self.options:
            self.options.setdefault("against", AGAINST)
        return {key: scenario.with_queue(queue).queue for key, queue in self._sides()}

    def _sides(self) -> list[tuple[str, str]]:
        """Returns the options that name queues."""
        return [(key, text) for key, text in self.options.items() if key != "file"]

    def still(self, name: str) -> nodes.paragraph:
        """Returns the text that replaces the figure in pages without scripts."""
        queues = [f"`{text}`" for _, text in self._sides()]
        behind = f" with {' and with '.join(queues)}" if queues else ""
        link = guide("`sojourn play`", self.env.docname)
        return nodes.paragraph(
            "", "", *inline(f"The scenario `{name}`{behind}: "), link, nodes.Text(" runs it.")
        )


class Minute(SphinxDirective):
    """Returns a section for each step: its title, its text and its figure."""

    def run(self) -> list[nodes.Node]:
        found: list[nodes.Node] = []
        for number, step in enumerate(minute()):
            title = f"{number + 1}. {step['title']}"
            section = nodes.section(ids=[f"step-{number + 1}"], names=[title])
            text = nodes.paragraph("", "", *inline(step["text"]))
            section += [nodes.title("", title), text, Live("", step=str(number))]
            found.append(section)
        return found


class Playground(SphinxRole):
    """A link to the playground, or to the guide without one."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        if not self.config.live:
            return [guide(self.text, self.env.docname)], []
        to = "../" * self.env.docname.count("/") + f"{FOLDER}/index.html"
        return [nodes.reference("", "", *inline(self.text), refuri=to)], []


KEYS = ("scenario", "queue", "against", "step")
"""Attributes of a figure's element that state what it shows."""


def _visit(translator: Any, node: Live) -> None:
    data = {f"data-{key}": node[key] for key in KEYS if key in node}
    translator.body.append(translator.starttag(node, "div", CLASS="sojourn-live", **data))


def _depart(translator: Any, _node: Live) -> None:
    translator.body.append("</div>\n")


def _nothing(_translator: Any, _node: Live) -> None:
    pass


def load(
    app: Sphinx, _name: str, _template: str, context: dict[str, Any], page: nodes.document | None
) -> None:
    """Adds the scripts to a page that has a live figure."""
    if not app.config.live or page is None or not any(page.findall(Live)):
        return

    def to(name: str) -> str:
        return escape(context["pathto"](f"{FOLDER}/{name}", resource=True))

    loaded = [f'<link rel="stylesheet" href="{to(STYLE)}">']
    loaded += [f'<script defer src="{to(name)}"></script>' for name in files.FIGURES]
    context["metatags"] += "\n".join(loaded)


def write(app: Sphinx, error: Exception | None) -> None:
    """Writes the playground into a folder of the pages."""
    if error is not None or not app.config.live or app.builder.format != "html":
        return
    folder = Path(app.outdir) / FOLDER
    folder.mkdir(exist_ok=True)
    for name, content in playground().items():
        (folder / ("index.html" if name == files.PAGE else name)).write_bytes(content)


def setup(app: Sphinx) -> dict[str, bool]:
    plain = (_nothing, _nothing)
    app.add_node(Live, html=(_visit, _depart), text=plain, man=plain, latex=plain)
    app.add_directive("live", LiveDirective)
    app.add_directive("minute", Minute)
    app.add_role("playground", Playground())
    app.add_config_value("live", bool(playground()), "env")
    app.connect("html-page-context", load)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
