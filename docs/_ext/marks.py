"""The role `mark`: the source of a statement. {mark}`verified` is shown as a small label."""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

MEANING = {
    "verified": "checked against a public source",
    "derived": "computed, simulated or measured by this project",
    "from memory": "from a textbook or from memory, without a source at hand",
    "reconstructed": "chosen by this project, because the original was not found",
}


class Mark(nodes.Inline, nodes.TextElement):
    """One label."""


class MarkRole(SphinxRole):
    """Returns the label; raises an error for an unknown kind."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        kind = self.text.strip()
        if kind not in MEANING:
            message = self.inliner.reporter.error(
                f"unknown mark {kind!r}: one of {', '.join(MEANING)}", line=self.lineno
            )
            return [], [message]
        return [Mark("", kind)], []


def _visit(translator: Any, node: Mark) -> None:
    kind = node.astext()
    style = kind.replace(" ", "-")
    translator.body.append(f'<span class="mark mark-{style}" title="{MEANING[kind]}">')


def _depart(translator: Any, _node: Mark) -> None:
    translator.body.append("</span>")


def _nothing(_translator: Any, _node: Mark) -> None:
    pass


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_node(
        Mark, html=(_visit, _depart), text=(_nothing, _nothing), latex=(_nothing, _nothing)
    )
    app.add_role("mark", MarkRole())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
