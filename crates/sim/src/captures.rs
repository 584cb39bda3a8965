//! Captures of links.

use crate::load::{Cargo, frame};
use sojourn_capture::frames::Frames;
use sojourn_network::Seen;
use sojourn_plan::{Labels, Plan};
use sojourn_units::Nanos;

/// The captures of a run, indexed by link.
#[derive(Clone, Debug)]
pub struct Captures(Vec<Option<Frames>>);

impl Captures {
    /// Returns empty captures of the links that the plan names.
    pub fn new(plan: &Plan) -> Self {
        let mut captures = vec![None; plan.links.len()];
        for &link in &plan.observe.capture {
            captures[link] = Some(Frames::new(plan.observe.snaplen));
        }
        Self(captures)
    }

    /// Returns whether a capture lacks packets because it reached its maximum size.
    pub fn is_cut(&self) -> bool {
        self.0.iter().flatten().any(Frames::is_cut)
    }

    /// Returns the captures of `links` as pcap files, and removes them.
    pub fn take(&mut self, links: &[usize]) -> Vec<Vec<u8>> {
        let bytes = |&link: &usize| self.0[link].take().map_or_else(Vec::new, Frames::into_bytes);
        links.iter().map(bytes).collect()
    }

    /// Adds a packet whose transmission begins at `at` (time since the run's start), if its link is
    /// captured.
    pub fn add(&mut self, at: Nanos, seen: &Seen<'_, Cargo>, labels: &Labels) {
        if let Some(capture) = &mut self.0[seen.link as usize] {
            capture.add(at, &frame(labels, seen.packet, seen.body));
        }
    }
}
