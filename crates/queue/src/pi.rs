//! The controller of PI2 and DualPI2: one probability, and what it means for a packet.
//!
//! Source: De Schepper, Bondarenko, Tsang, Briscoe, "PI2: A Linearized AQM for both Classic and Scalable
//! TCP" (CoNEXT 2016); RFC 9332; arithmetic of Linux `sch_dualpi2.c`.
//!
//! Every `tupdate` a base probability p' is corrected in proportion to how far the queueing delay is
//! from `target` (`alpha`) and to how it moved (`beta`). A Classic sender's rate goes with one over the
//! square root of its losses, so it is met by p' squared: two draws that both must hit. A scalable
//! sender's goes with one over its marks: it is met by `coupling_factor` times p'. So both react alike
//! to the same p', and no gain has to be scaled by the load.
//!
//! Invariants: p' is between 0 and 1; a packet that is not ECN-capable is never marked; nothing
//! is dropped that can be marked unless `coupling_factor` times p' exceeds one (overload).

use crate::device::Device;
use crate::discipline::Draws;
use crate::kinds::micros;
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Param, integer};
use sojourn_units::words::{Kind, Value};
use sojourn_units::{MICROSECOND, Nanos, SECOND, params};

/// The greatest gain in Hz: up to it, the 32-bit reals of `tc` distinguish all steps of 1/256 Hz.
const MAX_GAIN: f64 = 65_535.0;
const GAIN: Kind = Kind::Real { min: 1.0 / GAIN_UNITS as f64, max: MAX_GAIN };
/// Steps of a gain in one Hz.
const GAIN_UNITS: u32 = 256;

params! {
    /// Parameters of the controller, in the kernel's units. The defaults are DualPI2's.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Params on Device {
        /// Queueing delay to hold, in whole microseconds.
        target_us as "target": u32 = micros("15ms").above_zero(),
        /// Time between updates of the probability, at most 4.29 s.
        tupdate_us as "tupdate": u32 = micros("16ms").above_zero(),
        /// Weight of the delay's distance from target, in Hz, rounded down to 1/256.
        alpha: u32 = gain("0.16015625"),
        /// Weight of the delay's movement, in Hz, rounded down to 1/256.
        beta: u32 = gain("3.19921875"),
        /// How many times the base probability L4S packets are marked with.
        coupling_factor: u8 = integer(1, 255, "2"),
    }
}

/// Returns a gain in 1/256 Hz, read as `tc` does.
const fn gain<On>(default: &'static str) -> Param<u32, On> {
    let from = |value: &Value| Ok((value.real() as f32 * GAIN_UNITS as f32) as u32);
    Param::word(GAIN, default, from, |gain| {
        Some(Value::Real(f64::from(*gain) / f64::from(GAIN_UNITS)))
    })
}

impl Params {
    /// Returns the gains, target and update time that RFC 9332 (appendix A.1) gives for the
    /// greatest and the typical round-trip time, in microseconds.
    ///
    /// # Errors
    /// What is wrong with them, as a sentence.
    pub(crate) fn fit(&mut self, max_rtt_us: u32, typical_rtt_us: u32) -> Result<(), String> {
        if typical_rtt_us > max_rtt_us {
            return Err("`typical_rtt` must not be above `max_rtt`".to_owned());
        }
        let max = f64::from(max_rtt_us);
        let tupdate_us = (f64::from(typical_rtt_us).min(max / 3.0) as u32).max(1);
        // Constants of single precision, as `tc` has them.
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

    /// Returns the same in the numbers that it is computed with.
    pub fn constants(&self) -> Constants {
        // Probability per 64 ns of delay; one is 2^32 - 1.
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

/// Microseconds as the kernel's 32 bits of nanoseconds.
pub(crate) fn nanos(micros: u32) -> Nanos {
    (Nanos::from(micros) * MICROSECOND).min(Nanos::from(u32::MAX))
}

/// Probability one.
pub const MAX_PROB: u32 = u32::MAX;

/// The parameters in the numbers that the controller is computed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// Queueing delay to hold.
    pub target: Nanos,
    /// Time between updates.
    pub tupdate: Nanos,
    /// Weight of the delay's distance from target: parts of 2^32 for 64 ns.
    pub alpha: u64,
    /// Weight of the change of the delay, in the same unit.
    pub beta: u64,
    /// How many times the base probability L4S packets are marked with.
    pub coupling: u64,
}

/// The decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Pass,
    /// It is to be marked.
    Mark,
    /// It is to be dropped.
    Drop,
}

/// The controller's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The base probability p'; one is 2^32 - 1.
    pub prob: u32,
    /// Queueing delay at the last update.
    pub last_qdelay: Nanos,
}

impl State {
    /// Updates the probability for a queueing delay of `delay`; the probability stays within `most`.
    ///
    /// As in the kernel, a correction is cut to 32 bits before it is added, and only the sum is seen to
    /// leave the range: one of more than the whole range can leave any probability.
    pub fn update(&mut self, constants: &Constants, delay: Nanos, most: u32) {
        let weighed = |delta: u64, gain: u64| (delta as i64).wrapping_mul(gain as i64);
        let change = weighed(delay.wrapping_sub(constants.target), constants.alpha)
            .wrapping_add(weighed(delay.wrapping_sub(self.last_qdelay), constants.beta));
        // Rounded towards zero, either way.
        let step = (change.unsigned_abs() / 64) as u32;
        let prob = if change > 0 {
            let sum = self.prob.wrapping_add(step);
            if sum < self.prob { MAX_PROB } else { sum }
        } else {
            let rest = self.prob.wrapping_sub(step);
            if rest > self.prob { 0 } else { rest }
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

    /// Returns the decision about an L4S packet. Under overload all are marked, and if `drops`, as
    /// many are dropped as of Classic packets.
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

    /// Returns whether the marks of L4S packets can carry no more.
    pub(crate) fn is_overloaded(&self, constants: &Constants) -> bool {
        self.coupled(constants) > u64::from(MAX_PROB)
    }

    fn coupled(&self, constants: &Constants) -> u64 {
        u64::from(self.prob) * constants.coupling
    }

    /// Returns whether two draws both hit: p' squared.
    #[inline]
    fn twice(&self, draws: &mut impl Draws) -> bool {
        draws.draw_u32() <= self.prob && draws.draw_u32() <= self.prob
    }

    /// Visits its fields.
    pub fn visit(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        visit("prob", self.prob.into());
        visit("last_qdelay", self.last_qdelay.into());
    }
}
