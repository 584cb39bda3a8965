//! Observers of the links of a run: captures, and a log of packets for callers that advance the
//! run.

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
    /// Its event.
    pub event: Event,
}

/// A segment that has left its host's queue, or was dropped there.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    /// The slot of the end that sent it.
    pub slot: u32,
    /// The number of its connection.
    pub connection: u32,
    /// The segment.
    pub segment: Segment,
}

/// A queue that is a host's own.
#[derive(Clone, Copy, Debug)]
pub struct HostQueue {
    /// The host.
    host: Node,
    /// Whether the queue holds packets until their departure times.
    pub paces: bool,
}

impl HostQueue {
    /// The queue of a link, if it is a host's own.
    fn of(link: &Link) -> Option<Self> {
        let paces = link.params.queue.paces();
        link.host_queue.then(|| Self { host: node(link.from as u32), paces })
    }
}

/// The observer of a run's links.
#[derive(Clone, Debug)]
pub struct Observers {
    /// Captures that the plan asks for.
    pub captures: Captures,
    /// Ports and marks of the flows' packets, for filters.
    labels: Labels,
    /// Segments that have left the queues of their hosts, in their order, to be told to their connections.
    left: VecDeque<Left>,
    /// By link, its queue if that is a host's own.
    host_queues: Vec<Option<HostQueue>>,
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
            left: VecDeque::new(),
            host_queues: plan.links.iter().map(HostQueue::of).collect(),
            logged: vec![false; plan.links.len()],
            log: Vec::new(),
        }
    }

    /// Whether a packet is on a link whose queue is its host's own.
    fn is_own(&self, seen: &Seen<'_, Cargo>) -> bool {
        self.host_queues[seen.link as usize].is_some_and(|queue| queue.host == seen.packet.from)
    }

    /// The links whose queues are hosts' own.
    pub fn links_of_hosts(&self) -> impl Iterator<Item = usize> {
        let links = self.host_queues.iter().enumerate();
        links.filter(|(_, queue)| queue.is_some()).map(|(link, _)| link)
    }

    /// The queue of this link, if it is a host's own.
    pub fn host_queue(&self, link: u32) -> Option<HostQueue> {
        self.host_queues.get(link as usize).copied().flatten()
    }

    /// Whether anything has left that was not taken.
    #[inline]
    pub fn has_left(&self) -> bool {
        !self.left.is_empty()
    }

    /// Takes what has left first.
    pub fn next_left(&mut self) -> Option<Left> {
        self.left.pop_front()
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
