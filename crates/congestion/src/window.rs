//! The congestion window, and the information that a transport passes to its control.

use sojourn_units::Nanos;

/// Maximum of every window in bytes: 1 GiB, the limit of RFC 7323.
pub const MAX_WINDOW: u64 = 1 << 30;

/// The congestion window in bytes. The transport owns it; the control and loss recovery change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window: maximum number of bytes in flight.
    pub cwnd: u64,
    /// Slow start threshold in bytes: below it the window grows by slow start.
    pub ssthresh: u64,
    /// Payload of a full segment in bytes.
    pub mss: u64,
}

impl Window {
    /// Returns the window of a new connection; `mss` is in bytes.
    pub fn new(mss: u64, initial_segments: u64) -> Self {
        let mss = mss.clamp(1, MAX_WINDOW / 4);
        let cwnd = mss.saturating_mul(initial_segments.max(1)).min(MAX_WINDOW);
        Self { cwnd, ssthresh: MAX_WINDOW, mss }
    }

    /// Returns whether cwnd is below ssthresh.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Sets cwnd, limited to at least one segment and at most [`MAX_WINDOW`].
    pub fn set_cwnd(&mut self, cwnd: u64) {
        self.cwnd = cwnd.clamp(self.mss, MAX_WINDOW.max(self.mss));
    }

    /// Increases cwnd.
    pub fn grow(&mut self, bytes: u64) {
        self.set_cwnd(self.cwnd.saturating_add(bytes));
    }

    /// Returns cwnd in whole segments.
    pub fn segments(&self) -> u64 {
        self.cwnd / self.mss
    }

    /// Returns the minimum of ssthresh that RFC 5681 permits, in bytes: two segments.
    pub fn floor(&self) -> u64 {
        2 * self.mss
    }
}

/// One delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered in `interval`.
    pub delivered: u64,
    /// The longer of the send interval and the acknowledgement interval, in nanoseconds; 0 without
    /// a sample.
    pub interval: Nanos,
    /// Number of bytes delivered when the newest acknowledged segment was sent.
    pub prior_delivered: u64,
    /// Number of bytes delivered since the connection began.
    pub total: u64,
    /// Whether the sender ran out of data during the sample.
    pub app_limited: bool,
    /// Bytes in flight when the newest acknowledged segment was sent, including this segment.
    pub in_flight: u64,
    /// Bytes considered lost since the newest acknowledged segment was sent.
    pub lost: u64,
}

/// A segment that is considered lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Time at which the segment is considered lost.
    pub now: Nanos,
    /// First byte of the segment.
    pub seq: u64,
    /// Length of the segment in bytes.
    pub len: u64,
    /// Bytes in flight when the segment was sent, including this segment.
    pub in_flight: u64,
    /// Bytes considered lost since the segment was sent, including this segment.
    pub lost: u64,
    /// Number of bytes delivered between the start of the connection and `now`.
    pub delivered: u64,
    /// Whether the application limited the sender when the segment was sent.
    pub app_limited: bool,
    /// Whether the peer sends selective acknowledgements, so that several losses per round trip are
    /// detected.
    pub selective: bool,
}

/// Information from an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// Time at which the acknowledgement arrives.
    pub now: Nanos,
    /// Bytes that this acknowledgement newly acknowledges cumulatively.
    pub acked: u64,
    /// Bytes that this acknowledgement newly reports as arrived, cumulatively or selectively.
    pub delivered: u64,
    /// Bytes that are newly considered lost after this acknowledgement.
    pub lost: u64,
    /// Newly acknowledged bytes for which the peer reports marks (by ECE or AccECN).
    pub marked: u64,
    /// Sequence number of the first byte that is not acknowledged.
    pub una: u64,
    /// Sequence number of the first byte that is not yet sent.
    pub nxt: u64,
    /// Bytes in flight before the acknowledgement.
    pub prior_in_flight: u64,
    /// Bytes in flight after the acknowledgement.
    pub in_flight: u64,
    /// Latest round-trip time in nanoseconds; 0 if this acknowledgement has no sample.
    pub rtt: Nanos,
    /// Smoothed round-trip time in nanoseconds; 0 before the first sample.
    pub srtt: Nanos,
    /// Smallest round-trip time in nanoseconds; 0 before the first sample.
    pub min_rtt: Nanos,
    /// Whether the transport's state permits growth of the window.
    pub may_grow: bool,
    /// Whether the window, not the application or the receiver, limited the sender (RFC 7661).
    pub cwnd_limited: bool,
    /// Whether the transport is repairing losses.
    pub in_recovery: bool,
    /// Whether the sender has no more data to send.
    pub app_limited: bool,
    /// Earliest departure time of the next segment if segments are paced; otherwise 0.
    pub departure: Nanos,
    /// Whether segments are paced, that is, spread over the round-trip time.
    pub paced: bool,
    /// Delivery-rate sample, for controls that request it
    /// ([`Control::wants_rate`](crate::Control::wants_rate)).
    pub rate: RateSample,
}

/// The beginning of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// Time at which the connection is established.
    pub now: Nanos,
    /// Round-trip time of the handshake in nanoseconds; 0 without a sample.
    pub srtt: Nanos,
    /// A random number, for controls that begin at a random phase.
    pub draw: u32,
}

/// Limits from which the size of super-packets is computed, as in Linux's `tcp_tso_autosize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperPacket {
    /// Negative binary logarithm of the duration: a super-packet lasts 2^-shift seconds at the
    /// present rate (`sk_pacing_shift`).
    pub shift: u32,
    /// Minimum number of segments in a super-packet (`net.ipv4.tcp_min_tso_segs`).
    pub least: u64,
    /// Whether super-packets are larger on short paths (`net.ipv4.tcp_tso_rtt_log`).
    pub larger_nearby: bool,
}

impl Default for SuperPacket {
    fn default() -> Self {
        Self { shift: 10, least: 2, larger_nearby: true }
    }
}

/// Cause of a reduction of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Loss detected by acknowledgements.
    Loss,
    /// Echo of congestion experienced.
    Ecn,
    /// Expiry of the retransmission timer.
    Timeout,
}
