"""Deployments for one's own machine: SQM's settings, systemd's files, read by their parsers."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sojourn.scenario import Deployment, Scenario, ScenarioError
from sojourn.scenario.models import DeployFormat
from tests.scenario.test_deploy import QUEUES
from tests.scenario.texts import HOME, LAN

NETWORKD = Path("/usr/lib/systemd/systemd-networkd")
CAKES = ["cake", "cake bandwidth 18mbit pppoe-ptm rtt 50ms ack-filter wash dual-srchost diffserv4"]


def scenario(queue: str, **changes: object) -> Scenario:
    return Scenario.from_toml(HOME).with_queue(queue).replace(changes)


def options(deployment: Deployment) -> dict[str, str]:
    """The settings that `uci set` makes, by option."""
    sets = (re.search(r"uci set (\S+)=(.*)", line) for line in deployment.commands)
    return {one[1].split(".")[-1]: one[2].strip("'") for one in sets if one}


# The machine


def test_the_users_machine_is_the_scenarios_to_say() -> None:
    deploy = {"machine": "isp", "interface": "ppp0"}
    mine = scenario("codel").replace({"deploy": deploy})
    deployment = mine.to_tc()
    assert (deployment.machine, deployment.direction) == ("isp", "ingress")
    assert "dev ifb-ppp0 parent 1:10 handle 10: codel" in str(deployment)
    assert not any("Replace eth0" in note for note in deployment.notes)
    # An argument has the last word.
    assert (
        mine.to_tc("wan0", machine="home").commands[0].startswith("tc qdisc replace dev wan0 root")
    )


def test_a_download_is_shaped_at_the_home() -> None:
    """The review's case: commands for the provider's side throttle the home's uplink."""
    turned = scenario("fq_codel").replace(
        {"bottleneck": "uplink.reverse", "links.uplink.reverse.queue": "cake"}
    )
    provider = turned.to_tc()
    assert provider.machine == "isp"
    assert re.match("If .*`home` and not `isp`, .*`--machine home`", provider.notes[0])
    home = turned.to_tc(machine="home")
    assert home.direction == "ingress"
    assert not any(" dev eth0 root " in command for command in home.commands)


def test_a_machine_elsewhere_is_refused() -> None:
    with pytest.raises(ScenarioError, match="end of `lan`") as error:
        Scenario.from_toml(LAN).to_tc(machine="nobody")
    assert "`client1` to `server2` sends" in str(error.value)
    with pytest.raises(ScenarioError, match=r"deploy.machine: unknown machine `router`:"):
        scenario("codel", deploy={"machine": "router"})


def test_an_interface_of_the_file_is_checked() -> None:
    with pytest.raises(ScenarioError, match=r"deploy.interface: `a b`"):
        scenario("codel", deploy={"interface": "a b"})


@pytest.mark.parametrize("machine", ["home", "isp"])
@pytest.mark.parametrize("form", ["tc", "sqm", "networkd"])
def test_every_form_says_how_it_is_undone_and_verified(machine: str, form: str) -> None:
    deployment = scenario("fq_codel").to_tc(machine=machine, form=form)  # type: ignore[arg-type]
    notes = " ".join(deployment.notes)
    assert deployment.undo
    assert "95 % of the line rate" in notes
    assert "replace the" in notes or "replaces the" in notes
    assert "To verify: " in notes
    assert "tc -s qdisc show dev " in notes


# OpenWrt


