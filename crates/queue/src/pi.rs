//! The PI controller of PI2 and DualPI2: a base probability, and the decisions that follow from it.
//!
//! Source: De Schepper, Bondarenko, Tsang, Briscoe, "PI2: A Linearized AQM for both Classic and
//! Scalable TCP" (CoNEXT 2016); RFC 9332; arithmetic of Linux `sch_dualpi2.c`.
//!
//! Every `tupdate` the base probability p' is corrected by two terms: `alpha` times the difference
//! between the queueing delay and `target`, and `beta` times the change of the delay since the last
//! update. The rate of a Classic sender is proportional to 1 / sqrt(drop probability), so its
//! packets are dropped or marked with p' squared: two draws that must both be below p'. The rate of
//! a scalable sender is proportional to 1 / (mark probability), so its packets are marked with
//! `coupling_factor` times p'. Therefore both kinds of senders react linearly to p', and the gains
//! need no scaling by load.
//!
//! Invariants: p' is between 0 and 1; Classic packets are marked only with `capable`. L4S packets,
//! and Classic packets with `capable`, are dropped only if `coupling_factor` p' > 1 (overload).

use crate::device::Device;
use crate::discipline::{Draws, visit_fields};
use crate::kinds::micros;
use sojourn_units::declare::{Param, integer};
use sojourn_units::words::{Kind, Value};
use sojourn_units::{MICROSECOND, Nanos, SECOND, params};

/// Largest gain in Hz. Up to this value the 32-bit floating-point numbers of `tc` distinguish all
/// steps of 1/256 Hz.
const MAX_GAIN: f64 = 65_535.0;
const GAIN: Kind = Kind::Real { min: 1.0 / GAIN_UNITS as f64, max: MAX_GAIN };
/// Number of steps of a gain per Hz.
const GAIN_UNITS: u32 = 256;

params! {
    /// Parameters of the controller, in the units that `tc` passes to the kernel. The defaults are those of DualPI2.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params on Device {
        /// Target of the queueing delay, in whole microseconds.
        target_us as "target": u32 = micros("15ms").above_zero(),
        /// Time between updates of the probability, at most 4.29 s.
        tupdate_us as "tupdate": u32 = micros("16ms").above_zero(),
        /// Gain on the difference between delay and target, in Hz, rounded down to 1/256 Hz.
        alpha: u32 = gain("0.16015625"),
        /// Gain on the change of the delay since the last update, in Hz, rounded down to 1/256 Hz.
        beta: u32 = gain("3.19921875"),
        /// Factor by which the mark probability of L4S packets exceeds the base probability.
        coupling_factor: u8 = integer(1, 255, "2"),
    }
}

/// Returns a parameter that is a gain, in units of 1/256 Hz, rounded as in `tc`.
const fn gain<On>(default: &'static str) -> Param<u32, On> {
    let from = |value: &Value| Ok((value.real() as f32 * GAIN_UNITS as f32) as u32);
    Param::word(GAIN, default, from, |gain| {
        Some(Value::Real(f64::from(*gain) / f64::from(GAIN_UNITS)))
    })
}

impl Params {
    /// Sets gains, target and update time by the rules of RFC 9332 (appendix A.1) for the largest
    /// and the typical round-trip time, both in microseconds.
    ///
    /// # Errors
    /// A message: the times contradict each other, or a gain is out of range.
    pub(crate) fn fit(&mut self, max_rtt_us: u32, typical_rtt_us: u32) -> Result<(), String> {
        if typical_rtt_us > max_rtt_us {
            return Err("`typical_rtt` must not be above `max_rtt`".to_owned());
        }
        let max = f64::from(max_rtt_us);
        let tupdate_us = (f64::from(typical_rtt_us).min(max / 3.0) as u32).max(1);
        // `tc` has these constants in single precision.
        let alpha = f64::from(tupdate_us) / max / max * 1e6 * f64::from(0.1f32);
        let beta = f64::from(0.3f32) / max * 1e6;
        if beta > MAX_GAIN {
            return Err("`max_rtt` is too small: `beta` would be too large".to_owned());
        }
        let units = |gain: f64| (gain * f64::from(GAIN_UNITS)) as u32;
        if units(alpha) == 0 || units(beta) == 0 {
            return Err("`max_rtt` is too large: `alpha` or `beta` would be 0".to_owned());
        }
        self.target_us = typical_rtt_us;
        self.tupdate_us = tupdate_us;
        self.alpha = units(alpha);
        self.beta = units(beta);
        Ok(())
    }

