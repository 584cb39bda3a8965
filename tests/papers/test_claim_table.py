"""Tables of claims: what their entries mean, and errors that name the place."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from sojourn.papers.claim_table import ClaimTable
from sojourn.papers.words import region
from sojourn.stats import (
    AllIn,
    Claim,
    ClaimError,
    Every,
    MeanIn,
    PracticallyEqual,
    Ratio,
    Region,
)

HEAD = """
withdrawn_on = "2026-11-23"
[names]
reds = ["RED", "GRED"]
less = [-inf, 0.95]
"""


def claims(folder: Path, text: str, **names: object) -> tuple[Claim, ...]:
    (folder / "claims.toml").write_text(HEAD + text, encoding="utf-8")
    return ClaimTable(str(folder / "claims.py")).claims("web", names)


def test_a_claim_is_repeated_with_names_in_texts_and_levels(tmp_path: Path) -> None:
    text = """
    [[web]]
    repeat = { m = "$reds", "n,word" = "$loads" }
    id = "loss-{m}-{n}"
    text = "{m} loses less at {word} load"
    ratio = "loss"
    a = { mechanism = "{m}", flows = "{n}" }
    b = { mechanism = "TD", flows = "{n}" }
    region = "$less"
    """
    found = claims(tmp_path, text, loads=((16, "light"), (256, "heavy")))
    assert [c.id for c in found] == ["loss-RED-16", "loss-RED-256", "loss-GRED-16", "loss-GRED-256"]
    assert found[1] == Ratio(
        id="loss-RED-256", text="RED loses less at heavy load", metric="loss",
        a={"mechanism": "RED", "flows": 256}, b={"mechanism": "TD", "flows": 256},
        region=Region(high=0.95),
    )  # fmt: skip


def test_cells_are_the_combinations_of_their_levels(tmp_path: Path) -> None:
    """All are in one claim of the kind `all`; other kinds have a part for each."""
    text = """
    [[web]]
    id = "{id}"
    text = "short"
    repeat = { id = "x" }
    KIND = "delay"
    cells = { mechanism = ["TD", "*reds"], "rate,rtt" = [[10, 20], [50, 5]] }
    region = [0, 1]
    """
    (every,) = claims(tmp_path, text.replace("KIND", "mean"))
    assert isinstance(every, Every)
    assert [part.text for part in every.parts][:3] == ["TD, 10, 20", "TD, 50, 5", "RED, 10, 20"]
    (whole,) = claims(tmp_path, text.replace("KIND", "all"))
    assert isinstance(whole, AllIn)
    assert whole.cells == tuple(p.cell for p in every.parts if isinstance(p, MeanIn))
    assert len(whole.cells) == 6


def test_parts_inherit_the_fields_of_their_claim(tmp_path: Path) -> None:
    text = """
    [[web]]
    id = "both"
    text = "both"
    mean = ["delay", "loss"]
    parts = [{ cell = { flows = 1 }, region = [1, inf] }, { region = "$less" }]
    """
    (every,) = claims(tmp_path, text)
    assert [part.metric for part in every.parts] == ["delay", "loss", "delay", "loss"]


def test_an_entry_without_its_condition_is_omitted(tmp_path: Path) -> None:
    text = """
    [[web]]
    id = "a"
    text = "a"
    when = "$sizes"
    mean = "delay"
    region = [0, 1]
    """
    assert [len(claims(tmp_path, text, sizes=sizes)) for sizes in (True, False)] == [1, 0]


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        ('mean = "delay"', "mean needs 'region'"),
        ('mean = "delay"\nregion = [0, 1]\ncel = {}', "no 'cel': did you mean `cell`?"),
        ('mean = "delay"\nregion = "$lss"', "no name `lss`; existing: reds, less"),
        ('mean = "delay"\nregion = { of = 2 }', "is no region"),
        ("region = [0, 1]", "one of mean, ratio"),
        ('mean = "delay"\nregion = [0, 1]\ncells = 4', "levels are a table of factors, not 4"),
    ],
)
def test_an_error_names_file_group_and_claim(tmp_path: Path, entry: str, error: str) -> None:
    with pytest.raises(ClaimError) as caught:
        claims(tmp_path, f'[[web]]\nid = "wrong"\ntext = ""\n{entry}')
    assert "claims.toml, [[web]], wrong: " in str(caught.value)
    assert error in str(caught.value)


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(ClaimError, match=r"claims\.toml: Expected"):
        claims(tmp_path, "[[web")


@pytest.mark.parametrize(
    ("value", "limits"),
    [
        (("1/3", "2/3"), (1 / 3, 2 / 3)),
        ("higher", (1, math.inf)),
        ("equal", (1 / 1.05, 1.05)),
        ({"about": 2.0}, (1.8, 2.2)),
        ({"about": (-1, 2)}, (-1.1, 2.2)),
        ({"percent": -50}, (0.4, 0.6)),
        ({"percent": 30}, (1.24, 1.36)),
        ({"percent": 3}, (0.98, 1.08)),
        ({"times": 0.1}, (0.1 / 2**0.5, 0.1 * 2**0.5)),
        ({"proportional": (800, 1200)}, (1.2, 1.875)),
        ({"share": "roughly the same"}, (1 / 3, 2 / 3)),
        ({"share": "dominates"}, (0.8, 1)),
    ],
)
def test_regions_are_written_in_the_paper_s_words(
    value: object, limits: tuple[float, float]
) -> None:
    """The words of all studies have one meaning."""
    assert region(value) == pytest.approx(limits)


@pytest.mark.parametrize("value", ["highest", {"times": 1.2}, {"of": 2}, [1], {"share": "big"}])
def test_a_value_that_is_no_region_is_named(value: object) -> None:
    with pytest.raises(ClaimError, match=r"is no region|no word '(highest|big)'.*higher, lower"):
        region(value)


def test_about_half_is_no_reduction_by_two_thirds() -> None:
    low, high = region({"percent": -50})
    assert not low <= 1 - 0.67 <= high


def test_margins_are_words_and_readings_are_declared(tmp_path: Path) -> None:
    text = """
    written_before_runs = ["old-*"]
    [[web]]
    id = "same"
    text = "same"
    equal = "delay"
    among = "mechanism"
    margin = "similar"
    [[readings]]
    name = "plain"
    assumes = { framing = "none" }
    calibrated = ["figure-2"]
    """
    (claim,) = claims(tmp_path, text.replace("written_before_runs", "names.unused"))
    assert isinstance(claim, PracticallyEqual)
    assert claim.margin == 0.25
    (tmp_path / "claims.toml").write_text(text.strip(), encoding="utf-8")
    declared = ClaimTable(str(tmp_path / "claims.py")).declared()
    assert declared.before == ("old-*",)
    assert declared.readings["plain"].assumes == {"framing": "none"}
    chosen = MeanIn(id="figure-2-plain", text="", metric="x", region=Region(), reading="plain")
    assert declared.labels(chosen) == ["exploratory", "calibrated by figure-2"]
    assert declared.labels(replace(chosen, id="old-1", reading="")) == []
    assert declared.chose(chosen)
    assert not declared.chose(replace(chosen, id="figure-6-plain"))
