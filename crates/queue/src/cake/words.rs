//! CAKE's parameters, with the words of `tc`.

use super::ack_filter::AckFilter;
use super::flows::Isolation;
use super::framing::{Cells, Framing};
use super::tins::{Diffserv, Numbers};
use crate::device::Device;
use crate::kinds::{linux, micros};
use crate::linux::Linux;
use crate::tc::time_text;
use sojourn_units::declare::{Choices, Param, derived, group, narrow, one_of, switch};
use sojourn_units::words::{Given, Kind, Text, Value, Word, WordError};
use sojourn_units::{MICROSECOND, Rate, params, quantity, words};

const SHAPER: &[Word] = words! {
    "bandwidth", Kind::Rate, "", "Rate of the shaper; by default there is no shaper.";
    "unlimited", Kind::Flag, "", "Disables the shaper, which is the default.";
};

const RTT: &[Word] = words! {
    "rtt", Kind::Time, "100ms",
        "Typical round-trip time, used as COBALT's interval; COBALT's target is 1/20 of the interval. At low rates both are longer.";
    "rtt by name", Kind::OneOf { of: RTT_NAMES }, "",
        "Round-trip time by name: 100us, 1ms, 10ms, 30ms, 100ms, 300ms, 1s, 1000s.";
};

const FRAMING: &[Word] = words! {
    "overhead", Kind::Signed { min: -64, max: 256 }, "",
        "Bytes that the line adds to a network packet; if given, the Ethernet header does not count.";
    "mpu", Kind::Integer { min: 0, max: 256 }, "0",
        "Minimum length of a packet on the line, in bytes.";
    "cells", Kind::OneOf { of: Cells::NAMES }, "noatm",
        "Cells of the line: none, ATM (53 bytes carry 48), or PTM (65 bytes carry 64).";
    "line", Kind::OneOf { of: LINE_WORDS }, "",
        "Overhead, mpu and cells of a known kind of line; `raw`, the default, uses the frame's length.";
    "ether-vlan", Kind::Flag, "", "Adds 4 bytes to the overhead for a VLAN tag; alone, it means `overhead 4`.";
};

const WITHOUT_EFFECT: &[Word] = words! {
    "split-gso", Kind::Switch { off: "no-split-gso" }, "split-gso",
        "Accepted without effect: super-packets are always split.";
    "nat", Kind::Switch { off: "nonat" }, "nonat",
        "Accepted without effect: simulated addresses are never translated.";
    "fwmark", Kind::Name, "",
        "Accepted without effect: simulated packets carry no firewall marks.";
    "autorate-ingress", Kind::Flag, "",
        "Accepted without effect: the rate is always `bandwidth`.";
    "via-ethernet", Kind::Flag, "", "Accepted without effect, as in `tc`.";
};

/// Returns warnings about given words that have no effect here.
pub(super) fn without_effect(given: &Given) -> Vec<String> {
    let mut warnings = Vec::new();
    if given.flag("nat") == Some(true) {
        warnings.push("`nat` has no effect on a run: simulated addresses are never translated, and cake uses them directly");
    }
    if given.has("fwmark") {
        warnings.push("`fwmark` has no effect on a run: simulated packets carry no firewall marks, and the code point selects the tin");
    }
    if given.has("autorate-ingress") {
        warnings.push("`autorate-ingress` has no effect: the shaper keeps its `bandwidth`");
    }
    if given.has("via-ethernet") {
        warnings.push("`via-ethernet` has no effect, as in `tc`");
    }
    if given.flag("split-gso") == Some(false) {
        warnings.push("`no-split-gso` has no effect on a run: super-packets are always split");
    }
    warnings.into_iter().map(str::to_owned).collect()
}

/// Names that `rtt` accepts.
const RTT_NAMES: &[&str] = &[
    "datacentre",
    "lan",
    "metro",
    "regional",
    "internet",
    "oceanic",
    "satellite",
    "interplanetary",
];

/// Round-trip times of `RTT_NAMES`, in microseconds.
const RTTS: [u32; 8] = [100, 1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 1_000_000_000];

