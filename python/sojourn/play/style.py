"""The page's style sheet, with the colours that queues have in all our figures."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from sojourn.show.html.render import DARK
from sojourn.show.style import COLOURS


@cache
def sheet() -> str:
    """The style sheet."""
    own = files("sojourn.play").joinpath("static", "play.css").read_text(encoding="utf-8")
    return f"{_root(COLOURS)}@media (prefers-color-scheme: dark) {{ {_root(DARK)} }}\n{own}"


def _root(colours: tuple[str, ...]) -> str:
    named = " ".join(f"--c{number}: {colour};" for number, colour in enumerate(colours))
    return f":root {{ {named} }}\n"