    /// Returns these parameters in the units of the controller's computation.
    pub fn constants(&self) -> Constants {
        // Change of the probability per 64 ns of delay; probability 1 is 2^32 - 1.
        let scaled = |gain: u32| ((u64::from(gain) * u64::from(MAX_PROB)) >> 2) / SECOND;
        Constants {
            target: Nanos::from(self.target_us) * MICROSECOND,
            tupdate: nanos(self.tupdate_us),
            alpha: scaled(self.alpha),
            beta: scaled(self.beta),
            coupling: u64::from(self.coupling_factor),
        }
    }
}

/// Converts microseconds to nanoseconds, at most 2^32 - 1, as in the kernel.
pub(crate) fn nanos(micros: u32) -> Nanos {
    (Nanos::from(micros) * MICROSECOND).min(Nanos::from(u32::MAX))
}

/// Probability 1 in the controller's units.
pub const MAX_PROB: u32 = u32::MAX;

/// Parameters in the units of the controller's computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// Target of the queueing delay, in nanoseconds.
    pub target: Nanos,
    /// Time between updates, in nanoseconds.
    pub tupdate: Nanos,
    /// Gain on the difference between delay and target, in units of 2^-32 per 64 ns.
    pub alpha: u64,
    /// Gain on the change of the delay, in units of 2^-32 per 64 ns.
    pub beta: u64,
    /// Factor by which the mark probability of L4S packets exceeds the base probability.
    pub coupling: u64,
}

/// The decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet is accepted unchanged.
    Pass,
    /// The packet is accepted and marked.
    Mark,
    /// The packet is dropped.
    Drop,
}

/// State of the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Base probability p', in units of 2^-32; 1 is 2^32 - 1.
    pub prob: u32,
    /// Queueing delay at the last update, in nanoseconds.
    pub last_qdelay: Nanos,
}

impl State {
    /// Updates the base probability for the present queueing delay in nanoseconds; `most` limits
    /// the result.
    ///
    /// As in the kernel, the correction is truncated to 32 bits before it is added, and only a wrap
    /// of the sum is detected. A correction beyond the whole range can therefore give any
    /// probability.
    pub fn update(&mut self, constants: &Constants, delay: Nanos, most: u32) {
        let weighed = |delta: u64, gain: u64| (delta as i64).wrapping_mul(gain as i64);
        let change = weighed(delay.wrapping_sub(constants.target), constants.alpha)
            .wrapping_add(weighed(delay.wrapping_sub(self.last_qdelay), constants.beta));
        // The kernel divides with rounding towards zero.
        let step = (change.unsigned_abs() / 64) as u32;
        let prob = if change > 0 {
            let sum = self.prob.wrapping_add(step);
            if sum < self.prob { MAX_PROB } else { sum }
        } else {
            let difference = self.prob.wrapping_sub(step);
            if difference > self.prob { 0 } else { difference }
        };
        self.prob = prob.min(most);
        self.last_qdelay = delay;
    }

    /// Returns the decision about a Classic packet.
    #[inline]
    pub fn classic(&self, constants: &Constants, capable: bool, draws: &mut impl Draws) -> Verdict {
        if !self.twice(draws) {
            Verdict::Pass
        } else if capable && !self.is_overloaded(constants) {
            Verdict::Mark
        } else {
            Verdict::Drop
        }
    }

    /// Returns the decision about an L4S packet. Under overload all L4S packets are marked; if
    /// `drops` is true, some are dropped instead, with the probability of Classic packets.
    #[inline]
    pub fn scalable(&self, constants: &Constants, drops: bool, draws: &mut impl Draws) -> Verdict {
        if self.is_overloaded(constants) {
            if drops && self.twice(draws) { Verdict::Drop } else { Verdict::Mark }
        } else if u64::from(draws.draw_u32()) <= self.coupled(constants) {
            Verdict::Mark
        } else {
            Verdict::Pass
        }
    }

    /// Returns whether the mark probability of L4S packets would exceed 1.
    pub(crate) fn is_overloaded(&self, constants: &Constants) -> bool {
        self.coupled(constants) > u64::from(MAX_PROB)
    }

    fn coupled(&self, constants: &Constants) -> u64 {
        u64::from(self.prob) * constants.coupling
    }

    /// Returns whether two draws are both below p'; the probability of this is p' squared.
    fn twice(&self, draws: &mut impl Draws) -> bool {
        draws.draw_u32() <= self.prob && draws.draw_u32() <= self.prob
    }

    /// Visits the fields, under the kernel's names.
    pub fn visit(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        visit_fields!(visit, self, [prob, last_qdelay]);
    }
}
