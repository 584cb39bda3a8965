"""The comparison with other simulators: recorded figures, and the search for builds of ns-3."""

from __future__ import annotations

import importlib
import json
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


def test_all_programs_are_on_record_with_comparable_work(root: Path, peers: Any) -> None:
    recorded = json.loads((root / "bench" / "peers" / "recorded.json").read_text())
    assert list(recorded) == list(peers.WORKS)
    for work, columns in recorded.items():
        kinds = {name.split()[0] for name in columns}
        assert kinds == {"Sojourn", "ns-3", "htsim"}, work
        ours = columns["Sojourn"]
        for name, column in columns.items():
            packets = column["packets"] / ours["packets"]
            assert 0.75 < packets < 1.33, f"{name}: {work} is not the same work"


def test_a_program_that_was_not_run_is_shown_as_recorded(peers: Any) -> None:
    old = peers.recorded()
    work = next(iter(old))
    now = {work: {"Sojourn": old[work]["Sojourn"]}}
    shown = {line[1]: line[-1] for line in peers.lines(now, old)}
    assert shown["Sojourn"] == ""
    assert shown["htsim"] == f"recorded {old[work]['htsim'].date}"
