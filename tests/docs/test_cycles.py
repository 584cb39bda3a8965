"""No file imports another that leads back to it: within crates, and within the rooms of Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import cycles

GRAPHS = {f"crates/{name}": graph for name, graph in cycles.crates().items()} | {
    f"python/sojourn/{name}": graph for name, graph in cycles.python().items()
}


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_files_do_not_import_in_a_cycle(name: str) -> None:
    assert [sorted(cycle) for cycle in cycles.circles(GRAPHS[name])] == []


def test_a_cycle_of_rust_files_is_found(tmp_path: Path) -> None:
    (tmp_path / "lib.rs").write_text("mod a;\nmod b;\nmod c;\npub use b::{Inner, two};\n")
    (tmp_path / "a.rs").write_text("use crate::{\n    Inner as Other,\n};\n// use crate::c;\n")
    (tmp_path / "b.rs").write_text("pub fn two() { super::c::three() }\n")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "mod.rs").write_text(
        "mod d;\nuse crate::a::One;\n#[cfg(test)]\nmod tests {\n    use crate::lost;\n}\n"
    )
    (tmp_path / "c" / "d.rs").write_text("use super::{self as above};\nuse std::fmt;\n")
    graph = cycles.crate(tmp_path)
    assert graph == {
        "crate": set(),
        "crate::a": {"crate::b"},
        "crate::b": {"crate::c"},
        "crate::c": {"crate::a"},
        "crate::c::d": {"crate::c"},
    }
    assert cycles.circles(graph) == [{"crate::a", "crate::b", "crate::c"}]


def test_a_cycle_through_functions_or_annotations_is_found(tmp_path: Path) -> None:
    room = tmp_path / "sojourn" / "room"
    room.mkdir(parents=True)
    (room / "__init__.py").write_text("")
    (room / "a.py").write_text("def f():\n    from sojourn.room.b import g\n")
    (room / "b.py").write_text("def g():\n    from . import a\n")
    (room / "c.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from sojourn.room import d\n"
    )
    (room / "d.py").write_text("from sojourn.room.c import h\n")
    circles = [{f"sojourn.room.{name}" for name in pair} for pair in ("ab", "cd")]
    assert cycles.circles(cycles.room(room)) == circles
