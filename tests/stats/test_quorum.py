"""phi exactly, and the order-statistics model against counting and against the simulator."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.stats import StatisticsError
from sojourn.stats.quorum import LEVELS, QuorumModel, needed, phi, phi_table


def test_phi_is_the_paper_s_table_before_it_was_cut() -> None:
    table = phi_table()
    assert table == {
        2: {3: Fraction(1), 4: Fraction(1), 5: Fraction(1)},
        3: {3: Fraction(1, 2), 4: Fraction(13, 24), 5: Fraction(17, 30)},
        4: {4: Fraction(2, 3), 5: Fraction(41, 60)},
        5: {5: Fraction(1, 2)},
    }
    cut = {rf: [int(100 * p) / 100 for p in row.values()] for rf, row in table.items()}
    assert cut == {2: [1, 1, 1], 3: [0.5, 0.54, 0.56], 4: [0.66, 0.68], 5: [0.5]}


def test_phi_of_one_replica_has_no_second_term() -> None:
    assert [phi(n, 1) for n in (1, 3, 5)] == [0, Fraction(2, 3), Fraction(4, 5)]


@given(st.integers(1, 60), st.data())
def test_phi_is_what_counting_gives(nodes: int, data: st.DataObject) -> None:
    rf = data.draw(st.integers(1, nodes))
    level = data.draw(st.integers(1, rf))
    # Each node coordinates once: it sends to the replicas other than itself.
    total = Fraction(0)
    for coordinator in range(nodes):
        inside = coordinator < rf
        sent, wanted = rf - inside, level - inside
        total += Fraction(wanted, sent) if sent else 0
    assert phi(nodes, rf, level) == total / nodes
    assert 0 <= phi(nodes, rf, level) <= 1


def test_levels() -> None:
    assert [needed(level, 5) for level in LEVELS] == [1, 2, 3, 3, 5]
    with pytest.raises(StatisticsError, match="3 answers of 2"):
        needed("three", 2)
    with pytest.raises(StatisticsError, match="must be 1 to 3"):
        phi(3, 4)
    with pytest.raises(StatisticsError, match="unknown"):
        needed("most", 3)


def test_without_loss_a_write_takes_its_ways() -> None:
    model = QuorumModel(5, 1, 0.05, 0.0, client=0.02, work=0.001)
    assert model.mean == pytest.approx(0.021 + 0.8 * 0.1)
    assert (model.quantile(0.1), model.quantile(0.9)) == pytest.approx((0.021, 0.121))


def test_the_model_is_what_counting_gives() -> None:
    """At most one loss on each way, both ways of two replicas, by enumeration."""
    p, rto, delay = 0.1, 0.3, 0.05
    model = QuorumModel(2, 2, delay, p, level="all", rto=0.2)
    # One replica coordinates always, so one answer is waited for: two ways.
    mean = sum(
        p ** (a + b) * (1 - p) ** 2 * (2 * delay + ((2**a - 1) + (2**b - 1)) * rto)
        for a, b in product(range(12), repeat=2)
    )
    assert model.mean == pytest.approx(mean, rel=1e-6)
    # models.md's Monte Carlo, five nodes, 7.5 % and 50 ms, client leg of 10 ms.
    means = [1e3 * QuorumModel(5, rf, 0.05, 0.075, client=0.01).mean for rf in range(1, 6)]
    assert means == pytest.approx([132, 190, 120, 131, 113], abs=2)


def test_two_replicas_are_worst_and_more_loss_is_slower() -> None:
    at = [QuorumModel(5, rf, 0.05, 0.075).mean for rf in range(1, 6)]
    assert max(at) == at[1]
    assert min(at[1:]) == at[4]
    for rf in range(1, 6):
        means = [QuorumModel(5, rf, 0.05, p).mean for p in (0.0, 0.005, 0.025, 0.075)]
        assert means == sorted(means)
