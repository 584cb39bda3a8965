"""Every public function says which argument is wrong, in a line of its own."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any, Literal, Protocol

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sojourn
from sojourn.arguments import ArgumentError, checked
from sojourn.rcvbuf import Tuner, restore
from sojourn.study import Study, compare
from sojourn.tune.search import search
from sojourn.tune.verify import verified
from sojourn.udp import send
from tests.conftest import ROOT
from tests.scenario.texts import HOME

SHORT = HOME.replace('"60s"', '"2s"').replace('"10s"', '"0s"')
ACTS = {"Tuner", "restore", "send", "udp_kept", "search", "verified", "write_report", "report"}
"""Functions that change files or sockets, or run long, if all arguments are right."""
OBJECTS = (object(), 3j, b"bytes", ..., {"a": object()}, [object()], np.zeros(2, dtype=complex))
NUMBERS = (-1, 0, 10**30, 0.5, 1e308, float("nan"), float("inf"), -0.0, True)
WORDS = (
    "codle",
    "goodputt",
    "voip.moss",
    "queu",
    "polers",
    "sojourn_p59",
    "",
    "home.toml",
    "é\n",
    "5 ms",
)


def listed() -> Iterator[tuple[str, str]]:
    """Yields module and name of everything on the page of the Python API."""
    text = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    for module, body in re.findall(r"```\{api\} (\S+)\n(.*?)```", text, re.DOTALL):
        for line in body.splitlines():
            for name in line.partition(":")[0].split():
                home, _, last = (
                    f"{module}.{name}".rpartition(".") if "." not in name else name.rpartition(".")
                )
                yield home, last


@cache
def samples() -> dict[type, Any]:
    """Returns an object of each public class whose methods are called."""
    scenario = sojourn.Scenario.from_toml(SHORT)
    study = Study(scenario).vary(queue=["codel", "pfifo limit 50p"]).seeds(2)
    table = study.run()
    found = [scenario, study, table, scenario.run(), compare(scenario, ["codel", "pie"], seeds=2)]
    results = table.results
    assert results is not None
    found += [results, results.runs()[0], importlib.import_module("sojourn.show").plots(table)]
    return {type(one): one for one in found}


@cache
def targets() -> dict[str, FunctionType]:
    """Returns the public functions and methods by name; methods are bound."""
    found: dict[str, Any] = {}
    for module, name in listed():
        value = getattr(importlib.import_module(module), name)
        if inspect.isfunction(value):
            found[name] = value
    for kind, one in samples().items():
        for name, member in inspect.getmembers(kind):
            if name[0] != "_" and (inspect.isfunction(member) or inspect.ismethod(member)):
                found[f"{kind.__name__}.{name}"] = getattr(one, name)
    found |= {"Scenario": sojourn.Scenario, "Study": Study}
    return {
        name: value
        for name, value in found.items()
        if inspect.signature(value).parameters and name not in ACTS
    }


def fitting(hint: str, name: str) -> Any:
    """Returns a value that a required parameter allows."""
    for kind, one in samples().items():
        if re.search(rf"\b{kind.__name__}\b", hint):
            return one
    texts = {"metric": "goodput", "name": "summary", "library": "pandas", "factor": "queue"}
    if "str" in hint.split("[", maxsplit=1)[0]:
        return texts.get(name, "text")
    plain = {"int": 2, "float": 0.5, "ArrayLike": [1.0, 2.0, 4.0], "Mapping": {}, "Sequence": []}
    return next((value for word, value in plain.items() if word in hint), None)


def call(name: str, wrong: str, value: Any) -> str:
    """Calls a function with one wrong argument; returns the message, empty without an error.

    Fails for an error that is not ours.
    """
    function = targets()[name]
    given: dict[str, Any] = {}
    args: list[Any] = []
    for one in inspect.signature(function).parameters.values():
        if one.name == wrong:
            chosen = value
        elif one.default is one.empty and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL):
            chosen = fitting(str(one.annotation), one.name)
        else:
            continue
        if one.kind is one.POSITIONAL_ONLY:
            args.append(chosen)
        elif one.kind is one.VAR_POSITIONAL:
            args += [chosen]
        else:
            given[one.name] = chosen
    try:
        function(*args, **given)
    except (ValueError, TypeError, LookupError) as error:
        home = type(error).__module__
        assert home.startswith("sojourn") or type(error).__name__ in OURS, (
            name,
            wrong,
            value,
            error,
        )
        return str(error)
    return ""


OURS = {"WordError", "PlanError", "NoKernelEquivalent"}
"""Errors of the engine."""


def parameters() -> list[tuple[str, str]]:
    return [
        (name, one.name)
        for name, function in targets().items()
        for one in inspect.signature(function).parameters.values()
        if one.kind is not one.VAR_POSITIONAL and one.name != "on"  # an address is connected to
    ]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_wrong_argument_is_named_with_what_was_found_and_what_is_allowed(
    data: st.DataObject,
) -> None:
    name, wrong = data.draw(st.sampled_from(parameters()))
    value = data.draw(st.sampled_from([*OBJECTS, *NUMBERS, *WORDS]))
    message = call(name, wrong, value)
    assert len(message) < 2000
    if message.startswith("`") and "must be" in message:
        assert re.fullmatch(r"`\w+` must be .+", message)


def test_no_wrong_argument_of_any_function_ends_inside_a_library() -> None:
    for name, wrong in parameters():
        for value in (*OBJECTS, *NUMBERS, *WORDS):
            call(name, wrong, value)


@pytest.mark.parametrize("function", [send, restore, Tuner, search, verified])
def test_functions_that_act_refuse_wrong_types_first(function: Any) -> None:
    for one in inspect.signature(function).parameters.values():
        others = {
            name: object()
            for name, other in inspect.signature(function).parameters.items()
            if other.default is other.empty
        }
        with pytest.raises(ArgumentError, match=r"`.*` must be .*; found an object"):
            function(**others | {one.name: object()})


class Protocolled(Protocol):
    def go(self) -> None: ...


RULES: dict[str, tuple[Any, list[Any], list[Any], str]] = {
    "whole": (int, [0, 2**70, np.int64(3)], [True, 1.0, "1", None], "a whole number"),
    "number": (float, [0, 1.5, np.float64(2)], [True, "1", 1j], "a number"),
    "either": (int | str | None, [1, "a", None], [1.5, b"a"], "a whole number, a text or None"),
    "numbers": (int | float, [1, 1.5], ["1"], "a number"),
    "list": (Sequence[str], [[], ["a"], ("a",)], ["a", [1], {"a": 1}], "a list of texts"),
    "array": (Iterable[int], [np.arange(3)], [np.ones(2) / 2, "12"], "a list of whole numbers"),
    "pair": (tuple[int, int], [(1, 2)], [(1,), (1, "2")], "a list of 2 whole numbers"),
    "dict": (Mapping[str, int], [{}, {"a": 1}], [{1: 1}, {"a": "b"}], "a dict of whole numbers"),
    "literal": (Literal["tc", "sqm"], ["tc"], ["tcc", 1, []], "tc or sqm"),
    "function": (Callable[[int], str], [str], ["a"], "a function"),
    "class": (Path, [Path("a")], ["a"], "a path"),
    "protocol": (Protocolled, [SimpleNamespace(go=1)], [Protocolled, 1], "a Protocolled"),
}


@pytest.mark.parametrize("case", RULES)
def test_an_annotation_states_which_values_it_allows(case: str) -> None:
    annotation, right, wrong, words = RULES[case]

    def function(value: Any) -> None: ...

    function.__annotations__["value"] = annotation
    guarded = checked(function)
    for value in right:
        guarded(value)
    for value in wrong:
        with pytest.raises(ArgumentError) as caught:
            guarded(value)
        assert str(caught.value).startswith(f"`value` must be {words}; found ")


def test_wrong_calls_are_explained() -> None:
    @checked
    def function(first: int, *, second: str = "") -> None: ...

    wrong: Any = function
    for arguments, named, words in (
        ((), {}, "needs the argument `first`"),
        ((1, 2), {}, "takes the arguments first; found another, 2"),
        ((1,), {"secnd": "a"}, "did you mean `second`?"),
    ):
        with pytest.raises(ArgumentError) as caught:
            wrong(*arguments, **named)
        assert words in str(caught.value)


def test_bytes_are_values_and_no_list() -> None:
    @checked
    def read(files: Mapping[str, bytes]) -> int:
        return len(files)

    assert read({"trace": b"1"}) == 1
    with pytest.raises(ArgumentError, match="files"):
        read({"trace": "1"})  # type: ignore[dict-item]
