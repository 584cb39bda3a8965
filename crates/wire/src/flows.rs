//! Identification of the plan's flows in real packets, and their measurement. As in the simulator,
//! the measurements are taken from the packets that hosts send and receive, not from reports of
//! applications.
//!
//! Each flow has its own port at its server, which identifies its packets: [`FIRST_PORT`] plus the
//! flow's number, counted over all groups in the plan's order. The server is the receiver of the
//! data, or the Web server of Web traffic. A flow of a user's own programs (`command`) may use
//! other ports; its data go in both directions. If no port identifies a packet between its hosts,
//! the packet belongs to this flow. TCP connections are followed in both directions:
//! retransmissions, bytes that arrive for the first time, in order or not, and round-trip times from a
//! segment to its acknowledgement at the sender (Karn's rule).

use crate::headers::{Headers, Transport as Carried};
use sojourn_measure::{FlowAccount, Moments};
use sojourn_network::{Counted, FlowLine, GroupProbe, Tally, flow_report::books_since};
use sojourn_plan::{Plan, Transport};
use sojourn_queue::TcpView;
use sojourn_tcp::ranges::Ranges;
use sojourn_traffic::App;
use sojourn_units::{Nanos, SECOND};
use std::collections::{BTreeMap, VecDeque};

/// Port of the first flow at its server.
pub const FIRST_PORT: u16 = 20_000;

/// Maximum number of segments per connection that are timed at once, for round-trip times.
const TIMED: usize = 1 << 12;

/// Maximum number of connections that are followed; those of a user's own programs count twice. For
/// packets of further connections only the account of sent and received packets is kept.
const CONNECTIONS: usize = 1 << 16;

/// Header fields of a packet that identify its flow and are measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// Whether the packet is a TCP segment.
    pub tcp: bool,
    /// Source and destination port; 0 for packets without ports.
    pub ports: (u16, u16),
    /// Sequence number of the segment's first byte; 0 unless TCP.
    pub seq: u32,
    /// Acknowledgement number; 0 unless TCP.
    pub ack: u32,
    /// TCP flags, as in [`TcpView`]; 0 unless TCP.
    pub flags: u8,
    /// Bytes of payload.
    pub payload: u32,
}

impl Facts {
    /// Returns these fields of a packet's headers.
    pub fn of(headers: &Headers) -> Self {
        match &headers.transport {
            Carried::Tcp(tcp) => Self {
                tcp: true,
                ports: tcp.ports,
                seq: tcp.sequence,
                ack: tcp.acknowledgement,
                flags: tcp.flags,
                payload: tcp.payload,
            },
            Carried::Udp(udp) => Self { ports: udp.ports, payload: udp.payload, ..Self::default() },
            Carried::Icmp(_) | Carried::Opaque => Self::default(),
        }
    }
}

/// The flow, direction and connection that a packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Belonging {
    /// Index of the account. Each flow has two accounts, first that of its data's direction; two
    /// more follow for packets that belong to no flow.
    pub account: u32,
    /// Index of the packet's connection, or [`NO_CONNECTION`].
    pub connection: u32,
}

/// Connection index of packets that belong to no followed connection.
pub const NO_CONNECTION: u32 = u32::MAX;

/// One flow.
#[derive(Clone, Debug)]
struct Flow {
    group: u32,
    number: u32,
    nodes: (u32, u32),
    /// Whether the flow is Web traffic, whose data come from the server.
    pages: bool,
    /// Whether the flow belongs to a user's own programs, whose data go in both directions over any
    /// transport.
    both: bool,
    /// Time of the flow's first packet in a direction with data; [`Nanos::MAX`] before this packet.
    start: Nanos,
    /// End of the flow's last transfer; `None` before it.
    end: Option<Nanos>,
    /// TCP's counters of the flow since the start of the run.
    tally: Tally,
    /// The counters in `tally` at the end of the warm-up.
    before: Tally,
    /// The flow's two accounts at the end of the warm-up.
    books: [FlowAccount; 2],
    finished: u64,
    delays: Moments,
    last_delay: Option<Nanos>,
    jitter: f64,
    /// Of the flow's latest TCP packet: the ports at both nodes, and the connection.
    latest: (Ports, u32),
}

