//! SFB's parameters and words.

use crate::device::Device;
use crate::kinds::packets;
use crate::tc::fraction_text;
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Param, Parameters, derived, integer};
use sojourn_units::words::{Kind, Table, Value};
use sojourn_units::{jiffies, params};

/// The kernel's longest span in milliseconds that is not "for ever".
const LONGEST: u64 = (1 << 31) - 1;

/// The words of `sfb`.
pub const TABLE: Table = Table {
    name: "sfb",
    summary: "SFB: BLUE in bins that flows share by hashes, with a penalty box for those that do not respond",
    source: "Feng, Kandlur, Saha, Shin 2001; Linux sch_sfb.c, iproute2 q_sfb.c",
    words: Params::WORDS,
};

params! {
    /// Parameters of SFB, in the kernel's units.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Params on Device {
        /// Milliseconds after which flows are sorted into bins by a new hash; 0 is never. tc takes no unit here.
        rehash_ms as "rehash": u32 = integer(0, LONGEST, "600000"),
        /// Milliseconds before a change of hash in which the next set of bins is warmed up (double buffering); 0 is none.
        warmup_ms as "db": u32 = integer(0, LONGEST, "60000"),
        /// Packets that fit; more are dropped on arrival.
        limit: u32 = packets("1000p").above_zero(),
        /// Packets that a flow may have in its emptiest bin; 5/4 of target if only that is given.
        max: u32 = packets("25p").above_zero(),
        /// Packets in a bin from which its probability rises; 4/5 of max if only that is given.
        bin_size as "target": u32 = packets("20p").above_zero(),
        /// Increase of a bin's probability by an arrival at a bin of target packets or more.
        increment: u16 = fraction_q16("0.0005"),
        /// Decrease of a bin's probability by an arrival at an empty bin.
        decrement: u16 = fraction_q16("0.00005"),
        /// Packets a second that all flows with probability one may queue together.
        penalty_rate: u32 = integer(0, 4_294_967_295, "10"),
        /// Packets that such flows may queue at once.
        penalty_burst: u32 = integer(0, 4_294_967_295, "20"),
        /// Ticks a second of the coarse clock.
        hz: u32 = derived(|device: &Device| device.hz),
    }
}

impl Params {
    /// Ticks between changes of the hash.
    pub(super) fn rehash(&self) -> u64 {
        jiffies::from_millis(self.rehash_ms, self.hz)
    }

    /// Ticks of warm-up.
    pub(super) fn warmup(&self) -> u64 {
        jiffies::from_millis(self.warmup_ms, self.hz)
    }
}

const fn fraction_q16<On>(default: &'static str) -> Param<u16, On> {
    let from = |value: &Value| Ok(probability_q16(value.real()));
    Param::word(Kind::Probability, default, from, |p| Some(Value::Text(probability_text(*p))))
}

/// Returns a probability as a fraction of 65535, rounded to the nearest.
fn probability_q16(p: f64) -> u16 {
    (p * f64::from(u16::MAX) + 0.5) as u16
}

fn probability_text(p: u16) -> String {
    match p {
        u16::MAX => "1".to_owned(),
        p => fraction_text(f64::from(p) / f64::from(u16::MAX), |text| probability_q16(text) == p),
    }
}
