//! Reaction of BBR version 3 to marks.
//!
//! Source: the authors' BBR version 3 for Linux (branch v3, `tcp_bbr.c`); the draft requires only
//! that marks be treated as congestion.
//! Idea: an average of the share of marked bytes, updated once per round, determines by how much a
//! round with marks lowers the short-term bound. A probe ends when the share exceeds a threshold,
//! startup after two such rounds. On a path with a long round-trip time, the queue is assumed to
//! mark according to RFC 3168, and marks are ignored.
//! Invariants: `alpha` is between 0 and 1; an eligible path stays eligible.

use sojourn_units::Nanos;

/// Weight of a round in `alpha`.
const GAIN: f64 = 1.0 / 16.0;
/// A round with marks multiplies `inflight_shortterm` by 1 minus this factor times `alpha`.
const FACTOR: f64 = 1.0 / 3.0;
/// Startup ends after this number of consecutive rounds at or above the threshold.
const STARTUP_ROUNDS: u32 = 2;

/// Numbers of delivered and marked bytes in a round.
#[derive(Clone, Copy, Debug, Default)]
struct Bytes {
    delivered: u64,
    marked: u64,
}

impl Bytes {
    /// Returns the share of marked bytes, 0 to 1; 0 without delivered bytes.
    fn share(self) -> f64 {
        if self.delivered == 0 {
            0.0
        } else {
            (self.marked as f64 / self.delivered as f64).min(1.0)
        }
    }
}

/// State of the reaction to marks.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    /// Whether the control reacts to marks on this path.
    is_eligible: bool,
    /// Moving average of the share of marked bytes.
    alpha: f64,
    /// Numbers of bytes in this round and in the previous round.
    now: Bytes,
    before: Bytes,
    /// Whether marks that cause a reaction have arrived since the last adaptation of the bounds.
    is_in_round: bool,
    /// Whether marks have arrived since the last probe.
    is_in_cycle: bool,
    startup_rounds: u32,
}

impl Marks {
    /// Returns the state before the first acknowledgement: `alpha` is 1, so early marks cause the
    /// full cut.
    pub(super) fn new() -> Self {
        Self {
            is_eligible: false,
            alpha: 1.0,
            now: Bytes::default(),
            before: Bytes::default(),
            is_in_round: false,
            is_in_cycle: false,
            startup_rounds: 0,
        }
    }

    /// Counts the bytes of an acknowledgement. `delivered` and `marked` are in bytes.
    pub(super) fn count(&mut self, delivered: u64, marked: u64) {
        self.now.delivered = self.now.delivered.saturating_add(delivered.max(marked));
        self.now.marked = self.now.marked.saturating_add(marked);
        self.is_in_round |= self.is_eligible && marked > 0;
        self.is_in_cycle |= marked > 0;
    }

    /// Ends a round and updates the average. Marks count from the first round on in which
    /// `min_rtt` is at most `max_rtt` (nanoseconds), or from any round on if `max_rtt` is 0.
    pub(super) fn end_round(&mut self, min_rtt: Nanos, max_rtt: Nanos, threshold: f64) {
        self.is_eligible |= max_rtt == 0 || min_rtt <= max_rtt;
        if self.is_eligible && self.now.delivered > 0 {
            let share = self.now.share();
            self.alpha += GAIN * (share - self.alpha);
            self.startup_rounds = if share >= threshold { self.startup_rounds + 1 } else { 0 };
        }
        self.before = self.now;
        self.now = Bytes::default();
    }

    /// Returns whether enough consecutive rounds reached the threshold to end startup.
    pub(super) fn end_startup(&self) -> bool {
        self.startup_rounds >= STARTUP_ROUNDS
    }

    /// Returns whether this round has marks, and the share of marked bytes in this and the previous
    /// round together exceeds the threshold. (Linux uses the share since the acknowledged segment
    /// was sent.)
    pub(super) fn is_too_high(&self, threshold: f64) -> bool {
        let both = Bytes {
            delivered: self.now.delivered.saturating_add(self.before.delivered),
            marked: self.now.marked.saturating_add(self.before.marked),
        };
        self.is_eligible && self.now.marked > 0 && both.share() > threshold
    }

    /// Returns the factor by which marks lower the short-term bound; `None` without marks.
    pub(super) fn cut(&self) -> Option<f64> {
        self.is_in_round.then_some(1.0 - FACTOR * self.alpha)
    }

    /// Returns whether marks have arrived since the last probe, but none in this round and the
    /// previous one.
    pub(super) fn ceased(&self) -> bool {
        self.is_eligible && self.is_in_cycle && self.now.marked == 0 && self.before.marked == 0
    }

    /// Resets the state of the round after the bounds were adapted.
    pub(super) fn forget_round(&mut self) {
        self.is_in_round = false;
    }

    /// Resets the state at the start of a cycle of probes.
    pub(super) fn forget_cycle(&mut self) {
        self.is_in_round = false;
        self.is_in_cycle = false;
    }
}
