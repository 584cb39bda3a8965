"""The site's search: words that people search lead to a page whose first screen answers."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote

import pytest
from playwright.sync_api import Page

from tests.browsers import Watched, browser, opened
from tests.docs.conftest import Site

__all__ = ["browser", "opened"]

Opened = Callable[..., Watched]

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow, pytest.mark.timeout(1200)]

ANSWERS = {
    "bufferbloat": "compare queues for your line",
    "SQM": "sojourn tc --format sqm",
    "OpenWrt": "story of a DSL line",
    "router": "deploy a queue",
    "flent": "flent and Sojourn",
    "RRUL": "flent and Sojourn",
    "iperf3": "real runs",
    "Mininet": "Mininet and Sojourn",
    "NeST": "NeST and Sojourn",
    "ns-3": "ns-3 and Sojourn",
    "OMNeT++": "OMNeT.* and Sojourn",
    "Rattan": "Rattan and Sojourn",
    "LibreQoS": "LibreQoS and Sojourn",
    "latency": "queueing delay",
    "lag": "queueing delay",
    "ping": "sojourn new --loaded",
    "jitter": "the cure",
    "gaming": "fq_codel",
    "packet loss": "a full receive buffer",
    "QoS": "trees of disciplines",
    "traffic shaping": "simulate the tc script that you have",
    "qdisc": "all disciplines",
    "CAKE": "shaper, flow queues and AQM",
    "fq_codel": "fq_codel",
    "netem": "impairments",
    "L4S": "L4S, judged",
    "BBR": "bbr3",
    "VoIP": "ITU-T G.107",
    "MOS": "ITU-T G.107",
    "speed test": "responsiveness of a line",
    "DSL": "sojourn new --line",
    "LTE": "a phone",
    "Starlink": "a satellite",
    "Wi-Fi": "not modelled",
    "docker": "install in a container",
    "Kubernetes": "the queue for a pod",
    "macOS": "supported systems",
    "Windows": "supported systems",
    "pip install": "from a clone or a wheel",
    "syslog": "sojourn rcvbuf",
    "Cassandra": "number of replicas",
    "troubleshooting": "sojourn doctor",
    "trust": "Can I trust it",
    "citation": "CITATION.cff",
}
"""Words, and a part of the answer in the first screen of the first page found."""

SHOWN = """() => [...document.querySelectorAll('article :is(h1, h2, tr, p, pre)')]
    .filter(e => {
        const place = e.getBoundingClientRect();
        return place.top >= -5 && place.bottom <= innerHeight;
    })
    .map(e => e.innerText).join(' ').replace(/\\s+/g, ' ')"""


ARRIVED = """() => {
    if (document.readyState !== 'complete' || !location.hash)
        return document.readyState === 'complete';
    const place = document.querySelector(location.hash).getBoundingClientRect();
    return place.top >= -5 && place.bottom <= innerHeight;
}"""
"""Whether the page is loaded, and scrolled to the target of its address."""


def first_screen(page: Page, site: Site, words: str) -> str:
    """Searches the words, opens the first page found, and returns the text on its first screen."""
    page.goto(f"{(site.folder / 'search.html').as_uri()}?q={quote(words)}")
    page.locator("#search-results li > a").first.click()
    page.wait_for_function("!location.pathname.endsWith('search.html') && document.fonts.ready")
    page.wait_for_function(ARRIVED)
    text: str = page.evaluate(SHOWN)
    return text


def test_searched_words_lead_to_their_answer(documentation: Site, opened: Opened) -> None:
    page = opened(
        (documentation.folder / "index.html").as_uri(), viewport={"width": 1280, "height": 800}
    ).page
    missed = {
        words: screen[:300]
        for words, answer in ANSWERS.items()
        if not re.search(answer, screen := first_screen(page, documentation, words))
    }
    assert missed == {}
