//! Parameters of CHOKe, with the words of `tc`.

use crate::device::Device;
use crate::kinds::{bytes, packets};
use crate::limit::Unit;
use crate::red::{self, Adaptation, Averaging, Ramp, kernel_fraction};
use sojourn_units::declare::{flag, integer, rate};
use sojourn_units::words::{Given, WordError};
use sojourn_units::{Rate, params};

/// Maximum value of `limit` (the kernel's `CHOKE_MAX_QUEUE`).
pub const MAX_LIMIT: u32 = 128 * 1024 - 1;

params! {
    "choke": "CHOKe: RED that also compares arrivals with a random queued packet and drops both if they are of one flow",
    from "Pan, Prabhakar, Psounis 2000; Linux sch_choke.c, iproute2 q_choke.c";

    /// Parameters of CHOKe, with the words of `tc`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params on Device {
        /// Maximum number of packets in the queue, at most 131071; required.
        limit: u32 = packets("").above_zero().initially(|_| 0),
        /// Average backlog above which arrivals are compared with a random packet, and early drops
        /// begin.
        min: u32 = packets("max/3").above_zero().initially(|_| 0),
        /// Average backlog above which every arrival is dropped.
        max: u32 = packets("limit/4").above_zero().initially(|_| 0),
        /// Early drop probability just below max, for an arrival that does not match.
        max_p as "probability": u32 = kernel_fraction("0.02"),
        /// Typical packet length, for burst and idle times.
        avpkt: u32 = bytes("1000b").above_zero(),
        /// Number of packets that may arrive at an idle queue in a burst without an early drop;
        /// sets the averaging weight.
        burst: u32 = integer(1, 4_294_967_295, "(2 min + max) / 3").initially(|_| 0),
        /// Rate of the link, used only for idle times.
        bandwidth: Rate = rate("10mbit"),
        /// Marks ECN-capable packets instead of dropping them, except those that match.
        ecn: bool = flag(),
        /// Drops packets above max, also ECN-capable ones; a feature of the kernel for which tc has
        /// no word.
        harddrop: bool = flag(),
    }
}

impl Params {
    /// Computes the values that depend on `limit`, and checks all values.
    pub(super) fn depend(&mut self, given: &Given) -> Result<(), WordError> {
        if self.limit == 0 {
            return Err(given.error("limit", "`choke` needs `limit`, such as limit 200p"));
        }
        if self.limit > MAX_LIMIT {
            return Err(given.error(
                "limit",
                format!("`limit` must be at most {MAX_LIMIT}p; found {}p", self.limit),
            ));
        }
        if self.max == 0 {
            self.max = self.limit / 4;
        }
        if self.min == 0 {
            self.min = self.max / 3;
        }
        if self.burst == 0 {
            self.burst = ((2 * u64::from(self.min) + u64::from(self.max)) / 3) as u32;
        }
        self.check().map_err(|(word, message)| given.error(word, message))
    }

    /// Rejects values that `tc` or the kernel rejects; the error has the word and a message.
    fn check(&self) -> Result<(), (&'static str, String)> {
        let Self { limit, min, max, .. } = self;
        if max > limit {
            return Err(("max", format!("`max` ({max}) must not be above `limit` ({limit})")));
        }
        if min >= max {
            return Err(("min", format!("`min` ({min}) must be below `max` ({max})")));
        }
        self.options().map(|_| ())
    }

    /// Returns these parameters as parameters of RED.
    pub(super) fn red(&self) -> red::Params {
        red::Params {
            unit: Unit::Packets,
            limit: self.limit,
            min: self.min,
            max: self.max,
            max_p: self.max_p,
            avpkt: self.avpkt,
            averaging: Averaging::Burst(self.burst),
            bandwidth: self.bandwidth,
            ecn: self.ecn,
            harddrop: self.harddrop,
            nodrop: false,
            wait: false,
            adaptation: Adaptation::Off,
            ramp: Ramp::Steep,
            // RED uses `hz` only for the timer of `adaptive`.
            hz: 1000,
        }
    }

    /// Returns the numbers that `tc` would pass to the kernel.
    ///
    /// # Errors
    /// The word with the wrong value, and a message.
    pub fn options(&self) -> Result<red::Options, (&'static str, String)> {
        self.red().options()
    }
}