/// Ports of a connection at both nodes. For flows with data in one direction: the client's port and
/// 0.
type Ports = (u16, u16);

impl Flow {
    /// Returns the node that opens the flow's connections or sends its datagrams.
    fn client(&self) -> u32 {
        if self.pages { self.nodes.1 } else { self.nodes.0 }
    }
}

/// One direction of a TCP connection: that of the data, or either direction for a user's programs.
#[derive(Clone, Debug)]
struct Connection {
    /// Sequence number of the SYN, from which all other numbers count; `None` before the first
    /// packet.
    origin: Option<u32>,
    /// End of all bytes sent so far.
    sent: u64,
    /// End of all numbers received in order.
    ordered: u64,
    /// Ranges of numbers that were received out of order.
    ahead: Ranges,
    /// End and sending time of each timed segment. A segment that is sent again is not timed.
    timed: VecDeque<(u64, Nanos)>,
    began: Nanos,
    fin: Option<u64>,
    closed: bool,
    /// Index of the opposite direction if it is followed too; otherwise [`NO_CONNECTION`].
    mirror: u32,
}

impl Connection {
    fn new(began: Nanos, mirror: u32) -> Self {
        Self {
            mirror,
            origin: None,
            sent: 0,
            ordered: 0,
            ahead: Ranges::default(),
            timed: VecDeque::new(),
            began,
            fin: None,
            closed: false,
        }
    }

    /// Returns `number` relative to `origin`, extended to the 64-bit value nearest to `near`.
    fn unwrap(origin: u32, number: u32, near: u64) -> u64 {
        let low = number.wrapping_sub(origin);
        let distance = low.wrapping_sub(near as u32) as i32;
        near.saturating_add_signed(i64::from(distance))
    }

    /// Returns the range of sequence numbers that a segment occupies, including SYN and FIN.
    fn range(&mut self, facts: &Facts, near: u64) -> (u64, u64) {
        let syn = facts.flags & TcpView::SYN != 0;
        let fin = facts.flags & TcpView::FIN != 0;
        if syn || self.origin.is_none() {
            self.origin = Some(if syn { facts.seq } else { facts.seq.wrapping_sub(1) });
        }
        let origin = self.origin.unwrap_or(facts.seq);
        let begin = Self::unwrap(origin, facts.seq, near);
        let end = begin + u64::from(facts.payload) + u64::from(syn) + u64::from(fin);
        (begin, end)
    }
}

/// Returns the sum of the accounts of both directions.
fn together(one: FlowAccount, other: FlowAccount) -> FlowAccount {
    FlowAccount {
        sent: one.sent + other.sent,
        duplicated: one.duplicated + other.duplicated,
        dropped: one.dropped + other.dropped,
        lost: one.lost + other.lost,
        received: one.received + other.received,
        missing: one.missing + other.missing,
    }
}

/// Returns, for each pair of nodes, the flow that owns packets without a known port. The lower node
/// is first. Among several flows it is the first one whose programs are not given a port; if all
/// are given a port, the pair has no entry.
fn rest(plan: &Plan) -> BTreeMap<(u32, u32), u32> {
    let mut all: BTreeMap<(u32, u32), Vec<(bool, u32)>> = BTreeMap::new();
    let mut id = 0;
    for group in &plan.groups {
        for number in 0..group.count {
            let (from, to) = group.pairs[number as usize % group.pairs.len()];
            if let App::Command(params) = &group.app {
                let pair = (from.min(to) as u32, from.max(to) as u32);
                all.entry(pair).or_default().push((params.names_port(), id));
            }
            id += 1;
        }
    }
    let chosen = |flows: &[(bool, u32)]| match *flows {
        [(_, only)] => Some(only),
        _ => flows.iter().find(|(port, _)| !port).map(|&(_, id)| id),
    };
    all.iter().filter_map(|(pair, flows)| Some((*pair, chosen(flows)?))).collect()
}

/// All flows of a plan.
#[derive(Clone, Debug)]
pub struct Flows {
    all: Vec<Flow>,
    /// Measurements of each group.
    pub groups: Vec<GroupProbe>,
    tcp: Vec<bool>,
    /// For each group, whether each of its connections is one transfer: of a file or of Web
    /// objects.
    transfers: Vec<bool>,
    connections: Vec<Connection>,
    by_port: BTreeMap<(u32, Ports), u32>,
    /// For each pair of nodes, lower node first: the flow that owns packets without a known port.
    rest: BTreeMap<(u32, u32), u32>,
}

