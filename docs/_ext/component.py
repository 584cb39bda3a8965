"""`{component} SECTION NAME ...`: the figures, words and presets of components.

The engine describes words and presets; `make figures` writes the figures. A queue discipline also
has a live figure with two queues: `:live: QUEUE`, by default the first name, and `:against: QUEUE`,
by default `pfifo limit 1000p`. The words that every TCP has are omitted. Each component has exactly
one page with this directive (tests/docs).
"""

from typing import Any, ClassVar

import drawn
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from words import Described, code, component, inline, table, word_tables

SHARED = "All [words of every TCP](../tcp.md#words-of-every-tcp) apply."
"""Text in Markdown above the words of each TCP."""
UNDRAWN = {"command"}
"""Components without a drawn figure, because the simulator does not run them."""


class Component(Described):
    """Shows figures, words and presets of the named components of a section."""

    required_arguments = 2
    final_argument_whitespace = True
    option_spec: ClassVar = {
        "live": directives.unchanged_required,
        "against": directives.unchanged_required,
    }

    def build(self, engine: dict[str, Any]) -> list[nodes.Node]:
        section, names = self.arguments
        self.env.note_dependency(__file__)
        built = self.live(names.split()[0]) if section == "queue" else []
        for name in names.split():
            if name not in UNDRAWN:
                built += drawn.figure(self, f"{section}-{name}")
            if section == "tcp":
                built += self.parse_text_to_nodes(SHARED)
            built += self.words(engine, section, name)
            presets = [p for p in engine["presets"] if p["app"] == name and section == "app"]
            if presets:
                rows = [
                    (p["summary"].replace(f"`{name} ", "`"), code(p["words"]), p["source"])
                    for p in presets
                ]
                built.append(table(("preset", "words", "source"), rows, (18, 47, 35)))
        return built

    def live(self, name: str) -> list[nodes.Node]:
        """Returns the live figure of a queue in the scenario `home`."""
        against = f":against: {self.options['against']}\n" if "against" in self.options else ""
        queue = self.options.get("live", name)
        return self.parse_text_to_nodes(f"```{{live}} home\n:queue: {queue}\n{against}```\n")

    @staticmethod
    def words(engine: dict[str, Any], section: str, name: str) -> list[nodes.Node]:
        """Returns the tables of a component's words, or a sentence if it has none."""
        words = component(engine, section, name)["words"]
        if section == "tcp":
            shared = {word["name"] for word in component(engine, "tcp", "reno")["words"]}
            words = [word for word in words if word["name"] not in shared]
        if not words:
            return [nodes.paragraph("", "", *inline(f"`{name}` has no words of its own."))]
        return word_tables(words)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("component", Component)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
