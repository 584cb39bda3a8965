//! What the user sets of DualPI2: its words, and the kernel's numbers that they mean.

use crate::device::Device;
use crate::pi;
use crate::tc::{LIMIT, Text, above_zero, micros, packets, set, size, time_text};
use serde::{Deserialize, Serialize};
use sojourn_units::words::{Given, Kind, Table, Word, WordError};
use sojourn_units::{MICROSECOND, quantity};

/// `tc`: the greatest round-trip time, in typical ones.
const TYPICAL_TO_MAX: u32 = 6;

/// The words of `dualpi2`.
pub const TABLE: Table = Table {
    name: "dualpi2",
    summary: "DualPI2: a short queue for L4S beside one for Classic traffic, coupled by one controller",
    source: "RFC 9332; Linux sch_dualpi2.c (since 6.17)",
    words: &[
        Word {
            default: "10000p",
            doc: "Packets that fit in both queues together; more are dropped on arrival.",
            ..LIMIT
        },
        Word {
            name: "memlimit",
            kind: Kind::Size,
            default: "30280000b",
            doc: "Memory that queued packets may occupy, by their true size; twice `limit` of the device's largest frames if not given.",
        },
        pi::COUPLING_FACTOR,
        Word {
            name: "step_thresh",
            kind: Kind::Name,
            default: "1ms",
            doc: "L4S packets that waited longer are marked; a time, or packets left in the L queue (5p).",
        },
        Word {
            name: "min_qlen_step",
            kind: Kind::Packets,
            default: "0p",
            doc: "step_thresh applies to packets that found as many in the L queue.",
        },
        Word {
            name: "drop_on_overload",
            kind: Kind::Switch { off: "overflow" },
            default: "drop_on_overload",
            doc: "Under overload drops in both queues; else only marks, until the limit is reached.",
        },
        Word {
            name: "drop_enqueue",
            kind: Kind::Switch { off: "drop_dequeue" },
            default: "drop_dequeue",
            doc: "Drops and marks by probability on arrival, not on departure; step_thresh stays on departure.",
        },
        Word {
            name: "any_ect",
            kind: Kind::Switch { off: "l4s_ect" },
            default: "l4s_ect",
            doc: "All ECN-capable packets go to the L queue, not only ECT(1) and CE.",
        },
        Word {
            name: "classic_protection",
            kind: Kind::Probability,
            default: "10%",
            doc: "Share of the link that the C queue gets while both are busy, in whole percent.",
        },
        Word {
            name: "max_rtt",
            kind: Kind::Time,
            default: "",
            doc: "Greatest round-trip time: gives target, tupdate, alpha and beta; six times typical_rtt if only that is given.",
        },
        Word {
            name: "typical_rtt",
            kind: Kind::Time,
            default: "",
            doc: "Typical round-trip time, likewise; a sixth of max_rtt if only that is given.",
        },
        Word { default: "15ms", ..pi::TARGET },
        Word { default: "16ms", ..pi::TUPDATE },
        Word { default: "0.16015625", ..pi::ALPHA },
        Word { default: "3.19921875", ..pi::BETA },
        Word {
            name: "split_gso",
            kind: Kind::Switch { off: "no_split_gso" },
            default: "split_gso",
            doc: "Linux takes aggregates apart; packets here never are aggregates.",
        },
    ],
};

/// When L4S packets are marked for certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// They waited longer, in microseconds.
    Micros(u32),
    /// They left more packets in the L queue.
    Packets(u32),
}

impl Step {
    /// Reads a time or a number of packets above 0.
    fn parse(text: &str) -> Option<Self> {
        let packets = ["packets", "packet", "pkts", "pkt", "p"];
        if let Some(number) = packets.iter().find_map(|unit| text.strip_suffix(unit)) {
            return number.parse().ok().filter(|&n| n > 0).map(Self::Packets);
        }
        let micros = quantity::parse_time(text).ok()? / MICROSECOND;
        u32::try_from(micros).ok().filter(|&us| us > 0).map(Self::Micros)
    }

    fn text(self) -> String {
        match self {
            Self::Micros(us) => time_text(us),
            Self::Packets(packets) => format!("{packets}p"),
        }
    }
}

