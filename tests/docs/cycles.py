"""Cycles of imports between the files of a crate, and between the modules of a Python room."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

from tests.docs import house

Graph = dict[str, set[str]]

_TEST = re.compile(r"#\[cfg\((?:all\()?test\b[^\n]*\n")
_USE = re.compile(r"^\s*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.MULTILINE)
_PATH = re.compile(r"(?<![\w:])(?:crate|super|self)(?:::\w+)+")


def crates() -> dict[str, Graph]:
    """The imports between the files of each crate, tests apart."""
    return {path.parent.parent.name: crate(path.parent) for path in _roots()}


def _roots() -> list[Path]:
    return sorted((house.ROOT / "crates").glob("*/src/lib.rs"))


def crate(source: Path) -> Graph:
    """The files of a crate, each with those whose items it names.

    `mod name;` is no import. A re-export counts as a use of the file that defines the name.
    """
    files = {module(path, source): code(path) for path in sorted(source.rglob("*.rs"))}
    files = {name: text for name, text in files.items() if "tests" not in name}
    exports: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = defaultdict(dict)
    named: dict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
    for name, text in files.items():
        rest = _USE.sub("", text)
        named[name] = {tuple(path.split("::")) for path in _PATH.findall(rest)}
        for public, tree in _USE.findall(text):
            for path, alias in leaves(tree):
                if public:
                    exports[name][alias] = path
                if not public or re.search(rf"\b{re.escape(alias)}\b", rest):
                    named[name].add(path)
    graph: Graph = {}
    for name, paths in named.items():
        found = {home(resolve(name, path, files), files, exports) for path in paths}
        graph["::".join(name)] = {"::".join(to) for to in found if to is not None and to != name}
    for name in files:
        graph.setdefault("::".join(name), set())
    return graph


def module(path: Path, source: Path) -> tuple[str, ...]:
    """The module that a file is."""
    parts = path.relative_to(source).with_suffix("").parts
    return ("crate", *(part for part in parts if part not in ("mod", "lib", "main")))


def code(path: Path) -> str:
    """A file without comments, texts and modules of tests."""
    text = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
    text = re.sub(r'"(?:\\.|[^"\\])*"', '""', text)
    while match := _TEST.search(text):
        text = text[: match.start()] + text[_item_end(text, match.end()) :]
    return text


def _item_end(text: str, start: int) -> int:
    """Where an item ends: behind its `;`, or its braces."""
    depth = 0
    for at in range(start, len(text)):
        if text[at] == "{":
            depth += 1
        elif text[at] == "}":
            depth -= 1
            if depth == 0:
                return at + 1
        elif text[at] == ";" and depth == 0:
            return at + 1
    return len(text)


def leaves(tree: str) -> list[tuple[tuple[str, ...], str]]:
    """The paths of a `use`, each with the name that it gets here."""
    tree = " ".join(tree.split())
    head, brace, inner = tree.partition("{")
    if not brace:
        path, _, alias = tree.partition(" as ")
        parts = tuple(part.strip() for part in path.split("::"))
        return [(parts, alias or parts[-1])]
    prefix = tuple(part.strip() for part in head.split("::") if part.strip())
    found, depth, start = [], 0, 0
    inner = inner.rpartition("}")[0] + ","
    for at, sign in enumerate(inner):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            if part := inner[start:at].strip():
                for inner_path, name in leaves(part):
                    whole = (*prefix, *inner_path) if inner_path != ("self",) else prefix
                    found.append((whole, name if name != "self" else prefix[-1]))
            start = at + 1
    return found


def resolve(
    name: tuple[str, ...], path: tuple[str, ...], files: dict[tuple[str, ...], str]
) -> tuple[str, ...] | None:
    """A path from the root of its crate; none for another crate's."""
    head, *rest = path
    if head == "crate":
        return path
    if head == "self":
        return (*name, *rest)
    if head == "super":
        while rest and rest[0] == "super":
            name, rest = name[:-1], rest[1:]
        return (*name[:-1], *rest)
    return (*name, *path) if (*name, head) in files else None


def home(
    path: tuple[str, ...] | None,
    files: dict[tuple[str, ...], str],
    exports: dict[tuple[str, ...], dict[str, tuple[str, ...]]],
) -> tuple[str, ...] | None:
    """The file in which a path's item is declared."""
    if path is None:
        return None
    for length in range(len(path), 0, -1):
        name = path[:length]
        if name not in files:
            continue
        if length < len(path) and path[length] in exports[name]:
            behind = resolve(name, exports[name][path[length]], files)
            return home(behind, files, exports)
        return name
    return None


def python() -> dict[str, Graph]:
    """The imports between the modules of each Python room, also within functions."""
    package = house.ROOT / "python" / "sojourn"
    return {init.parent.name: room(init.parent) for init in sorted(package.glob("*/__init__.py"))}


def room(folder: Path) -> Graph:
    """The modules of a room, each with those that it imports, also for its annotations."""
    top = folder.parent.parent
    files = {_dotted(path, top): path for path in sorted(folder.rglob("*.py"))}
    graph: Graph = {}
    for name, path in files.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        found = {
            target
            for wanted in imports(path, package)
            for target in [_known(wanted, files)]
            if target and target != name
        }
        graph[name] = found
    return graph


def _dotted(path: Path, top: Path) -> str:
    parts = path.relative_to(top).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def _known(name: str, files: dict[str, Path]) -> str | None:
    """The module that a dotted name leads to."""
    if name in files:
        return name
    parent = name.rpartition(".")[0]
    return parent if parent in files else None


def imports(path: Path, package: str) -> set[str]:
    """The dotted names that a file imports: at its top, in functions and for annotations.

    Annotations of generated files do not count: recursive types of Rust are in files of their own.
    """
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    left_out = {
        id(inner)
        for node in ast.walk(tree)
        if text.startswith('"""Generated by') and isinstance(node, ast.If)
        for inner in ast.walk(node)
    }
    names: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in left_out:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join(parts[: len(parts) - node.level + 1])
                module = f"{base}.{module}" if module else base
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


def circles(graph: Graph) -> list[frozenset[str]]:
    """The sets of files each of which leads to all others of its set (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[frozenset[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for inner in sorted(graph[node]):
            if inner not in index:
                visit(inner)
                low[node] = min(low[node], low[inner])
            elif inner in stack:
                low[node] = min(low[node], index[inner])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(frozenset(stack[at:]))
            del stack[at:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found
