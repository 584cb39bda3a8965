//! Measurements of flows and their groups.

use sojourn_measure::{Histogram, TimeWeighted};
use sojourn_plan::{Group, Transport};
use sojourn_units::{EPOCH, Nanos};

/// TCP's counters of a flow since the start, over all its connections.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Application payload delivered once and in order.
    pub bytes: u64,
    /// Of these the payload of datagrams, where a flow of TCP has some too.
    pub datagrams: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Entries into loss recovery without a timeout.
    pub recoveries: u64,
    /// Congestion window over time, in byte-nanoseconds, and the time.
    pub window: u128,
    /// Time over which it was integrated.
    pub time: Nanos,
    /// Writes of packet sources, refused ones too.
    pub writes: u64,
    /// Refused writes.
    pub refused: u64,
}

impl Tally {
    /// Adds what another connection did.
    pub fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.datagrams += other.datagrams;
        self.retransmissions += other.retransmissions;
        self.timeouts += other.timeouts;
        self.recoveries += other.recoveries;
        self.window += other.window;
        self.time += other.time;
        self.writes += other.writes;
        self.refused += other.refused;
    }

    /// Returns the difference to `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            bytes: self.bytes - before.bytes,
            datagrams: self.datagrams - before.datagrams,
            retransmissions: self.retransmissions - before.retransmissions,
            timeouts: self.timeouts - before.timeouts,
            recoveries: self.recoveries - before.recoveries,
            window: self.window - before.window,
            time: self.time - before.time,
            writes: self.writes - before.writes,
            refused: self.refused - before.refused,
        }
    }
}

/// Measurements of a group as a whole.
#[derive(Clone, Debug)]
pub struct GroupProbe {
    /// Delays: of packets with data from host to host, of writes from end to end.
    pub delay: Histogram,
    /// Delays of packets with data, where `delay` is that of writes.
    pub packet_delay: Option<Box<Histogram>>,
    /// Round-trip time samples, each of the last segment acknowledged.
    pub rtt: Histogram,
    /// Smoothed round-trip times, of the first segment acknowledged.
    pub srtt: Histogram,
    /// Flow completion times.
    pub fct: Histogram,
    /// Page load times.
    pub page: Histogram,
    /// Flows that have begun and not ended.
    pub active: TimeWeighted,
    /// Flows begun since the end of the warm-up, or going on then.
    pub flows: u64,
    /// Application payload delivered since the start; for TCP once and in order.
    pub bytes: u64,
}

impl GroupProbe {
    /// Returns empty measurements.
    pub fn new(group: &Group) -> Self {
        let writes = group.app.sends_packets() && matches!(group.transport, Transport::Tcp(_));
        Self {
            delay: Histogram::new(),
            packet_delay: writes.then(Default::default),
            rtt: Histogram::new(),
            srtt: Histogram::new(),
            fct: Histogram::new(),
            page: Histogram::new(),
            active: TimeWeighted::new(EPOCH, 0),
            flows: 0,
            bytes: 0,
        }
    }

    /// The warm-up is over.
    pub fn restart(&mut self, now: Nanos) {
        self.delay.clear();
        if let Some(delay) = &mut self.packet_delay {
            delay.clear();
        }
        self.rtt.clear();
        self.srtt.clear();
        self.fct.clear();
        self.page.clear();
        self.active.restart(now);
        self.flows = self.active.value();
    }

    /// A flow began.
    pub fn begin(&mut self, now: Nanos) {
        self.active.set(now, self.active.value() + 1);
        self.flows += 1;
    }

    /// A flow ended.
    pub fn end(&mut self, now: Nanos) {
        self.active.set(now, self.active.value() - 1);
    }
}
