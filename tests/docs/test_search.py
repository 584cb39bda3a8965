"""The site's search: words lead to a page whose first screen answers, questions by two clicks."""

from __future__ import annotations

import re
from collections.abc import Callable

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
    "iperf3": "real runs",
    "Mininet": "Mininet and Sojourn",
    "NeST": "NeST and Sojourn",
    "ns-3": "ns-3 and Sojourn",
    "OMNeT++": "OMNeT.* and Sojourn",
    "Rattan": "Rattan and Sojourn",
    "LibreQoS": "LibreQoS and Sojourn",
    "latency": "queueing delay",
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
    "speed test": "responsiveness of a line",
    "DSL": "sojourn new --line",
    "LTE": "a phone",
    "Starlink": "a satellite",
    "Wi-Fi": "not modelled",
    "docker": "install in a container",
    "Kubernetes": "the queue for a pod",
    "macOS": "supported systems",
    "pip install": "from a clone or a wheel",
    "syslog": "sojourn rcvbuf",
    "Cassandra": "number of replicas",
    "troubleshooting": "sojourn doctor",
    "trust": "Can I trust it",
    "citation": "CITATION.cff",
}
"""Words, and a part of the answer in the first screen of the first page found."""

QUESTIONS = {
    "which SQM settings suit my cable modem?": ("sojourn tc my-link.toml", ""),
    "is my own AQM better than CoDel": ("FILE:CLASS", "try your own queue"),
    "statsd loses UDP packets, how large must the buffer be?": (
        "set SO_RCVBUF to",
        "guide",
    ),
    "which class of my HTB script delays the phones": ("each class with its", "each class"),
    "which consistency level for five shops on 4G": ("sojourn advise store", ""),
    "test my QUIC stack over an emulated link in CI": ("sojourn ab", ""),
    "my ping rises to 400 ms when I upload": ("sojourn fit", ""),
    "can I run it on my Mac?": ("a container", "supported systems"),
    "why do games lag when someone watches a film": ("fq_codel", ""),
    "how do I undo the tc commands?": ("the commands that undo them", ""),
}
"""Questions, a part of the answer, and the link that leads to it from the first page found."""

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


FOLLOWED = """text => {
    const links = [...document.querySelectorAll('article a')].filter(link => {
        const place = link.getBoundingClientRect();
        return link.innerText === text && place.top >= -5 && place.bottom <= innerHeight;
    });
    location.href = links[0].href;
}"""


def first_screen(page: Page, site: Site, words: str, link: str = "") -> str:
    """Types the words, opens the first page found, follows a link, and returns the first screen."""
    page.goto((site.folder / "faq.html").as_uri())
    page.get_by_placeholder("Search").first.fill(words)
    page.keyboard.press("Enter")
    page.locator("#search-results li > a").first.click()
    page.wait_for_function("!location.pathname.endsWith('search.html') && document.fonts.ready")
    page.wait_for_function(ARRIVED)
    if link:
        page.evaluate(FOLLOWED, link)
        page.wait_for_function(ARRIVED)
    text: str = page.evaluate(SHOWN)
    return text


def test_searched_words_lead_to_their_answer(documentation: Site, opened: Opened) -> None:
    page = opened(
        (documentation.folder / "index.html").as_uri(), viewport={"width": 1280, "height": 800}
    ).page
    asked = {words: (answer, "") for words, answer in ANSWERS.items()} | QUESTIONS
    missed = {
        words: screen[:300]
        for words, (answer, link) in asked.items()
        if not re.search(answer, screen := first_screen(page, documentation, words, link))
    }
    assert missed == {}
