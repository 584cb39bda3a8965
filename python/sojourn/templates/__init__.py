"""Templates: ready-made scenarios for `sojourn new --template NAME`.

Each template is a complete TOML file with comments in this folder. The comment at the top of the
file has the first commands for the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources

from sojourn.scenario import Scenario
from sojourn.templates.data import toml
from sojourn.templates.edit import Option, Proportion, apply, commands, scaled

__all__ = ["TEMPLATES", "Option", "Template", "template"]


@dataclass(frozen=True)
class Template:
    """A ready-made scenario."""

    name: str
    what: str
    """Description for lists of templates."""
    options: Mapping[Option, tuple[str, ...]] = field(default_factory=dict)
    """Options of `sojourn new` that the template has, with the dotted keys that each option sets.
    """
    follow: Proportion | None = None
    """Values of queues that are scaled with the rate of `--rate` or `--up`."""
    beside: tuple[str, ...] = ()
    """Names of further files that the scenario needs."""

    @property
    def file(self) -> str:
        """Returns the name of the template's file."""
        return f"{self.name}.toml"

    def read(self, name: str) -> bytes:
        """Returns the content of one of the template's files."""
        return (resources.files(__package__) / name).read_bytes()

    def text(self, values: Mapping[Option, str] | None = None) -> str:
        """Returns the text of the template with the values of options.

        `values` are valid quantities by option, such as `20mbit`.
        """
        text = self.read(self.file).decode("utf-8")
        for option, value in (values or {}).items():
            if self.follow is not None and option in ("rate", "up"):
                text = scaled(text, self.follow, value)
            text = apply(text, self.options[option], option, value)
        return text

    @property
    def commands(self) -> list[str]:
        """Returns the commands in the comment at the top of the file."""
        return commands(self.text())

    def scenario(self) -> Scenario:
        """Returns the scenario of the template."""
        with resources.as_file(resources.files(__package__) / self.file) as path:
            return Scenario.load(path)


_LISTED = toml(dict[str, list[Template]], "templates")
TEMPLATES = {template.name: template for template in _LISTED["templates"]}
"""All templates by name."""


def template(name: str) -> Template:
    """Returns the template with this name; raises `KeyError` for an unknown name."""
    return TEMPLATES[name]
