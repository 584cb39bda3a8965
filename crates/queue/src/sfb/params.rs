//! Parameters of SFB, with the words of `tc`.

use crate::device::Device;
use crate::kinds::packets;
use crate::tc::fraction_text;
use sojourn_units::declare::{Param, derived, integer};
use sojourn_units::words::{Kind, Value};
use sojourn_units::{jiffies, params};

/// Largest time in milliseconds that the kernel does not treat as infinite.
const LONGEST: u64 = (1 << 31) - 1;

params! {
    "sfb": "SFB: BLUE in bins of flows, selected by hashes, with a rate limit for unresponsive flows",
    from "Feng, Kandlur, Saha, Shin 2001; Linux sch_sfb.c, iproute2 q_sfb.c";

    /// Parameters of SFB, in the units that `tc` passes to the kernel.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params on Device {
        /// Time in milliseconds after which a new hash assigns flows to bins; 0 disables it. tc
        /// accepts no unit here.
        rehash_ms as "rehash": u32 = integer(0, LONGEST, "600000"),
        /// Time in milliseconds before a change of hash in which the next set of bins is warmed up
        /// (double buffering); 0 disables the warm-up.
        warmup_ms as "db": u32 = integer(0, LONGEST, "60000"),
        /// Maximum number of packets in the queue; packets that arrive at a full queue are dropped.
        limit: u32 = packets("1000p").above_zero(),
        /// Maximum number of packets in the emptiest bin of a flow; by default 5/4 of target.
        max: u32 = packets("25p").above_zero(),
        /// Number of packets in a bin from which on its probability rises; by default 4/5 of max.
        bin_size as "target": u32 = packets("20p").above_zero(),
        /// Increase of a bin's probability on an arrival if the bin has target or more packets.
        increment: u16 = fraction_q16("0.0005"),
        /// Decrease of a bin's probability on an arrival at an empty bin.
        decrement: u16 = fraction_q16("0.00005"),
        /// Packets per second that all flows in the penalty box (with probability 1) together may
        /// enqueue.
        penalty_rate: u32 = integer(0, 4_294_967_295, "10"),
        /// Packets that the flows in the penalty box together may enqueue in a burst.
        penalty_burst: u32 = integer(0, 4_294_967_295, "20"),
        /// Timer ticks per second.
        hz: u32 = derived(|device: &Device| device.hz),
    }
}

impl Params {
    /// Returns the time between changes of the hash, in timer ticks; 0 if the hash never changes.
    pub(super) fn rehash(&self) -> u64 {
        jiffies::from_millis(self.rehash_ms, self.hz)
    }

    /// Returns the duration of the warm-up, in timer ticks.
    pub(super) fn warmup(&self) -> u64 {
        jiffies::from_millis(self.warmup_ms, self.hz)
    }
}

const fn fraction_q16<On>(default: &'static str) -> Param<u16, On> {
    let from = |value: &Value| Ok(probability_q16(value.real()));
    Param::word(Kind::Probability, default, from, |p| Some(Value::Text(probability_text(*p))))
}

/// Returns a probability in units of 1/65535, rounded to the nearest.
fn probability_q16(p: f64) -> u16 {
    (p * f64::from(u16::MAX) + 0.5) as u16
}

fn probability_text(p: u16) -> String {
    match p {
        u16::MAX => "1".to_owned(),
        p => fraction_text(f64::from(p) / f64::from(u16::MAX), |text| probability_q16(text) == p),
    }
}
