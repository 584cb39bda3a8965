"""The documentation: every code block is run, or loaded, or says why not; and the pages build.

A line `<!-- test: ... -->` before a fence is a comment, which neither the site nor a forge shows:

    test: file NAME        the block is a file of that name; scenarios are loaded and resolved
                           (`file NAME; OLD -> NEW; ...` replaces texts, to make runs shorter)
    test: fragment         TOML that is a part of a scenario: it is parsed
    test: run [OPTIONS]    `sojourn` commands, run in the page's folder with OPTIONS added to each
    test: fails            `sojourn` commands with a mistake, which end with status 2
    test: exec             Python, run in the page's folder; names live on from block to block
                           (`exec; OLD -> NEW; ...` replaces texts, as for `file`)
    test: output ...       what the block before printed, made by refresh.py: compared, unless
                           the run is made shorter; which part is shown: output.fitted
    test: not: REASON      not run, for this reason; its commands are parsed, with all options

Blocks of one page share a folder and run in the order of the page. Commands that sentences name
(`sojourn tune search`) must exist.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.docs import commands, links, output
from tests.docs.conftest import Site

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).resolve().parents[2] / "docs"
DRAWN = DOCS / "images" / "drawn"

# Pages outside the folder of the documentation.
OUTSIDE = [DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md"]

# Languages whose blocks must say how they are tested.
TESTED = {"toml", "python", "console", "bash", "sh", "shell", "sql"}

# Code of the `sojourn` script, which need not be on the path.
MAIN = "import sys; from sojourn.cli import main; sys.exit(main())"

_FENCE = re.compile(r"^(`{3,})(.*)$")
_NOTE = re.compile(r"^<!-- test: (\w+):? ?(.*?) *-->$")
_MENTION = re.compile(r"(?<!`)`sojourn ([^`\n]+)`(?!`)")
KINDS = {"file", "fragment", "run", "fails", "exec", "output", "not"}


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    text: str
    kind: str | None
    argument: str

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(DOCS.parent)}:{self.line}"

    def commands(self) -> list[list[str]]:
        """The commands of a console block as lists of words; `\\` joins lines, `$` starts one."""
        joined = self.text.replace("\\\n", " ")
        lines = [line[2:] for line in joined.splitlines() if line.startswith("$ ")]
        return [shlex.split(line, comments=True) for line in lines]


def blocks(page: Path) -> Iterator[Block]:
    """Generates the fenced code blocks of a page.

    Directives (`{name}`) are not code, except a live figure with the scenario's file: it shows the
    command that writes the file.
    """
    note: tuple[str, str] = ("", "")
    lines = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), 1))
    for number, line in lines:
        if match := _NOTE.match(line):
            note = (match[1], match[2])
            if note[0] not in KINDS:
                raise ValueError(f"{page}:{number}: unknown kind of test {note[0]!r}")
        elif match := _FENCE.match(line):
            fence, language = match[1], match[2].strip()
            body = []
            for _, inner in lines:
                if inner.strip() == fence:
                    break
                body.append(inner)
            if not language.startswith("{"):
                text = "\n".join(body) + "\n"
                yield Block(page, number, language, text, note[0] or None, note[1])
            elif language.startswith("{live}") and ":file:" in body:
                command = f"$ sojourn new --template {language.split()[1]}\n"
                yield Block(page, number, "console", command, "run", "")
            elif note[0]:
                raise ValueError(f"{page}:{number}: a directive cannot be tested")
            note = ("", "")
        elif line.strip() and note[0]:
            raise ValueError(f"{page}:{number}: `test:` must be directly above a code block")


def pages() -> list[Path]:
    return [*OUTSIDE, *sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts)]


def _id(page: Path) -> str:
    return str(page.relative_to(DOCS.parent))


@pytest.mark.parametrize("page", pages(), ids=_id)
def test_blocks_say_how_they_are_tested(page: Path) -> None:
    for block in blocks(page):
        if block.language in TESTED:
            assert block.kind, f"{block.where}: no line `<!-- test: ... -->` before this block"
        if block.kind == "not":
            assert block.argument, f"{block.where}: not tested, but why?"
            if block.language == "console":
                assert block.commands(), f"{block.where}: no line begins with `$ `"
                for words in block.commands():
                    _check(words, block.where)


def _check(words: list[str], where: str) -> None:
    try:
        commands.check(words)
    except commands.Wrong as wrong:
        raise AssertionError(f"{where}: {shlex.join(words)}: {wrong}") from wrong


@pytest.mark.parametrize("page", pages(), ids=_id)
def test_commands_in_sentences_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for match in _MENTION.finditer(text):
        try:
            commands.mention(match[1].split())
        except commands.Wrong as wrong:
            raise AssertionError(f"{_id(page)}: {match[0]}: {wrong}") from wrong


EXAMPLES = sorted((DOCS.parent / "examples").rglob("*.toml"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_commands_that_examples_show_are_whole(example: Path) -> None:
    text = example.read_text(encoding="utf-8").replace("\\\n#", "")
    for line in re.findall(r"^# +(sojourn .*)$", text, re.MULTILINE):
        _check(shlex.split(line), example.name)


@pytest.mark.parametrize(
    "line",
    [
        *("sojourn", "sojourn nonsense", "sojourn run", "sojourn run a.toml --nonsense 3"),
        *("sojourn run a.toml --seed x", "sojourn wire", "make nonsense", "cargo test -p nonsense"),
        *("cargo test -p sojourn-udp --test nonsense", "python tests/nonsense.py", "nonsense"),
        "python tests/crosscheck/run.py --nonsense",
    ],
)
def test_commands_that_are_wrong_are_noticed(line: str) -> None:
    with pytest.raises(AssertionError):
        _check(shlex.split(line), "here")


@pytest.mark.parametrize("line", ["nonsense", "wire nonsense", "run --nonsense", "wire set --bad"])
def test_mentions_that_are_wrong_are_noticed(line: str) -> None:
    with pytest.raises(commands.Wrong):
        commands.mention(line.split())


def _tested(page: Path) -> list[Block]:
    return [b for b in blocks(page) if b.kind not in (None, "not")]


LONG = {
    "README.md",
    *(
        f"docs/guides/{name}.md"
        for name in ("balancers", "compare", "own", "own-policies", "store", "study")
    ),
    *(f"docs/scenarios/{name}.md" for name in ("campus", "edge", "home", "rack")),
    *(
        f"docs/stories/{n}.md"
        for n in ("api-servers", "home-office", "three-sites", "village-radio")
    ),
    *(f"docs/tutorial/{name}.md" for name in ("first-answer", "own", "publish", "sweep")),
}
"""Pages whose commands take more than ten seconds."""


def _page(page: Path) -> Any:
    return pytest.param(page, id=_id(page), marks=[pytest.mark.slow] * (_id(page) in LONG))


def test_long_pages_exist() -> None:
    assert {_id(page) for page in pages() if _tested(page)} >= LONG


def _hidden(text: str) -> list[str]:
    """Returns the lines outside blocks of code that MyST takes as comments."""
    found, fence = [], ""
    for line in text.splitlines():
        if match := re.match(r"\s*(`{3,})", line):
            fence = "" if fence and line.strip() == fence else fence or match[1]
        elif not fence and re.match(r"\s*%", line):
            found.append(line)
    return found


def test_no_sentence_is_a_comment() -> None:
    """A line of prose that begins with `%`, such as a wrapped "5 %", would not be shown."""
    text = "at least 5\n% of all\n\n```text\n% interval\n```\n"
    assert _hidden(text) == ["% of all"]
    found = {_id(page): _hidden(page.read_text(encoding="utf-8")) for page in pages()}
    assert {page: lines for page, lines in found.items() if lines} == {}


@pytest.mark.parametrize("page", [_page(p) for p in pages() if _tested(p)])
def test_blocks_work(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    for shown in ("crates", "examples"):
        (tmp_path / shown).symlink_to(DOCS.parent / shown)
    names: dict[str, Any] = {"__name__": "__docs__"}
    shown, whole = "", True
    for block in _tested(page):
        match block.kind:
            case "file":
                _file(block, tmp_path)
                whole = whole and ";" not in block.argument
            case "fragment":
                tomllib.loads(block.text)
            case "run":
                shown = _run(block, tmp_path)
                whole = whole and not block.argument
            case "fails":
                shown = _run(block, tmp_path, status=2)
            case "exec":
                shown = _exec(block, names)
                whole = whole and ";" not in block.argument
            case "output":
                wrong = (
                    output.differences(block.text, shown, block.argument, whole) if whole else []
                )
                assert not wrong, f"{block.where}: not printed any more (refresh.py): {wrong}"


def _file(block: Block, folder: Path) -> None:
    name, *changes = block.argument.split("; ")
    text = _changed(block, changes)
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    if target.suffix != ".toml":
        return
    data = tomllib.loads(text)
    if "flows" in data and "study" not in data:
        import sojourn

        json.loads(sojourn.Scenario.load(target).plan_json)


def _changed(block: Block, changes: list[str]) -> str:
    """The block's text with texts replaced."""
    text = block.text
    for change in changes:
        old, new = change.split(" -> ")
        assert old in text, f"{block.where}: no {old!r} in the block"
        text = text.replace(old, new)
    return text


