//! Congestion signals of BBR version 3: deliveries and losses of the present round.
//!
//! Source: draft-ietf-ccwg-bbr ("Updating Control Parameters upon Losses"); fields have the draft's
//! names.
//! Idea: after the first loss, a round lasts until the data sent later are acknowledged. At its end
//! the bounds are adapted to the greatest rate and the most data delivered in it.
//! Invariants: losses of adjacent segments count once.

use crate::path::Rounds;
use crate::window::{Ack, Lost};

/// Signals of a round.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    /// Number of delivered bytes at which the round ends.
    pub(super) loss_round_delivered: u64,
    /// Whether the present acknowledgement begins a round.
    pub(super) loss_round_start: bool,
    pub(super) loss_in_round: bool,
    /// Whether losses have occurred since the last probe.
    pub(super) loss_in_cycle: bool,
    /// Whether the peer sends no selective acknowledgements, which report several losses per round
    /// trip.
    pub(super) lacks_sack: bool,
    /// Greatest delivery rate in the round in bytes per second, and most delivered bytes.
    pub(super) bw_latest: u64,
    pub(super) inflight_latest: u64,
    /// Number of separate losses in the round, and the end of the last one.
    pub(super) loss_events: u32,
    loss_end: Option<u64>,
}

impl Signals {
    /// Takes the delivery-rate sample `rate` of an acknowledgement (`UpdateLatestDeliverySignals`).
    pub(super) fn update(&mut self, rounds: &Rounds, ack: &Ack, rate: u64) {
        self.bw_latest = self.bw_latest.max(rate);
        self.inflight_latest = self.inflight_latest.max(ack.rate.delivered);
        self.loss_round_start =
            ack.rate.delivered > 0 && ack.rate.prior_delivered >= self.loss_round_delivered;
        if self.loss_round_start {
            self.loss_round_delivered = rounds.delivered;
        }
    }

    /// Starts a round with the deliveries of `ack` (`AdvanceLatestDeliverySignals`).
    pub(super) fn advance(&mut self, ack: &Ack, rate: u64) {
        if self.loss_round_start {
            self.bw_latest = rate;
            self.inflight_latest = ack.rate.delivered;
        }
    }

    /// Counts a lost segment. Returns whether it is the first loss of the round.
    pub(super) fn note_loss(&mut self, lost: &Lost) -> bool {
        self.lacks_sack = !lost.selective;
        let is_first = !self.loss_in_round;
        if is_first {
            self.loss_round_delivered = lost.delivered;
        }
        self.loss_in_round = true;
        self.loss_in_cycle = true;
        if self.loss_end != Some(lost.seq) {
            self.loss_events = self.loss_events.saturating_add(1);
        }
        self.loss_end = Some(lost.seq.saturating_add(lost.len));
        is_first
    }

    /// Forgets the signals at the start of a cycle of probes (`ResetCongestionSignals`).
    pub(super) fn reset(&mut self) {
        self.loss_in_round = false;
        self.loss_in_cycle = false;
        self.bw_latest = 0;
        self.inflight_latest = 0;
    }
}
