"""Draws the reference's figures, one a component, from simulations: `make figures`.

    python docs/_figures [hero | burst | SECTION[-NAME] ...]

Writes `docs/images/drawn/SECTION-NAME.png`, and what each shows into `captions.json` beside them;
and `docs/images/hero.svg`, README's first figure, with `hero-dark.svg` for dark pages;
and `docs/images/burst.png` of the guide to bursts.
Takes about a minute. Look at the figures that changed.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import balancers
import buffers
import burst
import hero
import queues
import small
import tcp
import traffic

from sojourn.show import style

OUT = Path(__file__).resolve().parents[1] / "images" / "drawn"
SECTIONS = {
    "queue": queues,
    "tcp": tcp,
    "app": traffic,
    "balancer": balancers,
    "buffer": buffers,
}


def _save(figure: Any, path: Path) -> None:
    """As a PNG of few colours, twice as fine as it is shown."""
    from PIL import Image

    drawn = io.BytesIO()
    with style.styled():
        figure.savefig(drawn, format="png", dpi=190, metadata={"Software": None})
    small.save(Image.open(drawn), path)


def main(wanted: list[str]) -> None:
    told = OUT / "captions.json"
    OUT.mkdir(parents=True, exist_ok=True)
    if not wanted or "hero" in wanted:
        hero.write(OUT.parent)
        print("hero")
    if not wanted or "burst" in wanted:
        _save(burst.draw(), OUT.parent / "burst.png")
        print("burst")
    for section, module in SECTIONS.items():
        for name in module.NAMES:
            key = f"{section}-{name}"
            if wanted and section not in wanted and key not in wanted:
                continue
            figure, caption = module.draw(name)
            _save(figure, OUT / f"{key}.png")
            captions = json.loads(told.read_text(encoding="utf-8")) if told.exists() else {}
            captions[key] = caption
            text = json.dumps(dict(sorted(captions.items())), indent=1, ensure_ascii=False)
            told.write_text(text + "\n", encoding="utf-8")
            print(key)


if __name__ == "__main__":
    main(sys.argv[1:])
