//! RRDA: rate and resource detection.
//!
//! Source: H. Liu, Y. Zhang, Y. Zhou, R. Xue, "A Rate and Resource Detection Based Receive Buffer
//! Adaptation Approach for High-speed Data Transportation", equations 1 to 6. The paper gives no code
//! and leaves units open, so this is a reconstruction:
//!
//! * D(n) is what arrived in epoch n, *discarded bytes included*, less what was processed: bytes an
//!   epoch. Hence beta is a number of epochs, a look-ahead of 1.6 s with the paper's values. With D in
//!   bytes a second the buffer would be ten times as large for the same discards.
//! * Equation 1: v'(n) = omega D(n) + (1 - omega) v'(n-1), v'(0) = 0.
//! * Equation 2 names the epochs n-k to n-1, while equation 4 uses v'(n): here f is decided by the k
//!   epochs that end with n.
//! * Equation 4: L grows by (1 - alpha) beta |v'(n)| if all k are above zero, shrinks by
//!   alpha beta |v'(n)| if all are below; alpha is the share of memory in use.
//! * L stays within `floor` and `ceiling` and not below what is occupied, of which the paper says
//!   nothing. Without knowledge of the memory alpha is one half.
//!
//! Its weaknesses are the paper's own: blind to pauses shorter than k epochs; below alpha = 1/2 it
//! gives back less than it took; an idle buffer keeps its size; under overload it parks data.

use super::{Decision, Observation, Reason, floor_word, ordered, size, span, within};
use serde::{Deserialize, Serialize};
use sojourn_units::quantity::{format_size, format_time};
use sojourn_units::words::{Given, Kind, Table, Word, WordError};
use sojourn_units::{Bytes, MILLISECOND, Nanos};

/// The words of `rrda`.
pub const TABLE: Table = Table {
    name: "rrda",
    summary: "a receive buffer sized by arrivals less processing, and by the memory in use",
    source: "Liu, Zhang, Zhou, Xue: RRDA, equations 1 to 6; reconstructed",
    words: &[
        Word {
            name: "initial",
            kind: Kind::Size,
            default: "1mb",
            doc: "Size of a buffer that begins.",
        },
        floor_word("64kb"),
        Word {
            name: "ceiling",
            kind: Kind::Size,
            default: "1gb",
            doc: "Greatest size; the paper knows none.",
        },
        Word { name: "epoch", kind: Kind::Time, default: "100ms", doc: "Time between decisions." },
        Word {
            name: "k",
            kind: Kind::Integer { min: 1, max: 1000 },
            default: "3",
            doc: "Epochs in a row whose difference must have one sign.",
        },
        Word {
            name: "beta",
            kind: Kind::Real { min: 0.0, max: 1e6 },
            default: "16",
            doc: "Epochs of the difference that the size is moved by.",
        },
        Word {
            name: "omega",
            kind: Kind::Probability,
            default: "0.5",
            doc: "Weight of the newest epoch in the moving average.",
        },
        Word {
            name: "alpha",
            kind: Kind::Probability,
            default: "",
            doc: "Share of memory in use, instead of what is observed.",
        },
    ],
};

/// The paper's constants and our bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Size of a buffer that begins, in bytes.
    pub initial: Bytes,
    /// Least size in bytes.
    pub floor: Bytes,
    /// Greatest size in bytes.
    pub ceiling: Bytes,
    /// Time between decisions.
    pub epoch: Nanos,
    /// Epochs in a row whose difference must have one sign.
    pub k: u32,
    /// Epochs of the difference that the size is moved by.
    pub beta: f64,
    /// Weight of the newest epoch in the moving average.
    pub omega: f64,
    /// Share of memory in use, instead of what is observed.
    pub alpha: Option<f64>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            initial: 1 << 20,
            floor: 64 << 10,
            ceiling: 1 << 30,
            epoch: 100 * MILLISECOND,
            k: 3,
            beta: 16.0,
            omega: 0.5,
            alpha: None,
        }
    }
}

impl Params {
    pub(super) fn read(given: &Given) -> Result<Self, WordError> {
        let default = Self::default();
        let params = Self {
            initial: size(given, "initial", default.initial)?,
            floor: size(given, "floor", default.floor)?,
            ceiling: size(given, "ceiling", default.ceiling)?,
            epoch: span(given, "epoch", default.epoch)?,
            k: given.integer("k").map_or(default.k, |k| k as u32),
            beta: given.real("beta").unwrap_or(default.beta),
            omega: given.real("omega").unwrap_or(default.omega),
            alpha: given.real("alpha"),
        };
        ordered(given, ("floor", params.floor), ("initial", params.initial))?;
        ordered(given, ("initial", params.initial), ("ceiling", params.ceiling))?;
        Ok(params)
    }
}

impl std::fmt::Display for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "rrda initial {} floor {} ceiling {} epoch {} k {} beta {} omega {}",
            format_size(self.initial),
            format_size(self.floor),
            format_size(self.ceiling),
            format_time(self.epoch),
            self.k,
            self.beta,
            self.omega
        )?;
        self.alpha.map_or(Ok(()), |alpha| write!(f, " alpha {alpha}"))
    }
}

/// Epochs that one observation closes at most; older ones have faded from the average.
const MOST_EPOCHS: u64 = 64;

/// Where the running epoch began.
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
    /// v', bytes an epoch.
    average: f64,
    /// Epochs in a row with v' above (positive) or below (negative) zero.
    run: i32,
    /// Decisions that moved the size up, and down.
    moves: (u64, u64),
}

impl Rrda {
    /// A new one.
    pub fn new(params: Params) -> Self {
        Self { params, start: None, average: 0.0, run: 0, moves: (0, 0) }
    }

    /// Closes the epochs that are over. An observation late by several epochs spreads what happened
    /// evenly over them.
    #[inline]
    pub fn observe(&mut self, seen: &Observation) -> Decision {
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

    fn alpha(&self, seen: &Observation) -> f64 {
        let observed = || seen.memory.map_or(0.5, super::Memory::utilisation);
        self.params.alpha.unwrap_or_else(observed)
    }

    /// Equations 1, 2 and 4 for one epoch.
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
        // Casts to integers saturate; within a byte they round down.
        if self.run > 0 {
            self.moves.0 += 1;
            size.saturating_add(((1.0 - alpha) * step) as u64).min(super::GREATEST)
        } else {
            self.moves.1 += 1;
            size.saturating_sub((alpha * step) as u64)
        }
    }

    pub(super) fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("average", self.average);
        visit("run", f64::from(self.run));
        visit("grown", self.moves.0 as f64);
        visit("shrunk", self.moves.1 as f64);
    }
}