impl Flows {
    /// Returns the plan's flows before the first packet.
    pub fn new(plan: &Plan) -> Self {
        let mut flows = Vec::new();
        for (g, group) in plan.groups.iter().enumerate() {
            for number in 0..group.count {
                let (from, to) = group.pairs[number as usize % group.pairs.len()];
                flows.push(Flow {
                    group: g as u32,
                    number,
                    nodes: (from as u32, to as u32),
                    pages: matches!(group.app, App::Web(_)),
                    both: matches!(group.app, App::Command(_)),
                    start: Nanos::MAX,
                    end: None,
                    tally: Tally::default(),
                    before: Tally::default(),
                    books: Default::default(),
                    finished: 0,
                    delays: Moments::default(),
                    last_delay: None,
                    jitter: 0.0,
                    latest: ((0, 0), NO_CONNECTION),
                });
            }
        }
        Self {
            all: flows,
            groups: plan.groups.iter().map(GroupProbe::new).collect(),
            tcp: plan.groups.iter().map(|g| matches!(g.transport, Transport::Tcp(_))).collect(),
            transfers: plan
                .groups
                .iter()
                .map(|g| matches!(g.app, App::Transfer(_) | App::Web(_)))
                .collect(),
            connections: Vec::new(),
            by_port: BTreeMap::new(),
            rest: rest(plan),
        }
    }

    /// Returns the number of flows.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Returns the flow of a packet that node `from` sends to node `to`. `passing` states for each
    /// of the two whether it is a switch. A switch is not an end of the flow, so only the other
    /// node is compared with the flow's nodes.
    pub fn belonging(
        &mut self,
        now: Nanos,
        nodes: (u32, u32),
        passing: (bool, bool),
        facts: &Facts,
    ) -> Belonging {
        let stranger = Belonging { account: self.strangers(), connection: NO_CONNECTION };
        let index = |port: u16| usize::from(port.wrapping_sub(FIRST_PORT));
        let of = |port: u16| (port >= FIRST_PORT).then(|| index(port));
        let by_port = [(of(facts.ports.1), facts.ports.0), (of(facts.ports.0), facts.ports.1)]
            .into_iter()
            .find_map(|(index, client)| {
                let id = index?;
                let flow = self.all.get(id)?;
                let (back, ours) = match passing {
                    (false, false) => {
                        let back = nodes == (flow.nodes.1, flow.nodes.0) && nodes != flow.nodes;
                        (back, back || nodes == flow.nodes)
                    }
                    // The client sends the flow's data, except in Web traffic.
                    (false, true) => ((nodes.0 == flow.client()) == flow.pages, true),
                    (true, _) => ((nodes.1 == flow.client()) != flow.pages, true),
                };
                let fits = flow.both || self.tcp[flow.group as usize] == facts.tcp;
                (fits && ours).then_some((id as u32, back, client))
            });
        let found = by_port.or_else(|| {
            let pair = (nodes.0.min(nodes.1), nodes.0.max(nodes.1));
            let id = *self.rest.get(&pair).filter(|_| passing == (false, false))?;
            Some((id, nodes != self.all[id as usize].nodes, 0))
        });
        let Some((id, back, client)) = found else { return stranger };
        let account = 2 * id + u32::from(back);
        if !facts.tcp {
            return Belonging { account, connection: NO_CONNECTION };
        }
        let connection = if self.all[id as usize].both {
            let (here, there) = facts.ports;
            let forward =
                self.connection(now, id, if back { (there, here) } else { (here, there) }, facts);
            let mirror = self.connections.get(forward as usize).map(|one| one.mirror);
            if back { mirror.unwrap_or(NO_CONNECTION) } else { forward }
        } else {
            self.connection(now, id, (client, 0), facts)
        };
        Belonging { account, connection }
    }

    /// Returns the index of the account for packets that belong to no flow.
    pub fn strangers(&self) -> u32 {
        2 * self.all.len() as u32
    }

