"""The first figure of the README: packets of a call behind three queues, as a film of a real run.

Each packet moves at its simulated times. In a lane a packet's distance from the link is the time
that it still waits. All packets have one period, so that the film has no seam.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import sojourn
from sojourn.metrics import quality
from sojourn.play import files
from sojourn.play.catalogue import catalogue
from sojourn.templates import template

if TYPE_CHECKING:
    from collections.abc import Iterator

QUEUES = {
    "pfifo limit 1000p": "one plain queue",
    "codel": "one short queue",
    "fq_codel": "a queue for each flow",
}
CONNECTIONS = 32
BEGIN, PERIOD = 12.0, 0.9
"""Simulated seconds at which the film begins, and of its length: a multiple of a call's 20 ms."""
SLOWER = 12
BAR = 9
"""Packets of the upload that are drawn as one bar."""
WIDTH, EXIT, SCALE = 700, 590, 720
"""Width, place of the link, and pixels of a second's wait."""
FLIGHT = 0.1
LANE, TOP = 92, 52
COLOURS = {
    "hero": ("#ffffff", "#1d2329", "#56606b", "#d3d9df", "#7d93a8", "#e69f00", "#b3261e"),
    "hero-dark": ("#12161a", "#e4e8ec", "#a3adb7", "#39424b", "#8496a8", "#f2be4b", "#ff8f7a"),
}
"""Page, ink, faint ink, lines, upload, call and drops of each theme."""


@dataclass(frozen=True)
class Item:
    """Packets that are drawn together; times in simulated seconds."""

    kind: str
    arrival: float
    wait: float
    row: float
    dropped: bool


def write(folder: Path) -> None:
    """Writes the figure for light and for dark pages."""
    scenario = template("home").scenario().replace({"flows.0.count": CONNECTIONS})
    compared = sojourn.compare(scenario, queues=list(QUEUES), seeds=10, by="voip.mos")
    mos = [float(np.mean(values)) for values in compared.values("voip.mos").values()]
    lanes = [list(_items(film, own)) for film, own in zip(_films(), (0, 0, 1), strict=True)]
    for name, colours in COLOURS.items():
        (folder / f"{name}.svg").write_text(_draw(lanes, mos, colours), encoding="utf-8")