@pytest.mark.parametrize("queue", [*QUEUES[:6], *QUEUES[7:], *CAKES])
@pytest.mark.parametrize("machine", ["home", "isp"])
def test_sqm_hands_the_queues_words_on(queue: str, machine: str) -> None:
    deployment = scenario(queue).to_tc("pppoe-wan", machine=machine, form="sqm")
    found = options(deployment)
    name, _, words = deployment.queue.partition(" ")
    assert found["qdisc"] == name
    here, there = ("upload", "download") if machine == "home" else ("download", "upload")
    assert (found[here], found[there]) == ("18000" if "18mbit" in queue else "19000", "19000")
    handed = found["eqdisc_opts" if machine == "home" else "iqdisc_opts"]
    assert words.endswith(handed.removesuffix(" nat"))
    assert ("nat" in handed.split()) == (name == "cake")
    assert "bandwidth 1" not in handed or name != "cake"
    assert found["script"] == ("piece_of_cake.qos" if name == "cake" else "simplest.qos")


def test_sqm_knows_the_overhead_once() -> None:
    shaped = options(scenario("codel", **{"links.uplink.overhead": 18}).to_tc(form="sqm"))
    assert (shaped["overhead"], shaped["linklayer"]) == ("18", "ethernet")
    cake = options(scenario("cake", **{"links.uplink.overhead": 18}).to_tc(form="sqm"))
    assert "overhead 32" in cake["eqdisc_opts"]
    assert "overhead" not in cake


@pytest.mark.parametrize("queue", ["cake", "cake bandwidth 18mbit", "fq_codel", "fq_pie"])
def test_sqm_shapes_both_directions_in_one_section(queue: str) -> None:
    """Each direction has its own rate and words; the machine and the subject do not matter."""
    line = {"links.uplink.reverse.rate": "100mbit", "links.uplink.overhead": 4}
    up = options(scenario(queue, **line).to_tc("wan", machine="home", form="sqm"))
    back = queue.partition(" ")[0]
    turned = {"bottleneck": "uplink.reverse", "links.uplink.reverse.queue": back, **line}
    down = options(scenario(queue).replace(turned).to_tc("wan", machine="home", form="sqm"))
    assert (up["upload"], up["download"]) == ("18000" if "18mbit" in queue else "19000", "95000")
    assert (down["upload"], down["download"]) == (up["upload"], "95000")
    assert up == down
    if back == "cake":
        assert up["eqdisc_opts"].endswith(" nat")
        assert "overhead 18 noatm mpu 64" in up["eqdisc_opts"]
        assert "overhead 18 noatm mpu 64" in up["iqdisc_opts"]
        assert " ingress" in up["iqdisc_opts"]
    else:
        assert (up["overhead"], up["tcMPU"], up["linklayer"]) == ("4", "64", "ethernet")
        assert {"etarget", "itarget"} <= set(up)


def test_sqm_keeps_the_other_directions_own_words_of_the_same_discipline() -> None:
    other = {"links.uplink.reverse.queue": "cake bandwidth 9mbit dual-dsthost"}
    made = scenario("cake dual-srchost", **{"links.uplink.reverse.rate": "10mbit"}, **other)
    found = options(made.to_tc("wan", form="sqm"))
    assert found["download"] == "9000"
    assert "dual-dsthost" in found["iqdisc_opts"]
    assert "dual-srchost" in found["eqdisc_opts"]


