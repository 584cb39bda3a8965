"""A search in a process of its own, to be killed: FOLDER PAUSE."""

from __future__ import annotations

import sys

from sojourn.tune.search import search
from sojourn.tune.settings import Effort, Goal
from tests.tune.fakes import Landscape, scenario

VARY = ["target 1ms..100ms", "interval"]
EFFORT = Effort(trials=24, seeds=3, batch=4, proof=3, finalists=2)

if __name__ == "__main__":
    folder, pause = sys.argv[1:]
    print("ready", flush=True)
    search(
        scenario(),
        Goal(VARY),
        EFFORT,
        out=folder,
        workers=2,
        engine=Landscape(pause=float(pause)),
    )
    print("finished", flush=True)
