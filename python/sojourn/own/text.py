"""From a text such as `mine.py:Mine target 10ms` to what a plan has of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from sojourn import _core
from sojourn.own import loading
from sojourn.own.declare import FAMILIES, Declaration
from sojourn.own.errors import OwnError
from sojourn.own.sources import Read, Sources, gather, is_own, place_of

Json = dict[str, Any]

MOST_PACKETS = 1 << 20
"""No queue of one's own holds more packets."""
MOST_BYTES = 1 << 20
"""Bytes of a source file."""


@dataclass(frozen=True)
class Own:
    """A policy with its parameters."""

    policy: str
    sources: Sources
    declaration: Declaration
    values: Json
    """All parameters in base units, defaults included."""
    text: str
    """What the user wrote, the engine's words included."""

    @property
    def spec(self) -> Json:
        """What names it in a plan."""
        return {"policy": self.policy, "source": self.sources.digest, "params": self.values}

    @property
    def texts(self) -> dict[str, dict[str, str]]:
        """Its sources by their digest, as a plan has them."""
        return {self.sources.digest: self.sources.as_dict()}

    @property
    def sources_json(self) -> str:
        """Its sources as the engine takes them for a policy by itself."""
        return json.dumps(self.texts)


def read_file(name: str) -> bytes:
    """A file of this machine, of sensible size."""
    path = Path(name)
    if path.exists() and not path.is_file():
        raise ValueError("no plain file")
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"larger than {MOST_BYTES >> 20} MiB")
    return data


def own(family: str, text: str, read: Read = read_file, *, beside: str | None = None) -> Own:
    """The policy that a text describes; raises `OwnError` or `WordError`.

    `beside` is the kind of the engine's words that may stand beside its own: the family's, if
    nothing is said.
    """
    place = place_of(text)
    sources = sources_of(place.file, read)
    declaration = declared(place.policy, sources)
    if declaration.family != family:
        is_, wanted = FAMILIES[declaration.family].noun, FAMILIES[family].noun
        raise OwnError(f"{place.policy} is a {is_}; a {wanted} is needed here")
    words = declaration.words_json
    first = text[place.start : place.end]
    values = json.loads(_core.policy_values(first, words))
    beside = FAMILIES[family].beside if beside is None else beside
    values |= json.loads(_core.parse_own(first, words, text, tcp=beside == "tcp"))
    return Own(place.policy, sources, declaration, values, text)


def sources_of(file: str, read: Read = read_file) -> Sources:
    """A policy's file and the local modules that it imports; raises `OwnError`."""
    try:
        return gather(file, read)[0]
    except OSError as error:
        raise OwnError(f"`{file}` cannot be read: {error.strerror}") from None
    except OwnError:
        raise
    except ValueError as error:
        raise OwnError(f"`{file}`: {error}") from None


@lru_cache(64)
def declared(policy: str, sources: Sources) -> Declaration:
    """What a policy's class was declared with."""
    cls = loading.load(policy, sources.digest, sources.as_dict())
    return loading.declaration(cls)


def queue_params(own: Own, mtu: int = 1514) -> Json:
    """A queue's parameters as a plan has them."""
    limit, unit = MOST_PACKETS, "packets"
    word = next((w for w in own.declaration.words if w.name == "limit"), None)
    if word is not None:
        limit = own.values["limit"]
        unit = "bytes" if word.kind == "size" else "packets"
        if word.kind not in ("size", "packets", "integer") or not 0 < limit < 2**32:
            raise OwnError("`limit` is a number of packets or a size above 0, such as 1000p or 1mb")
    return {
        "name": "external",
        "spec": own.spec,
        "limit": limit,
        "unit": unit,
        "period": own.declaration.options["period"],
        "mtu": mtu,
    }


def balancer_params(own: Own) -> Json:
    """A balancing policy's parameters as a plan has them."""
    return {"name": "external", "spec": own.spec, **own.declaration.options}


MOST_BUFFER = 1 << 40
"""No receive buffer is larger."""


def buffer_params(own: Own) -> Json:
    """The parameters of a receive buffer's policy as the engine takes them."""
    bounds = {name: own.values[name] for name in ("floor", "ceiling")}
    kinds = {word.kind for word in own.declaration.words if word.name in bounds}
    if kinds != {"size"} or not 0 < bounds["floor"] <= bounds["ceiling"] <= MOST_BUFFER:
        raise OwnError("`floor` and `ceiling` are sizes above 0, such as 64kb, the lower one first")
    return {"name": "external", "spec": own.spec, **bounds}


def source_params(own: Own) -> Json:
    """A traffic source as a plan has it."""
    return {"name": "external", "spec": own.spec, "longest": own.declaration.options["longest"]}


def control_params(own: Own) -> Json:
    """A congestion control's parameters as a plan has them."""
    return {"name": "external", "spec": own.spec, **own.declaration.options}


def tcp_params(own: Own) -> Json:
    """A TCP with a congestion control of one's own, and what its text says of TCP."""
    place, words = place_of(own.text), own.declaration.words_json
    name, control = own.text[place.start : place.end], json.dumps(control_params(own))
    return dict(json.loads(_core.own_tcp(name, words, own.text, control)))


FORMS: dict[str, Callable[[Own], Json]] = {
    "queue": queue_params,
    "congestion": tcp_params,
    "balancer": balancer_params,
    "buffer": buffer_params,
    "source": source_params,
}
"""What a plan has of a policy, by family."""


def alone(family: str, text: str, read: Read = read_file) -> str:
    """A policy as the engine takes it outside a plan: one of one's own with its sources."""
    if not is_own(text):
        return text
    found = own(family, text, read, beside="")
    form = control_params if family == "congestion" else FORMS[family]
    return with_sources(form(found), found.texts)


def balancer_text(params: Json, sources: dict[str, dict[str, str]]) -> str:
    """A balancing policy of a plan as the engine takes it outside one."""
    if params["name"] == "external":
        return with_sources(params, sources)
    return _core.format_balancer(json.dumps(params))


def with_sources(params: Json, sources: dict[str, dict[str, str]]) -> str:
    """A policy's parameters, as a plan has them, with its sources."""
    policy = {key: value for key, value in params.items() if key != "name"}
    return json.dumps({"policy": policy, "sources": sources})


def described(text: str, read: Read = read_file) -> Declaration:
    """What the policy that a text names was declared with."""
    place = place_of(text)
    return declared(place.policy, sources_of(place.file, read))


def family_of(text: str, read: Read = read_file) -> str:
    """The family of the policy that a text names."""
    return described(text, read).family
