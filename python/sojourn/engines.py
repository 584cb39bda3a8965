"""The engines by name: description, constructor and restrictions.

The modules of an engine are imported when the engine is constructed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

from sojourn import _core
from sojourn.plan import Plan

SIM, WIRE, KERNEL, LINUX, LINUX_WIRE = "sim", "wire", "kernel", "linux", "linux-wire"


class EngineError(ValueError):
    """The name of an engine or a list of engines is invalid."""


@dataclass(frozen=True)
class Kind:
    """An engine that can be selected."""

    name: str
    """Name of the engine. `linux:NAME` is the engine `linux` with the kernel NAME."""
    help: str
    """Description for the help of options."""
    cannot: str
    """Restrictions of the engine, for display; empty if it has none."""
    make: Callable[..., Any]
    """Function that constructs the engine; its keywords are those of the engine's class."""
    real_time: bool = False
    """Whether a run takes the duration of its scenario."""
    virtual: bool = False
    """Whether the engine runs Linux in virtual time, with a kernel that can be selected."""


def _late(module: str, name: str) -> Callable[..., Any]:
    def make(**options: Any) -> Any:
        if sys.platform != "linux" and not module.startswith("sojourn.scenario"):
            raise EngineError(f"the engine needs Linux; this system is {sys.platform}")
        return getattr(import_module(module), name)(**options)

    return make


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            SIM,
            "the simulator",
            "no programs of the user",
            _late("sojourn.scenario.engine", "core"),
        ),
        Kind(
            LINUX,
            "Linux's own network code in virtual time",
            "no stores, balancers or policies of the user; Sojourn's links where the kernel's "
            "links lack a feature",
            _late("sojourn.linux.engine", "LinuxEngine"),
            virtual=True,
        ),
        Kind(
            LINUX_WIRE,
            "Linux's own TCP over Sojourn's links, in virtual time",
            "no stores, balancers or policies of the user",
            partial(_late("sojourn.linux.engine", "LinuxEngine"), wire=True),
            virtual=True,
        ),
        Kind(
            WIRE,
            "real programs over Sojourn's links, in real time",
            "one run at a time",
            _late("sojourn.lab.engine", "WireEngine"),
            real_time=True,
        ),
        Kind(
            KERNEL,
            "real programs over the kernel's links, in real time",
            "one run at a time; no stores, balancers, shared media or impairments beyond a delay; "
            "sojourn times are not measured",
            _late("sojourn.lab.kernel.engine", "KernelEngine"),
            real_time=True,
        ),
    )
}
"""All engines by name. The first, the simulator, runs all plans except those with user programs."""
VIRTUAL = tuple(kind.name for kind in KINDS.values() if kind.virtual)
"""Names of the engines that run Linux in virtual time."""
LABORATORY = (WIRE, KERNEL, *VIRTUAL)
"""Names of the engines that run Linux's own network code."""


def find(name: str, among: Sequence[str] = tuple(KINDS)) -> Kind:
    """Returns the engine with this name, which must be one of `among`.

    `linux:NAME` is the engine `linux` with the kernel NAME. Raises `EngineError` for other names.
    """
    engine, colon, kernel = name.partition(":")
    if engine in among:
        kind = KINDS[engine]
        if not colon:
            return kind
        if not kind.virtual:
            raise EngineError(
                f"`{name}`: only {' and '.join(VIRTUAL)} have kernels to select, not {engine}"
            )
        return replace(kind, name=name, make=partial(kind.make, kernel=kernel))
    near = _core.nearest(engine, list(among))
    hint = f"did you mean `{near}`? There are" if near else "there are"
    raise EngineError(f"no engine `{name}`: {hint} {', '.join(among)}")


def chosen(text: str, among: Sequence[str] = tuple(KINDS)) -> list[Kind]:
    """Returns the engines in a list such as `sim,linux`; raises `EngineError`."""
    names = [name.strip() for name in text.split(",")]
    kinds = [find(name, among) for name in names]
    if len(set(names)) < len(names):
        raise EngineError(f"`{text}` names an engine twice: remove one")
    return kinds


def help_text(among: Sequence[str] = tuple(KINDS)) -> str:
    """Returns the names and descriptions of engines, for the help of an option."""
    text = "; ".join(f"`{name}`: {KINDS[name].help}" for name in among)
    if not set(among) & set(VIRTUAL):
        return text
    return f"{text}. `linux:NAME` selects a kernel from `sojourn linux list`"


def able(plans: Iterable[Plan]) -> list[str]:
    """Returns the names of the engines that can run all these plans on this machine."""
    listed = list(dict.fromkeys(plans))
    found = []
    for kind in KINDS.values():
        try:
            check = getattr(kind.make(), "check", lambda _plan, _seed: None)
            for plan in listed:
                check(plan, 1)
        except (RuntimeError, ValueError, OSError):
            continue
        found.append(kind.name)
    return found
