"""The linter and the draws on texts made for them, and the linter on all files."""

from __future__ import annotations

import fnmatch

import pytest

from tests.prose import draw, lint
from tests.prose.passages import KINDS, Passage, of_file, passages


@pytest.fixture(scope="module")
def everything() -> list[Passage]:
    return list(passages(lint.ROOT))


def test_all_files_meet_the_rules(everything: list[Passage]) -> None:
    assert [str(breach) for breach in lint.everywhere(everything)] == []


def test_each_pattern_of_quoting_files_has_a_file(everything: list[Passage]) -> None:
    paths = {passage.path for passage in everything}
    unused = [name for name in lint.read()[1] if not fnmatch.filter(paths, name)]
    assert unused == []


@pytest.mark.parametrize("rule", lint.read()[0], ids=lambda rule: rule.name)
def test_a_rule_finds_its_example(rule: lint.Rule) -> None:
    rules, _ = lint.read()
    found = lint.breaches([Passage("documentation", "a.md", 1, rule.example)], rules)
    assert [breach.rule.name for breach in found] == [rule.name]


@pytest.mark.parametrize(
    "text",
    [
        "What does the queue hold?",
        "The queue holds what the sender sent.",
        "Use the option `--tell`.",
        'The paper says: "Nobody drops what stands here."',
        "Someone else, or nothing else.",
    ],
)
def test_plain_and_quoted_texts_pass(text: str) -> None:
    rules, _ = lint.read()
    assert list(lint.breaches([Passage("documentation", "a.md", 1, text)], rules)) == []


def test_passages_of_python() -> None:
    source = (
        '"""A module of tests.\n\nA second paragraph here."""\n'
        "# A comment that\n# has two lines.\n"
        'X = f"found {1} of two files"\n'
    )
    assert [(p.kind, p.line, p.text) for p in of_file("a.py", source)] == [
        ("docstring", 1, "A module of tests."),
        ("docstring", 3, "A second paragraph here."),
        ("comment", 4, "A comment that has two lines."),
        ("message", 6, "found {} of two files"),
    ]


def test_passages_of_rust() -> None:
    source = (
        "//! A crate of tests.\n\n/// Returns one of two.\n/// It has two lines.\nfn f() {\n"
        "    // A short plain comment.\n"
        '    g("a message with words // in it", \'"\', r#"raw text with words"#);\n}\n'
        "#[cfg(test)]\nmod tests {\n    // A comment of the tests.\n}\n"
    )
    assert [(p.kind, p.line, p.text) for p in of_file("a.rs", source)] == [
        ("docstring", 1, "A crate of tests."),
        ("docstring", 3, "Returns one of two. It has two lines."),
        ("comment", 6, "A short plain comment."),
        ("message", 7, "a message with words // in it"),
        ("message", 7, "raw text with words"),
    ]


def test_a_comment_at_the_end_of_a_line_is_separate_from_the_next_documentation() -> None:
    source = (
        "struct S {\n    a: u8, // source of the first field\n    /// Documents the second field.\n"
        "    b: u8,\n}\n"
    )
    assert [(p.kind, p.line, p.text) for p in of_file("a.rs", source)] == [
        ("comment", 2, "source of the first field"),
        ("docstring", 3, "Documents the second field."),
    ]


def test_passages_of_markdown_have_no_code() -> None:
    source = (
        "# A page of tests\n\nA paragraph with\ntwo lines.\n\n"
        "```toml\nno = 'text of the page'\n```\n\n"
        "| a | b |\n|---|---|\n| x | a cell of words |\n"
    )
    assert [(p.line, p.text) for p in of_file("a.md", source)] == [
        (1, "A page of tests"),
        (3, "A paragraph with two lines."),
        (12, "a cell of words"),
    ]


def test_a_draw_is_divided_over_the_kinds_and_follows_its_seed(everything: list[Passage]) -> None:
    first = draw.draw(everything, 1, 60)
    assert first == draw.draw(everything, 1, 60)
    assert first != draw.draw(everything, 2, 60)
    assert [sum(passage.kind == kind for passage in first) for kind in KINDS] == [15, 15, 15, 15]
