//! Congestion controls: how much may be in flight, and how fast it leaves.
//!
//! A transport owns a [`Window`] and tells its [`Congestion`] what happened: an acknowledgement, a
//! congestion event, a timeout. What is common to all controls (loss detection, the steering of
//! cwnd while a loss is being repaired, undo) is the transport's; what is left is the policy.
//!
//! # Contract
//! Every control passes the same tests (`tests.rs`):
//! - cwnd is never below one segment, and never above [`MAX_WINDOW`].
//! - A congestion event or a timeout never raises cwnd, and ssthresh is at least two segments.
//! - An acknowledgement that may not grow the window ([`Ack::may_grow`], [`Ack::cwnd_limited`])
//!   does not grow it (controls that model the path, [`Congestion::owns_window`], are exempt).
//! - An acknowledgement lowers cwnd only if it brings marks and the control answers them itself
//!   ([`Congestion::answers_marks`]; the same exemption).
//! - Same calls, same results; no call overflows or panics, whatever the numbers.
#![allow(clippy::doc_markdown, reason = "HyStart and NewReno are names, not code")]
#![allow(clippy::struct_excessive_bools, reason = "independent facts of the protocols")]

pub mod bbr;
pub mod cubic;
pub mod dctcp;
pub mod hystart;
pub mod prague;
pub mod reno;

#[cfg(test)]
mod tests;

use hystart::HyStart;
use serde::{Deserialize, Serialize};
use sojourn_units::Nanos;

/// Upper bound of every window: 1 GiB, the greatest window that TCP can announce (RFC 7323).
pub const MAX_WINDOW: u64 = 1 << 30;

/// The congestion window, in bytes. The transport owns it; control and loss recovery move it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Bytes that may be in flight.
    pub cwnd: u64,
    /// Below it, slow start.
    pub ssthresh: u64,
    /// Payload of a full segment.
    pub mss: u64,
}

impl Window {
    /// The window of a new connection.
    pub fn new(mss: u64, initial_segments: u64) -> Self {
        let mss = mss.clamp(1, MAX_WINDOW / 4);
        let cwnd = mss.saturating_mul(initial_segments.max(1)).min(MAX_WINDOW);
        Self { cwnd, ssthresh: MAX_WINDOW, mss }
    }

    /// Whether cwnd is still below ssthresh.
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Sets cwnd, within one segment and [`MAX_WINDOW`].
    #[inline]
    pub fn set_cwnd(&mut self, cwnd: u64) {
        self.cwnd = cwnd.clamp(self.mss, MAX_WINDOW.max(self.mss));
    }

    /// Adds to cwnd.
    #[inline]
    pub fn grow(&mut self, bytes: u64) {
        self.set_cwnd(self.cwnd.saturating_add(bytes));
    }

    /// The least ssthresh that RFC 5681 allows.
    #[inline]
    pub fn floor(&self) -> u64 {
        2 * self.mss
    }
}

/// One delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered over `interval`.
    pub delivered: u64,
    /// The longer of the send and the acknowledgement interval; 0 if there is no sample.
    pub interval: Nanos,
    /// The delivery count when the newest acknowledged segment left.
    pub prior_delivered: u64,
    /// The delivery count now.
    pub total: u64,
    /// Whether the sender ran out of data while the sample was taken.
    pub app_limited: bool,
}

/// What an acknowledgement told the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// When it came.
    pub now: Nanos,
    /// Bytes newly acknowledged cumulatively.
    pub acked: u64,
    /// Bytes newly known to have arrived, cumulatively or selectively.
    pub delivered: u64,
    /// Bytes newly taken for lost.
    pub lost: u64,
    /// Of the acknowledged bytes, those under an echo of congestion (ECE).
    pub marked: u64,
    /// First byte not acknowledged.
    pub una: u64,
    /// First byte not yet sent.
    pub nxt: u64,
    /// Bytes in flight before the acknowledgement.
    pub prior_in_flight: u64,
    /// Bytes in flight now.
    pub in_flight: u64,
    /// The newest round-trip time, 0 if this acknowledgement gives none.
    pub rtt: Nanos,
    /// The smoothed round-trip time, 0 if there is none.
    pub srtt: Nanos,
    /// The least round-trip time seen, 0 if there is none.
    pub min_rtt: Nanos,
    /// Whether the transport's state lets the window grow (no loss is being repaired).
    pub may_grow: bool,
    /// Whether the window, not the application or the receiver, limited the sender (RFC 7661).
    pub cwnd_limited: bool,
    /// Whether the transport is repairing losses it found by acknowledgements.
    pub in_recovery: bool,
    /// Whether the sender has nothing left that it could send.
    pub app_limited: bool,
    /// The delivery rate, for controls that ask for it.
    pub rate: RateSample,
}

/// How much may leave at once, after Linux's `tcp_tso_autosize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperPacket {
    /// It lasts 2^-shift seconds at the present rate (`sk_pacing_shift`).
    pub shift: u32,
    /// Segments of the smallest (`net.ipv4.tcp_min_tso_segs`).
    pub least: u64,
    /// Whether it is larger on short paths (`net.ipv4.tcp_tso_rtt_log`).
    pub larger_nearby: bool,
}

impl Default for SuperPacket {
    fn default() -> Self {
        Self { shift: 10, least: 2, larger_nearby: true }
    }
}

/// Why the window is to be reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A loss found by acknowledgements.
    Loss,
    /// An echo of congestion experienced.
    Ecn,
    /// The retransmission timer.
    Timeout,
}

