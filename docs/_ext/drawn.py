"""The figure and caption of a component, written by `make figures`."""

import json
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from words import inline

log = logging.getLogger(__name__)

FOLDER = "images/drawn"


def figure(directive: SphinxDirective, key: str) -> list[nodes.Node]:
    """Returns the figure `SECTION-NAME`; warns and returns an empty list if it does not exist."""
    captions = Path(directive.env.srcdir) / FOLDER / "captions.json"
    directive.env.note_dependency(str(captions))
    caption = json.loads(captions.read_text(encoding="utf-8")).get(key)
    if caption is None or not (captions.parent / f"{key}.png").exists():
        log.warning(
            "no figure of %s exists: run `make figures`", key, location=directive.get_location()
        )
        return []
    image = nodes.image(uri=f"/{FOLDER}/{key}.png", alt=caption.replace("`", ""), classes=["drawn"])
    return [nodes.figure("", image, nodes.caption("", "", *inline(caption)))]
