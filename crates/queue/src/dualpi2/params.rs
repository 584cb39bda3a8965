//! The user's settings of DualPI2: its words, and the kernel's numbers.

use crate::device::Device;
use crate::kinds::{bytes, packets, whole_micros};
use crate::pi;
use crate::tc::time_text;
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Param, Parameters, derived, part, switch};
use sojourn_units::words::{Given, Kind, Table, Value, WordError};
use sojourn_units::{MICROSECOND, params, quantity, words};

/// `tc`: the greatest round-trip time, in typical ones.
const TYPICAL_TO_MAX: u32 = 6;

/// The words of `dualpi2`.
pub const TABLE: Table = Table {
    name: "dualpi2",
    summary: "DualPI2: a short queue for L4S and one for Classic traffic, coupled by one controller",
    source: "RFC 9332; Linux sch_dualpi2.c (since 6.17)",
    words: Params::WORDS,
};

params! {
    /// Parameters of DualPI2, in the kernel's units.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Params on Device {
        /// Packets that fit in both queues together; more are dropped on arrival.
        limit: u32 = packets("10000p").above_zero(),
        /// Memory that queued packets may occupy, by their true size; twice `limit` of the device's
        /// largest frames if not given.
        memory_limit as "memlimit": u32 = bytes("30280000b")
            .above_zero()
            .initially(|device: &Device| memory_for(10_000, device.psched_mtu)),
        /// The controller's.
        pi: pi::Params = part::<pi::Params>(),
        /// L4S packets that waited longer are marked; a time, or packets left in the L queue (5p).
        step as "step_thresh": Step = Param::word(Kind::Name, "1ms", Step::read, |step| Some(step.text())),
        /// step_thresh applies to packets that found as many in the L queue.
        min_qlen_step: u32 = packets("0p"),
        /// Under overload drops in both queues; else only marks, until the limit is reached.
        drop_on_overload: bool = switch("overflow", "drop_on_overload"),
        /// Drops and marks by probability on arrival, not on departure; step_thresh stays on departure.
        drop_enqueue: bool = switch("drop_dequeue", "drop_dequeue"),
        /// All ECN-capable packets go to the L queue, not only ECT(1) and CE.
        any_ect: bool = switch("l4s_ect", "l4s_ect"),
        /// Share of the link that the C queue gets while both are busy, in whole percent.
        classic_protection: u8 = percent("10%"),
        /// Linux takes aggregates apart; packets here never are aggregates.
        split_gso: bool = switch("no_split_gso", "split_gso"),
        /// The largest frame of the device.
        mtu: u32 = derived(|device: &Device| device.psched_mtu.clamp(1, 1 << 20)),
        /// Whether a change gives `classic_protection`, which starts the credit anew even if the share stays.
        #[serde(default)]
        restarts_credit: bool = derived(|_| false),
    } also words! {
        "max_rtt", Kind::Time, "",
            "Greatest round-trip time: gives target, tupdate, alpha and beta; six times typical_rtt if only that is given.";
        "typical_rtt", Kind::Time, "",
            "Typical round-trip time, for the same numbers; a sixth of max_rtt if only that is given.";
    }
}

const fn percent<On>(default: &'static str) -> Param<u8, On> {
    let from = |value: &Value| Ok((value.real() * 100.0).round_ties_even() as u8);
    Param::word(Kind::Probability, default, from, |share| Some(Value::Text(format!("{share}%"))))
}

/// Returns the kernel's rule of thumb: twice `limit` of the largest frames.
fn memory_for(limit: u32, mtu: u32) -> u32 {
    let bytes = 2 * u64::from(limit) * u64::from(mtu.clamp(1, 1 << 20));
    bytes.min(u32::MAX.into()) as u32
}

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

    fn read(value: &Value) -> Result<Self, String> {
        Self::parse(value.text()).ok_or_else(|| {
            let needs = "needs a time or packets above 0, such as 1ms or 5p";
            format!("{needs}; found `{}`", value.text())
        })
    }

    fn text(self) -> Value {
        Value::Text(match self {
            Self::Micros(us) => time_text(us),
            Self::Packets(packets) => format!("{packets}p"),
        })
    }
}

/// Returns a round-trip time in microseconds, above 0.
fn rtt(given: &Given, word: &str) -> Result<Option<u32>, WordError> {
    let Some(value) = given.find(word) else { return Ok(None) };
    let above_zero = |us: u32| if us == 0 { Err("must be above 0".to_owned()) } else { Ok(us) };
    let read = whole_micros(value).and_then(above_zero);
    read.map(Some).map_err(|why| given.error(word, format!("`{word}` {why}")))
}

impl Params {
    /// Settles what depends on `limit` and on round-trip times.
    pub(super) fn depend(&mut self, given: &Given) -> Result<(), WordError> {
        if given.has("limit") && !given.has("memlimit") {
            self.memory_limit = memory_for(self.limit, self.mtu);
        }
        let (max, typical) = match (rtt(given, "max_rtt")?, rtt(given, "typical_rtt")?) {
            (None, None) => return Ok(()),
            (Some(max), Some(typical)) => (max, typical),
            (Some(max), None) => (max, (max / TYPICAL_TO_MAX).max(1)),
            (None, Some(typical)) => (typical.saturating_mul(TYPICAL_TO_MAX), typical),
        };
        let word = if given.has("max_rtt") { "max_rtt" } else { "typical_rtt" };
        self.pi.fit(max, typical).map_err(|message| given.error(word, message))
    }

    /// Words that have no effect.
    pub(super) fn ignored(given: &Given) -> Vec<String> {
        let fitted = ["target", "tupdate", "alpha", "beta"];
        let is_fitted = given.has("max_rtt") || given.has("typical_rtt");
        let ignored = fitted.iter().filter(|word| is_fitted && given.has(word));
        ignored
            .map(|word| format!("`{word}` is ignored: `max_rtt` and `typical_rtt` give it"))
            .collect()
    }

    /// Returns where the credit begins: with the L queue, unless the C queue has the greater share.
    pub fn initial_credit(&self) -> i32 {
        let share = i32::from(self.classic_protection);
        self.mtu as i32 * (share - (100 - share))
    }
}