    fn connection(&mut self, now: Nanos, id: u32, ports: Ports, facts: &Facts) -> u32 {
        let flow = &mut self.all[id as usize];
        if flow.latest.0 == ports && flow.latest.1 != NO_CONNECTION {
            return flow.latest.1;
        }
        let known = self.by_port.get(&(id, ports)).copied();
        let connection = known.unwrap_or_else(|| {
            let fresh = facts.flags & TcpView::SYN != 0 && self.connections.len() < CONNECTIONS;
            if !fresh {
                return NO_CONNECTION;
            }
            let number = self.connections.len() as u32;
            if flow.both {
                self.connections.push(Connection::new(now, number + 1));
                self.connections.push(Connection::new(now, number));
            } else {
                self.connections.push(Connection::new(now, NO_CONNECTION));
            }
            self.by_port.insert((id, ports), number);
            if self.transfers[flow.group as usize] {
                self.groups[flow.group as usize].begin(now);
            }
            number
        });
        flow.latest = (ports, connection);
        connection
    }

    fn began(&mut self, now: Nanos, id: u32) {
        let flow = &mut self.all[id as usize];
        if flow.start == Nanos::MAX {
            flow.start = now;
            // In a group of transfers, each transfer counts as a flow that begins with its
            // connection.
            if !self.transfers[flow.group as usize] {
                self.groups[flow.group as usize].begin(now);
            }
        }
    }

    /// Counts a packet that a host sends at `now`.
    pub fn sent(&mut self, now: Nanos, whose: Belonging, facts: &Facts) {
        let id = whose.account / 2;
        let Some(flow) = self.all.get(id as usize) else { return };
        if whose.account % 2 == 1 && !flow.both {
            return;
        }
        self.began(now, id);
        let Some(connection) = self.connections.get_mut(whose.connection as usize) else { return };
        let near = connection.sent;
        let (begin, end) = connection.range(facts, near);
        if begin == end {
            return;
        }
        if begin < connection.sent {
            let flow = &mut self.all[id as usize];
            flow.tally.retransmissions += u64::from(facts.payload > 0);
            // Karn's rule: a segment that was sent again is no longer timed.
            connection.timed.retain(|&(until, _)| until <= begin);
        } else if connection.timed.len() < TIMED {
            connection.timed.push_back((end, now));
        }
        if facts.flags & TcpView::FIN != 0 {
            connection.fin = Some(end);
        }
        connection.sent = connection.sent.max(end);
    }

    /// Counts a packet that a host receives at `now` and another host sent at `sent_at`. `first` is
    /// false for a duplicate made by the network.
    pub fn received(
        &mut self,
        now: Nanos,
        sent_at: Nanos,
        whose: Belonging,
        facts: &Facts,
        first: bool,
    ) {
        let id = whose.account / 2;
        if id as usize >= self.all.len() {
            return;
        }
        let both = self.all[id as usize].both;
        if both && facts.tcp {
            let mirror = self.connections.get(whose.connection as usize).map(|one| one.mirror);
            self.acknowledged(now, id, mirror.unwrap_or(NO_CONNECTION), facts);
        } else if whose.account % 2 == 1 && !both {
            self.acknowledged(now, id, whose.connection, facts);
            return;
        }
        let flow = &mut self.all[id as usize];
        let group = &mut self.groups[flow.group as usize];
        if !facts.tcp {
            let delay = now - sent_at;
            group.delay.record(delay);
            flow.delays.add(delay);
            if let Some(last) = flow.last_delay {
                flow.jitter += (delay.abs_diff(last) as f64 - flow.jitter) / 16.0;
            }
            flow.last_delay = Some(delay);
            if first {
                flow.tally.bytes += u64::from(facts.payload);
                flow.tally.arrived += u64::from(facts.payload);
                if both {
                    flow.tally.datagrams += u64::from(facts.payload);
                } else {
                    group.bytes += u64::from(facts.payload);
                }
            }
            return;
        }
        if facts.payload > 0 {
            group.delay.record(now - sent_at);
            flow.delays.add(now - sent_at);
        }
        let Some(connection) = self.connections.get_mut(whose.connection as usize) else { return };
        let (begin, end) = connection.range(facts, connection.ordered);
        let before = connection.ordered;
        // The numbers of SYN and FIN are not payload.
        let first = begin + u64::from(facts.flags & TcpView::SYN != 0);
        let last = first + u64::from(facts.payload);
        let mut new = 0;
        if begin.max(before) < end {
            let count = |from: u64, to: u64| new += to.min(last).saturating_sub(from.max(first));
            connection.ahead.insert(begin.max(before), end, count);
        }
        while let Some((_, high)) = connection.ahead.first().filter(|one| one.0 <= before) {
            connection.ordered = high;
            connection.ahead.pop_first();
        }
        let fin = connection.fin.is_some_and(|end| before < end && connection.ordered >= end);
        let control = first - begin + u64::from(fin);
        flow.tally.bytes += (connection.ordered - before).saturating_sub(control);
        flow.tally.arrived += new;
        group.bytes += new;
        if fin && !connection.closed {
            connection.closed = true;
            if self.transfers[flow.group as usize] {
                group.fct.record(now - connection.began);
                group.end(now);
                flow.finished += 1;
                flow.end = Some(now);
            }
        }
    }

