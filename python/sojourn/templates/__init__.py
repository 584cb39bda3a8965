"""Templates: ready-made scenarios for `sojourn new --template NAME`.

Each template is a complete TOML file with comments in this folder. The comment at the top of the
file has the first commands for the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources

from sojourn.scenario import Scenario
from sojourn.templates.edit import Option, Proportion, apply, commands, scaled

__all__ = ["TEMPLATES", "Option", "Template", "template"]


@dataclass(frozen=True)
class Template:
    """A ready-made scenario."""

    name: str
    what: str
    """Description for lists of templates."""
    options: Mapping[Option, tuple[str, ...]] = field(default_factory=dict)
    """Options of `sojourn new` that the template has, with the dotted keys that each option sets.
    """
    follow: Proportion | None = None
    """Values of queues that are scaled with the rate of `--rate` or `--up`."""
    beside: tuple[str, ...] = ()
    """Names of further files that the scenario needs."""

    @property
    def file(self) -> str:
        """Returns the name of the template's file."""
        return f"{self.name}.toml"

    def read(self, name: str) -> bytes:
        """Returns the content of one of the template's files."""
        return (resources.files(__package__) / name).read_bytes()

    def text(self, values: Mapping[Option, str] | None = None) -> str:
        """Returns the text of the template with the values of options.

        `values` are valid quantities by option, such as `20mbit`.
        """
        text = self.read(self.file).decode("utf-8")
        for option, value in (values or {}).items():
            if self.follow is not None and option in ("rate", "up"):
                text = scaled(text, self.follow, value)
            text = apply(text, self.options[option], option, value)
        return text

    @property
    def commands(self) -> list[str]:
        """Returns the commands in the comment at the top of the file."""
        return commands(self.text())

    def scenario(self) -> Scenario:
        """Returns the scenario of the template."""
        with resources.as_file(resources.files(__package__) / self.file) as path:
            return Scenario.load(path)


def _link(
    table: str, up: str, down: str, netem: tuple[str, ...] = ("netem",)
) -> dict[Option, tuple[str, ...]]:
    """Returns the options of a template with one link, which the TOML table `table` describes.

    `up`, `down` and `netem` are the keys in the table.
    """
    return {
        "rate": tuple(dict.fromkeys((f"{table}.{up}", f"{table}.{down}", f"{table}.rate"))),
        "up": (f"{table}.{up}",),
        "down": (f"{table}.{down}",),
        "rtt": tuple(f"{table}.{key}" for key in netem),
    }


TEMPLATES = {
    template.name: template
    for template in (
        Template(
            "home",
            "a home's uplink: a call during uploads",
            _link("links.uplink", "forward.rate", "reverse.rate"),
        ),
        Template(
            "office",
            "an office's line: calls and the Web while backups run",
            _link("links.line", "rate", "reverse.rate"),
        ),
        Template(
            "mobile",
            "a phone: a varying radio, and a mast with a long queue",
            {"up": ("links.radio.rate",), "rtt": ("links.radio.netem",)},
            beside=("mobile.trace",),
        ),
        Template(
            "satellite",
            "a satellite's downlink: long delay, jitter, loss",
            _link("links.satellite", "reverse.rate", "rate", ("forward.netem", "reverse.netem")),
        ),
        Template(
            "rack",
            "a rack in a data centre: seven servers send to one host at the same time",
            {"rate": ("topology.rate",), "rtt": ("topology.netem",)},
        ),
        Template(
            "campus",
            "a campus: hundreds of flows on one line, near and far",
            _link("topology", "reverse.rate", "forward.rate"),
        ),
        Template(
            "isp",
            "an ISP's shaper: one queue for a household",
            _link("links.access", "reverse.rate", "rate"),
        ),
        Template(
            "openwrt-sqm",
            "a home router with OpenWrt's SQM: a video call and uploads",
            _link("links.line", "rate", "reverse.rate"),
            # The script simple.qos sets a constant rate for the class with priority.
            Proportion("links.line.rate", ("queues.*",), ("queues.*.1:11.rate",)),
        ),
        Template(
            "isp-shaper-htb",
            "an ISP's HTB shaper: a class for each customer, and the choice of bursts",
            {"rate": ("links.port.rate",), "rtt": ("links.port.netem",)},
            Proportion("links.port.rate", ("queues.*",)),
        ),
        Template(
            "libreqos-circuit",
            "an ISP's shaper as configured by LibreQoS: plans that exceed their site",
            {"rate": ("links.sector.rate",), "rtt": ("links.uplink.netem",)},
            # Rates of classes 1:1 and 1:2 depend on the shaper's interface, not on the radio.
            Proportion(
                "links.sector.rate",
                ("queues.*",),
                ("queues.*.classes.1:1.rate", "queues.*.classes.1:1.quantum", "queues.*.1:2.*"),
            ),
        ),
        Template(
            "pod",
            "a Kubernetes pod with a bandwidth limit: answers and a backup",
            {"rate": (), "rtt": ("links.network.netem",)},
            # The bursts of the bandwidth plugin do not depend on the rate.
            Proportion("queues.cni", ("queues.*",), ("queues.*.burst", "queues.*.cburst")),
        ),
        Template(
            "server-fq-bbr",
            "a server's own queue: BBR and CUBIC on three lines with short buffers",
            {"rate": tuple(f"links.{line}.rate" for line in ("near", "middle", "far"))},
        ),
        Template(
            "edge",
            "a replicated store on links with delay and loss",
            {"rate": ("topology.rate",), "rtt": ("topology.netem",)},
        ),
        Template("syslog", "bursts of syslog at one receive buffer"),
    )
}
"""All templates by name."""


def template(name: str) -> Template:
    """Returns the template with this name; raises `KeyError` for an unknown name."""
    return TEMPLATES[name]
