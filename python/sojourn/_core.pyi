"""The engine, its parsers and its descriptions of itself (crates/py)."""

from collections.abc import Callable
from typing import Literal, TypeAlias, final, overload

__all__ = [
    "NoKernelEquivalent",
    "PlanError",
    "Record",
    "WordError",
    "app_transport",
    "describe",
    "fingerprint",
    "format_quantity",
    "nearest",
    "parse_app",
    "parse_netem",
    "parse_quantity",
    "parse_queue",
    "parse_tcp",
    "queue_to_tc",
    "simulate",
    "validate_plan",
    "verify",
    "version",
]

Column: TypeAlias = (
    tuple[str, str, Literal["f8", "i8", "?"], bytes] | tuple[str, str, Literal["text"], list[str]]
)

class WordError(ValueError):
    message: str
    start: int
    end: int
    found: str
    allowed: list[str]
    nearest: str | None

class NoKernelEquivalent(ValueError): ...
class PlanError(ValueError): ...

@final
class Record:
    @property
    def trace_hash(self) -> str: ...
    @property
    def events(self) -> int: ...
    @property
    def complete(self) -> bool: ...
    @property
    def reached(self) -> int: ...
    @property
    def captures(self) -> list[bytes]: ...
    def table(self, name: str, /) -> list[Column]: ...

def parse_queue(
    text: str, /, mtu: int = 1514, hz: int = 1000, rate: int | None = None
) -> str: ...
def queue_to_tc(params_json: str, /) -> str: ...
def parse_netem(text: str, /) -> str: ...
def parse_tcp(text: str, /) -> str: ...
def parse_app(text: str, /) -> str: ...
def app_transport(text: str, /) -> Literal["tcp", "udp"]: ...
@overload
def parse_quantity(kind: Literal["time", "rate", "size", "packets"], text: str, /) -> int: ...
@overload
def parse_quantity(kind: Literal["probability"], text: str, /) -> float: ...
def format_quantity(
    kind: Literal["time", "rate", "size", "packets"], value: int, /
) -> str: ...
def nearest(word: str, candidates: list[str], /) -> str | None: ...
def describe() -> str: ...
def validate_plan(plan_json: str, /) -> None: ...
def simulate(
    plan_json: str,
    seed: int,
    progress: Callable[[float, int], bool | None] | None = None,
    /,
) -> Record: ...
def verify(name: str, text: str, /) -> str: ...
def fingerprint() -> str: ...
def version() -> str: ...