const LINE_WORDS: &[&str] = &[
    "raw",
    "conservative",
    "ethernet",
    "docsis",
    "pppoe-ptm",
    "bridged-ptm",
    "pppoa-vcmux",
    "pppoa-llc",
    "pppoe-vcmux",
    "pppoe-llcsnap",
    "bridged-vcmux",
    "bridged-llcsnap",
    "ipoa-vcmux",
    "ipoa-llcsnap",
];

/// Framing of a known kind of line; overhead and `mpu` are in bytes. `None` leaves a value
/// unchanged.
struct Line {
    overhead: Option<i32>,
    mpu: Option<u32>,
    cells: Option<Cells>,
}

impl Line {
    fn of(word: &str) -> Self {
        let atm = |overhead| (Some(overhead), None, Some(Cells::Atm));
        let ptm = |overhead| (Some(overhead), None, Some(Cells::Ptm));
        let (overhead, mpu, cells) = match word {
            "conservative" => atm(48),
            "ethernet" => (Some(38), Some(84), None),
            "docsis" => (Some(18), Some(64), Some(Cells::None)),
            "pppoe-ptm" => ptm(30),
            "bridged-ptm" => ptm(22),
            "pppoa-vcmux" => atm(10),
            "pppoa-llc" => atm(14),
            "pppoe-vcmux" | "bridged-llcsnap" => atm(32),
            "pppoe-llcsnap" => atm(40),
            "bridged-vcmux" => atm(24),
            "ipoa-vcmux" => atm(8),
            "ipoa-llcsnap" => atm(16),
            _ => (None, None, Some(Cells::None)),
        };
        Self { overhead, mpu, cells }
    }
}

params! {
    "cake": "CAKE: shaper, tins by service class, flows in separate queues with fairness between hosts, \
     each queue controlled by COBALT",
    from "Linux sch_cake.c; Høiland-Jørgensen et al. 2018";

    /// Parameters of CAKE.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params on Device {
        /// Rate of the shaper; by default there is no shaper.
        bandwidth: Option<Rate> = group(SHAPER, |_| None, set_bandwidth, |rate, text| match rate {
            Some(rate) => text.value("bandwidth", quantity::format_rate(*rate)),
            None => text.flag("unlimited"),
        }),
        /// Division of code points into tins.
        diffserv as "tins": Diffserv = one_of("diffserv3"),
        /// Which packets have a separate queue, and between which hosts turns are shared fairly.
        isolation: Isolation = one_of("triple-isolate"),
        /// COBALT's interval in microseconds, 20 times its target. At low rates both are longer.
        rtt_us: u32 = group(RTT, |_| 100_000, set_rtt, |rtt, text| text.value("rtt", time_text(*rtt))),
        /// Parameters of the length of packets on the line.
        framing: Framing = group(FRAMING, |_| Framing::default(), set_framing, write_framing),
        /// For traffic that has already crossed the line: dropped packets are charged to the shaper
        /// as well.
        ingress: bool = switch("egress", "egress"),
        /// Drops TCP acknowledgements that later ones in the queue make redundant.
        ack_filter as "ACK filter": AckFilter = one_of("no-ack-filter"),
        /// Maximum memory of queued packets in bytes, by their truesize; 0 derives it from rate and
        /// rtt.
        memlimit: u32 = Param::word(Kind::Size, "0b", narrow, |bytes| {
            (*bytes != 0).then(|| Value::Integer((*bytes).into()))
        }),
        /// Clears the code point after it has selected the tin.
        wash: bool = switch("nowash", "nowash"),
        /// Version of Linux whose decisions COBALT makes. Before 7.3 BLUE draws a random number
        /// also for a packet that CoDel drops. Before 6.12 the inverse square root is less exact
        /// for counts 2, 3 and 6; at 2 the error is 1/1800.
        linux: Linux = linux(Linux::RELEASES),
        /// Largest frame of the device, in bytes.
        mtu: u32 = derived(|device: &Device| device.psched_mtu),
    } also WITHOUT_EFFECT
}

