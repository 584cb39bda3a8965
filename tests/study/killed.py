"""A study in a process of its own, to be killed: FOLDER SEEDS PAUSE."""

from __future__ import annotations

import sys

from sojourn.study import Study
from tests.study.fakes import FakeEngine, scenario

if __name__ == "__main__":
    folder, seeds, pause = sys.argv[1:]
    print("ready", flush=True)
    Study(scenario()).vary(queue=["pfifo", "codel", "red"]).seeds(int(seeds)).run(
        out=folder, workers=2, engine=FakeEngine(pause=float(pause))
    )
    print("finished", flush=True)
