//! CAKE's words, as `tc` has them.

use super::ack_filter::AckFilter;
use super::flows::Isolation;
use super::framing::{Cells, Framing};
use super::tins::{Diffserv, Numbers};
use crate::device::Device;
use crate::tc::{Text, above_zero, micros, set, size, time_text};
use serde::{Deserialize, Serialize};
use sojourn_units::words::{self, Given, Kind, Table, Word, WordError};
use sojourn_units::{MICROSECOND, Rate, quantity};

/// The words of `cake`.
pub const TABLE: Table = Table {
    name: "cake",
    summary: "CAKE: shaper, tins by service class, flows in separate queues and fair between hosts, \
              each under COBALT",
    source: "Linux sch_cake.c; Høiland-Jørgensen et al. 2018",
    words: &[
        Word {
            name: "bandwidth",
            kind: Kind::Rate,
            default: "",
            doc: "Rate of the shaper; without it there is none.",
        },
        Word {
            name: "unlimited",
            kind: Kind::Flag,
            default: "",
            doc: "No shaper, which is the default.",
        },
        Word {
            name: "tins",
            kind: Kind::OneOf { of: Diffserv::WORDS },
            default: "diffserv3",
            doc: "How packets are sorted into tins by their code point.",
        },
        Word {
            name: "isolation",
            kind: Kind::OneOf { of: Isolation::WORDS },
            default: "triple-isolate",
            doc: "What has a queue of its own, and between which hosts turns are shared.",
        },
        Word {
            name: "rtt",
            kind: Kind::Time,
            default: "100ms",
            doc: "Round-trip time to expect: COBALT's interval, of which its target is 1/20.",
        },
        Word {
            name: "rtt by name",
            kind: Kind::OneOf {
                of: &[
                    "datacentre",
                    "lan",
                    "metro",
                    "regional",
                    "internet",
                    "oceanic",
                    "satellite",
                    "interplanetary",
                ],
            },
            default: "",
            doc: "100us, 1ms, 10ms, 30ms, 100ms, 300ms, 1s, 1000s.",
        },
        Word {
            name: "overhead",
            kind: Kind::Signed { min: -64, max: 256 },
            default: "",
            doc: "Bytes that the line adds to a network packet; the Ethernet header is not counted then.",
        },
        Word {
            name: "mpu",
            kind: Kind::Integer { min: 0, max: 256 },
            default: "0",
            doc: "The least that a packet occupies on the line, in bytes.",
        },
        Word {
            name: "cells",
            kind: Kind::OneOf { of: &["noatm", "atm", "ptm"] },
            default: "noatm",
            doc: "Cells of the line: none, ATM's 53 bytes for 48, PTM's 65 for 64.",
        },
        Word {
            name: "line",
            kind: Kind::OneOf { of: LINE_WORDS },
            default: "",
            doc: "A known line's overhead, mpu and cells; `raw`, the default, counts frames as they are.",
        },
        Word {
            name: "ether-vlan",
            kind: Kind::Flag,
            default: "",
            doc: "4 bytes more for a VLAN tag.",
        },
        Word {
            name: "ingress",
            kind: Kind::Switch { off: "egress" },
            default: "egress",
            doc: "For traffic that has come over the line already: what is dropped is charged too.",
        },
        Word {
            name: "ACK filter",
            kind: Kind::OneOf { of: AckFilter::WORDS },
            default: "no-ack-filter",
            doc: "Drops TCP acknowledgements that later ones in the queue make redundant.",
        },
        Word {
            name: "memlimit",
            kind: Kind::Size,
            default: "0b",
            doc: "Memory that queued packets may occupy, by their true size; 0 is by the rate.",
        },
        Word {
            name: "wash",
            kind: Kind::Switch { off: "nowash" },
            default: "nowash",
            doc: "Clears the code point, once it has decided the tin.",
        },
        Word {
            name: "split-gso",
            kind: Kind::Switch { off: "no-split-gso" },
            default: "split-gso",
            doc: "Read, but without effect: packets here are never merged.",
        },
        Word {
            name: "nonat",
            kind: Kind::Flag,
            default: "",
            doc: "Read, but without effect: addresses here are never translated.",
        },
    ],
};

