"""Conversion of a text such as `mine.py:Mine target 10ms` to the policy in a plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn import _core
from sojourn.data import Object
from sojourn.own import loading
from sojourn.own.declare import FAMILIES, Declaration
from sojourn.own.errors import OwnError
from sojourn.own.sources import Read, Sources, gather, is_own, place_of
from sojourn.plan import decoding

if TYPE_CHECKING:
    from sojourn.plan.balance.family import Policy

MOST_PACKETS = 1 << 20
"""Limit of a user's own queue without the parameter `limit`, in packets."""
MOST_BYTES = 1 << 20
"""Largest source file in bytes."""


@dataclass(frozen=True)
class Own:
    """A user's own policy with the values of its parameters."""

    policy: str
    """File and class, such as `mine.py:Mine`."""
    sources: Sources
    declaration: Declaration
    values: Object
    """Values of all parameters in base units, by name."""
    text: str
    """Text of the user, with the engine's words that follow the parameters."""

    @property
    def spec(self) -> Object:
        """The policy in a plan, which refers to its sources by their hash."""
        return {"policy": self.policy, "source": self.sources.digest, "params": self.values}

    @property
    def texts(self) -> dict[str, dict[str, str]]:
        """The sources in a plan, by their hash."""
        return {self.sources.digest: self.sources.as_dict()}

    @property
    def sources_json(self) -> str:
        """The sources as JSON, for the engine's functions that take a policy without a plan."""
        return json.dumps(self.texts)


def read_file(name: str) -> bytes:
    """Returns the content of a file; raises `ValueError` if it is too large or not a file."""
    path = Path(name)
    if path.exists() and not path.is_file():
        raise ValueError("not a regular file")
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"larger than {MOST_BYTES >> 20} MiB")
    return data


def own(family: str, text: str, read: Read = read_file, *, beside: str | None = None) -> Own:
    """Returns the policy that a text describes; raises `OwnError` or `WordError`.

    `beside` is the kind of the engine's words that may follow the parameters; the default is the
    family's `beside`.
    """
    place = place_of(text)
    sources = sources_of(place.file, read)
    declaration = declared(place.policy, sources)
    if declaration.family != family:
        is_, wanted = FAMILIES[declaration.family].noun, FAMILIES[family].noun
        raise OwnError(f"{place.policy} must be a {wanted} here; it is a {is_}")
    words = declaration.words_json
    first = text[place.start : place.end]
    values = json.loads(_core.policy_values(first, words))
    beside = FAMILIES[family].beside if beside is None else beside
    values |= json.loads(_core.parse_own(first, words, text, tcp=beside == "tcp"))
    return Own(place.policy, sources, declaration, values, text)


def sources_of(file: str, read: Read = read_file) -> Sources:
    """Reads a policy's file and its local imports; raises `OwnError`."""
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
    """Executes the sources and returns the declaration of a policy's class."""
    cls = loading.load(policy, sources.digest, sources.as_dict())
    return loading.declaration(cls)


def queue_params(own: Own, mtu: int = 1514) -> Object:
    """Returns a queue discipline in a plan; `mtu` is the longest frame in bytes."""
    limit, unit = MOST_PACKETS, "packets"
    word = next((w for w in own.declaration.words if w.name == "limit"), None)
    if word is not None:
        given, unit = own.values["limit"], "bytes" if word.kind == "size" else "packets"
        is_number = word.kind in ("size", "packets", "integer")
        if not (is_number and isinstance(given, int) and 0 < given < 2**32):
            raise OwnError(
                "`limit` must be a number of packets or a size above 0, such as 1000p or 1mb"
            )
        limit = given
    return {
        "name": "external",
        "spec": own.spec,
        "limit": limit,
        "unit": unit,
        "period": own.declaration.options["period"],
        "mtu": mtu,
    }


def balancer_params(own: Own) -> Object:
    """Returns a balancing policy in a plan."""
    return {"name": "external", "spec": own.spec, **own.declaration.options}


MOST_BUFFER = 1 << 40
"""Largest ceiling of a receive buffer in bytes."""


def buffer_params(own: Own) -> Object:
    """Returns a receive-buffer policy for the engine."""
    floor, ceiling = own.values["floor"], own.values["ceiling"]
    kinds = {word.kind for word in own.declaration.words if word.name in ("floor", "ceiling")}
    if not (
        kinds == {"size"}
        and isinstance(floor, int)
        and isinstance(ceiling, int)
        and 0 < floor <= ceiling <= MOST_BUFFER
    ):
        raise OwnError(
            "`floor` and `ceiling` must be sizes above 0, such as 64kb; `floor` at most `ceiling`"
        )
    return {"name": "external", "spec": own.spec, "floor": floor, "ceiling": ceiling}


def source_params(own: Own) -> Object:
    """Returns a traffic source in a plan."""
    return {"name": "external", "spec": own.spec, "longest": own.declaration.options["longest"]}


def control_params(own: Own) -> Object:
    """Returns a congestion control in a plan."""
    return {"name": "external", "spec": own.spec, **own.declaration.options}


def tcp_params(own: Own) -> Object:
    """Returns TCP in a plan, with a user's own congestion control and the TCP words of the text."""
    place, words = place_of(own.text), own.declaration.words_json
    name, control = own.text[place.start : place.end], json.dumps(control_params(own))
    return dict(json.loads(_core.own_tcp(name, words, own.text, control)))


FORMS: dict[str, Callable[[Own], Object]] = {
    "queue": queue_params,
    "congestion": tcp_params,
    "balancer": balancer_params,
    "buffer": buffer_params,
    "source": source_params,
}
"""Functions that convert a policy for a plan, by family."""


def alone(family: str, text: str, read: Read = read_file) -> str:
    """Returns a policy for the engine's functions that take a policy without a plan.

    A user's own policy contains its sources. Other texts are unchanged.
    """
    if not is_own(text):
        return text
    found = own(family, text, read, beside="")
    form = control_params if family == "congestion" else FORMS[family]
    return with_sources(form(found), found.texts)


def balancer_text(policy: Policy, sources: Mapping[str, Mapping[str, str]]) -> str:
    """Returns the text or JSON of a plan's balancing policy for use without the plan."""
    data = decoding.data(policy, "balance.family.Policy")
    if policy.TAG == "external":
        return with_sources(data, sources)
    return _core.format_balancer(json.dumps(data))


def with_sources(params: Mapping[str, object], sources: Mapping[str, Mapping[str, str]]) -> str:
    """Returns a policy of a plan as JSON together with its sources."""
    policy = {key: value for key, value in params.items() if key != "name"}
    return json.dumps({"policy": policy, "sources": sources})


def described(text: str, read: Read = read_file) -> Declaration:
    """Returns the declaration of the policy that a text names."""
    place = place_of(text)
    return declared(place.policy, sources_of(place.file, read))


def family_of(text: str, read: Read = read_file) -> str:
    """Returns the family of the policy that a text names."""
    return described(text, read).family
