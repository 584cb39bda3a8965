//! Aggregation of acknowledgements: data that they deliver beyond the expected amount.
//!
//! Source: draft-ietf-ccwg-bbr (`UpdateACKAggregation`).
//! Idea: the window is extended by the greatest excess of the last rounds, so that the sender does
//! not pause between two bursts of acknowledgements.
//! Invariants: the excess is at most cwnd.

use crate::path;
use crate::window::{Ack, Window};
use sojourn_units::Nanos;

/// Number of rounds over which the maximum excess is taken (`ExtraAckedFilterLen`).
const ROUNDS: usize = 10;

/// Measurement of aggregation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    pub(super) start: Nanos,
    delivered: u64,
    /// Maximum excess in each of the last rounds, in bytes.
    excess: [u64; ROUNDS],
}

impl Aggregation {
    /// Begins the round with this number.
    pub(super) fn start_round(&mut self, round: u64) {
        self.excess[slot(round)] = 0;
    }

    /// Takes an acknowledgement in `round`. `bandwidth` is in bytes per second.
    pub(super) fn update(&mut self, window: &Window, ack: &Ack, round: u64, bandwidth: u64) {
        let mut expected = path::bytes(bandwidth, ack.now.saturating_sub(self.start));
        if self.delivered <= expected {
            self.delivered = 0;
            self.start = ack.now;
            expected = 0;
        }
        self.delivered = self.delivered.saturating_add(ack.delivered);
        let extra = self.delivered.saturating_sub(expected).min(window.cwnd);
        let most = &mut self.excess[slot(round)];
        *most = (*most).max(extra);
    }

    /// Returns the maximum excess in bytes: of the last ten rounds if the pipe `is_full`, else of
    /// the present `round`.
    pub(super) fn extra(&self, round: u64, is_full: bool) -> u64 {
        if is_full {
            self.excess.iter().copied().max().unwrap_or(0)
        } else {
            self.excess[slot(round)]
        }
    }
}

fn slot(round: u64) -> usize {
    (round % ROUNDS as u64) as usize
}
