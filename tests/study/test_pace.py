"""How many runs are made in a call, and what that leaves of a cluster's time."""

from __future__ import annotations

import heapq

import pytest

from sojourn.study.cluster import AHEAD, Cluster
from sojourn.study.runner import flush_after
from sojourn.study.together import Pace
from tests.study.fakes import FakeEngine, ManyEngine


def test_the_pace_follows_the_time_that_runs_take() -> None:
    pace = Pace(ManyEngine())
    assert pace.size(1000, 2) == 1
    pace.learn([0.01, 0.01])
    assert pace.size(1000, 2) == 20
    assert pace.size(16, 2) == 4
    assert pace.size(1, 2) == 1
    pace.learn([0.03])
    assert pace.size(1000, 2) == 10
    pace.learn([10.0])
    assert pace.size(1000, 2) == 1
    alone = Pace(FakeEngine())
    alone.learn([0.001])
    assert alone.size(1000, 2) == 1


class Remote(ManyEngine):
    """An engine whose calls go as far as those of a cluster."""

    call_seconds = Cluster.call_seconds


def idle(workers: int, cells: int, cell: float, latency: float, scheduler: float) -> float:
    """Return the share of a cluster's time without work, by simulated time.

    A call takes the scheduler's time, one call after the other, and the latency there and back. A
    worker does one call after the other.
    """
    pace, callers = Pace(Remote()), AHEAD * workers
    ready = [0.0] * workers
    scheduled, last, waiting = 0.0, 0.0, cells
    free = [(0.0, 0)] * callers
    while free:
        now, made = heapq.heappop(free)
        pace.learn([cell] * made)
        if not waiting:
            continue
        count = min(pace.size(waiting, callers), waiting)
        waiting -= count
        scheduled = max(scheduled, now) + scheduler
        # As Dask does: to the worker with the least to do.
        worker = min(range(workers), key=ready.__getitem__)
        ready[worker] = max(ready[worker], scheduled + latency) + count * cell
        last = max(last, ready[worker])
        heapq.heappush(free, (ready[worker] + latency, count))
    return 1 - cells * cell / (workers * last)


@pytest.mark.parametrize("latency", [0.001, 0.02, 0.1])
def test_workers_of_a_cluster_have_something_to_do(latency: float) -> None:
    """100,000 runs of 10 ms on 100 workers; a scheduler that needs 1 ms for a call."""
    assert idle(100, 100_000, 0.01, latency, 0.001) <= 0.05


def test_a_long_study_writes_less_often() -> None:
    assert [flush_after(t) for t in (0.0, 20.0, 100.0, 1e5)] == [0.2, 0.2, 1.0, 5.0]


def test_few_workers_and_long_runs() -> None:
    assert idle(2, 1000, 0.1, 0.02, 0.001) <= 0.05
    assert idle(100, 2000, 10.0, 0.02, 0.001) <= 0.05
