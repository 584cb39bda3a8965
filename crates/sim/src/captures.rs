//! Captures of links: an observer of the network.

use crate::load::{Cargo, frame, tcp_view};
use crate::pcap::Capture;
use sojourn_link::{Event, Observer};
use sojourn_network::Seen;
use sojourn_plan::Plan;
use sojourn_queue::TcpView;
use sojourn_units::{EPOCH, Nanos};

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
}

impl Observer<Seen<'_, Cargo>> for Captures {
    fn on_event(&mut self, at: Nanos, seen: &Seen<'_, Cargo>, event: Event) {
        if event == Event::Departed
            && let Some(capture) = &mut self.0[seen.link as usize]
        {
            capture.add(at - EPOCH, &frame(seen.packet, seen.body));
        }
    }

    fn tcp(&self, seen: &Seen<'_, Cargo>) -> Option<TcpView> {
        tcp_view(seen.packet, seen.body)
    }
}
