//! The time of the next acknowledgement.
//!
//! Source: RFC 5681 section 4.2 and RFC 1122 (delayed ACKs); Linux: the delay `ato`, quick ACKs, the
//! compression of SACKs (`__tcp_ack_snd_check`).
//! Idea: an ACK is due at once, at a time, or not at all; each ACK that leaves resets this.
//! Invariants: a delay exceeds neither the retransmission timeout nor 200 ms.

use crate::params::{AckRule, Params};
use sojourn_units::{MICROSECOND, MILLISECOND, NEVER, Nanos, jiffies};

/// Longest delay of an ACK by Linux's rule (`TCP_DELACK_MAX`).
const MAX_DELAY: Nanos = 200 * MILLISECOND;
/// Maximum number of segments that quick ACKs acknowledge singly (`TCP_MAX_QUICKACKS`).
pub(super) const MAX_QUICK: u32 = 16;
/// Number of segments beyond a hole whose ACK does not wait (`TCP_FASTRETRANS_THRESH`).
const DUPLICATES: u8 = 3;
/// Maximum number of segments beyond a hole that wait for an ACK (`net.ipv4.tcp_comp_sack_nr`).
const COMPRESSED: u8 = 44;
/// Longest wait of segments beyond a hole for their acknowledgement, in percent of the round-trip
/// time (`net.ipv4.tcp_comp_sack_rtt_percent`).
const COMPRESS_PERCENT: Nanos = 33;
/// Limit of the wait of segments beyond a hole, at any RTT (`net.ipv4.tcp_comp_sack_delay_ns`).
const COMPRESS_DELAY: Nanos = MILLISECOND;
/// Lateness of the timer of [`COMPRESS_DELAY`] (`net.ipv4.tcp_comp_sack_slack_ns`).
const COMPRESS_SLACK: Nanos = 10 * MICROSECOND;

/// State of the acknowledgements.
#[derive(Clone, Debug)]
pub(crate) struct Acks {
    /// An ACK is due at once.
    pub(crate) now: bool,
    /// The ACK that is due ends the handshake.
    pub(super) ends_handshake: bool,
    /// When the delayed ACK is due; [`NEVER`] without one.
    pub(crate) at: Nanos,
    /// Bytes in order that are not acknowledged.
    pub(super) unacked: u64,
    /// Linux: present delay of an ACK (`ato`).
    delay: Nanos,
    /// The retransmission timeout, which `delay` does not exceed.
    rto: Nanos,
    /// Number of segments beyond the hole at `duplicates_at` that were acknowledged at once, 3 at
    /// most.
    duplicates: u8,
    duplicates_at: u64,
    /// Number of segments beyond a hole that wait for one acknowledgement.
    pub(super) compressed: u8,
    /// When the newest segment is to be acknowledged, if the next acknowledgement is for earlier
    /// segments only; else [`NEVER`].
    waits_until: Nanos,
    /// Number of segments that are acknowledged singly.
    pub(super) quick: u32,
    last_data: Nanos,
}

impl Acks {
    pub(super) fn new(params: &Params) -> Self {
        Self {
            now: false,
            ends_handshake: false,
            at: NEVER,
            unacked: 0,
            delay: 0,
            rto: params.initial_rto,
            duplicates: 0,
            duplicates_at: 0,
            compressed: 0,
            waits_until: NEVER,
            quick: 0,
            last_data: 0,
        }
    }

    /// Sets the delay of the next ACK by the time since the last data. Returns whether ACKs are
    /// quick from now on: with `quick_ack`, after a silence longer than the retransmission timeout
    /// `rto` (`tcp_event_data_recv`).
    pub(super) fn note_gap(&mut self, params: &Params, now: Nanos, rto: Nanos) -> bool {
        let gap = jiffies::between(self.last_data, now, params.hz);
        let is_first = self.last_data == 0;
        if is_first {
            self.delay = params.delayed_ack_timeout;
        } else if gap <= params.delayed_ack_timeout / 2 {
            self.delay = self.delay / 2 + params.delayed_ack_timeout / 2;
        } else if gap < self.delay {
            self.delay = (self.delay / 2 + gap).min(rto).min(MAX_DELAY);
        }
        self.last_data = now;
        self.rto = rto;
        params.quick_ack && (is_first || gap > rto)
    }

    /// With `quick_ack`, acknowledges `segments` segments singly, 2 to `most`.
    pub(super) fn enter_quick(&mut self, params: &Params, segments: u64, most: u32) {
        if params.quick_ack {
            let quick = (segments.max(2) as u32).min(most);
            let least = if params.ack_rule == AckRule::Linux { self.quick } else { 0 };
            self.quick = quick.max(least);
        }
    }

    /// Linux: delays the ACK, or makes it due at once if an earlier delay ends within a quarter of
    /// the new one (`tcp_send_delayed_ack`).
    pub(super) fn wait(&mut self, params: &Params, now: Nanos, srtt: Nanos) {
        let mut delay = self.delay;
        if delay > params.delayed_ack_timeout && srtt > 0 {
            delay = delay.min(srtt.max(params.delayed_ack_timeout));
        }
        delay = delay.min(MAX_DELAY);
        if self.at != NEVER && self.at <= now + delay / 4 {
            self.now = true;
            return;
        }
        self.at = self.at.min(jiffies::later(now, delay, params.hz));
    }

    /// Linux: acknowledges a segment beyond the hole at `nxt`: at once, or with others if the
    /// acknowledgements of this hole are compressed. `rtt` is the round-trip time in nanoseconds.
    pub(super) fn compress(&mut self, now: Nanos, nxt: u64, has_sack: bool, rtt: Nanos) {
        if self.duplicates_at != nxt {
            self.duplicates_at = nxt;
            self.duplicates = 0;
        }
        if !has_sack || self.compressed >= COMPRESSED || self.duplicates < DUPLICATES {
            self.duplicates = (self.duplicates + 1).min(DUPLICATES);
            self.now = true;
            return;
        }
        self.compressed += 1;
        if self.compressed == 1 {
            let delay = (rtt.saturating_mul(COMPRESS_PERCENT) / 100).min(COMPRESS_DELAY);
            self.at = self.at.min(now + delay + COMPRESS_SLACK);
        }
    }

    /// Ends the wait of earlier segments: an ACK for them is due at once, and `at` is the time of
    /// the ACK for the newest segment.
    pub(super) fn split(&mut self) {
        if !self.now {
            self.waits_until = self.at;
            self.now = true;
        }
    }

    /// Runs the timer of the delayed ACK.
    pub(super) fn on_timer(&mut self, now: Nanos) {
        if now >= self.at {
            self.at = NEVER;
            self.now = true;
            if self.compressed == 0 {
                // A delayed ACK that leaves without data doubles the delay
                // (`tcp_delack_timer_handler`).
                self.delay = (2 * self.delay).min(self.rto).min(MAX_DELAY);
            }
        }
    }

    /// An acknowledgement leaves.
    #[inline]
    pub(super) fn on_sent(&mut self) {
        self.now = false;
        self.ends_handshake = false;
        self.at = NEVER;
        self.unacked = 0;
        self.compressed = 0;
        if self.waits_until != NEVER {
            self.compressed = 1;
            self.at = std::mem::replace(&mut self.waits_until, NEVER);
        }
        self.quick = self.quick.saturating_sub(1);
    }
}