def _exec(block: Block, names: dict[str, Any]) -> str:
    """Returns the output of a block of Python."""
    if "duckdb" in block.text:
        pytest.importorskip("duckdb")
    text = _changed(block, block.argument.split("; ")[1:])
    code = compile("\n" * block.line + text, block.where, "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    return printed.getvalue()


def _run(block: Block, folder: Path, status: int = 0) -> str:
    """Returns the output of a block's commands, on both channels."""
    printed = ""
    added = shlex.split(block.argument)
    commands = block.commands()
    assert commands, f"{block.where}: no line begins with `$ `"
    for words in commands:
        assert words[0] == "sojourn", f"{block.where}: only sojourn commands are run here"
        if "|" in words or ">" in words:
            raise AssertionError(f"{block.where}: no pipes")
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *words[1:], *added],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
            env={**os.environ, **output.ENVIRONMENT},
        )
        assert done.returncode == status, (
            f"{block.where}: {shlex.join(words + added)} gave {done.returncode}\n"
            f"{done.stdout[-4000:]}"
        )
        printed += output.lasting(done.stdout)
    return printed


def test_outputs_that_changed_are_noticed() -> None:
    table = "rank  queue  delay …\n───\n1     codel  5.0 ms\n"
    real = "rank  queue  delay  loss\n───\n1     pie    7.1 ms  0 %\n"
    assert not output.differences(table, real, "20", whole=False)
    assert output.differences(table.replace("queue", "name"), real, "20", whole=False)
    assert output.differences(table, real, "20", whole=True)
    assert not output.differences("5 runs in 3 s\n", "5 runs in 14 s\n", "", whole=True)
    assert output.differences("5 runs in 3 s\n", "6 runs in 3 s\n", "", whole=True)


