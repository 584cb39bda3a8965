//! DCTCP: reduce by the fraction of bytes that were marked.
//!
//! Source: RFC 8257, with the kernel's fixed point (alpha in 1/1024).
//! Idea: the receiver echoes every mark exactly; the sender keeps a moving average (gain 1/16) of
//! the marked fraction, once a window, and takes alpha/2 of cwnd away where Reno takes half. A loss
//! is answered as Reno does.
//! Invariants: alpha is within 0 and 1024; one reduction a window of data.

use crate::control::{Control, ControlParams, EcnUse};
use crate::hystart::{self, HyStart};
use crate::reno;
use crate::window::{Ack, Cause, Window};
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Parameters, integer};
use sojourn_units::words::Table;
use sojourn_units::{Nanos, params};

/// Fixed-point one.
const ONE: u64 = 1024;

params! {
    /// What the user sets.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Params {
        /// The average of the marked fraction has gain 2^-shift.
        shift: u32 = integer(0, 10, "4"), // RFC 8257, section 3.3: 1/16
        /// Marked fraction assumed at first, in 1/1024.
        initial_alpha: u64 = integer(0, ONE, "1024"), // RFC 8257: 1, so that the first reaction is Reno's
    }
}

impl ControlParams for Params {
    const TABLE: Table = Table {
        name: "dctcp",
        summary: "Data Center TCP: reduce by the fraction of marked bytes; ECN is on (accurate) unless set",
        source: "RFC 8257",
        words: Self::WORDS,
    };

    type Control = Dctcp;

    fn ecn(&self) -> EcnUse {
        EcnUse::Exact
    }

    fn build(&self, slow_start: hystart::Params, _window: &Window) -> Dctcp {
        Dctcp::new(*self, HyStart::new(slow_start))
    }
}

/// What it remembers.
#[derive(Clone, Debug)]
pub struct Dctcp {
    params: Params,
    hystart: HyStart,
    counted: u64,
    /// Smoothed fraction of marked bytes, in 1/1024.
    alpha: u64,
    acked: u64,
    marked: u64,
    window_end: u64,
}

impl Dctcp {
    /// A new control.
    pub fn new(params: Params, hystart: HyStart) -> Self {
        let alpha = params.initial_alpha.min(ONE);
        Self { params, hystart, counted: 0, alpha, acked: 0, marked: 0, window_end: 0 }
    }

    /// Smoothed fraction of marked bytes, in 1/1024.
    pub fn alpha(&self) -> u64 {
        self.alpha
    }
}

impl Control for Dctcp {
    fn state(&self, visit: &mut dyn FnMut(&str, i128)) {
        visit("alpha", i128::from(self.alpha));
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.acked = self.acked.saturating_add(ack.acked);
        self.marked = self.marked.saturating_add(ack.marked.min(ack.acked));
        if ack.una > self.window_end {
            let shift = self.params.shift.min(10);
            // At least one step down, or a small alpha would never reach zero.
            let decay = (self.alpha >> shift).max(1).min(self.alpha);
            let fraction =
                (u128::from(self.marked) * u128::from(ONE) / u128::from(self.acked.max(1))) as u64;
            self.alpha = (self.alpha - decay + (fraction >> shift)).min(ONE);
            self.acked = 0;
            self.marked = 0;
            self.window_end = ack.nxt;
        }
        if !ack.may_grow || ack.acked == 0 {
            return;
        }
        let left = self.hystart.on_ack(window, ack);
        if left > 0 {
            reno::increase(window, &mut self.counted, left);
        }
    }

    fn reduce(&mut self, window: &Window, flight: u64, cause: Cause, _now: Nanos) -> u64 {
        self.counted = 0;
        self.hystart.on_congestion();
        match cause {
            Cause::Ecn => {
                let cut =
                    (u128::from(window.cwnd) * u128::from(self.alpha) / u128::from(2 * ONE)) as u64;
                (window.cwnd - cut).max(window.floor())
            }
            Cause::Loss | Cause::Timeout => reno::half(window, flight),
        }
    }
}
