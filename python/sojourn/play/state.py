"""What a page shows, as the fragment of its address: a text that may come from anybody."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sojourn.scenario import Scenario

VERSION = "1"
"""Stands before the first dot of a fragment."""

CHARACTERS = 64 * 1024
"""Of a fragment."""
BYTES = 256 * 1024
"""Of what it unpacks to."""
SEED = 2**53 - 1
"""The largest whole number that JavaScript has exactly."""
PINNED = "pfifo limit 1000p"
"""What a scenario's queue is compared with at first: Linux's interfaces have it."""
BETTER = "fq_codel"
"""What it is compared with if it is such a queue itself: Linux's distributions have it."""

Text = Annotated[str, Field(max_length=4096)]
Seed = Annotated[int, Field(ge=0, le=SEED)]


class StateError(ValueError):
    """A fragment that tells of no page."""


class _Written(BaseModel):
    """What a fragment holds."""

    model_config = ConfigDict(extra="forbid", strict=True)

    scenario: dict[str, Any]
    pinned: Text | None = None
    seed: Seed = 1


@dataclass(frozen=True)
class State:
    """A scenario, the queue that it is compared with, and the seed of both runs."""

    scenario: Scenario
    pinned: str | None = PINNED
    seed: int = 1

    def __post_init__(self) -> None:
        for own in self.scenario.plan().get("sources", {}).values():
            raise StateError(
                f"{', '.join(own)}: a page has no controls for a policy of your own; compare it "
                "with `sojourn compare`, or see one run with `sojourn run`"
            )

    @classmethod
    def home(cls) -> State:
        """What is shown where nothing is asked for."""
        text = files("sojourn.play").joinpath("home.toml").read_text(encoding="utf-8")
        return cls.of(Scenario.from_toml(text))

    @classmethod
    def of(cls, scenario: Scenario) -> State:
        """A page for this scenario, and for the files that it names.

        It is compared with the first other queue that its question names.
        """
        usual = BETTER if scenario.queue.split()[:1] in (["pfifo"], ["bfifo"]) else PINNED
        asked = [queue for queue in scenario.question.queues if queue != scenario.queue]
        return cls(scenario.detached(), next(iter(asked), usual))

    @classmethod
    def read(cls, fragment: str, files: Mapping[str, bytes] | None = None) -> State:
        """The state that a fragment tells; raises `StateError` or `ScenarioError`.

        It may name these files and no others.
        """
        written = _unpacked(fragment)
        scenario = Scenario.from_dict(written.scenario, files=files or {})
        state = cls(scenario, written.pinned, written.seed)
        _ = state.compared
        return state

    @cached_property
    def compared(self) -> Scenario | None:
        """The scenario with the queue that it is compared with."""
        return None if self.pinned is None else self.scenario.with_queue(self.pinned)

    @property
    def fragment(self) -> str:
        """The state as a fragment."""
        data: dict[str, Any] = {"scenario": self.scenario.as_dict()}
        data |= {"pinned": self.pinned, "seed": self.seed}
        packed = zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 9)
        return f"{VERSION}.{base64.urlsafe_b64encode(packed).decode().rstrip('=')}"

    def replace(self, **fields: Any) -> State:
        """The same with other fields."""
        return dataclasses.replace(self, **fields)


def fragment_of(url: str) -> str:
    """The state's fragment in the address of a page, whosever server it is of."""
    _, _, fragment = url.partition("#")
    parts = [part for part in fragment.split("&") if not part.startswith("token=")]
    if not any(parts):
        raise StateError("this address tells of no scenario: it has nothing behind `#`")
    return parts[0]


def _unpacked(fragment: str) -> _Written:
    if len(fragment) > CHARACTERS:
        raise StateError(f"an address of more than {CHARACTERS // 1024} KiB")
    version, dot, text = fragment.partition(".")
    if not dot or not version.isascii() or not version.isdecimal():
        raise StateError("this address is not one of the live page")
    if version != VERSION:
        raise StateError(f"this address is of version {version[:9]}; this is version {VERSION}")
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        unpacker = zlib.decompressobj()
        # One byte more tells a text that just fits from one that does not.
        data = unpacker.decompress(packed, BYTES + 1)
    except (ValueError, binascii.Error, zlib.error):
        raise StateError("this address is damaged: copy it whole") from None
    if len(data) > BYTES:
        raise StateError(f"this address unpacks to more than {BYTES // 1024} KiB")
    if not unpacker.eof or unpacker.unused_data:
        raise StateError("this address is damaged: copy it whole")
    try:
        return _Written.model_validate(json.loads(data, parse_constant=_refuse))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])[:80]
        raise StateError(f"this address tells of no page: {key}: {first['msg']}") from None
    except (ValueError, RecursionError):
        raise StateError("this address is damaged: copy it whole") from None


def _refuse(constant: str) -> None:
    raise ValueError(constant)
