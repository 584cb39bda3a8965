//! What observes the links of a run: captures, and a log of packets for callers that advance the run.

use crate::captures::Captures;
use crate::load::{Cargo, headers, tcp_view};
use sojourn_link::{Event, Observer};
use sojourn_network::Seen;
use sojourn_plan::{Labels, Plan};
use sojourn_queue::{Headers, TcpView};
use sojourn_units::{EPOCH, Nanos};

/// An event of a packet on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketEvent {
    /// When, since the run's start.
    pub at: Nanos,
    /// Number of the link in the plan.
    pub link: u32,
    /// Number of the packet, which another one has after this one's end.
    pub packet: u32,
    /// Direction of a flow: twice the flow's number, and one more on the way back. Flows are numbered
    /// in the order of the plan; connections of other applications follow.
    pub direction: u32,
    /// Bytes with headers.
    pub length: u32,
    /// What happens to it.
    pub event: Event,
}

/// The observer of a run's links.
#[derive(Clone, Debug)]
pub struct Observers {
    /// Captures that the plan asks for.
    pub captures: Captures,
    /// Ports and marks of the flows' packets, for filters.
    labels: Labels,
    /// Links whose packets are logged.
    logged: Vec<bool>,
    /// Their events that nobody has taken yet.
    log: Vec<PacketEvent>,
}

impl Observers {
    /// The captures that the plan asks for, and no log.
    pub fn new(plan: &Plan) -> Self {
        Self {
            captures: Captures::new(plan),
            labels: Labels::new(&plan.groups),
            logged: vec![false; plan.links.len()],
            log: Vec::new(),
        }
    }

    /// Logs the packets of these links from now on, and of no others.
    pub fn log(&mut self, links: &[usize]) {
        self.logged.fill(false);
        for &link in links {
            self.logged[link] = true;
        }
    }

    /// Takes the events since the last call.
    pub fn take_log(&mut self) -> Vec<PacketEvent> {
        std::mem::take(&mut self.log)
    }
}

impl Observer<Seen<'_, Cargo>> for Observers {
    fn on_event(&mut self, at: Nanos, seen: &Seen<'_, Cargo>, event: Event) {
        if event == Event::Departed {
            self.captures.add(at - EPOCH, seen, &self.labels);
        }
        if self.logged[seen.link as usize] {
            self.log.push(PacketEvent {
                at: at - EPOCH,
                link: seen.link,
                packet: seen.packet.slot,
                direction: seen.body.flow,
                length: seen.packet.len,
                event,
            });
        }
    }

    fn tcp(&self, seen: &Seen<'_, Cargo>) -> Option<TcpView> {
        tcp_view(&self.labels, seen.packet, seen.body)
    }

    fn headers(&self, seen: &Seen<'_, Cargo>) -> Headers {
        headers(&self.labels, seen.packet, seen.body)
    }
}