    /// Processes the acknowledgement number of a packet that the sender of the data receives.
    fn acknowledged(&mut self, now: Nanos, id: u32, connection: u32, facts: &Facts) {
        let Some(connection) = self.connections.get_mut(connection as usize) else { return };
        let (Some(origin), true) = (connection.origin, facts.flags & TcpView::ACK != 0) else {
            return;
        };
        let ack = Connection::unwrap(origin, facts.ack, connection.sent);
        let mut latest = None;
        while let Some(&(end, at)) = connection.timed.front() {
            if end > ack {
                break;
            }
            latest = Some(at);
            connection.timed.pop_front();
        }
        if let Some(at) = latest {
            let group = self.all[id as usize].group;
            self.groups[group as usize].rtt.record(now - at);
        }
    }

    /// Ends the warm-up: the following measurements count from `now`. `accounts` are the network's
    /// accounts.
    pub fn restart(&mut self, now: Nanos, accounts: &[FlowAccount]) {
        self.groups.iter_mut().for_each(|group| group.restart(now));
        for (flow, books) in self.all.iter_mut().zip(accounts.chunks_exact(2)) {
            flow.before = flow.tally;
            flow.books = [books[0], books[1]];
            flow.finished = 0;
            flow.delays = Moments::default();
        }
    }

    /// Returns two values of a time series' sample for each group: the rate in bit/s at which
    /// payload was delivered in the last `interval`, and the number of active flows. `delivered`
    /// holds the payload bytes of each group at the previous sample, and is updated.
    pub fn sample(&self, delivered: &mut [u64], interval: Nanos) -> Vec<f64> {
        let span = interval as f64 / SECOND as f64;
        let groups = self.groups.iter().zip(delivered);
        let values = groups.flat_map(|(group, delivered)| {
            let bytes = group.bytes - std::mem::replace(delivered, group.bytes);
            [bytes as f64 * 8.0 / span, group.active.value() as f64]
        });
        values.collect()
    }

    /// Returns the counts of all flows since the end of the warm-up.
    pub fn count_up(&self, accounts: &[FlowAccount]) -> Vec<Counted> {
        let counted = |(flow, books): (&Flow, &[FlowAccount])| {
            let tcp = self.tcp[flow.group as usize];
            let tally = flow.tally.since(&flow.before);
            let jitter = if tcp || flow.last_delay.is_none() {
                f64::NAN
            } else {
                flow.jitter / SECOND as f64
            };
            let [data, back] = [0, 1].map(|way| books_since(&books[way], &flow.books[way]));
            Counted {
                tcp,
                bytes: tally.bytes,
                arrived: tally.arrived,
                tally,
                books: if flow.both { [together(data, back), back] } else { [data, back] },
                jitter,
                mos: f64::NAN,
            }
        };
        self.all.iter().zip(accounts.chunks_exact(2)).map(counted).collect()
    }

    /// Returns the data of each flow for its row in the table of flows.
    pub fn lines<'a>(&'a self, counted: &'a [Counted]) -> impl Iterator<Item = FlowLine<'a>> {
        self.all.iter().zip(counted).map(|(flow, counted)| FlowLine {
            group: flow.group as usize,
            number: flow.number,
            server: None,
            start: flow.start,
            end: flow.end,
            counted,
            finished: flow.finished,
            pages: 0,
            delays: flow.delays,
            packet_delays: flow.delays,
            delay: None,
        })
    }
}