/// What the user sets, in the kernel's units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "the kernel's independent switches")]
pub struct Params {
    /// Packets that fit.
    pub limit: u32,
    /// Memory that fits.
    pub memory_limit: u32,
    /// The controller's.
    pub pi: pi::Params,
    /// When L4S packets are marked for certain.
    pub step: Step,
    /// Packets in the L queue from which on `step` applies.
    pub min_qlen_step: u32,
    /// Whether packets are dropped under overload whatever their ECN field.
    pub drop_on_overload: bool,
    /// Whether the probability acts on arrival.
    pub drop_enqueue: bool,
    /// Whether ECT(0) goes to the L queue.
    pub any_ect: bool,
    /// The C queue's share in percent.
    pub classic_protection: u8,
    /// Whether Linux would take aggregates apart.
    pub split_gso: bool,
    /// The largest frame of the device.
    pub mtu: u32,
}

impl Params {
    /// The defaults on `device`.
    pub fn new(device: &Device) -> Self {
        let pi = pi::Params {
            target_us: 15_000,
            tupdate_us: 16_000,
            alpha: 41,
            beta: 819,
            coupling_factor: 2,
        };
        let mut params = Self {
            limit: 10_000,
            memory_limit: 0,
            pi,
            step: Step::Micros(1000),
            min_qlen_step: 0,
            drop_on_overload: true,
            drop_enqueue: false,
            any_ect: false,
            classic_protection: 10,
            split_gso: true,
            mtu: device.psched_mtu,
        };
        params.memory_limit = params.memory_for_limit();
        params
    }

    /// The kernel's rule of thumb: twice `limit` of the largest frames.
    fn memory_for_limit(&self) -> u32 {
        let bytes = 2 * u64::from(self.limit) * u64::from(self.mtu);
        bytes.min(u32::MAX.into()) as u32
    }

    pub(crate) fn set(&mut self, given: &Given) -> Result<(), WordError> {
        if let Some(limit) = above_zero(given, "limit", packets)? {
            self.limit = limit;
            self.memory_limit = self.memory_for_limit();
        }
        set(&mut self.memory_limit, above_zero(given, "memlimit", size)?);
        if let Some(text) = given.text("step_thresh") {
            self.step = Step::parse(text).ok_or_else(|| {
                let needs = "`step_thresh` needs a time or packets above 0, such as 1ms or 5p";
                given.error("step_thresh", format!("{needs}; found `{text}`"))
            })?;
        }
        set(&mut self.min_qlen_step, packets(given, "min_qlen_step")?);
        set(&mut self.drop_on_overload, given.flag("drop_on_overload"));
        set(&mut self.drop_enqueue, given.flag("drop_enqueue"));
        set(&mut self.any_ect, given.flag("any_ect"));
        let percent = |share: f64| (share * 100.0).round_ties_even() as u8;
        set(&mut self.classic_protection, given.real("classic_protection").map(percent));
        set(&mut self.split_gso, given.flag("split_gso"));
        self.pi.set(given)?;
        let max = above_zero(given, "max_rtt", micros)?;
        let typical = above_zero(given, "typical_rtt", micros)?;
        let (max, typical) = match (max, typical) {
            (None, None) => return Ok(()),
            (Some(max), Some(typical)) => (max, typical),
            (Some(max), None) => (max, (max / TYPICAL_TO_MAX).max(1)),
            (None, Some(typical)) => (typical.saturating_mul(TYPICAL_TO_MAX), typical),
        };
        let word = if given.has("max_rtt") { "max_rtt" } else { "typical_rtt" };
        self.pi.fit(max, typical).map_err(|message| given.error(word, message))
    }

    /// What is worth saying of a description that reads well.
    pub(crate) fn warnings(given: &Given) -> Vec<String> {
        let fitted = ["target", "tupdate", "alpha", "beta"];
        let is_fitted = given.has("max_rtt") || given.has("typical_rtt");
        let ignored = fitted.iter().filter(|word| is_fitted && given.has(word));
        ignored
            .map(|word| format!("`{word}` is ignored: `max_rtt` and `typical_rtt` give it"))
            .collect()
    }

    pub(crate) fn to_tc(self) -> String {
        let text = Text::new("dualpi2")
            .value("limit", self.limit)
            .value("memlimit", self.memory_limit)
            .value("step_thresh", self.step.text())
            .value("min_qlen_step", self.min_qlen_step)
            .switch(self.drop_on_overload, "drop_on_overload", "overflow")
            .switch(self.drop_enqueue, "drop_enqueue", "drop_dequeue")
            .switch(self.any_ect, "any_ect", "l4s_ect")
            .value("classic_protection", format!("{}%", self.classic_protection));
        self.pi.write(text).switch(self.split_gso, "split_gso", "no_split_gso").done()
    }

    /// Where the credit begins: with the L queue, unless the C queue has the greater share.
    pub(super) fn initial_credit(&self) -> i64 {
        let share = i64::from(self.classic_protection);
        i64::from(self.mtu) * (share - (100 - share))
    }
}