def _films() -> list[dict[str, list[float]]]:
    """Returns the packets behind each queue, from the engine for browsers."""
    request = {
        "id": "home",
        "state": {"counts": {"0": CONNECTIONS}},
        "queues": list(QUEUES),
        "until": round((BEGIN + 2 * PERIOD) * 1e9),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.page(catalogue()).items():
            (Path(folder) / name).write_bytes(content)
        script = Path(__file__).with_name("films.mjs")
        done = subprocess.run(
            ["node", str(script), folder, json.dumps(request)], capture_output=True, check=True
        )
    films: list[dict[str, list[float]]] = json.loads(done.stdout)
    return films


def _items(film: dict[str, list[float]], own: int) -> Iterator[Item]:
    """Generates the packets that arrive within a period; `own` is whether each flow has a queue."""
    offered, group = np.array(film["offered"]) / 1e9, np.array(film["group"])
    left = np.array([np.inf if one is None else one for one in film["left"]]) / 1e9
    dropped = np.isin(np.arange(len(offered)), film["drops"])
    within = (offered >= BEGIN) & (offered < BEGIN + PERIOD)
    for i in np.flatnonzero(within & (group == 1)):
        yield Item("c", offered[i], left[i] - offered[i], -14 * own, bool(dropped[i]))
    for i in np.flatnonzero(within & (group == 0) & dropped):
        yield Item("u", offered[i], left[i] - offered[i], 8 * own, True)
    sent = np.flatnonzero(within & (group == 0) & ~dropped)
    sent = sent[np.argsort(left[sent])]
    for bar in np.array_split(sent, len(sent) // BAR):
        arrival, leaving = float(np.mean(offered[bar])), float(np.mean(left[bar]))
        yield Item("b", arrival, leaving - arrival, 8 * own, False)


def _moving(item: Item, y: float) -> str:
    """Returns the symbol of packets with its motion, and a cross from their drop on."""
    tail, beyond = EXIT - SCALE * item.wait, WIDTH + 20
    y += item.row
    joined = FLIGHT / PERIOD
    if not item.dropped:
        gone = joined + (item.wait + (beyond - EXIT) / SCALE) / PERIOD
        return _motion(item, item.kind, (joined, gone), [(-12, y), (tail, y), (beyond, y)])
    fallen = joined + 0.06
    falls = _motion(item, item.kind, (joined, fallen), [(-12, y), (tail, y), (tail, y + 32)])
    return falls + _motion(item, "x", (joined, fallen), [(-12, -12), (tail, y), (tail, y + 32)])


def _motion(
    item: Item, symbol: str, times: tuple[float, float], points: list[tuple[float, float]]
) -> str:
    """Returns a symbol that moves between three points, and is not shown afterwards."""
    seconds = PERIOD * SLOWER
    begin = (item.arrival - FLIGHT - BEGIN) * SLOWER - seconds
    hidden = [points[0]] if symbol == "x" else []
    before = [times[0]] if symbol == "x" else []
    path = [points[0], *hidden, *points[1:], (-20, -20), (-20, -20)]
    keys = [0.0, *before, *times, times[1], 1.0]
    values = ";".join(f"{x:.0f},{y:.0f}" for x, y in path)
    listed = ";".join(f"{t:.3f}".rstrip("0").rstrip(".") for t in keys)
    return (
        f'<use href="#{symbol}" transform="translate(-20)"><animateTransform attributeName='
        f'"transform" type="translate" dur="{seconds:g}s" begin="{begin:.2f}s" '
        f'repeatCount="indefinite" keyTimes="{listed}" values="{values}"/></use>'
    )


def _still(item: Item, y: float) -> str:
    """Returns the symbol of packets that wait when the film begins."""
    ago = PERIOD - (item.arrival - BEGIN)
    if item.dropped or ago > item.wait:
        return ""
    x = EXIT - SCALE * (item.wait - ago)
    return f'<use href="#{item.kind}" transform="translate({x:.0f},{y + item.row:.0f})"/>'


def _draw(lanes: list[list[Item]], mos: list[float], colours: tuple[str, ...]) -> str:
    page, ink, faint, line, upload, call, bad = colours
    height = TOP + LANE * len(lanes) + 26
    width = SCALE * BAR * 1514 * 8 / 20e6 - 0.6
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="system-ui,-apple-system,Segoe UI,Roboto,DejaVu Sans,sans-serif">'
        "<title>A call behind three queues while 32 connections upload</title>"
        "<style>.still{display:none}@media(prefers-reduced-motion:reduce){.still{display:inline}"
        ".film{display:none}}</style><defs>"
        f'<circle id="c" r="5.5" fill="{call}" stroke="{ink}"/>'
        f'<rect id="b" x="{-width / 2:.1f}" y="-9" width="{width:.1f}" height="18" '
        f'fill="{upload}"/>'
        f'<rect id="u" x="-1.5" y="-6" width="3" height="12" fill="{upload}"/>'
        f'<path id="x" d="M-5-5L5 5M5-5L-5 5" stroke="{bad}" stroke-width="2.4"/></defs>'
        f'<rect width="{WIDTH}" height="{height}" rx="10" fill="{page}"/>'
        f'<text x="16" y="29" font-size="19" font-weight="700" fill="{ink}">A call while '
        f"{CONNECTIONS} connections upload</text>"
        f'<path d="M446 18L456 28M456 18L446 28" stroke="{bad}" stroke-width="2.4"/>'
        f'<text x="462" y="29" font-size="16" fill="{faint}">dropped</text>'
        f'<circle cx="545" cy="23" r="5.5" fill="{call}" stroke="{ink}"/>'
        f'<text x="556" y="29" font-size="16" fill="{faint}">call</text>'
        f'<rect x="604" y="14" width="9" height="18" fill="{upload}"/>'
        f'<text x="619" y="29" font-size="16" fill="{faint}">upload</text>'
    )
    parts = [head]
    for i, (queue, items) in enumerate(zip(QUEUES, lanes, strict=True)):
        top = TOP + i * LANE
        y, words = top + 52, f"{mos[i]:.1f} of 4.5: {quality(mos[i])}"
        parts.append(
            f'<text x="16" y="{top + 18}" font-size="18" fill="{faint}"><tspan font-weight="700" '
            f'fill="{ink}">{queue.split()[0]}</tspan> {QUEUES[queue]}</text>'
            f'<text x="684" y="{top + 18}" font-size="18" font-weight="700" text-anchor="end" '
            f'fill="{bad if mos[i] < 3.6 else ink}">call {words}</text>'
            f'<path d="M16 {y - 24}H{EXIT}V{y - 12}H{WIDTH}M16 {y + 26}H{EXIT}V{y + 12}H{WIDTH}" '
            f'fill="none" stroke="{line}" stroke-width="2"/>'
        )
        for css, draw in (("film", _moving), ("still", _still)):
            drawn = "".join(draw(item, y) for item in sorted(items, key=lambda one: one.kind))
            parts.append(f'<g class="{css}">{drawn}</g>')
    axis = TOP + LANE * len(lanes) + 8
    parts += [
        f'<text x="{EXIT - SCALE * wait:.0f}" y="{axis}" font-size="14" text-anchor="middle" '
        f'fill="{faint}">waits {wait:g} s</text>'
        for wait in (0.2, 0.4, 0.6)
    ]
    parts.append(
        f'<text x="{EXIT}" y="{axis}" font-size="14" text-anchor="middle" fill="{faint}">the link'
        f"</text></svg>\n"
    )
    return "".join(parts)