/// Words of `tc` that have no meaning here, and why.
const REFUSED: &[(&str, &str)] = &[
    ("autorate-ingress", "the rate of a link is known here; give it as `bandwidth`"),
    ("nat", "addresses are never translated here, so hosts are seen as they are"),
    ("fwmark", "packets carry no firewall marks here; the tin follows from the code point"),
];

/// `rtt` by name, in microseconds.
const RTTS: &[(&str, u32)] = &[
    ("datacentre", 100),
    ("lan", 1_000),
    ("metro", 10_000),
    ("regional", 30_000),
    ("internet", 100_000),
    ("oceanic", 300_000),
    ("satellite", 1_000_000),
    ("interplanetary", 1_000_000_000),
];

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

/// A line's overhead and least length in bytes, and its cells. `None` leaves a value alone.
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

/// What the user sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Params {
    /// Rate of the shaper.
    pub bandwidth: Option<Rate>,
    /// How packets are sorted into tins.
    pub diffserv: Diffserv,
    /// What has a queue of its own.
    pub isolation: Isolation,
    /// COBALT's interval in microseconds; its target is 1/20 of it.
    pub rtt_us: u32,
    /// What packets occupy on the line.
    pub framing: Framing,
    /// Whether drops are charged too.
    pub ingress: bool,
    /// Whether redundant acknowledgements go.
    pub ack_filter: AckFilter,
    /// Memory that fits; 0: by the rate.
    pub memlimit: u32,
    /// Whether code points are cleared.
    pub wash: bool,
    /// The largest frame of the device.
    pub mtu: u32,
}

impl Params {
    /// The defaults on `device`.
    pub fn new(device: &Device) -> Self {
        Self {
            bandwidth: None,
            diffserv: Diffserv::default(),
            isolation: Isolation::default(),
            rtt_us: 100_000,
            framing: Framing::default(),
            ingress: false,
            ack_filter: AckFilter::default(),
            memlimit: 0,
            wash: false,
            mtu: device.psched_mtu,
        }
    }

    pub(crate) fn set(&mut self, given: &Given) -> Result<(), WordError> {
        exclude(given, "bandwidth", "unlimited")?;
        exclude(given, "rtt", "rtt by name")?;
        if given.has("unlimited") {
            self.bandwidth = None;
        }
        if let Some(rate) = given.rate("bandwidth") {
            if rate.bits() < 8 {
                return Err(
                    given.error("bandwidth", "`bandwidth` must be at least a byte a second")
                );
            }
            self.bandwidth = Some(rate);
        }
        set(&mut self.diffserv, given.text("tins").and_then(Diffserv::of));
        set(&mut self.isolation, given.text("isolation").and_then(Isolation::of));
        set(&mut self.rtt_us, above_zero(given, "rtt", micros)?);
        let named = given.text("rtt by name");
        let named = RTTS.iter().find(|(name, _)| Some(*name) == named);
        set(&mut self.rtt_us, named.map(|(_, micros)| *micros));
        self.set_framing(given)?;
        set(&mut self.ingress, given.flag("ingress"));
        set(&mut self.ack_filter, given.text("ACK filter").and_then(AckFilter::of));
        set(&mut self.memlimit, size(given, "memlimit")?);
        set(&mut self.wash, given.flag("wash"));
        Ok(())
    }

