"""Passages: everything in the project that a person reads, with its place.

A passage is a paragraph of documentation, a doc comment or docstring, a run of comment lines, or a
message (a text in the code with at least three words, the help of options among them). Code inside
backquotes is part of the text. The name of a test is a sentence of the kind `name`.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = ("documentation", "docstring", "comment", "message")
NAME = "name"
"""Kind of the names of tests."""

# Folders with code of others, and files that commands write.
_EXCLUDED = re.compile(r"^(python/sojourn/show/html/plotly|docs/images|docs/_figures)/|\.min\.")

_RUST_TEST = re.compile(r"#\[test\]\s*(?:#\[[^\]]*\]\s*)*fn (\w+)")

# A text that is a program.
_PROGRAM = re.compile(r"^(?:import|from) \w", re.MULTILINE)

# Words in a row make a text; a name, a format or a key is none.
_WORDS = re.compile(r"[A-Za-z][a-z']+[,;:]? [A-Za-z(`][\w'`-]*[,;:)]* [A-Za-z(`]")

_RUST = re.compile(
    r"""(?P<comment>(?://[/!][^\n]*(?:\n[ \t]*(?=//[/!]))?)+
        |(?://(?![/!])[^\n]*(?:\n[ \t]*(?=//(?![/!])))?)+)
      | r(?P<hashes>\#*)"(?P<raw>.*?)"(?P=hashes)
      | "(?P<string>(?:[^"\\]|\\.)*)"
      | '(?:[^'\\\n]|\\.[^'\n]*)'""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Passage:
    """One text: its kind, the file and line where it begins, and its words on one line."""

    kind: str
    path: str
    line: int
    text: str

    @property
    def place(self) -> str:
        """Returns `file:line`."""
        return f"{self.path}:{self.line}"


def passages(root: Path) -> Iterator[Passage]:
    """Yields the passages of all files that Git tracks below `root`, by path and line."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True
    )
    for name in sorted(listed.stdout.split("\0")):
        reader = _READERS.get(Path(name).suffix)
        path = root / name
        if not reader or _EXCLUDED.search(name):
            continue
        if path.is_file():
            yield from of_file(name, path.read_text(encoding="utf-8"))


def of_file(name: str, text: str) -> Iterator[Passage]:
    """Yields the passages of one file; `name` is its path and decides how it is read."""
    for kind, line, found in sorted(_READERS[Path(name).suffix](text), key=lambda row: row[1]):
        joined = " ".join(found.split())
        if _WORDS.search(joined):
            yield Passage(kind, name, line, joined)


def _markdown(text: str) -> Iterator[tuple[str, int, str]]:
    for token in MarkdownIt("commonmark").enable("table").parse(re.sub(r"(?m)^%.*$", "", text)):
        if token.type == "inline" and token.map:
            yield "documentation", token.map[0] + 1, token.content


def _python(text: str) -> Iterator[tuple[str, int, str]]:
    tree = ast.parse(text)
    # A text that stands alone documents what it follows.
    documented = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }
    inner = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
    } - {id(node) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)}
    for node in ast.walk(tree):
        if id(node) in documented and isinstance(node, ast.Constant):
            for offset, paragraph in _paragraphs(str(node.value)):
                yield "docstring", node.lineno + offset, paragraph
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield NAME, node.lineno, _sentence(node.name.removeprefix("test_"))
        elif isinstance(node, ast.JoinedStr):
            yield "message", node.lineno, "".join(_shown(part) for part in node.values)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in inner
            and not _PROGRAM.search(node.value)
        ):
            yield "message", node.lineno, node.value
    yield from _hash_comments(
        (token.start[0], token.string)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    )


def _sentence(name: str) -> str:
    """Returns the name of a test as a sentence."""
    words = name.replace("_", " ")
    return f"{words[:1].upper()}{words[1:]}."


def _shown(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "{}"


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    lines: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""]):
        if line.strip():
            lines.append(line)
        elif lines:
            yield number - len(lines), "\n".join(lines)
            lines = []


def _hash_comments(comments: Iterator[tuple[int, str]]) -> Iterator[tuple[str, int, str]]:
    begin, last, texts = 0, -1, list[str]()
    for line, text in comments:
        if line != last + 1 and texts:
            yield "comment", begin, " ".join(texts)
            texts = []
        if not texts:
            begin = line
        last = line
        texts.append(text.lstrip("#!: "))
    if texts:
        yield "comment", begin, " ".join(texts)


def _rust(text: str) -> Iterator[tuple[str, int, str]]:
    tests = re.search(r"(?m)^#\[cfg\(test\)\]\s*\n\s*mod \w+ \{", text)
    for match in _RUST.finditer(text, 0, tests.start() if tests else len(text)):
        line = text.count("\n", 0, match.start()) + 1
        comment = match["comment"]
        if comment is None:
            found = match["raw"] or match["string"] or ""
            yield "message", line, re.sub(r"\\\n\s*", "", found).replace('\\"', '"')
            continue
        kind = "docstring" if re.match(r"//[/!]", comment) else "comment"
        plain = "\n".join(re.sub(r"^\s*//[/!]?", "", row) for row in comment.splitlines())
        for offset, paragraph in _paragraphs(plain):
            yield kind, line + offset, paragraph
    for match in _RUST_TEST.finditer(text):
        yield NAME, text.count("\n", 0, match.start(1)) + 1, _sentence(match[1])


def _toml(text: str) -> Iterator[tuple[str, int, str]]:
    """Yields comments and values in double quotes; single quotes are for code and examples."""
    comments = (
        (number, line.strip())
        for number, line in enumerate(text.splitlines(), 1)
        if line.lstrip().startswith("#")
    )
    yield from _hash_comments(comments)
    for match in re.finditer(r'(?m)^\w[\w.-]* *= *"([^"\n]*)"', text):
        yield "message", text.count("\n", 0, match.start()) + 1, match[1]


_READERS = {".md": _markdown, ".py": _python, ".rs": _rust, ".toml": _toml}
