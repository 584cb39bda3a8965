"""Why a discipline drops, by its counters."""

from typing import Any

import pytest

from sojourn.data import Object
from sojourn.lab.kernel.reasons import Counters, read, split


def listed(kind: str, **counters: Any) -> list[dict[str, Any]]:
    return [
        {"kind": "pfifo", "handle": "10:", "dev": "o1", "drops": 7},
        {"kind": kind, "handle": "10:", "dev": "o0", "parent": "1:1", **counters},
    ]


def reasons(kind: str, **counters: Any) -> dict[str, int]:
    found = read(listed(kind, **counters), "10:", "o0")
    assert found is not None
    return {name: n for name, n in split(found).items() if n or name == "drops_ack_filter"}


@pytest.mark.parametrize(
    ("kind", "counters", "expected"),
    [
        ("pfifo", {}, {"overflow": 9}),
        ("fq", {"flows_plimit": 5, "horizon_drops": 2}, {"forced": 2, "overflow": 7}),
        ("codel", {"drop_overlimit": 4}, {"early": 5, "overflow": 4}),
        ("fq_codel", {"drop_overlimit": 4, "drop_overmemory": 3}, {"early": 5, "overflow": 4}),
        ("pie", {"dropped": 9, "overlimit": 2}, {"early": 7, "overflow": 2}),
        (
            "sfb",
            {"earlydrop": 1, "penaltydrop": 2, "bucketdrop": 3, "queuedrop": 3, "childdrop": 0},
            {"early": 1, "forced": 5, "overflow": 3},
        ),
        ("red", {"early": 5, "pdrop": 4}, {"overflow": 4}),
        ("red", {"early": 0, "pdrop": 9}, {"overflow": 9}),
    ],
)
def test_counters_have_the_simulator_s_reasons(
    kind: str, counters: dict[str, int], expected: dict[str, int]
) -> None:
    told = {f"drops_{reason}": n for reason, n in expected.items()}
    assert reasons(kind, drops=9, **counters) == told | {"drops_ack_filter": 0}


def test_reasons_that_share_a_counter_are_known_if_it_is_zero() -> None:
    found = read(listed("red", drops=4, early=0, pdrop=4), "10:", "o0")
    assert found is not None
    assert split(found)["drops_early"] == split(found)["drops_forced"] == 0
    found = read(listed("red", drops=5, early=1, pdrop=4), "10:", "o0")
    assert found is not None
    assert not {"drops_early", "drops_forced"} & split(found).keys()


def test_cake_has_dropped_early_if_it_always_had_room() -> None:
    tins = [
        {"drops": 3, "ack_drops": 1, "ecn_mark": 2},
        {"drops": 3, "ack_drops": 1, "ecn_mark": 0},
    ]
    room = reasons("cake", drops=8, tins=tins, memory_used=10, memory_limit=20)
    assert room == {"drops_early": 6, "drops_ack_filter": 2}
    full = reasons("cake", drops=8, tins=tins, memory_used=21, memory_limit=20)
    assert full == {"drops_ack_filter": 2}


def test_the_inner_discipline_gives_the_reasons_and_the_outer_one_the_count() -> None:
    inner: Object = {"kind": "codel", "handle": "11:", "dev": "o0", "parent": "10:1", "drops": 5}
    found = read([*listed("tbf", drops=9), inner | {"drop_overlimit": 2}], "10:", "o0")
    assert found is not None
    assert (found.kind, found.drops) == ("codel", 9)
    assert split(found)["drops_overflow"] == 2


def test_counts_are_those_since_another_time_and_peaks_stay() -> None:
    before = Counters("cake", {"drops": 3, "memory_used": 5, "memory_limit": 20})
    now = Counters("cake", {"drops": 10, "memory_used": 8, "memory_limit": 20})
    assert now.since(before).values == {"drops": 7, "memory_used": 8, "memory_limit": 20}
    assert now.since(before).marks is None
    assert Counters("dualpi2", {"ecn-mark": 4}).marks == 4


def test_other_devices_and_disciplines_are_not_meant() -> None:
    assert read(listed("codel"), "10:", "o2") is None
    assert split(Counters("sfq", {"drops": 3})) == {}


def test_a_tree_s_reasons_are_those_of_its_classes() -> None:
    inside = [
        {"kind": "fq_codel", "handle": "11:", "parent": "10:1", "drops": 5, "drop_overlimit": 2},
        {"kind": "tbf", "handle": "12:", "parent": "10:2", "drops": 3},
        {"kind": "codel", "handle": "13:", "parent": "12:1", "drops": 3, "ecn_mark": 4},
    ]
    tree = [*listed("prio", drops=9), *({"dev": "o0", **one} for one in inside)]
    found = read(tree, "10:", "o0")
    assert found is not None
    assert (found.kind, found.drops, found.marks) == ("prio", 9, 4)
    # Of one packet no discipline knows: it was too much for a FIFO that Linux does not list.
    assert {"drops_early": 6, "drops_overflow": 3}.items() <= split(found).items()
    assert found.since(found).drops == 0
    assert set(split(found.since(found)).values()) == {0}
    unknown = [*tree[:-2], {"dev": "o0", "kind": "sfq", "handle": "12:", "parent": "10:2"}]
    assert (odd := read(unknown, "10:", "o0")) is not None
    assert split(odd) == {}
