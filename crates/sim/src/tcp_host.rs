//! TCP connections: the two ends of each, in slots that are used again.

use crate::engine::Engine;
use crate::flow::Tally;
use crate::load::Cargo;
use crate::slab::{Body, Packet};
use sojourn_tcp::Segment;

/// All connections.
#[derive(Clone, Debug)]
pub struct Connections {}

impl Connections {
    /// None yet; their timers come after those of `flows` flows.
    pub fn new(_flows: u32) -> Self {
        Self {}
    }

    /// Congestion window in bytes and smoothed round-trip time in seconds of a connection.
    pub fn window(&self, _id: u32) -> (f64, f64) {
        (f64::NAN, f64::NAN)
    }
}

impl Engine<'_> {
    pub(crate) fn connection_due(&mut self, _id: u32) {}
    pub(crate) fn application_due(&mut self, id: u32) {
        self.timers.clear(id);
    }
    pub(crate) fn receive_segment(&mut self, _p: &Packet, _b: &Body<Cargo>, _s: &Segment) {}
    pub(crate) fn tallies(&self) -> Vec<Tally> {
        self.flows.iter().map(|flow| flow.closed).collect()
    }
}
