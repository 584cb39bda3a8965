//! The observer of a run's links: captures, a log of packet events for callers that advance the run
//! in steps, and reports of segments that leave the queues of their hosts.

use crate::captures::Captures;
use crate::load::{Cargo, headers, sender, tcp_view};
use sojourn_link::{Event, Observer};
use sojourn_network::{Node, Seen, node};
use sojourn_plan::{Labels, Link, Plan};
use sojourn_queue::{Headers, Sender, TcpView};
use sojourn_tcp::Segment;
use sojourn_units::{EPOCH, Nanos};
use std::collections::VecDeque;

/// An event of a packet on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketEvent {
    /// Time of the event since the run's start.
    pub at: Nanos,
    /// Number of the link in the plan.
    pub link: u32,
    /// Number of the packet. It is unique among the packets in the network at one time; a later
    /// packet may have it again.
    pub packet: u32,
    /// Number of the flow's direction: twice the flow's number for data, plus 1 for the opposite
    /// direction. Flows are numbered in the order of the plan; the channels of the plan's own
    /// applications have higher numbers.
    pub direction: u32,
    /// Frame length in bytes.
    pub length: u32,
    /// The event.
    pub event: Event,
}

/// A segment that has departed from its host's queue or was dropped there.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    /// Slot of the connection's end that sent the segment.
    pub slot: u32,
    /// Number of the connection.
    pub connection: u32,
    /// The segment.
    pub segment: Segment,
}

/// The queue of a host's network interface.
#[derive(Clone, Copy, Debug)]
pub struct HostQueue {
    /// The host.
    host: Node,
    /// Whether the queue holds packets until their departure times.
    pub paces: bool,
    /// Whether the host hands super-packets to the queue.
    pub offload: bool,
}

impl HostQueue {
    /// Returns the queue of a link; `None` unless the queue is a host's own.
    fn of(link: &Link) -> Option<Self> {
        let paces = link.params.queue.paces();
        let (host, offload) = (node(link.from as u32), link.offload.is_some());
        link.host_queue.then_some(Self { host, paces, offload })
    }
}

/// The observer of a run's links.
#[derive(Clone, Debug)]
pub struct Observers {
    /// The captures that the plan requests.
    pub captures: Captures,
    /// Ports and marks of the flows' packets, for filters.
    labels: Labels,
    /// Segments that have left the queues of their hosts, in the order of leaving. Their
    /// connections have not been notified yet.
    left: VecDeque<Left>,
    /// For each link, its queue if that is a host's own queue.
    host_queues: Vec<Option<HostQueue>>,
    /// For each link, whether its packet events are logged.
    logged: Vec<bool>,
    /// Logged packet events that [`Observers::take_log`] has not returned yet.
    log: Vec<PacketEvent>,
}

impl Observers {
    /// Returns the observer with the captures of the plan and without a log.
    pub fn new(plan: &Plan) -> Self {
        Self {
            captures: Captures::new(plan),
            labels: Labels::new(&plan.groups),
            left: VecDeque::new(),
            host_queues: plan.links.iter().map(HostQueue::of).collect(),
            logged: vec![false; plan.links.len()],
            log: Vec::new(),
        }
    }

    /// Returns whether a packet is on a link whose queue belongs to the packet's sending host.
    fn is_own(&self, seen: &Seen<'_, Cargo>) -> bool {
        self.host_queues[seen.link as usize].is_some_and(|queue| queue.host == seen.packet.from)
    }

    /// Returns the numbers of the links whose queues are hosts' own.
    pub fn links_of_hosts(&self) -> impl Iterator<Item = usize> {
        let links = self.host_queues.iter().enumerate();
        links.filter(|(_, queue)| queue.is_some()).map(|(link, _)| link)
    }

    /// Returns the queue of the link `link`; `None` unless the queue is a host's own.
    pub fn host_queue(&self, link: u32) -> Option<HostQueue> {
        self.host_queues.get(link as usize).copied().flatten()
    }

    /// Returns whether [`Self::next_left`] would return a segment.
    pub fn has_left(&self) -> bool {
        !self.left.is_empty()
    }

    /// Removes and returns the next segment that has left the queue of its host.
    pub fn next_left(&mut self) -> Option<Left> {
        self.left.pop_front()
    }

    /// Logs the packet events of these links from now on, and of no other links.
    pub fn log(&mut self, links: &[usize]) {
        self.logged.fill(false);
        for &link in links {
            self.logged[link] = true;
        }
    }

    /// Returns the packet events logged since the last call.
    pub fn take_log(&mut self) -> Vec<PacketEvent> {
        std::mem::take(&mut self.log)
    }
}

impl Observer<Seen<'_, Cargo>> for Observers {
    fn on_event(&mut self, at: Nanos, seen: &Seen<'_, Cargo>, event: Event) {
        if event == Event::Departed {
            self.captures.add(at - EPOCH, seen, &self.labels);
        }
        if matches!(event, Event::Departed | Event::Dropped { .. })
            && self.is_own(seen)
            && let Cargo::Segment(segment) = seen.body.load
        {
            let (slot, connection) = (seen.body.endpoint ^ 1, seen.body.connection);
            self.left.push_back(Left { slot, connection, segment });
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

    fn sender(&self, seen: &Seen<'_, Cargo>) -> Sender {
        if self.is_own(seen) { sender(seen.body) } else { Sender::default() }
    }
}
