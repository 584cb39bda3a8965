"""The page on the architecture says what the code is: rooms, floors, who imports whom."""

from __future__ import annotations

import pytest

from tests.docs import house

ROOMS = house.rooms()


def test_the_table_has_all_rooms() -> None:
    assert set(house.floors()) == set(ROOMS)


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_imports_go_down(room: str) -> None:
    floors = house.floors()
    for inner in ROOMS[room]:
        assert floors[inner] < floors[room], f"{room} imports {inner}"


def test_the_crates_that_have_a_clock_are_named() -> None:
    text = " ".join(house.PAGE.read_text(encoding="utf-8").split())
    clocks = {room.removeprefix("crates/") for room in ROOMS if house.clock(room)}
    _, _, told = text.partition("in a `clippy.toml` next to their sources: ")
    named = told.partition(".")[0].replace(" and ", ", ")
    assert {name.strip("`") for name in named.split(", ")} == clocks


def test_the_picture_is_of_this_code() -> None:
    shown = house.PICTURE.read_text(encoding="utf-8")
    assert shown == house.drawing(), "draw it anew: python -m tests.docs.house"