    fn set_framing(&mut self, given: &Given) -> Result<(), WordError> {
        let cells = given.text("cells").map(|word| match word {
            "atm" => Cells::Atm,
            "ptm" => Cells::Ptm,
            _ => Cells::None,
        });
        let mut overhead = given.signed("overhead").map(|bytes| bytes as i32);
        if let Some(word) = given.text("line") {
            let line = Line::of(word);
            // What `tc` prints of a queue without framing is `raw overhead 0`.
            if overhead.is_some_and(|bytes| line.overhead.is_some() || bytes != 0) {
                let message = format!("`{word}` says the overhead; leave out `overhead`");
                return Err(given.error("overhead", message));
            }
            if cells.is_some_and(|cells| line.cells.is_some_and(|own| own != cells)) {
                let message = format!("`{word}` says the cells of the line");
                return Err(given.error("cells", message));
            }
            if line.overhead.is_none() {
                exclude(given, "line", "ether-vlan")?;
            }
            overhead = line.overhead;
            self.framing.overhead = None;
            set(&mut self.framing.mpu, line.mpu);
            set(&mut self.framing.cells, line.cells);
        }
        if given.has("ether-vlan") {
            overhead = Some(overhead.unwrap_or(0) + 4);
        }
        set(&mut self.framing.overhead, overhead.map(Some));
        set(&mut self.framing.mpu, given.integer("mpu").map(|bytes| bytes as u32));
        set(&mut self.framing.cells, cells);
        Ok(())
    }

    pub(crate) fn to_tc(self) -> String {
        let Framing { overhead, mpu, cells } = self.framing;
        let text = Text::new("cake");
        let text = match self.bandwidth {
            Some(rate) => text.value("bandwidth", quantity::format_rate(rate)),
            None => text.flag("unlimited"),
        };
        let text = text
            .flag(self.diffserv.word())
            .flag(self.isolation.word())
            .value("rtt", time_text(self.rtt_us));
        let text = match overhead {
            Some(bytes) => text.value("overhead", bytes),
            None if cells == Cells::None => text.flag("raw"),
            None => text,
        };
        let text = match cells {
            Cells::None => text.flag("noatm"),
            Cells::Atm => text.flag("atm"),
            Cells::Ptm => text.flag("ptm"),
        };
        text.optional("mpu", (mpu != 0).then_some(mpu))
            .switch(self.ingress, "ingress", "egress")
            .flag(self.ack_filter.word())
            .optional("memlimit", (self.memlimit != 0).then_some(self.memlimit))
            .switch(self.wash, "wash", "nowash")
            .done()
    }

    /// The shaper's rate in bytes a second; 0 without one.
    fn rate(&self) -> u64 {
        self.bandwidth.map_or(0, |rate| rate.bits() / 8)
    }

    /// What each tin goes by; the first has the whole rate.
    pub fn tins(&self) -> Vec<Numbers> {
        let micros = |us: u32| u64::from(us) * MICROSECOND;
        let target = (self.rtt_us / 20).max(1);
        self.diffserv.numbers(self.rate(), self.mtu, micros(target), micros(self.rtt_us))
    }

    /// Memory that fits: four round trips at the shaper's rate and at least 4 MB, at most 10240 full
    /// frames, unless it is given.
    pub fn buffer_limit(&self) -> u32 {
        if self.memlimit != 0 {
            return self.memlimit;
        }
        let frames = self.mtu.saturating_mul(10_240);
        if self.rate() == 0 {
            return frames;
        }
        // The kernel's widths: the product has 64 bits, what is compared 32.
        let four_trips = self.rate().wrapping_mul(self.rtt_us.into()) / 250_000;
        (four_trips as u32).max(4 << 20).min(frames)
    }
}

fn exclude(given: &Given, one: &str, other: &str) -> Result<(), WordError> {
    if given.has(one) && given.has(other) {
        let [first, second] = [one, other].map(|word| given.text(word).unwrap_or(word));
        let message = format!("`{first}` and `{second}` exclude each other");
        return Err(given.error(other, message));
    }
    Ok(())
}

/// Refuses words that `tc` has, but that have no meaning here, and says why.
pub(crate) fn refuse(text: &str) -> Result<(), WordError> {
    let tokens = words::tokens(text);
    let Some((first, rest)) = tokens.split_first() else { return Ok(()) };
    for token in rest.iter().filter(|_| first.text == TABLE.name) {
        if let Some((word, why)) = REFUSED.iter().find(|(word, _)| *word == token.text) {
            return Err(token.error(format!("`{word}` is not supported: {why}"), Vec::new()));
        }
    }
    Ok(())
}
