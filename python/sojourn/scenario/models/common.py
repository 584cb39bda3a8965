"""Types of keys that several tables of a scenario share, with their validators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetJsonSchemaHandler, WithJsonSchema

from sojourn import _core
from sojourn.scenario import limits
from sojourn.scenario.words import (
    Capacity,
    LinkName,
    Name,
    Netem,
    Service,
    complaint,
    shown,
    text_of,
)
from sojourn.settings import docstrings

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema


def number(least: int, most: int, what: str) -> tuple[BeforeValidator, WithJsonSchema]:
    """Returns validators for an `int` from `least` to `most`; their error states these bounds."""

    def check(value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        raise complaint(
            f"needs {what} from {least} to {most}; found {shown(value)}",
            found=shown(value),
            allowed=[f"{least}..{most}"],
        )

    schema = {"type": "integer", "minimum": least, "maximum": most}
    return BeforeValidator(check), WithJsonSchema(schema)


def whole(least: int, most: int, what: str) -> tuple[BeforeValidator, WithJsonSchema]:
    """Returns validators for a number of `what` from `least` to `most`."""
    return number(least, most, f"a whole number of {what}")


def flag(value: object) -> bool:
    """Returns a truth value unchanged; rejects other values."""
    if isinstance(value, bool):
        return value
    raise complaint(f"needs true or false; found {shown(value)}", allowed=["true", "false"])


def text(value: object) -> str:
    """Returns a text unchanged; rejects other values."""
    return text_of(value, "a text", "a video call behind an upload")


def listed(value: object) -> object:
    """Returns a list unchanged, and a single value as a list of one; rejects an empty list."""
    if isinstance(value, list) and not value:
        raise complaint("the list is empty: it needs at least one entry")
    return value if isinstance(value, list) else [value]


HostCount = Annotated[int, *whole(1, limits.HOSTS, "hosts")]
FlowCount = Annotated[int, *whole(1, limits.FLOWS, "flows")]
Port = Annotated[int, *number(1, 65_535, "a port")]
Mark = Annotated[int, *number(0, 0xFFFF_FFFF, "a mark")]
Flag = Annotated[bool, BeforeValidator(flag)]
Text = Annotated[str, BeforeValidator(text)]
Names = Annotated[list[Name], BeforeValidator(listed)]
LinkNames = Annotated[list[LinkName], BeforeValidator(listed)]
Netems = Annotated[list[Netem], BeforeValidator(listed)]
Rates = Annotated[list[Capacity], BeforeValidator(listed)]
Services = Annotated[list[Service], BeforeValidator(listed)]
MOST_WEIGHT = 1_000_000
"""Largest weight of a balancer's server."""
Weights = Annotated[list[Annotated[int, *whole(1, MOST_WEIGHT, "parts")]], BeforeValidator(listed)]
Overhead = Annotated[int, *whole(-1000, 1000, "bytes")]
Cells = Literal["none", "atm", "ptm"]


def named(value: object, kind: str, names: list[str]) -> str:
    """Returns the name in `names` that a value spells, ignoring case; rejects other values."""
    text = text_of(value, kind, names[0]).strip().lower()
    if text in names:
        return text
    near = _core.nearest(text, names)
    raise complaint(
        f"unknown {kind.removeprefix('a ')} {shown(value)}"
        + ("" if near else f"; allowed: {', '.join(names)}"),
        found=str(value),
        allowed=names,
        nearest=near,
    )


def one_of(kind: str, names: list[str]) -> tuple[BeforeValidator, WithJsonSchema]:
    """Returns validators that accept only these names, as text."""
    return BeforeValidator(lambda value: named(value, kind, names)), WithJsonSchema({"enum": names})


class Part(BaseModel):
    """A table of a scenario: cannot be changed, and rejects unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def documentation(cls) -> dict[str, str]:
        """Returns the documentation of the fields: docstrings, or descriptions of their own."""
        texts: dict[str, str] = {}
        for base in reversed(cls.__mro__[: cls.__mro__.index(Part)]):
            texts |= docstrings(base)
        fields = cls.model_fields.items()
        return {name: field.description or texts.get(name, "") for name, field in fields}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Adds the documentation of the keys to the JSON schema of the table."""
        schema = handler(core_schema)
        keys = handler.resolve_ref_schema(schema)["properties"]
        for name, text in cls.documentation().items():
            if text:
                keys[cls.model_fields[name].alias or name]["description"] = text
        return schema


@dataclass(frozen=True)
class Acts:
    """Condition of a key's effect, in the annotation of the key."""

    when: Callable[[Any], object]
    """Whether the key has an effect in its table; without one, setting the key causes a notice."""
    otherwise: str
    """Reason why the key has no effect."""
