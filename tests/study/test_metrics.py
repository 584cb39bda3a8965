"""The registry of metrics: complete, of all that runs measure, and the only place of its facts."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from sojourn import Scenario, metrics, templates
from sojourn.scenario.errors import QuestionError
from sojourn.scenario.question import expect
from sojourn.study import compare
from tests.scenario.texts import DUMBBELL, HOME, LAN, SWITCH

PACKAGE = Path(metrics.__file__).parent
SHORT = {"duration": "2s", "warmup": "1s"}


def test_every_metric_is_better_worse_or_neutral() -> None:
    for metric in metrics.registry().values():
        assert metric.better in ("lower", "higher", "neutral"), metric.name
        assert metric.felt in ("interactive", "bulk", "operator", "store-client", "nobody")
        assert metric.label, metric.name


def test_every_quantity_has_a_smallest_difference_and_its_source() -> None:
    for metric in metrics.registry().values():
        assert metric.interest.source, metric.name
        if metric.better != "neutral":
            assert metric.interest.at(1.0) > 0, metric.name
    assert metrics.registry()["delay_p99"].interest.at(0.02) == 0.002
    assert metrics.registry()["delay_p99"].interest.at(-1.0) == pytest.approx(0.05)


def _store() -> Scenario:
    return templates.template("edge").scenario().replace({"store.requests": 60})


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: Scenario.from_toml(DUMBBELL).replace(SHORT), id="flows"),
        pytest.param(lambda: Scenario.from_toml(HOME).replace(SHORT), id="voip"),
        pytest.param(lambda: Scenario.from_toml(LAN).replace(SHORT), id="lan"),
        pytest.param(lambda: Scenario.from_toml(SWITCH).replace(SHORT), id="ports"),
        pytest.param(lambda: templates.template("home").scenario().replace(SHORT), id="web"),
        pytest.param(lambda: templates.template("rack").scenario(), id="rack"),
        pytest.param(_store, id="store"),
    ],
)
def test_every_column_of_a_run_is_in_the_registry(make: Callable[[], Scenario]) -> None:
    run = make().run(1)
    for column in run.metrics:
        metric = metrics.find(column)
        assert metric is not None, column
        assert metric.form == "number", column
        assert metric.unit == run.units[column], column


def test_the_choices_of_a_balancer_can_be_compared(root: Path) -> None:
    scenario = Scenario.load(root / "examples" / "servers.toml").replace(SHORT)
    policies = {"balancers.lb.policy": ["round-robin", "random"]}
    found = compare(scenario, seeds=2, by="lb.choices_jain", subject_to="", vary=policies)
    assert found.better == "higher"
    assert "evenness of the choices (Jain's index) of lb" in found.answer()


def test_metrics_of_applications_are_refused_without_them() -> None:
    with pytest.raises(QuestionError, match="flows have this metric"):
        expect("bulk.pages", ["link"], {"bulk": "bulk"})
    with pytest.raises(QuestionError, match="not a number for"):
        expect("bulk.received_bytes", ["link"], {"bulk": "bulk"})


def test_views_are_of_the_registry() -> None:
    assert metrics.view("compare")
    felt = {"mos", "jitter", "page_mean", "fct_mean", "responsiveness_08"}
    assert set(metrics.views("felt")) == felt
    assert dict(metrics.labelled("summary.link"))["sojourn_p95"] == "95 %"
    with pytest.raises(LookupError, match="no view"):
        metrics.views("nonsense")


# Tables that name metrics for a reason of their own.
OWN_TABLES = {
    "lab/kernel/tables.py": "what cannot happen on the kernel's links",
    "lab/validate.py": "the tolerances that a validation promises",
    "lab/store/findings.py": "the words of the clients' protocol",
    "lab/cassandra/client.py": "the words of the clients' protocol",
    "rcvbuf/metrics.py": "the state of sockets, exported to Prometheus",
    "study/coexistence.py": "what the coexistence matrix is about",
    "study/expected.py": "the metrics whose error the record of cells has",
}


def _names_in(table: ast.expr) -> set[str]:
    """Metrics that a table of constants names; none if any of its values is computed."""
    if not all(
        isinstance(
            node, ast.Constant | ast.Tuple | ast.List | ast.Set | ast.Dict | ast.Load | ast.Starred
        )
        for node in ast.walk(table)
    ):
        return set()
    own = {m.name for m in metrics.registry().values() if m.of != "text"}
    texts = (n.value for n in ast.walk(table) if isinstance(n, ast.Constant))
    named = {t for t in texts if isinstance(t, str) and metrics.base(t) in own}
    # Single words mean other things too: one of the names must be a metric's without doubt.
    return named if any("_" in t for t in named) else set()


def test_no_other_file_has_a_table_of_metrics() -> None:
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        name = file.relative_to(PACKAGE).as_posix()
        # A study is about the metrics that its paper names.
        if name.startswith("papers/") or name in OWN_TABLES:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
                names = _names_in(node)
                if len(names) > 1:
                    found[f"{name}:{node.lineno}"] = names
    assert not found
