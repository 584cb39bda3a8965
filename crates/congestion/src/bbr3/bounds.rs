//! Bounds of BBR version 3 on the bandwidth and on the data in flight.
//!
//! Source: draft-ietf-ccwg-bbr; fields have the draft's names.
//! Idea: losses and marks outside probes lower the short-term bounds, which the next probe removes.
//! The long-term bound is the data in flight at which a probe lost too much.
//! Invariants: the short-term bounds fall only at the end of a round with losses or marks.

use super::signals::Signals;
use crate::path::{MIN_SEGMENTS, share};
use crate::window::Window;

/// Value of a bound that does not apply.
pub(super) const UNBOUNDED: u64 = u64::MAX;

/// Maximum delivery rate of the last two cycles of probes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBandwidth {
    /// Maximum rates of the previous and the present cycle, in bytes per second.
    pub(super) cycles: [u64; 2],
    /// The greater of the two, in bytes per second (`max_bw`).
    pub(super) value: u64,
}

impl MaxBandwidth {
    /// Takes the sample `rate`. A rate that the application limited only raises the maximum.
    pub(super) fn update(&mut self, rate: u64, is_limited: bool) {
        if rate > 0 && (rate >= self.value || !is_limited) {
            self.cycles[1] = self.cycles[1].max(rate);
            self.value = self.cycles[0].max(self.cycles[1]);
        }
    }

    /// If the present cycle has a rate, ends it and discards the rate of the previous cycle.
    pub(super) fn advance(&mut self) {
        if self.cycles[1] > 0 {
            self.cycles = [self.cycles[1], 0];
            self.value = self.cycles[0];
        }
    }
}

/// Bounds on the bandwidth in bytes per second and on the data in flight in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bounds {
    pub(super) bw_shortterm: u64,
    pub(super) inflight_shortterm: u64,
    pub(super) inflight_longterm: u64,
}

impl Bounds {
    pub(super) const NONE: Self = Self {
        bw_shortterm: UNBOUNDED,
        inflight_shortterm: UNBOUNDED,
        inflight_longterm: UNBOUNDED,
    };

    pub(super) fn reset_short_term(&mut self) {
        *self = Self { inflight_longterm: self.inflight_longterm, ..Self::NONE };
    }

    /// Lowers the short-term bounds after a round with losses, or with marks that lower them by the
    /// factor `cut` (`AdaptLowerBoundsFromCongestion`). `max_bandwidth` is in bytes per second.
    pub(super) fn adapt_short_term(
        &mut self,
        window: &Window,
        max_bandwidth: u64,
        signals: &Signals,
        cut: Option<f64>,
        beta: f64,
    ) {
        if self.inflight_shortterm == UNBOUNDED {
            self.inflight_shortterm = window.cwnd;
        }
        let by_marks = cut.map_or(UNBOUNDED, |factor| share(self.inflight_shortterm, factor));
        if signals.loss_in_round {
            if self.bw_shortterm == UNBOUNDED {
                self.bw_shortterm = max_bandwidth;
            }
            self.bw_shortterm = signals.bw_latest.max(share(self.bw_shortterm, beta));
            let reduced = share(self.inflight_shortterm, beta);
            self.inflight_shortterm = signals.inflight_latest.max(reduced);
        }
        self.inflight_shortterm = self.inflight_shortterm.min(by_marks);
    }

    /// Returns the long-term bound minus the share `headroom` of it, which is left to other flows,
    /// in bytes.
    pub(super) fn with_headroom(&self, window: &Window, headroom: f64) -> u64 {
        if self.inflight_longterm == UNBOUNDED {
            return UNBOUNDED;
        }
        let headroom = share(self.inflight_longterm, headroom).max(window.mss);
        self.inflight_longterm.saturating_sub(headroom).max(MIN_SEGMENTS * window.mss)
    }

    /// Raises each bound to that of `other`.
    pub(super) fn raise(&mut self, other: &Self) {
        self.bw_shortterm = self.bw_shortterm.max(other.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(other.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(other.inflight_longterm);
    }
}
