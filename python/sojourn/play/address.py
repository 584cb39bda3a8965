"""Addresses of live pages: the part after `#`, which has the values of the controls.

The part is a query such as `scenario=home&queue=fq_codel`, which the page reads. In addresses of
earlier versions it is a packed scenario. `unpacked` reads them; the next version will not.
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
"""Largest number of characters of a packed scenario in an address."""
BYTES = 256 * 1024
"""Largest number of bytes of an unpacked scenario."""
SEED = 2**53 - 1
"""Largest seed: the largest integer that JavaScript represents exactly."""

_PACKED = re.compile(r"(?:token=[^&]*&)?1\.([^&]*)")

State = dict[str, str]
"""Values of the page's controls, by the keys of the address."""


class AddressError(ValueError):
    """An address from which no page can be opened."""


class _Written(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    scenario: dict[str, Any]
    pinned: Annotated[str, Field(max_length=4096)] | None = None
    seed: Annotated[int, Field(ge=0, le=SEED)] = 1


def is_packed(url: str) -> bool:
    """Returns whether an address contains a whole packed scenario, as in an earlier version."""
    return _PACKED.fullmatch(urlsplit(url).fragment) is not None


def state(url: str) -> State:
    """Returns the values of the controls in an address; raises `AddressError`."""
    found = dict(parse_qsl(urlsplit(url).fragment))
    name = found.get("scenario", FIRST)
    if name == OWN:
        raise AddressError(
            "this address is for a user's own scenario file: get this file, run "
            "`sojourn play FILE`, and append the part after `#` to the address of the new page"
        )
    if name not in TEMPLATES:
        raise AddressError(f"no scenario `{name}`; existing: {', '.join(TEMPLATES)}")
    return found


def fragment(state: State) -> str:
    """Returns the values of the controls as the part of an address after `#`."""
    return urlencode(state)


def unpacked(url: str) -> tuple[Scenario, State]:
    """Returns the scenario in an address of the earlier form, and the values of the controls.

    The scenario may use no files. Raises `AddressError` or `ScenarioError`.
    """
    match = _PACKED.fullmatch(urlsplit(url).fragment)
    written = _read(match[1] if match else "")
    scenario = Scenario.from_dict(written.scenario, files={})
    found = {"scenario": OWN, "queue": scenario.queue, "seed": str(written.seed)}
    if written.pinned is not None:
        found["against"] = scenario.with_queue(written.pinned).queue
    return scenario, found


def _read(text: str) -> _Written:
    damaged = AddressError("this address is damaged: copy it completely")
    if len(text) > CHARACTERS:
        raise AddressError(f"the address is longer than {CHARACTERS // 1024} KiB")
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        unpacker = zlib.decompressobj()
        # one more byte than allowed shows that the text is too long
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
        raise AddressError(
            f"this address does not describe a page: {key}: {first['msg']}"
        ) from None
    except (ValueError, RecursionError):
        raise damaged from None


def _refuse(constant: str) -> None:
    raise ValueError(constant)
