//! RRDA: rate and resource detection based adaptation.
//!
//! Source: H. Liu, Y. Zhang, Y. Zhou, R. Xue, "A Rate and Resource Detection Based Receive Buffer
//! Adaptation Approach for High-speed Data Transportation", equations 1 to 6. The paper contains no
//! code and does not define all units, so this is a reconstruction:
//!
//! * D(n) is the difference between arrived bytes, *including discarded ones* (without them if
//!   `stored`), and processed bytes in epoch n, in bytes per epoch. Therefore beta is a number of
//!   epochs, which is a look-ahead of 1.6 s with the paper's values.
//! * Equation 1: v'(n) = omega D(n) + (1 - omega) v'(n-1), with v'(0) = 0.
//! * Equation 2 uses the epochs n-k to n-1, but equation 4 uses v'(n). Here the last k epochs,
//!   including n, count; with `earlier`, those that the paper prints.
//! * Equation 4: if v' is above zero in all k epochs, size L grows by (1 - alpha) beta |v'(n)|; if
//!   below zero in all, L shrinks by alpha beta |v'(n)|. alpha is the share of memory in use.
//! * L stays between `floor` and `ceiling`, and not below the occupied bytes, which the paper does
//!   not mention. If the memory is unknown, alpha is one half.
//!
//! Weaknesses of the paper's method: it does not react to pauses shorter than k epochs. If alpha is
//! below 1/2, L shrinks by less than it grew. An idle buffer keeps its size. An overload fills the
//! buffer.

use crate::contract::{PolicyParams, Sizing, bytes, span, within};
use crate::observation::{Decision, GREATEST, Memory, Observation, Reason};
use sojourn_units::declare::{Param, flag, integer, probability, real};
use sojourn_units::words::{Kind, Value};
use sojourn_units::{Bytes, Nanos, params};

params! {
    "rrda": "a receive buffer whose size depends on arrivals minus processing and on the memory in use",
    from "Liu, Zhang, Zhou, Xue: RRDA, equations 1 to 6; reconstructed";

    /// Constants of the paper, and bounds of the size.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Initial size.
        initial: Bytes = bytes("1mb"),
        /// Minimum size.
        floor: Bytes = bytes("64kb"),
        /// Maximum size, which the paper does not have.
        ceiling: Bytes = bytes("1gb"),
        /// Length of an epoch, which is the time between two decisions.
        epoch: Nanos = span("100ms"),
        /// Number of consecutive epochs in which the average difference must have the same sign.
        k: u32 = integer(1, 1000, "3"),
        /// Number of epochs by which the average difference is multiplied for a change of the size.
        beta: f64 = real(0.0, 1e6, "16"),
        /// Weight of the latest epoch in the moving average.
        omega: f64 = probability("0.5"),
        /// Assumed share of the memory that is in use; by default the observed share.
        alpha: Option<f64> = Param::word(
            Kind::Probability,
            "",
            |value| Ok(Some(value.real())),
            |alpha| alpha.map(|alpha| Value::Text(alpha.to_string())),
        )
        .initially(|()| None),
        /// The k epochs of equation 2 end before the latest one, as the paper prints it.
        earlier: bool = flag(),
        /// Discarded bytes do not count as arrived.
        stored: bool = flag(),
    }
}

impl PolicyParams for Params {
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

/// Maximum number of epochs that one observation adds to the average; more would hardly change it.
const MOST_EPOCHS: u64 = 64;

/// Values at the beginning of the current epoch.
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
    /// The average v', in bytes per epoch.
    average: f64,
    /// Number of consecutive epochs with v' above zero, or its negative for epochs with v' below
    /// zero.
    run: i32,
    /// Numbers of decisions that increased and that decreased the size.
    moves: (u64, u64),
}

impl Sizing for Rrda {
    /// Ends all epochs that are over. If a late observation ends several, D is divided evenly among
    /// them.
    #[inline]
    fn observe(&mut self, seen: &Observation) -> Decision {
        let here = Start { at: seen.now, occupied: seen.occupied, discarded: seen.discarded };
        let start = *self.start.get_or_insert(here);
        let epochs = seen.now.saturating_sub(start.at) / self.params.epoch;
        let (mut size, mut reason) = (seen.size, Reason::Hold);
        if epochs > 0 {
            let lost = if self.params.stored { start.discarded } else { seen.discarded };
            let difference = seen.occupied as f64 - start.occupied as f64
                + lost.saturating_sub(start.discarded) as f64;
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

    /// Applies equations 1, 2 and 4 to one epoch, and returns the new size.
    fn close(&mut self, size: Bytes, difference: f64, alpha: f64) -> Bytes {
        let (omega, before) = (self.params.omega, self.run);
        self.average = omega * difference + (1.0 - omega) * self.average;
        self.run = match self.average {
            v if v > 0.0 => self.run.max(0).saturating_add(1),
            v if v < 0.0 => self.run.min(0).saturating_sub(1),
            _ => 0,
        };
        let run = if self.params.earlier { before } else { self.run };
        if run.unsigned_abs() < self.params.k {
            return size;
        }
        let step = self.params.beta * self.average.abs();
        // A cast to an integer saturates and rounds down.
        if run > 0 {
            self.moves.0 += 1;
            size.saturating_add(((1.0 - alpha) * step) as u64).min(GREATEST)
        } else {
            self.moves.1 += 1;
            size.saturating_sub((alpha * step) as u64)
        }
    }
}
