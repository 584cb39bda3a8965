"""Addresses of live pages: what stands behind their `#`.

It is a query such as `scenario=home&queue=fq_codel`, which the page reads. Before, it was a whole
scenario in packed form. `unpacked` reads these addresses, and the next version will not have it.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sojourn.play.catalogue import FIRST, OWN
from sojourn.scenario import Scenario
from sojourn.templates import TEMPLATES

CHARACTERS = 64 * 1024
"""Of a packed scenario."""
BYTES = 256 * 1024
"""Of what it unpacks to."""
SEED = 2**53 - 1
"""The largest whole number that JavaScript has exactly."""

_PACKED = re.compile(r"(?:token=[^&]*&)?1\.([^&]*)")

State = dict[str, str]
"""The values of a page's controls, by the keys of its address."""


class AddressError(ValueError):
    """An address that opens no page."""


class _Written(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    scenario: dict[str, Any]
    pinned: Annotated[str, Field(max_length=4096)] | None = None
    seed: Annotated[int, Field(ge=0, le=SEED)] = 1


def is_packed(url: str) -> bool:
    """Whether an address has the earlier form."""
    return _PACKED.fullmatch(urlsplit(url).fragment) is not None


def state(url: str) -> State:
    """Return what an address says; raises `AddressError`."""
    found = dict(parse_qsl(urlsplit(url).fragment))
    name = found.get("scenario", FIRST)
    if name == OWN:
        raise AddressError(
            "this address is of somebody's own scenario: get its file, open it with `sojourn play "
            "FILE`, and put what stands behind `#` here behind the address of that page"
        )
    if name not in TEMPLATES:
        raise AddressError(f"no scenario `{name}`: there are {', '.join(TEMPLATES)}")
    return found


def fragment(state: State) -> str:
    """Return a state as it stands behind `#`."""
    return urlencode(state)


def unpacked(url: str) -> tuple[Scenario, State]:
    """Return the scenario of an address of the earlier form, and what it says beside it.

    The scenario may name no files. Raises `AddressError` or `ScenarioError`.
    """
    match = _PACKED.fullmatch(urlsplit(url).fragment)
    written = _read(match[1] if match else "")
    scenario = Scenario.from_dict(written.scenario, files={})
    found = {"scenario": OWN, "queue": scenario.queue, "seed": str(written.seed)}
    if written.pinned is not None:
        found["against"] = scenario.with_queue(written.pinned).queue
    return scenario, found


def _read(text: str) -> _Written:
    damaged = AddressError("this address is damaged: copy it whole")
    if len(text) > CHARACTERS:
        raise AddressError(f"an address of more than {CHARACTERS // 1024} KiB")
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        unpacker = zlib.decompressobj()
        # One byte more tells a text that just fits from one that does not.
        data = unpacker.decompress(packed, BYTES + 1)
    except (ValueError, zlib.error):
        raise damaged from None
    if len(data) > BYTES:
        raise AddressError(f"this address unpacks to more than {BYTES // 1024} KiB")
    if not unpacker.eof or unpacker.unused_data:
        raise damaged
    try:
        return _Written.model_validate(json.loads(data, parse_constant=_refuse))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])[:80]
        raise AddressError(f"this address tells of no page: {key}: {first['msg']}") from None
    except (ValueError, RecursionError):
        raise damaged from None


def _refuse(constant: str) -> None:
    raise ValueError(constant)
