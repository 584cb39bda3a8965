//! Parameters of DualPI2, with the words of `tc`.

use crate::device::Device;
use crate::kinds::{bytes, packets, whole_micros};
use crate::pi;
use crate::tc::time_text;
use sojourn_units::declare::{Param, derived, part, switch};
use sojourn_units::words::{Given, Kind, Value, WordError};
use sojourn_units::{MICROSECOND, data, params, quantity, words};

/// Ratio of `max_rtt` to `typical_rtt` that `tc` uses if only one is given.
const TYPICAL_TO_MAX: u32 = 6;

params! {
    "dualpi2": "DualPI2: a queue for L4S and a queue for Classic traffic, coupled by one PI controller",
    from "RFC 9332; Linux sch_dualpi2.c (since 6.17)";

    /// Parameters of DualPI2, in the units that `tc` passes to the kernel.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params on Device {
        /// Maximum number of packets in both queues together; packets that arrive at full queues
        /// are dropped.
        limit: u32 = packets("10000p").above_zero(),
        /// Maximum memory of queued packets in bytes, by their truesize; twice `limit` times the
        /// device's largest frame if not given.
        memory_limit as "memlimit": u32 = bytes("30280000b")
            .above_zero()
            .initially(|device: &Device| memory_for(10_000, device.psched_mtu)),
        /// Parameters of the controller.
        pi: pi::Params = part::<pi::Params>(),
        /// Threshold above which L4S packets are marked: a sojourn time (1ms), or a number of
        /// packets left in the L queue (5p).
        step as "step_thresh": Step = Param::word(Kind::Name, "1ms", Step::read, |step| Some(step.text())),
        /// Number of packets that an arriving packet must find in the L queue for step_thresh to
        /// apply to it.
        min_qlen_step: u32 = packets("0p"),
        /// Under overload also drops ECN-capable packets; if disabled, marks them until the limit
        /// is reached.
        drop_on_overload: bool = switch("overflow", "drop_on_overload"),
        /// Drops and marks with the controller's probability on arrival instead of departure;
        /// step_thresh always acts on departure.
        drop_enqueue: bool = switch("drop_dequeue", "drop_dequeue"),
        /// Puts all ECN-capable packets into the L queue, not only ECT(1) and CE.
        any_ect: bool = switch("l4s_ect", "l4s_ect"),
        /// Share of the rate that the C queue gets while both queues have packets, in whole
        /// percent.
        classic_protection: u8 = percent("10%"),
        /// Splits super-packets (GSO) on arrival.
        split_gso: bool = switch("no_split_gso", "split_gso"),
        /// Largest frame of the device, in bytes.
        mtu: u32 = derived(|device: &Device| device.psched_mtu.clamp(1, 1 << 20)),
        /// Whether a change names `classic_protection`, which resets the credit of the queues.
        #[serde(default)]
        restarts_credit: bool = derived(|_| false),
    } also words! {
        "max_rtt", Kind::Time, "",
            "Largest round-trip time, from which target, tupdate, alpha and beta are computed; by default six times typical_rtt.";
        "typical_rtt", Kind::Time, "",
            "Typical round-trip time, from which target, tupdate, alpha and beta are computed; by default max_rtt / 6.";
    }
}

const fn percent<On>(default: &'static str) -> Param<u8, On> {
    let from = |value: &Value| Ok((value.real() * 100.0).round_ties_even() as u8);
    Param::word(Kind::Probability, default, from, |share| Some(Value::Text(format!("{share}%"))))
}

/// Returns the kernel's default limit of memory in bytes: twice `limit` times the largest frame.
fn memory_for(limit: u32, mtu: u32) -> u32 {
    let bytes = 2 * u64::from(limit) * u64::from(mtu.clamp(1, 1 << 20));
    bytes.min(u32::MAX.into()) as u32
}

/// The threshold above which every L4S packet is marked.
#[data]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Sojourn time, in microseconds.
    Micros(u32),
    /// Number of packets left in the L queue after the departure.
    Packets(u32),
}

impl Step {
    /// Reads a time, or a number of packets with a unit; both must be above 0.
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

/// Returns the value of a word that is a round-trip time, in microseconds; `None` if the word is
/// not given.
fn rtt(given: &Given, word: &str) -> Result<Option<u32>, WordError> {
    let Some(value) = given.find(word) else { return Ok(None) };
    let above_zero = |us: u32| if us == 0 { Err("must be above 0".to_owned()) } else { Ok(us) };
    let read = whole_micros(value).and_then(above_zero);
    read.map(Some).map_err(|why| given.error(word, format!("`{word}` {why}")))
}

impl Params {
    /// Computes the values that depend on `limit` and on round-trip times.
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

    /// Returns warnings about given words that have no effect.
    pub(super) fn ignored(given: &Given) -> Vec<String> {
        let fitted = ["target", "tupdate", "alpha", "beta"];
        let is_fitted = given.has("max_rtt") || given.has("typical_rtt");
        let ignored = fitted.iter().filter(|word| is_fitted && given.has(word));
        ignored
            .map(|word| {
                format!("`{word}` has no effect: it is computed from `max_rtt` and `typical_rtt`")
            })
            .collect()
    }

    /// Returns the initial credit, in bytes times percent. Up to 0 the L queue is served first,
    /// above 0 the C queue.
    pub fn initial_credit(&self) -> i32 {
        let share = i32::from(self.classic_protection);
        self.mtu as i32 * (share - (100 - share))
    }
}
