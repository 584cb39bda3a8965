"""Renders pages as HTML: all texts are escaped, and Plotly and the data are included."""

from __future__ import annotations

import base64
import gzip
import json
import math
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from sojourn.show.colours import COLOURS, DARK
from sojourn.show.html.blocks import Page, Plot
from sojourn.study.disk import replace_file

MOST_ROWS = 150
"""Number of rows above which a table is folded."""


@cache
def _plotly() -> str:
    """Returns the compressed library Plotly in base64; `make plotly` updates it."""
    file = files("sojourn.show.html").joinpath("plotly", "plotly-basic.min.js.gz")
    return base64.b64encode(file.read_bytes()).decode()


def packed(text: str) -> str:
    """Returns a text compressed by gzip, in base64."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def data(value: object) -> str:
    """Returns a value as JSON, with null for NaN and infinity."""
    return json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _finite(value: object) -> object:
    """Returns a value for JSON, with six digits: more than the resolution of a screen."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    if hasattr(value, "tolist"):
        return _finite(value.tolist())
    return value


def _ticked(text: str) -> Markup:
    """Returns a text as HTML: escaped, and with text in backquotes as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # with an unpaired backquote, no text is code
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if at % 2 else escape(part)
        for at, part in enumerate(parts)
    )


def render(page: Page) -> str:
    """Returns the page as HTML."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    folder = files("sojourn.show.html")
    template = environment.from_string(folder.joinpath("page.html.j2").read_text(encoding="utf-8"))
    plots = [b for s in page.sections for b in s.blocks if isinstance(b, Plot)]
    figures = {
        p.id: {"traces": p.traces, "layout": p.layout, "height": p.height, "bar": not p.half}
        for p in plots
    }
    return template.render(
        page=page,
        style=Markup(folder.joinpath("page.css").read_text(encoding="utf-8")),  # noqa: S704
        script=Markup(folder.joinpath("page.js").read_text(encoding="utf-8")),  # noqa: S704
        plotly=_plotly() if plots else None,
        data=packed(data({"figures": figures, "light": COLOURS, "dark": DARK})),
        light=COLOURS,
        dark=DARK,
        ticked=_ticked,
        packed=packed,
        most_rows=MOST_ROWS,
    )


def write(page: Page, path: Path) -> Path:
    """Writes the page to `path` atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, render(page).encode("utf-8", "backslashreplace"))
    return path
