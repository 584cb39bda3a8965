"""`{api} MODULE`: classes and functions of a module, as autodoc shows them.

Each line of the body lists functions, or names one class or exception: `NAME` alone shows all
members, `NAME: a b` only these, `NAME: -a -b` all others, `NAME: -` none. A name may contain its
module.
"""

import importlib
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import get_type_hints

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from sojourn.settings import declared


def entry(module: str, name: str, members: str | None) -> Iterator[str]:
    """Generates the lines of autodoc for one object; raises an error for an unknown name."""
    if "." in name:
        module, name = name.rsplit(".", 1)
    found = getattr(importlib.import_module(module), name)
    if not isinstance(found, type):
        yield f".. autofunction:: {module}.{name}"
        return
    if is_dataclass(found):
        # The command's placeholders and ranges are in the table of its options.
        declared(found)
        plain = get_type_hints(found)
        found.__annotations__ |= {name: plain[name] for name in vars(found)["__annotations__"]}
        found.__init__.__annotations__ |= plain
    kind = "exception" if issubclass(found, BaseException) else "class"
    yield f".. auto{kind}:: {module}.{name}"
    if members == "-":
        return
    listed = (members or "").split()
    hidden = [word[1:] for word in listed if word.startswith("-")]
    shown = [word for word in listed if not word.startswith("-")]
    yield f"   :members: {', '.join(shown)}".rstrip()
    if hidden:
        yield f"   :exclude-members: {', '.join(hidden)}"


SECTION = re.compile(r"(Attributes|Raises):")
ENTRY = re.compile(r"    (\w[\w, ]*): (.*)")


def sectioned(text: list[str]) -> list[str]:
    """Returns a docstring whose sections of attributes and exceptions are lists of definitions.

    Other lines remain: a colon in a sentence does not separate a type from a description.
    """
    lines: list[str] = []
    inside = False
    for line in text:
        if SECTION.fullmatch(line):
            inside = True
            lines += [f"**{line.removesuffix(':')}**", ""]
        elif inside and (entry := ENTRY.fullmatch(line)):
            lines += [f"``{entry[1]}``" if line[4].islower() else entry[1], f"    {entry[2]}"]
        else:
            inside = inside and (not line or line.startswith(" "))
            lines.append(line.replace("        ", "    ", 1) if inside else line)
    return lines


def process(
    _app: Sphinx, _what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    """Changes the lines of a docstring in place, as autodoc requires."""
    lines[:] = sectioned(lines)


class Api(SphinxDirective):
    """Passes autodoc's directives to the parser of reStructuredText."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        lines: list[str] = []
        for line in self.content:
            names, colon, members = line.partition(":")
            for name in names.split():
                lines += entry(self.arguments[0], name, members.strip() if colon else None)
        text = "\n".join(["```{eval-rst}", *lines, "```", ""])
        return self.parse_text_to_nodes(text)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("api", Api)
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