def test_sentences_are_wrapped_once() -> None:
    words = "seed " * 60
    printed = f"{words[:159]}\n{words[160:].strip()}\nqueue   delay\n"
    lines = output.fitted(printed, "100").splitlines()
    assert lines == [words[:99], words[100:199], words[200:].strip(), "queue   delay"]


def test_an_output_may_begin_at_a_line() -> None:
    real = "codel is best.\n\nqueue  delay\ncodel  5 ms\npie  7 ms\n"
    shown = "…\nqueue  delay\ncodel  5 ms\n…"
    assert output.fitted(real, "100 3 from queue") == shown
    assert not output.differences(shown, real, "100 3 from queue", whole=True)
    assert not output.differences("…\nqueue  delay\n", real, "from queue", whole=False)


@pytest.mark.slow
@pytest.mark.timeout(1200)  # half a minute on a machine of its own
def test_sphinx_finds_nothing_to_complain_about(documentation: Site) -> None:
    assert documentation.complaints == ""
    assert links.elsewhere(documentation.folder) == []
    assert links.of_pages(documentation.folder) == []


SECTIONS = {
    "queue": "queues",
    "app": "traffic",
    "tcp": "tcp",
    "balancer": "balancers",
    "buffer": "buffers",
}


def _described() -> dict[str, Any]:
    from sojourn import _core

    described: dict[str, Any] = json.loads(_core.describe())
    return described


UNDRAWN = {"command"}
"""Components of which a simulation shows nothing."""

# Where the checks of a section's components are listed, in a table with their names first.
CHECKS = {
    "queue": "queues/index.md",
    "app": "traffic/index.md",
    "tcp": "tcp.md",
    "balancer": "balancers.md",
    "buffer": "buffers.md",
}
NO_SOURCE = {"elastic"}
"""Components of this project that no publication describes."""


