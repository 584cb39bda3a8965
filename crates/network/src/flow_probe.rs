//! Measurements of flows and their groups.

use sojourn_measure::{Histogram, TimeWeighted};
use sojourn_plan::{Group, Transport};
use sojourn_units::{EPOCH, Nanos};

/// TCP's counters of a flow since the run's start, summed over its connections.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Bytes of application payload delivered in order, each once.
    pub bytes: u64,
    /// Bytes of application payload that reached the receiving host, in order or not, each once.
    pub arrived: u64,
    /// Bytes in `bytes` and `arrived` that datagrams carried, for a flow with both TCP and datagrams.
    pub datagrams: u64,
    /// Number of retransmitted segments.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Entries into loss recovery without a timeout.
    pub recoveries: u64,
    /// Integral of the congestion window over `time`, in byte-nanoseconds.
    pub window: u128,
    /// Sum of the times for which the connections that send the flow's data were open.
    pub time: Nanos,
    /// The part of `time` in which data waited for the receiver's window.
    pub window_limited: Nanos,
    /// The part of `time` in which the writer waited for space in the send buffer.
    pub buffer_limited: Nanos,
    /// Writes of packet sources, including refused writes.
    pub writes: u64,
    /// Writes of packet sources that were refused because the send buffer was full.
    pub refused: u64,
}

impl Tally {
    /// Adds the counters of another connection.
    pub fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.arrived += other.arrived;
        self.datagrams += other.datagrams;
        self.retransmissions += other.retransmissions;
        self.timeouts += other.timeouts;
        self.recoveries += other.recoveries;
        self.window += other.window;
        self.time += other.time;
        self.window_limited += other.window_limited;
        self.buffer_limited += other.buffer_limited;
        self.writes += other.writes;
        self.refused += other.refused;
    }

    /// Returns the increase of each counter since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            bytes: self.bytes - before.bytes,
            arrived: self.arrived - before.arrived,
            datagrams: self.datagrams - before.datagrams,
            retransmissions: self.retransmissions - before.retransmissions,
            timeouts: self.timeouts - before.timeouts,
            recoveries: self.recoveries - before.recoveries,
            window: self.window - before.window,
            time: self.time - before.time,
            window_limited: self.window_limited - before.window_limited,
            buffer_limited: self.buffer_limited - before.buffer_limited,
            writes: self.writes - before.writes,
            refused: self.refused - before.refused,
        }
    }
}

/// Measurements of a group as a whole.
#[derive(Clone, Debug)]
pub struct GroupProbe {
    /// One-way delays of packets with data, from host to host. In simulations of packet sources
    /// over TCP: delays of writes, from the due time to in-order delivery.
    pub delay: Histogram,
    /// One-way delays of packets with data, if `delay` contains the delays of writes.
    pub packet_delay: Option<Box<Histogram>>,
    /// Round-trip time samples, each of the last segment that an acknowledgement covers.
    pub rtt: Histogram,
    /// Smoothed round-trip times, one at each acknowledgement, from samples of the first segment
    /// that it covers.
    pub srtt: Histogram,
    /// Flow completion times.
    pub fct: Histogram,
    /// Page load times.
    pub page: Histogram,
    /// Number of flows, transfers or Web objects that have begun and not ended, over time.
    pub active: TimeWeighted,
    /// Number of flows, transfers or Web objects that were active at the end of the warm-up or
    /// began after it.
    pub flows: u64,
    /// Bytes of application payload that reached the receiving hosts since the run's start, each
    /// once.
    pub bytes: u64,
}

impl GroupProbe {
    /// Returns the measurements of a group before its first flow begins.
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

    /// Clears the measurements at the end of the warm-up, except `bytes`.
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

    /// Records that a flow, transfer or Web object began.
    pub fn begin(&mut self, now: Nanos) {
        self.active.set(now, self.active.value() + 1);
        self.flows += 1;
    }

    /// Records that a flow, transfer or Web object ended.
    pub fn end(&mut self, now: Nanos) {
        self.active.set(now, self.active.value() - 1);
    }
}
