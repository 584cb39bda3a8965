"""Classes of a queue: their measurements, their tree, and changes of one of them."""

from __future__ import annotations

import pytest

from sojourn import Scenario, ScenarioError
from sojourn.scenario import classes

TREE = (
    "htb default 30; class 1:1 rate 18mbit; class 1:10 parent 1:1 rate 2mbit ceil 18mbit; "
    "class 1:30 parent 1:1 rate 8mbit ceil 18mbit; class 1:40 parent 1:1 rate 1mbit; "
    "qdisc parent 1:10 pfifo limit 50; filter dscp EF to 1:10"
)


def office(queue: str = TREE) -> Scenario:
    """Returns a line that a call and an upload share."""
    return Scenario.from_dict(
        {
            "duration": "4s",
            "warmup": "1s",
            "flows": [
                {"name": "call", "from": "a", "to": "b", "app": "voip", "dscp": "EF"},
                {"name": "upload", "from": "a", "to": "b", "app": "bulk"},
            ],
            "links": {
                "line": {"from": "a", "to": "b", "rate": "20mbit", "netem": "delay 5ms",
                         "queue": queue}
            },
        }
    )  # fmt: skip


def test_the_metrics_of_classes_add_up_to_those_of_the_link() -> None:
    metrics = office().run().metrics
    leaves = ("1:10", "1:30")
    for metric in ("departures", "drops", "throughput"):
        total = sum(metrics[f"line.{name}.{metric}"] for name in leaves)
        assert total == pytest.approx(metrics[metric])
    counts = [metrics[f"line.{name}.departures"] for name in leaves]
    delays = [metrics[f"line.{name}.sojourn_mean"] for name in leaves]
    mean = sum(n * delay for n, delay in zip(counts, delays, strict=True)) / sum(counts)
    assert mean == pytest.approx(metrics["sojourn_mean"])
    assert metrics["line.1:30.sojourn_p95"] > 10 * metrics["line.1:10.sojourn_p95"]
    assert "line.1:40.departures" not in metrics  # no packet came to this class


@pytest.mark.parametrize(
    "queue", ["prio", "ets bands 2", "drr; class 1:1 quantum 2000; filter all to 1:1"]
)
def test_every_discipline_with_classes_measures_them(queue: str) -> None:
    metrics = office(queue).run().metrics
    sent = [value for name, value in metrics.items() if name.startswith("line.1:")
            and name.endswith(".departures")]  # fmt: skip
    assert sum(sent) == metrics["departures"]


def test_a_tree_shows_filters_and_classes_that_none_reaches() -> None:
    root = classes.tree(TREE)
    assert [one.name for one in root.leaves] == ["1:10", "1:30", "1:40"]
    shown = "\n".join(classes.lines(root))
    assert max(map(len, shown.splitlines())) <= classes.WIDTH
    assert shown.count("unreachable") == 1
    assert shown.index("1:40") < shown.index("unreachable")
    assert "from dscp EF" in shown
    assert "from all other packets" in shown


def test_classes_within_a_class_are_below_it() -> None:
    root = classes.tree(
        "htb; class 1:1 rate 9mbit; qdisc parent 1:1 handle 20: prio bands 2; "
        "filter parent 20: dscp EF to 20:1"
    )
    (outer,) = root.classes
    assert (outer.queue, [one.name for one in outer.classes]) == ("prio bands 2", ["20:1"])


def test_one_class_is_changed() -> None:
    changed = office().replace(
        {"queue.class[1:30]": "fq_codel", "links.line.queue.class[1:10].rate": "5mbit"}
    )
    (parent,) = classes.tree(changed.queue).classes
    ten, thirty, forty = parent.classes
    assert (ten.words, ten.queue) == ("rate 5mbit ceil 18mbit", "pfifo limit 50")
    assert (thirty.words, thirty.queue) == ("rate 8mbit ceil 18mbit", "fq_codel")
    assert forty.is_fifo


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("queue.class[1:41]", "fq_codel", "its classes: 1:1, 1:10, 1:30, 1:40"),
        ("queue.class[1:40]", "fqcodel", "did you mean `fq_codel`?"),
        ("queue.class[1:40].rat", "5mbit", "did you mean `rate`?"),
        ("links.lin.queue.class[1:40]", "fq_codel", "did you mean `links.line.queue`?"),
    ],
)
def test_a_wrong_change_of_a_class_says_what_is_allowed(key: str, value: str, message: str) -> None:
    with pytest.raises(ScenarioError) as error:
        office().replace({key: value})
    assert message in str(error.value)
    assert key in str(error.value)
