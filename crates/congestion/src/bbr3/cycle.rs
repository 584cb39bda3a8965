//! State of BBR version 3's cycle of probes for bandwidth.
//!
//! Source: draft-ietf-ccwg-bbr ("ProbeBW"); names in parentheses are the draft's.
//! Idea: a cycle begins in the phase down, with a random wait until the next probe. In the phase up
//! the long-term bound rises along a slope that doubles each round.
//! Invariants: the control reacts to a probe once.

use super::bounds::UNBOUNDED;
use crate::path::next_draw;
use crate::window::Window;
use sojourn_units::{Nanos, SECOND};

/// Time between two probes for bandwidth, in nanoseconds, unless the maximum number of rounds ends
/// it; up to a second is added at random.
pub(super) const PROBE_WAIT: Nanos = 2 * SECOND;
/// Maximum number of rounds between two probes for bandwidth, for coexistence with Reno and CUBIC.
const PROBE_ROUNDS: u64 = 63;
/// Maximum number of doublings of the slope with which a probe raises the long-term bound.
const MAX_SLOPE: u32 = 30;

/// Slope with which a probe raises the long-term bound.
#[derive(Clone, Debug)]
pub(super) struct Slope {
    /// Number of rounds of the probe (`bw_probe_up_rounds`).
    pub(super) rounds: u32,
    /// Bytes acknowledged since the last raise (`bw_probe_up_acks`), and those that raise the bound
    /// by a segment (`probe_up_cnt`).
    acked: u64,
    step: u64,
}

impl Slope {
    /// Returns the slope of a probe whose first round raises the bound by up to 2^`rounds`
    /// segments.
    pub(super) fn new(rounds: u32) -> Self {
        Self { rounds: rounds.min(MAX_SLOPE), acked: 0, step: UNBOUNDED }
    }

    /// Doubles the slope (`RaiseInflightLongtermSlope`).
    pub(super) fn double(&mut self, window: &Window) {
        self.step = (window.cwnd / (1 << self.rounds)).max(window.mss);
        self.rounds = (self.rounds + 1).min(MAX_SLOPE);
    }

    /// Returns the bytes by which the acknowledgement of `delivered` bytes raises the bound.
    pub(super) fn climb(&mut self, window: &Window, delivered: u64) -> u64 {
        self.acked = self.acked.saturating_add(delivered);
        let steps = self.acked / self.step.max(1);
        self.acked -= steps * self.step;
        steps.saturating_mul(window.mss)
    }
}

impl Default for Slope {
    fn default() -> Self {
        Self::new(0)
    }
}

/// State of the cycle.
#[derive(Clone, Debug, Default)]
pub(super) struct Cycle {
    /// Whether the present acknowledgements belong to a probe that has ended (`ack_phase`).
    pub(super) is_stopping: bool,
    /// Start of the cycle, and time until its probe (`cycle_stamp`, `bw_probe_wait`).
    pub(super) start: Nanos,
    pub(super) wait: Nanos,
    /// Rounds since the last probe (`rounds_since_bw_probe`).
    pub(super) rounds: u64,
    /// Whether samples belong to a probe that may still prove too high (`bw_probe_samples`).
    pub(super) is_probe_sample: bool,
    /// Whether the last probe lost too much, and whether the present one ended at its bound as a
    /// precaution.
    pub(super) was_too_high: bool,
    pub(super) was_precautionary: bool,
    pub(super) slope: Slope,
    /// Random number from which the waits are derived.
    pub(super) draw: u32,
}

impl Cycle {
    /// Begins a cycle in the phase down (`StartProbeBW_DOWN`).
    pub(super) fn start_down(&mut self, now: Nanos) {
        self.rounds = u64::from(next_draw(&mut self.draw) & 1);
        self.wait = PROBE_WAIT + u64::from(next_draw(&mut self.draw)) * SECOND / (1 << 16);
        self.start = now;
        self.is_stopping = true;
    }

    /// Begins a refill (`StartProbeBW_REFILL`).
    pub(super) fn start_refill(&mut self, slope: Slope) {
        self.slope = slope;
        self.was_precautionary = false;
        self.is_stopping = false;
    }

    /// Begins a probe (`StartProbeBW_UP`).
    pub(super) fn start_up(&mut self, window: &Window) {
        self.is_probe_sample = true;
        self.is_stopping = false;
        self.slope.double(window);
    }

    /// Returns whether the wait for the next probe is over; `target` is the data in flight in bytes
    /// (`IsTimeToProbeBW`).
    pub(super) fn is_wait_over(&self, window: &Window, now: Nanos, target: u64) -> bool {
        let rounds = (target / window.mss).min(PROBE_ROUNDS);
        now > self.start.saturating_add(self.wait) || self.rounds >= rounds
    }
}
