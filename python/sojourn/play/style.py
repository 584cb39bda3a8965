"""The page's style sheet, and the colours that queues have in it as in all our figures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from sojourn.show.colours import COLOURS, DARK, slots


@cache
def sheet() -> str:
    """The style sheet."""
    own = files("sojourn.play").joinpath("static", "play.css").read_text(encoding="utf-8")
    return f"{_root(COLOURS)}@media (prefers-color-scheme: dark) {{ {_root(DARK)} }}\n{own}"


def looks(queues: Sequence[str]) -> list[int]:
    """The numbers of the queues' colours, one for each; two queues do not share one."""
    found = [slot % len(COLOURS) for slot in slots(queues)]
    if len(found) == 2 and found[0] == found[1]:  # near relatives
        found[1] = (found[1] + 1) % len(COLOURS)
    return found


def _root(colours: tuple[str, ...]) -> str:
    named = " ".join(f"--c{number}: {colour};" for number, colour in enumerate(colours))
    return f":root {{ {named} }}\n"
