//! Captures of links.

use crate::load::{Cargo, frame};
use crate::pcap::Capture;
use sojourn_network::Seen;
use sojourn_plan::{Labels, Plan};
use sojourn_units::Nanos;

/// The captures of a run, by link.
#[derive(Clone, Debug)]
pub struct Captures(Vec<Option<Capture>>);

impl Captures {
    /// Empty captures of the links that the plan asks for.
    pub fn new(plan: &Plan) -> Self {
        let mut captures = vec![None; plan.links.len()];
        for &link in &plan.observe.capture {
            captures[link] = Some(Capture::new(plan.observe.snaplen));
        }
        Self(captures)
    }

    /// Whether any lacks packets.
    pub fn is_cut(&self) -> bool {
        self.0.iter().flatten().any(Capture::is_cut)
    }

    /// The files' bytes, in the order of `links`.
    pub fn take(&mut self, links: &[usize]) -> Vec<Vec<u8>> {
        let bytes = |&link: &usize| self.0[link].take().map_or_else(Vec::new, Capture::into_bytes);
        links.iter().map(bytes).collect()
    }

    /// Adds a packet whose transmission begins, if its link is captured.
    pub fn add(&mut self, at: Nanos, seen: &Seen<'_, Cargo>, labels: &Labels) {
        if let Some(capture) = &mut self.0[seen.link as usize] {
            capture.add(at, &frame(labels, seen.packet, seen.body));
        }
    }
}
