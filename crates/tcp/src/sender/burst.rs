//! Super-packets: how many segments leave at once, and when the sender waits to fill one.
//!
//! Source: Linux's `tcp_tso_autosize`, `tcp_tso_should_defer` and `tcp_cwnd_test`. A kernel hands its
//! device up to a millisecond of data at the present rate in one piece, two segments at least (a control
//! may have it otherwise), which leaves back to back. If cwnd allows less, it waits for another acknowledgement, unless none is
//! expected within a millisecond or nothing has left for so long.

use super::Sender;
use crate::recovery::Phase;
use sojourn_congestion::Control;
use sojourn_units::{MILLISECOND, Nanos, SECOND};

/// The largest super-packet (`GSO_MAX_SIZE`).
const LARGEST: u64 = 1 << 16;
/// On paths shorter than 32 times this (2^`tcp_tso_rtt_log` us), super-packets are larger.
const NEAR: Nanos = 512_000;
/// As much of the window is sent without waiting for more (`net.ipv4.tcp_tso_win_divisor`).
const SHARE: u64 = 3;

impl Sender {
    /// Bytes per second that the window comes to, with room to grow (`tcp_update_pacing_rate`); what the
    /// control sets goes before.
    pub(super) fn rate(&self) -> u64 {
        if let Some(rate) = self.control.pacing_rate() {
            return rate.max(1);
        }
        let srtt = self.rtt.srtt().clamp(1, 100 * SECOND);
        let percent = if self.window.cwnd < self.window.ssthresh / 2 { 200 } else { 120 };
        let window = u128::from(self.window.cwnd.max(self.outstanding()));
        let rate = window * percent * u128::from(SECOND) / (100 * u128::from(srtt));
        u64::try_from(rate).unwrap_or(u64::MAX).max(1)
    }

    /// Segments of a full super-packet.
    fn full_burst(&self) -> u64 {
        let size = self.control.super_packet();
        let mut bytes = self.rate() >> size.shift;
        let distance = self.rtt.min() / NEAR;
        if size.larger_nearby && self.rtt.min() > 0 && distance < 32 {
            bytes += LARGEST >> distance;
        }
        (bytes.min(LARGEST) / self.mss).max(size.least)
    }

    /// How many segments leave at once now that at least one may, with `flight` bytes in flight and
    /// `waiting` to be sent; 0 to wait for more.
    pub(super) fn burst(&self, now: Nanos, flight: u64, waiting: u64) -> u64 {
        let full = self.full_burst();
        let room = self.window.cwnd.saturating_sub(flight);
        let quota = (room / self.mss).clamp(1, (self.window.cwnd / self.mss / 2).max(1)).min(full);
        let limit = room.min(self.edge.saturating_sub(self.nxt));
        let segments = quota.min(waiting.div_ceil(self.mss).max(1));
        let may_wait = waiting > self.mss
            && !matches!(self.phase, Phase::Recovery | Phase::Loss)
            && !(self.fin && waiting <= limit)
            && limit < full * self.mss
            && limit < self.window.cwnd.min(u64::from(self.last_window)) / SHARE;
        if !may_wait {
            return segments;
        }
        let written = if self.paced { self.pace_next } else { self.last_sent };
        let Some(first) = self.board.first() else { return segments };
        let expected = self.board.entry(first).sent_at + self.rtt.srtt();
        let soon = MILLISECOND.min(self.rtt.srtt() / 2);
        let is_soon = now <= written + MILLISECOND && expected <= now + soon;
        if is_soon { 0 } else { segments }
    }
}
