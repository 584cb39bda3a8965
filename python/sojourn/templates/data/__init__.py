"""The tables of templates and of answers, as TOML files."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")


def toml(kind: type[T], name: str) -> T:
    """Returns the content of a file of this folder."""
    text = (resources.files(__package__) / f"{name}.toml").read_text("utf-8")
    return TypeAdapter(kind).validate_python(tomllib.loads(text))