@pytest.mark.parametrize("section", SECTIONS)
def test_every_component_has_a_whole_page(section: str) -> None:
    """Model, parameters, source with its mark, checks, and an existing figure."""
    folder = DOCS / "reference" / SECTIONS[section]
    captions = json.loads((DRAWN / "captions.json").read_text(encoding="utf-8"))
    texts = {p: p.read_text(encoding="utf-8") for p in folder.glob("*.md") if p.stem != "index"}
    index = (DOCS / "reference" / CHECKS[section]).read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in index.splitlines() if line.startswith("| `")]
    for table in _described()[section]:
        name = table["name"]
        directive = re.compile(rf"{{component}} {section} (?:.+ )?{re.escape(name)}(?: .+)?\n")
        having = [p for p, t in texts.items() if directive.search(t)]
        assert len(having) == 1, f"{name} has {len(having)} pages"
        text = texts[having[0]]
        model = re.sub(r"```.*?```|^#.*?$", "", text, flags=re.DOTALL | re.MULTILINE)
        assert len(model.split()) > 30, f"{having[0].name}: no model"
        if name not in NO_SOURCE:
            sources = re.search(r"\*\*Sources?\.\*\* (.*?)\n(?:\n|$)", text, re.DOTALL)
            assert sources, f"{having[0].name}: no sources"
            assert "{mark}`" in sources[1], f"{having[0].name}: how is the source known?"
        checks = [row for row in rows if f"`{name}`" in row[0]]
        assert any(len(row[-1].strip(" |")) > 10 for row in checks), f"{name}: how is it checked?"
        if name in UNDRAWN:
            continue
        assert (DRAWN / f"{section}-{name}.png").exists(), f"{name}: make figures"
        assert captions.get(f"{section}-{name}"), f"{name} has no caption: make figures"


def test_pictures_are_small() -> None:
    largest = runpy.run_path(str(DOCS / "_figures" / "small.py"))["LARGEST"]
    for path in (DOCS / "images").rglob("*"):
        size, limit = path.stat().st_size, largest * (2 if "hero" in path.name else 1)
        assert path.is_dir() or size <= limit, f"{path.name} has {size} B: fewer dots or colours"


def test_every_metric_is_on_the_page_of_metrics() -> None:
    page = (DOCS / "reference" / "metrics.md").read_text(encoding="utf-8")
    for kind in {metric["of"] for metric in _described()["metrics"]}:
        assert re.search(rf"^{kind}: ", page, re.MULTILINE), f"metrics of a {kind} are missing"


def test_every_figure_is_of_something_that_there_is() -> None:
    described = _described()
    known = {f"{section}-{table['name']}" for section in SECTIONS for table in described[section]}
    drawn = {path.stem for path in DRAWN.glob("*.png")}
    assert drawn <= known, f"of nothing: {sorted(drawn - known)}"


def test_every_key_has_its_place() -> None:
    from sojourn.scenario import models
    from sojourn.study import file

    page = (DOCS / "reference" / "scenario.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"{keys} (\w+)\n", page))
    for body in re.findall(r"{keys}\n(.*?)```", page, re.DOTALL):
        shown |= set(re.findall(r"^(\w+)(?::|$)", body, re.MULTILINE))
    # These have only keys of the tables that contain them, or that are made from them.
    of_one_direction = {"ChangedDirection", "SideDirection", "LinkKeys", "BothDirections"}
    for name, model in vars(models).items():
        is_table = isinstance(model, type) and issubclass(model, models.Part)
        if is_table and name != "Part" and name[0] != "_" and name not in of_one_direction:
            assert name in shown, f"the keys of {name} are not in the reference"
    page = (DOCS / "reference" / "study.md").read_text(encoding="utf-8")
    for key in file._KEYS:
        assert f"`study.{key}" in page, f"study.{key} is not in the reference"
    for key in file._KEEP:
        assert f"`study.keep.{key}`" in page, f"study.keep.{key} is not in the reference"


def test_verdicts_that_are_shown_were_recorded_whole() -> None:
    for path in (DOCS / "studies").glob("*.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        assert record["study"] == path.stem
        assert record["command"].startswith("sojourn paper")
        assert all(record[key] for key in ("how", "engine", "claims"))
        assert len({claim["id"] for claim in record["claims"]}) == len(record["claims"])
        for claim in record["claims"]:
            assert all(claim[key] for key in ("id", "finding", "here")), f"{path.stem}: {claim}"
            assert claim["verdict"] in ("holds", "does not hold", "cannot be told")
        page = path.with_suffix(".md").read_text(encoding="utf-8")
        assert f"{{verdicts}} {path.stem}" in page
