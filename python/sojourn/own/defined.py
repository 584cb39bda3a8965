"""Policies that Python code names by their class instead of a file.

A class of an imported module is named by the module's file. A class that was defined in a notebook,
at a prompt or in the running script is copied to a file in this user's cache, together with the
imports, constants, functions and classes of the session that it uses. The file's folder is named by
the hash of the text, so equal classes have equal results in all sessions.
"""

from __future__ import annotations

import ast
import builtins
import enum
import hashlib
import linecache
import os
import re
import symtable
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from sojourn import temporary
from sojourn.own.declare import ATTRIBUTE, FAMILIES
from sojourn.own.errors import OwnError

SESSION = "__main__"
"""Module of code that no file has, or whose file is being executed."""


def text_of(cls: type) -> str:
    """Returns the text by which scenarios name a declared class; raises `OwnError`."""
    if ATTRIBUTE not in vars(cls):
        known = ", ".join(f"@sojourn.{family}(...)" for family in FAMILIES)
        raise OwnError(f"class {cls.__name__} is not declared as a policy: add one of {known}")
    if cls.__qualname__ != cls.__name__:
        raise OwnError(
            f"class {cls.__name__} is defined inside {cls.__qualname__.rpartition('.')[0]}: define "
            "it at the top level of a file or cell"
        )
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if cls.__module__ == SESSION or file is None:
        file = _kept(cls)
    place = f"{Path(file).absolute()}:{cls.__name__}"
    return f'"{place}"' if re.search(r"\s", place) else place


def _kept(cls: type) -> Path:
    """Writes the class with the definitions that it uses to a file; returns its path."""
    copied = _Copy(cls)
    copied.add(cls.__name__, cls)
    text = "\n".join(copied.parts)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    try:
        folder = temporary.cache() / "own" / digest
        path = folder / f"{cls.__name__.lower()}.py"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            begun = folder / f"{os.getpid()}.part"
            begun.write_text(text, encoding="utf-8")
            begun.replace(path)
    except (OSError, RuntimeError) as error:
        raise OwnError(
            f"class {cls.__name__} cannot be copied to a file ({error}): write it to a file, and "
            f"name it as FILE.py:{cls.__name__}"
        ) from None
    return path


class _Copy:
    """The text of a policy's file: definitions in the order of their use."""

    def __init__(self, cls: type) -> None:
        self.policy = cls.__name__
        self.parts: list[str] = []
        self._known: set[str] = set()

    def add(self, name: str, value: object) -> None:
        """Adds the definition of a name, after those of the names that it uses."""
        if name in self._known:
            return
        self._known.add(name)
        home, real = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if isinstance(value, ModuleType):
            self._import(name, value.__name__, f"import {value.__name__}", value.__name__)
        elif isinstance(value, enum.Enum):
            kind = type(value)
            self.add(kind.__name__, kind)
            self.parts.append(f"{name} = {kind.__name__}.{value.name}")
        elif home not in (None, SESSION) and value is getattr(
            sys.modules.get(str(home)), str(real), None
        ):
            self._import(name, str(home), f"from {home} import {real}", str(real))
        elif isinstance(value, type | FunctionType):
            text, around = self._definition(name, value)
            for used in sorted(_used(text) - {name}):
                if used in around:
                    self.add(used, around[used])
            self.parts.append(text)
        elif _is_constant(value):
            self.parts.append(f"{name} = {value!r}")
        else:
            raise OwnError(
                f"class {self.policy} uses `{name}`, an object of type {type(value).__name__} that "
                "exists only in this session: define it in the class, or write both to a file"
            )

    def _import(self, name: str, module: str, text: str, imported: str) -> None:
        top = module.partition(".")[0]
        if Path(f"{top}.py").exists() or Path(top, "__init__.py").exists():
            raise OwnError(
                f"class {self.policy} uses `{name}` of the local module {module}: write the class "
                f"to a file in this folder, and name it as FILE.py:{self.policy}"
            )
        self.parts.append(text if name == imported else f"{text} as {name}")

    def _definition(self, name: str, value: type | FunctionType) -> tuple[str, dict[str, object]]:
        """Returns the text that defines a class or function, and the variables around it."""
        for code, around in _codes(value):
            lines = linecache.getlines(code.co_filename)
            try:
                tree = ast.parse("".join(lines))
            except SyntaxError:
                continue
            for node in tree.body:
                if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name != name:
                    continue
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                last = node.end_lineno or first
                if first <= code.co_firstlineno <= last:
                    return "".join(lines[first - 1 : last]).rstrip("\n") + "\n", around
        raise OwnError(
            f"the source of `{name}` is not available here: write class {self.policy} to a file, "
            f"and name it as FILE.py:{self.policy}"
        )


def _codes(value: type | FunctionType) -> Iterator[tuple[CodeType, dict[str, object]]]:
    """Yields the code of a function, or of a class's methods, with the variables around it."""
    for member in vars(value).values() if isinstance(value, type) else [value]:
        inner = getattr(member, "fget", None) or getattr(member, "__func__", member)
        if isinstance(inner, FunctionType):
            yield inner.__code__, inner.__globals__


def _used(text: str) -> set[str]:
    """Returns the names that a text uses and does not define; those of Python are omitted."""
    tables, names = [symtable.symtable(text, "policy", "exec")], set[str]()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        names |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
    return names - vars(builtins).keys()


def _is_constant(value: object) -> bool:
    try:
        found = ast.literal_eval(repr(value))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return type(found) is type(value) and found == value
