//! The congestion window, and what a transport tells its control.

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

    /// cwnd in whole segments.
    #[inline]
    pub fn segments(&self) -> u64 {
        self.cwnd / self.mss
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
    /// Bytes in flight when the newest acknowledged segment left, with it.
    pub in_flight: u64,
    /// Bytes taken for lost since then.
    pub lost: u64,
}

/// A segment that was taken for lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// When that was.
    pub now: Nanos,
    /// Its first byte.
    pub seq: u64,
    /// Its bytes.
    pub len: u64,
    /// Bytes in flight when it left, with it.
    pub in_flight: u64,
    /// Bytes taken for lost since it left, with it.
    pub lost: u64,
    /// Bytes delivered so far.
    pub delivered: u64,
    /// Whether the application limited the sender when it left.
    pub app_limited: bool,
    /// Whether the peer acknowledges selectively, so that several losses of a round trip are seen.
    pub selective: bool,
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
    /// The earliest departure of the next segment, if segments are paced; else 0.
    pub departure: Nanos,
    /// Whether segments are spread over the round-trip time.
    pub paced: bool,
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
