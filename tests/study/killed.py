"""A study in a process of its own, to be killed: FOLDER SEEDS PAUSE.

Then `many`, of an engine that makes several runs in a call, or ADDRESS TRACE of a cluster.
"""

from __future__ import annotations

import sys
from pathlib import Path

import sojourn.study.folder  # noqa: F401 - what it takes to load is no part of the test
from sojourn import extras
from sojourn.study import Study
from tests.study.clusters import TracedEngine
from tests.study.fakes import FakeEngine, ManyEngine, scenario

if __name__ == "__main__":
    folder, seeds, pause, *cluster = sys.argv[1:]
    engine, on = FakeEngine(pause=float(pause)), None
    if cluster == ["many"]:
        engine = ManyEngine(pause=float(pause))
    elif cluster:
        on, trace = cluster
        engine = TracedEngine(Path(trace), float(pause))
    extras.require("pandas", "pyarrow")
    print("ready", flush=True)
    Study(scenario()).vary(queue=["pfifo", "codel", "red"]).seeds(int(seeds)).run(
        out=folder, workers=2 if on is None else None, engine=engine, on=on
    )
    print("finished", flush=True)
