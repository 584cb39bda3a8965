"""Nodes of the syntax tree of a script: words with their expansions, and commands."""

from __future__ import annotations

from dataclasses import dataclass, field

LENGTH = "length"
"""Operation of `${#NAME}`, the length of a value."""


@dataclass(frozen=True, slots=True)
class Literal:
    """Literal text."""

    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """An expansion of a parameter: `$NAME` or `${NAME...}`."""

    name: str
    op: str = ""
    word: Word | None = None
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Substitution:
    """A command substitution: `$(...)` or backquotes."""

    script: List
    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """An arithmetic expansion: `$((...))`."""

    word: Word
    quoted: bool = False


Piece = Literal | Parameter | Substitution | Arithmetic


@dataclass(frozen=True, slots=True)
class Word:
    """A word before its expansion, as a sequence of pieces."""

    pieces: tuple[Piece, ...]

    @property
    def plain(self) -> str | None:
        """Text of the word if it has no quotes and no expansions; otherwise None."""
        texts = [p.text for p in self.pieces if isinstance(p, Literal) and not p.quoted]
        return "".join(texts) if len(texts) == len(self.pieces) else None


# Commands


@dataclass(slots=True)
class Redirection:
    """A redirection of input or output; `body` is the text after `<<`."""

    op: str
    target: Word
    number: str = ""
    """Number of the redirected descriptor; empty for the default."""
    body: Word | None = None


@dataclass(slots=True)
class _Redirected:
    """A command with redirections."""

    redirections: list[Redirection] = field(default_factory=list, kw_only=True)


@dataclass(slots=True)
class Simple(_Redirected):
    """A simple command: assignments, words, and the line where it begins."""

    line: int
    assignments: list[tuple[str, bool, Word]] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)


@dataclass(slots=True)
class If(_Redirected):
    """An `if` command; `branches` are pairs of condition and commands."""

    branches: list[tuple[List, List]]
    otherwise: List | None


@dataclass(slots=True)
class For(_Redirected):
    """A loop `for NAME in WORDS`; `words` None means the positional parameters."""

    name: str
    words: list[Word] | None
    body: List


@dataclass(slots=True)
class CountedFor(_Redirected):
    """A loop `for ((FIRST; TEST; STEP))`."""

    first: Word
    test: Word
    step: Word
    body: List


@dataclass(slots=True)
class While(_Redirected):
    """A `while` loop; an `until` loop if `until` is true."""

    test: List
    body: List
    until: bool


@dataclass(slots=True)
class Case(_Redirected):
    """A `case` command; a branch has patterns, commands, and the operator at its end."""

    word: Word
    branches: list[tuple[list[Word], List, str]]


@dataclass(slots=True)
class Function(_Redirected):
    """The definition of a function."""

    name: str
    body: Command


@dataclass(slots=True)
class Group(_Redirected):
    """Commands in a group: `{ ...; }`, or `( ... )` in a subshell."""

    body: List
    subshell: bool


@dataclass(slots=True)
class Test(_Redirected):
    """A test `[[ ... ]]`."""

    words: list[Word]


@dataclass(slots=True)
class Evaluation(_Redirected):
    """An arithmetic command `((...))`."""

    word: Word


Command = Simple | If | For | CountedFor | While | Case | Function | Group | Test | Evaluation


@dataclass(slots=True)
class Pipeline:
    """A pipeline: each command reads the output of the command before."""

    commands: list[Command]
    negated: bool = False


@dataclass(slots=True)
class List:
    """Pipelines, each with the operator before it: `;`, `&&` or `||`."""

    items: list[tuple[str, Pipeline]] = field(default_factory=list)