fn set_bandwidth(bandwidth: &mut Option<Rate>, given: &Given) -> Result<(), WordError> {
    given.exclude("bandwidth", "unlimited")?;
    if given.has("unlimited") {
        *bandwidth = None;
    }
    if let Some(rate) = given.rate("bandwidth") {
        if rate.bits() < 8 {
            return Err(given.error("bandwidth", "`bandwidth` must be at least a byte a second"));
        }
        *bandwidth = Some(rate);
    }
    Ok(())
}

fn set_rtt(rtt_us: &mut u32, given: &Given) -> Result<(), WordError> {
    given.exclude("rtt", "rtt by name")?;
    micros::<Device>("").above_zero().named("rtt", "").set(rtt_us, given)?;
    if let Some(name) = given.text("rtt by name")
        && let Some((_, micros)) = RTT_NAMES.iter().zip(RTTS).find(|(known, _)| **known == name)
    {
        *rtt_us = micros;
    }
    Ok(())
}

fn set_framing(framing: &mut Framing, given: &Given) -> Result<(), WordError> {
    let cells = given.text("cells").and_then(Cells::named);
    let mut overhead = given.signed("overhead").map(|bytes| bytes as i32);
    if let Some(word) = given.text("line") {
        let line = Line::of(word);
        // `raw overhead 0` is allowed: `tc` prints it for a queue without framing.
        if overhead.is_some_and(|bytes| line.overhead.is_some() || bytes != 0) {
            let message = format!("`{word}` sets the overhead; remove `overhead`");
            return Err(given.error("overhead", message));
        }
        if cells.is_some_and(|cells| line.cells.is_some_and(|own| own != cells)) {
            let message = format!("`{word}` sets the cells of the line; remove the other word");
            return Err(given.error("cells", message));
        }
        if line.overhead.is_none() {
            given.exclude("line", "ether-vlan")?;
        }
        overhead = line.overhead;
        framing.overhead = None;
        framing.mpu = line.mpu.unwrap_or(framing.mpu);
        framing.cells = line.cells.unwrap_or(framing.cells);
    }
    if given.has("ether-vlan") {
        overhead = Some(overhead.unwrap_or(0) + 4);
    }
    framing.overhead = overhead.or(framing.overhead);
    framing.mpu = given.integer("mpu").map_or(framing.mpu, |bytes| bytes as u32);
    framing.cells = cells.unwrap_or(framing.cells);
    Ok(())
}

fn write_framing(framing: &Framing, text: Text) -> Text {
    let Framing { overhead, mpu, cells } = *framing;
    let text = match overhead {
        Some(bytes) => text.value("overhead", bytes),
        None if cells == Cells::None => text.flag("raw"),
        None => text,
    };
    text.flag(cells.name()).optional("mpu", (mpu != 0).then_some(mpu))
}

impl Params {
    /// Returns the shaper's rate in bytes per second; 0 without a shaper.
    fn rate(&self) -> u64 {
        self.bandwidth.map_or(0, |rate| rate.bits() / 8)
    }

    /// Returns the constants of each tin; the first tin has the whole rate.
    pub fn tins(&self) -> Vec<Numbers> {
        let micros = |us: u32| u64::from(us) * MICROSECOND;
        let target = (self.rtt_us / 20).max(1);
        let (target, interval) = (micros(target), micros(self.rtt_us));
        let mut tins = self.diffserv.numbers(self.rate(), self.mtu, target, interval);
        for tin in &mut tins {
            tin.constants.linux = self.linux;
        }
        tins
    }

    /// Returns the limit of memory in bytes. Without `memlimit` it is the length of 10240 largest
    /// frames or, if less, the data of four round-trip times at the shaper's rate (at least 4 MiB).
    pub fn buffer_limit(&self) -> u32 {
        if self.memlimit != 0 {
            return self.memlimit;
        }
        let frames = self.mtu.saturating_mul(10_240);
        if self.rate() == 0 {
            return frames;
        }
        // The kernel computes in 64 bits, and compares the low 32 bits of the quotient.
        let four_trips = self.rate().wrapping_mul(self.rtt_us.into()) / 250_000;
        (four_trips as u32).max(4 << 20).min(frames)
    }
}
