"""The comparison with other simulators: recorded figures, and the search for builds of ns-3."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def ns3(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """ns-3's half of the cross-check."""
    monkeypatch.syspath_prepend(str(root / "tests" / "crosscheck"))
    return importlib.import_module("ns3")


@pytest.fixture
def peers(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The program that runs all of them."""
    monkeypatch.syspath_prepend(str(root / "bench" / "peers"))
    return importlib.import_module("run")


def build(folder: Path, ns3: Any, version: str, profile: str) -> Path:
    """An empty build of ns-3, as far as names go."""
    (folder / "include" / "ns3").mkdir(parents=True)
    (folder / "include" / "ns3" / "core-module.h").touch()
    (folder / "lib").mkdir()
    for module in (*ns3.MODULES, *ns3.INDIRECT, "internet-apps"):
        (folder / "lib" / f"libns{version}-{module}{profile}.so").touch()
    return folder


@pytest.mark.parametrize(
    ("profile", "called"), [("", "release build"), ("-optimized", "optimized build")]
)
def test_a_build_of_ns3_says_its_version_and_profile(
    tmp_path: Path, ns3: Any, profile: str, called: str
) -> None:
    library = ns3.in_folder(build(tmp_path / "a", ns3, "3.44", profile))
    assert library.name == f"ns-3 3.44 ({called})"
    assert len(library.objects) == len(ns3.MODULES) + len(ns3.INDIRECT)


def test_a_folder_with_two_builds_is_refused(tmp_path: Path, ns3: Any) -> None:
    folder = build(tmp_path / "a", ns3, "3.37", "-optimized")
    (folder / "lib" / "libns3.37-core-debug.so").touch()
    with pytest.raises(ns3.Missing, match="has 2 libraries of ns-3's core"):
        ns3.in_folder(folder)


def test_all_programs_are_on_record_with_the_same_payload_and_rule(peers: Any) -> None:
    for where, works in peers.recorded().items():
        assert list(works) == list(peers.WORKS), where
        for work, columns in works.items():
            assert {name.split()[0].strip(",") for name in columns} == {"Sojourn", "ns-3", "htsim"}
            for name, column in columns.items():
                if column.rounds < 30:
                    continue  # An older record, of unequal payloads.
                ours = columns[peers.programs.own_name(column.single)]
                assert abs(column.payload / ours.payload - 1) <= 0.02, f"{name}: {work}"


def test_a_run_lasts_until_the_payload_is_the_same(peers: Any) -> None:
    rounds = importlib.import_module("interleave")
    work = peers.WORKS["64 flows, 10 Mbit/s"]

    def slow(cell: Any) -> Any:
        """Delivers half of what the bottleneck sends, after ten seconds of silence."""
        return rounds.Run(
            1, 1, 0, cell.rate / 2 * max(cell.duration_s - 10, 0) / cell.duration_s, 1.0
        )

    program = rounds.Program("slow", slow, single=True, build="")
    same = rounds.sized(program, work, 1e8)
    assert rounds.payload(same, slow(same)) == pytest.approx(1e8, rel=0.01)
    with pytest.raises(rounds.Unequal, match=r"none does not deliver 100\.0 MB within 2%"):
        rounds.sized(
            rounds.Program("none", lambda _: rounds.Run(0, 0, 0, 0.0, 1.0), True, ""), work, 1e8
        )


def test_only_costs_of_one_round_are_compared(peers: Any) -> None:
    rounds = importlib.import_module("interleave")
    work, run = peers.WORKS["64 flows, 10 Mbit/s"], rounds.Run(10, 5, 1, 8e6, 0.0)
    pace = [1.0, 3.0] * 20
    ours = rounds.Measured(work, run, tuple(pace))
    theirs = rounds.Measured(work, run, tuple(2 * p for p in pace))
    found = theirs.ratios(ours)
    assert (found.estimate, found.low, found.high) == (2.0, 2.0, 2.0)
    assert theirs.least_ratio(ours) == 2.0
    assert ours.hops == 3 * 15 + 1