/// Which control, and its settings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "name")]
pub enum Params {
    /// NewReno's additive increase, multiplicative decrease.
    Reno,
    /// CUBIC.
    Cubic(cubic::Params),
    /// BBR version 1.
    Bbr(bbr::Params),
    /// Data Center TCP.
    Dctcp(dctcp::Params),
    /// Prague.
    Prague(prague::Params),
}

impl Params {
    /// The control's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic(_) => "cubic",
            Self::Bbr(_) => "bbr",
            Self::Dctcp(_) => "dctcp",
            Self::Prague(_) => "prague",
        }
    }

    /// What runs on a connection whose peer echoes each mark, or does not: Prague needs it to, and
    /// gives way to Reno otherwise.
    #[must_use]
    pub fn agreed(self, is_exact: bool) -> Self {
        match self {
            Self::Prague(_) if !is_exact => Self::Reno,
            same => same,
        }
    }
}

/// A congestion control. Static dispatch is by [`Congestion`].
pub trait Control {
    /// What the control remembers, for tests and traces.
    fn state(&self, visit: &mut dyn FnMut(&'static str, i128));

    /// An acknowledgement came. It is told every one, also those that may not grow the window.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack);

    /// The window is to be reduced: the new ssthresh. `flight` is what was outstanding. The
    /// transport decides how cwnd gets there (at once, or by proportional rate reduction), and sets
    /// it to one segment after a timeout.
    fn reduce(&mut self, window: &Window, flight: u64, cause: Cause, now: Nanos) -> u64;

    /// The last reduction was a mistake. The transport has restored the window.
    fn on_undo(&mut self) {}

    /// Loss recovery is over.
    fn on_recovery_exit(&mut self, _window: &mut Window) {}

    /// Sending starts again after a silence of `idle`.
    fn on_restart(&mut self, _window: &Window, _now: Nanos, _idle: Nanos) {}

    /// A random number for controls that start at a random phase (without it, they start at the
    /// first).
    fn set_phase(&mut self, _draw: u32) {}

    /// The pacing rate in bytes per second, if the control sets one.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }

    /// How much may leave at once as a super-packet.
    fn super_packet(&self) -> SuperPacket {
        SuperPacket::default()
    }

    /// Whether the control sets cwnd also while losses are repaired.
    fn owns_window(&self) -> bool {
        false
    }

    /// Whether it answers marks in `on_ack` itself; otherwise an echo begins a reduction of the
    /// transport's, in which the window does not grow.
    fn answers_marks(&self) -> bool {
        false
    }

    /// Whether it needs [`Ack::rate`].
    fn wants_rate(&self) -> bool {
        false
    }
}

/// A congestion control by static dispatch.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one per connection, and boxing costs each ACK a miss"
)]
pub enum Congestion {
    /// See [`reno`].
    Reno(reno::Reno),
    /// See [`cubic`].
    Cubic(cubic::Cubic),
    /// See [`bbr`].
    Bbr(bbr::Bbr),
    /// See [`dctcp`].
    Dctcp(dctcp::Dctcp),
    /// See [`prague`].
    Prague(prague::Prague),
}

impl Congestion {
    /// The control that `params` describes, with `slow_start` where it has one.
    pub fn new(params: &Params, slow_start: hystart::Params, window: &Window) -> Self {
        let hystart = HyStart::new(slow_start);
        match params {
            Params::Reno => Self::Reno(reno::Reno::new(&hystart)),
            Params::Cubic(p) => Self::Cubic(cubic::Cubic::new(*p, hystart)),
            Params::Bbr(p) => Self::Bbr(bbr::Bbr::new(*p, window)),
            Params::Dctcp(p) => Self::Dctcp(dctcp::Dctcp::new(*p, hystart)),
            Params::Prague(p) => Self::Prague(prague::Prague::new(*p, hystart, window)),
        }
    }
}

macro_rules! each {
    ($self:ident, $control:ident => $body:expr) => {
        match $self {
            Self::Reno($control) => $body,
            Self::Cubic($control) => $body,
            Self::Bbr($control) => $body,
            Self::Dctcp($control) => $body,
            Self::Prague($control) => $body,
        }
    };
}

impl Control for Congestion {
    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        each!(self, c => c.state(visit));
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        each!(self, c => c.on_ack(window, ack));
    }

    fn reduce(&mut self, window: &Window, flight: u64, cause: Cause, now: Nanos) -> u64 {
        each!(self, c => c.reduce(window, flight, cause, now))
    }

    fn on_undo(&mut self) {
        each!(self, c => c.on_undo());
    }

    fn on_recovery_exit(&mut self, window: &mut Window) {
        each!(self, c => c.on_recovery_exit(window));
    }

    fn on_restart(&mut self, window: &Window, now: Nanos, idle: Nanos) {
        each!(self, c => c.on_restart(window, now, idle));
    }

    fn set_phase(&mut self, draw: u32) {
        each!(self, c => c.set_phase(draw));
    }

    #[inline]
    fn pacing_rate(&self) -> Option<u64> {
        each!(self, c => c.pacing_rate())
    }

    fn super_packet(&self) -> SuperPacket {
        each!(self, c => c.super_packet())
    }

    #[inline]
    fn owns_window(&self) -> bool {
        each!(self, c => c.owns_window())
    }

    #[inline]
    fn answers_marks(&self) -> bool {
        each!(self, c => c.answers_marks())
    }

    #[inline]
    fn wants_rate(&self) -> bool {
        each!(self, c => c.wants_rate())
    }
}