def test_sqm_sets_what_its_own_words_would_change() -> None:
    assert "limit 127 " in options(scenario("sfq").to_tc(form="sqm"))["eqdisc_opts"]
    assert "limit 90 " in options(scenario("sfq limit 90").to_tc(form="sqm"))["eqdisc_opts"]
    assert options(scenario("cake nonat").to_tc(form="sqm"))["eqdisc_opts"].endswith(" nonat")
    framing = {"links.uplink.overhead": 16, "links.uplink.cells": "ptm"}
    found = options(scenario("cobalt", **framing).to_tc(form="sqm"))
    assert found["upload"] == str(19_000 * 64 // 65)
    assert "overhead 30" in found["eqdisc_opts"]
    assert "ptm" not in found["eqdisc_opts"]
    text = scenario("cake").to_tc("pppoe-wan-vdsl", machine="isp", form="sqm").text()
    assert "ifb4oe-wan-vdsl" in text


@pytest.mark.parametrize("form", ["tc", "sqm"])
def test_a_shaper_has_no_overhead_below_zero(form: DeployFormat) -> None:
    with pytest.raises(ScenarioError, match=r"below 0 .* use `cake`"):
        scenario("fq_codel", **{"links.uplink.overhead": -4}).to_tc(form=form)
    assert (
        "overhead 10" in scenario("cake", **{"links.uplink.overhead": -4}).to_tc(form=form).text()
    )


def test_a_shaper_of_ppp_adds_the_ethernet_header_that_its_packets_lack() -> None:
    for interface, overhead in (("eth0", 16), ("pppoe-wan", 30)):
        made = scenario("fq_codel", **{"links.uplink.overhead": 16})
        assert f"overhead {overhead}" in made.to_tc(interface, form="tc").text()
        assert options(made.to_tc(interface, form="sqm"))["overhead"] == str(overhead)


def test_a_shaper_that_counts_no_cells_is_not_below_an_atm_line() -> None:
    tree = "htb default 10; class 1:10 rate 19mbit ceil 19mbit{}; qdisc parent 1:10 fq_codel"
    atm = {"links.uplink.overhead": 26, "links.uplink.cells": "atm"}
    bare, framed = (
        scenario(tree.format(words), **atm).to_tc(form="tc").text()
        for words in ("", " overhead 26 linklayer atm")
    )
    assert bare.count("linklayer atm") == 1  # a shaper around it
    assert bare.count(" htb ") > framed.count(" htb ")
    cake = scenario("cake overhead 44", **atm).to_tc(form="tc").text()
    assert "overhead 44 atm" in cake


def test_selections_that_incoming_packets_lack_are_noted() -> None:
    marked = "htb default 20; class 1:20 rate 9mbit; class 1:10 rate 1mbit; filter mark 5 to 1:10"
    for queue, noted in ((marked, True), ("prio", True), ("fq_codel", False)):
        notes = scenario(queue).to_tc("wan", machine="isp", form="tc").notes
        assert any("priority yet" in note for note in notes) == noted


def test_sqm_keeps_a_direction_that_the_scenario_lacks() -> None:
    """Without a link back, the commands for one direction leave the rate of the other as it is."""
    lan = Scenario.from_toml(LAN).replace(bottleneck="client1")
    kept = "uci -q get sqm.sojourn_wan.download >/dev/null || uci set sqm.sojourn_wan.download='0'"
    assert kept in lan.to_tc("wan", form="sqm").commands
    assert " nat" not in options(scenario("cake nonat").to_tc(form="sqm"))["eqdisc_opts"]


@pytest.mark.parametrize(
    ("overhead", "cells", "mpu"),
    [(4, "none", 64), (24, "none", 84), (26, "atm", 0), (7, "none", 0)],
)
def test_the_least_length_of_a_known_line_is_counted(overhead: int, cells: str, mpu: int) -> None:
    """tc-cake(8): `docsis` is overhead 18 mpu 64, `ethernet` is overhead 38 mpu 84."""
    line = {"links.uplink.overhead": overhead, "links.uplink.cells": cells}
    for queue in ("cake", "fq_codel"):
        words = str(scenario(queue, **line).to_tc(form="tc"))
        assert (f" mpu {mpu}" in words) == bool(mpu), words


@pytest.mark.parametrize("queue", ["fq_codel", "codel", "cake", "blue", "prio", "fq_pie"])
def test_a_queue_behind_a_modem_is_described_in_its_shaper(queue: str) -> None:
    """The description sends at 95 % of the line, and holds the queue itself."""
    modem = scenario("pfifo limit 1000p", **{"deploy.modem": True})
    [shaped] = modem.behind_modem([modem.with_queue(queue)])
    assert " 19000kbit" in shaped.queue or "19mbit" in shaped.queue
    assert queue in shaped.queue
    metrics = shaped.replace({"duration": "6s", "warmup": "2s"}).run().metrics
    assert 0.9 < metrics["utilisation"] < 0.96


@pytest.mark.parametrize(
    ("queue", "form", "says"),
    [
        ("cake", "sqm", "overhead 40 atm"),
        ("cobalt", "sqm", "overhead 40 atm"),
        ("fq_codel", "sqm", "linklayer='atm'"),
        ("cake", "networkd", "CompensationMode=atm"),
        ("cake", "tc", "overhead 40 atm"),
        ("fq_codel", "tc", "overhead 26 linklayer atm"),
    ],
)
def test_the_shaper_counts_the_cells_of_an_atm_line(
    queue: str, form: DeployFormat, says: str
) -> None:
    line = {"links.uplink.overhead": 26, "links.uplink.cells": "atm"}
    assert says in str(scenario(queue, **line).to_tc(form=form))


def test_a_shaper_without_words_for_cells_is_slower_or_refused() -> None:
    ptm = scenario("fq_codel", **{"links.uplink.cells": "ptm"}).to_tc()
    assert f"rate {20_000_000 * 95 // 100 * 64 // 65}bit " in str(ptm)
    with pytest.raises(ScenarioError, match="cannot set ATM"):
        scenario("fq_codel", **{"links.uplink.cells": "atm"}).to_tc(form="networkd")


@pytest.mark.parametrize(
    ("form", "says"), [("tc", " nat"), ("sqm", " nat'"), ("networkd", "NAT=yes")]
)
def test_nat_reaches_the_router(form: DeployFormat, says: str) -> None:
    """It has no effect in a simulation, and much on a router that translates addresses."""
    printed = str(scenario("cake nat").to_tc(form=form))
    assert says in printed
    assert "add the word `nat`" not in printed
    assert "add `NAT=yes`" not in printed
    assert "NAT=yes" not in str(scenario("cake nonat").to_tc(form=form)).split("# To undo")[0]


def test_sqm_cannot_take_ecn_from_red() -> None:
    red = "red limit 400kb min 30kb max 90kb avpkt 1000"
    with pytest.raises(ScenarioError, match="add `ecn` to"):
        scenario(red).to_tc(form="sqm")
    assert options(scenario(f"{red} ecn").to_tc(form="sqm"))["qdisc"] == "red"


@pytest.mark.needs("uci")
def test_uci_reads_the_settings(tmp_path: Path) -> None:
    (tmp_path / "sqm").touch()
    deployment = scenario("cake").to_tc("eth0.2", machine="isp", form="sqm")
    for command in deployment.commands:
        if command.startswith("uci "):
            here = f'uci() {{ command uci -c "{tmp_path}" "$@"; }}; {command}'
            subprocess.run(["sh", "-c", here], check=True)
    shown = subprocess.run(
        ["uci", "-c", str(tmp_path), "show", "sqm"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    read = dict(line.split("=", 1) for line in shown.splitlines())
    assert read["sqm.sojourn_eth0_2"] == "queue"
    for key, value in options(deployment).items():
        if key != "sojourn_eth0_2":
            assert read[f"sqm.sojourn_eth0_2.{key}"] == f"'{value}'"


# systemd


def sections(text: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return parser


@pytest.mark.parametrize(
    ("queue", "section", "keys"),
    [
        ("pfifo limit 300p", "PFIFO", {"PacketLimit": "300"}),
        ("bfifo limit 300kb", "BFIFO", {"LimitBytes": "307200"}),
        ("pie limit 500p", "PIE", {"PacketLimit": "500"}),
        ("fq_codel target 8ms", "FairQueueingControlledDelay", {"TargetSec": "8ms", "ECN": "yes"}),
        (
            CAKES[1],
            "CAKE",
            {
                "Bandwidth": "18000000",
                "OverheadBytes": "30",
                "CompensationMode": "ptm",
                "RTTSec": "50ms",
                "AckFilter": "yes",
                "Wash": "yes",
                "FlowIsolationMode": "dual-src-host",
                "PriorityQueueingPreset": "diffserv4",
            },
        ),
    ],
)
def test_networkd_has_a_section(queue: str, section: str, keys: dict[str, str]) -> None:
    deployment = scenario(queue).to_tc("wan0", form="networkd")
    [(path, text)] = deployment.files
    assert path == "/etc/systemd/network/NETWORK.network.d/50-sojourn.conf"
    found = dict(sections(text)[section])
    assert found.items() >= keys.items()
    assert "RTTSec" in keys or "RTTSec" not in text
    assert found["Parent"] == ("root" if section == "CAKE" else "1:10")


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        ("pie limit 500p ecn", "`ecn` of `pie`"),
        ("fq_pie limit 500p flows 64", "`64` of `fq_pie`"),
        ("red limit 400kb min 30kb max 90kb avpkt 1000", "no section for `red`"),
        ("cake memlimit 4mb", "`memlimit 4194304` of `cake`"),
    ],
)
def test_networkd_refuses_what_it_cannot_set(queue: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        scenario(queue).to_tc("wan0", form="networkd")


@pytest.mark.parametrize("queue", ["pfifo limit 300p", "fq_codel", "codel limit 300p ecn", *CAKES])
def test_networkd_reads_the_file(queue: str, tmp_path: Path) -> None:
    """systemd-networkd itself, in a network namespace of its own; it names keys that it ignores."""
    if not NETWORKD.exists() or shutil.which("unshare") is None:
        pytest.skip("not installed: systemd-networkd")
    deployment = scenario(queue).to_tc("v0", form="networkd")
    [(_, text)] = deployment.files
    folder = tmp_path / "10-v0.network.d"
    folder.mkdir()
    (folder / "50-sojourn.conf").write_text(f"{text}Wrong=1\n")
    (tmp_path / "10-v0.network").write_text("[Match]\nName=v0\n[Network]\nLinkLocalAddressing=no\n")
    script = f"""
        set -e
        mount -t tmpfs none /run
        mount -t tmpfs none /etc/systemd/network
        cp -r {tmp_path}/* /etc/systemd/network
        mount -t sysfs -o ro none /sys
        mkdir -p /run/systemd/network
        ip link add v0 type veth peer name v1
        ip link set v0 up
        ip link set v1 up
        SYSTEMD_LOG_TARGET=console timeout 2 {NETWORKD} 2>&1 || true
        tc qdisc show dev v0
    """
    result = subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0 or "Configuring with" not in result.stdout:
        pytest.skip(f"not installed: the rights for a namespace ({result.stderr.strip()})")
    faults = [line for line in result.stdout.splitlines() if "50-sojourn.conf" in line]
    assert any("'Wrong'" in line for line in faults), result.stdout  # it reads the file
    known = ("'Wrong'", "'RTTSec'", "'AckFilter'")
    assert all(any(key in line for key in known) for line in faults), result.stdout
    if queue.startswith("pfifo"):  # every kernel has it
        assert "qdisc htb 1: root" in result.stdout
        assert "qdisc pfifo 10: parent 1:10 limit 300p" in result.stdout


@pytest.mark.needs("systemd-analyze")
def test_systemd_reads_the_service(tmp_path: Path) -> None:
    deployment = scenario("fq_codel").to_tc("pppoe-wan", machine="isp", form="networkd")
    [(path, text)] = deployment.files
    assert "sys-subsystem-net-devices-pppoe\\x2dwan.device" in text
    unit = tmp_path / Path(path).name
    unit.write_text(text)
    result = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert unit.name not in result.stderr, result.stderr
    assert result.returncode == 0, result.stderr
    unit.write_text(text.replace("ExecStart=ip", "ExecStrat=ip", 1))
    broken = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ExecStrat" in broken.stderr  # or this test would prove nothing
