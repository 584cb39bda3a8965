//! RRDA: rate and resource detection.
//!
//! Source: H. Liu, Y. Zhang, Y. Zhou, R. Xue, "A Rate and Resource Detection Based Receive Buffer
//! Adaptation Approach for High-speed Data Transportation", equations 1 to 6. The paper gives no code
//! and leaves units open, so this is a reconstruction:
//!
//! * D(n) is arrived bytes of epoch n, *discarded ones included*, less processed bytes, in bytes per
//!   epoch. So beta is a number of epochs, a look-ahead of 1.6 s with the paper's values. With D in
//!   bytes/s the buffer would be ten times as large for the same discards.
//! * Equation 1: v'(n) = omega D(n) + (1 - omega) v'(n-1), v'(0) = 0.
//! * Equation 2 names the epochs n-k to n-1, while equation 4 uses v'(n): here the k epochs that end
//!   with n decide f.
//! * Equation 4: L grows by (1 - alpha) beta |v'(n)| if all k are above zero, shrinks by
//!   alpha beta |v'(n)| if all are below; alpha is the share of memory in use.
//! * L stays within `floor` and `ceiling` and not below the occupied size, which the paper does not
//!   mention. If the memory is unknown, alpha is one half.
//!
//! Weaknesses of the paper's method: it does not notice pauses shorter than k epochs; below alpha =
//! 1/2 it shrinks by less than it grew; an idle buffer keeps its size; an overload fills the
//! buffer.

use crate::contract::{PolicyParams, Sizing, bytes, span, within};
use crate::observation::{Decision, GREATEST, Memory, Observation, Reason};
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Param, Parameters, integer, probability, real};
use sojourn_units::words::{Kind, Table, Value};
use sojourn_units::{Bytes, Nanos, params};

params! {
    /// Constants of the paper and bounds of this implementation.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Initial size.
        initial: Bytes = bytes("1mb"),
        /// Least size.
        floor: Bytes = bytes("64kb"),
        /// Greatest size; the paper has none.
        ceiling: Bytes = bytes("1gb"),
        /// Time between decisions.
        epoch: Nanos = span("100ms"),
        /// Consecutive epochs whose difference must have one sign.
        k: u32 = integer(1, 1000, "3"),
        /// Epochs of the difference by which the size changes.
        beta: f64 = real(0.0, 1e6, "16"),
        /// Weight of the newest epoch in the moving average.
        omega: f64 = probability("0.5"),
        /// Share of memory in use, in place of the observed one.
        alpha: Option<f64> = Param::word(
            Kind::Probability,
            "",
            |value| Ok(Some(value.real())),
            |alpha| alpha.map(|alpha| Value::Text(alpha.to_string())),
        )
        .initially(|()| None),
    }
}

impl PolicyParams for Params {
    const TABLE: Table = Table {
        name: "rrda",
        summary: "a receive buffer sized by arrivals less processing, and by the memory in use",
        source: "Liu, Zhang, Zhou, Xue: RRDA, equations 1 to 6; reconstructed",
        words: Self::WORDS,
    };

    type Policy = Rrda;

    fn build(&self) -> Rrda {
        Rrda { params: *self, start: None, average: 0.0, run: 0, moves: (0, 0) }
    }

    fn sizes(&self) -> Vec<(&'static str, Bytes)> {
        vec![("floor", self.floor), ("initial", self.initial), ("ceiling", self.ceiling)]
    }

    fn initial(&self) -> Bytes {
        self.initial
    }
}

/// Most epochs that one observation ends; the average no longer contains older ones.
const MOST_EPOCHS: u64 = 64;

/// Beginning of the current epoch.
#[derive(Clone, Copy, Debug)]
struct Start {
    at: Nanos,
    occupied: Bytes,
    discarded: Bytes,
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Rrda {
    params: Params,
    start: Option<Start>,
    /// v', in bytes per epoch.
    average: f64,
    /// Consecutive epochs with v' above (positive) or below (negative) zero.
    run: i32,
    /// Number of decisions that increased and decreased the size.
    moves: (u64, u64),
}

impl Sizing for Rrda {
    /// Ends the epochs that are over. A late observation is distributed evenly over several epochs.
    #[inline]
    fn observe(&mut self, seen: &Observation) -> Decision {
        let here = Start { at: seen.now, occupied: seen.occupied, discarded: seen.discarded };
        let start = *self.start.get_or_insert(here);
        let epochs = seen.now.saturating_sub(start.at) / self.params.epoch;
        let (mut size, mut reason) = (seen.size, Reason::Hold);
        if epochs > 0 {
            let difference = seen.occupied as f64 - start.occupied as f64
                + seen.discarded.saturating_sub(start.discarded) as f64;
            let alpha = self.alpha(seen);
            for _ in 0..epochs.min(MOST_EPOCHS) {
                size = self.close(size, difference / epochs as f64, alpha);
            }
            self.start = Some(Start { at: start.at + epochs * self.params.epoch, ..here });
            if size != seen.size {
                reason = Reason::Rate;
            }
        }
        let bounded = within(size, self.params.floor, self.params.ceiling, seen.occupied);
        if bounded != size {
            reason = Reason::Bound;
        }
        Decision { size: bounded, reason }
    }

    fn state(&self, visit: &mut dyn FnMut(&str, f64)) {
        visit("average", self.average);
        visit("run", f64::from(self.run));
        visit("grown", self.moves.0 as f64);
        visit("shrunk", self.moves.1 as f64);
    }
}

impl Rrda {
    fn alpha(&self, seen: &Observation) -> f64 {
        let observed = || seen.memory.map_or(0.5, Memory::utilisation);
        self.params.alpha.unwrap_or_else(observed)
    }

    /// Applies equations 1, 2 and 4 to one epoch.
    fn close(&mut self, size: Bytes, difference: f64, alpha: f64) -> Bytes {
        let omega = self.params.omega;
        self.average = omega * difference + (1.0 - omega) * self.average;
        self.run = match self.average {
            v if v > 0.0 => self.run.max(0).saturating_add(1),
            v if v < 0.0 => self.run.min(0).saturating_sub(1),
            _ => 0,
        };
        if self.run.unsigned_abs() < self.params.k {
            return size;
        }
        let step = self.params.beta * self.average.abs();
        // Casts to integers saturate and round down.
        if self.run > 0 {
            self.moves.0 += 1;
            size.saturating_add(((1.0 - alpha) * step) as u64).min(GREATEST)
        } else {
            self.moves.1 += 1;
            size.saturating_sub((alpha * step) as u64)
        }
    }
}
