//! The network: links with their probes, packets on their paths, the books.

use crate::deadlines::Deadlines;
use crate::monitor::Watched;
use crate::pcap::{Capture, Frame};
use crate::port::Port;
use crate::probe::{Joint, LinkProbe, Work};
use crate::routes::{END, Routes};
use crate::slab::{Body, Packet, Slab};
use sojourn_link::{Backlog, Link, Medium, Sink};
use sojourn_measure::ledger::balance;
use sojourn_measure::{Count, FlowAccount, Imbalance, Kind, TraceHash};
use sojourn_plan::Plan;
use sojourn_queue::{DropReason, MarkReason, TcpView};
use sojourn_units::{EPOCH, Nanos};

/// What a packet carries, as far as a capture needs to know.
pub trait Load: Copy {
    /// The headers of the packet.
    fn frame(packet: &Packet, body: &Body<Self>) -> Frame;

    /// What can be read of its TCP header, if it is TCP.
    fn tcp(packet: &Packet, body: &Body<Self>) -> Option<TcpView>;
}

/// A link with its probe.
#[derive(Clone, Debug)]
struct Hop {
    port: Port,
    probe: LinkProbe,
    capture: Option<Capture>,
    /// Its number in a bottleneck of several links, or [`NONE`].
    member: u32,
}

/// Not one of several.
const NONE: u32 = u32::MAX;

/// Links, and the packets in them.
#[derive(Clone, Debug)]
pub struct Network<T> {
    hops: Vec<Hop>,
    media: Vec<Medium>,
    /// What is measured of a bottleneck of several links together.
    joint: Joint,
    /// When each link is due.
    pub due: Deadlines,
    /// Paths.
    pub routes: Routes,
    /// Bodies of the packets in the network.
    pub slab: Slab<T>,
    /// The books of each flow, by direction.
    pub accounts: Vec<FlowAccount>,
    /// What the monitor has seen of them, by direction; empty without one.
    pub watched: Vec<Watched>,
    /// The hash of all that happened.
    pub trace: TraceHash,
    /// Packets on their way into their next link.
    moving: Vec<Packet>,
    /// Packets that have reached their hosts.
    arrived: Vec<Packet>,
    options: Options,
}

/// What is measured, fixed for the run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Hash every packet event.
    pub trace: bool,
    /// Histograms and averages at the links; the books are always kept.
    pub probes: bool,
    /// Times and delays of each flow for the monitor.
    pub monitor: bool,
}

/// Takes down what a link does.
struct Tap<'a, T> {
    link: u32,
    options: Options,
    refused: bool,
    probe: &'a mut LinkProbe,
    capture: &'a mut Option<Capture>,
    slab: &'a mut Slab<T>,
    accounts: &'a mut [FlowAccount],
    watched: &'a mut [Watched],
    trace: &'a mut TraceHash,
    delivered: &'a mut Vec<Packet>,
}

/// The tap of a hop: a macro, for the rest of the network stays free to be used.
macro_rules! tap {
    ($net:ident, $hop:ident, $id:ident) => {
        Tap {
            link: $id,
            options: $net.options,
            refused: false,
            probe: &mut $hop.probe,
            capture: &mut $hop.capture,
            slab: &mut $net.slab,
            accounts: &mut $net.accounts,
            watched: &mut $net.watched,
            trace: &mut $net.trace,
            delivered: &mut $net.moving,
        }
    };
}

impl<T: Load> Tap<'_, T> {
    #[inline]
    fn trace(&mut self, at: Nanos, kind: Kind, packet: &Packet, verdict: u8) {
        if self.options.trace {
            self.trace.add(at, self.link, kind, u64::from(packet.slot), packet.len, verdict);
        }
    }

    #[inline(never)]
    fn write(&mut self, at: Nanos, packet: &Packet) {
        if let Some(capture) = self.capture {
            let body = self.slab.get(packet.slot);
            capture.add(at - EPOCH, &T::frame(packet, body));
        }
    }
}

impl<T: Load> Sink<Packet> for Tap<'_, T> {
    #[inline]
    fn offered(&mut self, at: Nanos, packet: &Packet, _before: Backlog) {
        self.probe.account[packet.class() as usize].arrived.count(packet.len);
        self.trace(at, Kind::Offered, packet, 0);
    }

    #[inline]
    fn departed(&mut self, at: Nanos, packet: &Packet, _after: Backlog) {
        self.probe.account[packet.class() as usize].departed.count(packet.len);
        self.trace(at, Kind::Departed, packet, 0);
        if self.options.probes {
            let sojourn = at - packet.queued_at;
            self.probe.sojourn.record(sojourn);
            self.probe.last_sojourn = sojourn;
            self.probe.last_departed = at;
        }
        if self.capture.is_some() {
            self.write(at, packet);
        }
    }

    fn dropped(&mut self, at: Nanos, packet: Packet, reason: DropReason, queued: bool) {
        self.refused |= !queued;
        self.probe.account[packet.class() as usize].dropped[reason as usize].count(packet.len);
        self.probe.runs.dropped();
        self.trace(at, Kind::Dropped, &packet, reason as u8 * 2 + u8::from(queued));
        let flow = self.slab.get(packet.slot).flow;
        self.accounts[flow as usize].dropped.count(packet.len);
        if let Some(watched) = self.watched.get_mut(flow as usize) {
            watched.dropped(reason);
        }
        self.slab.release(packet.slot);
    }

    fn abandoned(&mut self, at: Nanos, packet: Packet) {
        self.probe.account[packet.class() as usize].abandoned.count(packet.len);
        self.trace(at, Kind::Abandoned, &packet, 0);
        let flow = self.slab.get(packet.slot).flow;
        self.accounts[flow as usize].lost.count(packet.len);
        self.slab.release(packet.slot);
    }

    fn marked(&mut self, at: Nanos, packet: &Packet, reason: MarkReason) {
        self.probe.account[packet.class() as usize].marked.count(packet.len);
        self.trace(at, Kind::Marked, packet, reason as u8);
    }

    fn lost(&mut self, at: Nanos, packet: Packet) {
        self.probe.account[packet.class() as usize].lost.count(packet.len);
        self.trace(at, Kind::Lost, &packet, 0);
        let flow = self.slab.get(packet.slot).flow;
        self.accounts[flow as usize].lost.count(packet.len);
        self.slab.release(packet.slot);
    }

    fn duplicated(&mut self, at: Nanos, packet: &Packet) {
        self.probe.account[packet.class() as usize].duplicated.count(packet.len);
        self.trace(at, Kind::Duplicated, packet, 0);
        let flow = self.slab.get(packet.slot).flow;
        self.accounts[flow as usize].duplicated.count(packet.len);
        self.slab.copy(packet.slot);
    }

    fn corrupted(&mut self, at: Nanos, packet: &mut Packet, _entropy: u32) {
        self.trace(at, Kind::Corrupted, packet, 0);
        packet.damage();
    }

    fn tcp(&self, packet: &Packet) -> Option<TcpView> {
        T::tcp(packet, self.slab.get(packet.slot))
    }

    #[inline]
    fn delivered(&mut self, _at: Nanos, packet: Packet) {
        self.probe.account[packet.class() as usize].delivered.count(packet.len);
        self.delivered.push(packet);
    }
}

impl<T: Load> Network<T> {
    /// The links of a plan, empty.
    pub fn new(plan: &Plan, seed: u64, options: Options) -> Self {
        let mut hops: Vec<_> = plan
            .links
            .iter()
            .map(|link| Hop {
                port: Port::new(link, seed),
                probe: LinkProbe::new(EPOCH),
                capture: None,
                member: NONE,
            })
            .collect();
        for &link in &plan.observe.capture {
            hops[link].capture = Some(Capture::new(plan.observe.snaplen));
        }
        let bottleneck = &plan.observe.bottleneck.links;
        if bottleneck.len() > 1 {
            for (member, &link) in bottleneck.iter().enumerate() {
                hops[link].member = member as u32;
            }
        }
        Self {
            due: Deadlines::new(hops.len() as u32),
            hops,
            media: plan.media.iter().map(|medium| Medium::new(medium.access)).collect(),
            joint: Joint::new(EPOCH, bottleneck.len()),
            routes: Routes::new(plan),
            slab: Slab::default(),
            accounts: Vec::new(),
            watched: Vec::new(),
            trace: TraceHash::new(),
            moving: Vec::new(),
            arrived: Vec::new(),
            options,
        }
    }

    /// Opens the books of one direction of a flow.
    pub fn open_account(&mut self) -> u32 {
        self.accounts.push(FlowAccount::default());
        if self.options.monitor {
            self.watched.push(Watched::default());
        }
        (self.accounts.len() - 1) as u32
    }

    /// A host hands a packet to the network.
    #[inline]
    pub fn send(&mut self, now: Nanos, mut packet: Packet, body: Body<T>) {
        self.accounts[body.flow as usize].sent.count(packet.len);
        if let Some(watched) = self.watched.get_mut(body.flow as usize) {
            watched.sent(now);
        }
        packet.slot = self.slab.insert(body);
        self.enter(now, packet);
        self.settle(now);
    }

    /// Runs link `id`, which is due at `now`.
    #[inline]
    pub fn run(&mut self, now: Nanos, id: u32) {
        self.with_link(now, id, None, |link, tap| link.advance(now, tap));
        self.settle(now);
    }

    /// A host takes a packet that has reached it.
    #[inline]
    pub fn receive(&mut self, now: Nanos, packet: &Packet) -> Body<T> {
        let body = *self.slab.get(packet.slot);
        let account = &mut self.accounts[body.flow as usize];
        let kind = if packet.is_damaged() {
            // To the host it is a packet lost, and so it is in the flow's books.
            account.lost.count(packet.len);
            Kind::Discarded
        } else {
            account.received.count(packet.len);
            if let Some(watched) = self.watched.get_mut(body.flow as usize) {
                watched.received(now, body.sent_at);
            }
            self.slab.taken(packet.slot);
            Kind::Received
        };
        if self.options.trace {
            self.trace.add(now, body.endpoint, kind, body.number, packet.len, packet.tos & 3);
        }
        self.slab.release(packet.slot);
        body
    }

    /// Packets that have reached their hosts wait here, in order, to be taken.
    #[inline]
    pub fn next_arrival(&mut self, taken: &mut usize) -> Option<Packet> {
        if let Some(&packet) = self.arrived.get(*taken) {
            *taken += 1;
            return Some(packet);
        }
        self.arrived.clear();
        *taken = 0;
        None
    }

    /// Lets `call` do something with link `id`, and says whether it refused a packet. If it is a station,
    /// it is offered `packet`, or runs.
    #[inline]
    fn with_link(
        &mut self,
        now: Nanos,
        id: u32,
        packet: Option<Packet>,
        call: impl FnOnce(&mut Link<Packet>, &mut Tap<'_, T>),
    ) -> bool {
        let hop = &mut self.hops[id as usize];
        let Port::Link(link) = &mut hop.port else { return self.with_station(now, id, packet) };
        let mut tap = tap!(self, hop, id);
        call(link, &mut tap);
        let refused = tap.refused;
        if self.options.probes && hop.probe.backlog(now, link.backlog()) && hop.member != NONE {
            self.joint.backlog(now, hop.member, link.backlog());
        }
        match link.next_event() {
            Some(at) => self.due.set(id, at),
            None => self.due.clear(id),
        }
        refused
    }

    /// Offers a packet to station `id`, or lets it run, and says whether it refused the packet.
    #[inline(never)]
    fn with_station(&mut self, now: Nanos, id: u32, packet: Option<Packet>) -> bool {
        let hop = &mut self.hops[id as usize];
        let Port::Station(station, medium) = &mut hop.port else {
            unreachable!("called for stations only")
        };
        let medium = medium.map(|medium| &mut self.media[medium as usize]);
        let mut tap = tap!(self, hop, id);
        match packet {
            Some(packet) => drop(station.offer(now, packet, medium, &mut tap)),
            None => station.advance(now, medium, &mut tap),
        }
        let refused = tap.refused;
        let backlog = station.link().backlog();
        if self.options.probes && hop.probe.backlog(now, backlog) && hop.member != NONE {
            self.joint.backlog(now, hop.member, backlog);
        }
        match station.next_event() {
            Some(at) => self.due.set(id, at),
            None => self.due.clear(id),
        }
        refused
    }

    /// Offers a packet to the link at its place.
    #[inline]
    fn enter(&mut self, now: Nanos, mut packet: Packet) {
        let id = self.routes.link(packet.place);
        packet.queued_at = now;
        let refused = self.with_link(now, id, Some(packet), |link, tap| {
            link.offer(now, packet, tap);
        });
        if !refused {
            self.hops[id as usize].probe.runs.accepted();
        }
    }

    /// Moves delivered packets on, each into its next link or to its host.
    #[inline]
    fn settle(&mut self, now: Nanos) {
        let mut next = 0;
        while let Some(&packet) = self.moving.get(next) {
            next += 1;
            let mut packet = packet;
            packet.place += 1;
            if self.routes.link(packet.place) == END {
                self.arrived.push(packet);
            } else {
                self.enter(now, packet);
            }
        }
        self.moving.clear();
    }

    /// The probe of a link.
    pub fn probe(&self, id: usize) -> &LinkProbe {
        &self.hops[id].probe
    }

    /// A link.
    pub fn link(&self, id: usize) -> &Link<Packet> {
        self.hops[id].port.link()
    }

    /// What the transmitters of `links` have done until `now`.
    pub fn work(&self, links: &[usize], now: Nanos) -> Work {
        links.iter().map(|&id| self.hops[id].port.work(now)).sum()
    }

    /// All media.
    pub fn media(&self) -> &[Medium] {
        &self.media
    }

    /// A medium.
    pub fn medium(&self, id: usize) -> &Medium {
        &self.media[id]
    }

    /// What is measured of a bottleneck of several links together.
    pub fn joint(&self) -> &Joint {
        &self.joint
    }

    /// Whether the trace is hashed.
    pub fn traced(&self) -> bool {
        self.options.trace
    }

    /// The warm-up is over.
    pub fn restart(&mut self, now: Nanos) {
        for hop in &mut self.hops {
            hop.probe.restart(now, hop.port.work(now));
        }
        self.joint.restart(now);
    }

    /// Whether any capture lacks packets.
    pub fn captures_cut(&self) -> bool {
        self.hops.iter().filter_map(|hop| hop.capture.as_ref()).any(Capture::is_cut)
    }

    /// The captures, in the order of `links`.
    pub fn take_captures(&mut self, links: &[usize]) -> Vec<Vec<u8>> {
        links
            .iter()
            .map(|&i| self.hops[i].capture.take().map_or_else(Vec::new, Capture::into_bytes))
            .collect()
    }

    /// Compares the books with the links, and with each other.
    ///
    /// # Errors
    /// The first imbalance.
    pub fn audit(&self, plan: &Plan) -> Result<(), Imbalance> {
        let mut inside = Count::default();
        for (hop, link) in self.hops.iter().zip(&plan.links) {
            hop.port.assert_conserved();
            let books = hop.probe.all();
            let queued = hop.port.link().backlog();
            let queued = Count { packets: u64::from(queued.packets), bytes: queued.bytes };
            balance(|| format!("queue of link {}", link.name), books.queued(), queued)?;
            let on_line = books.on_line();
            let found = Count { packets: hop.port.in_flight() as u64, bytes: on_line.bytes };
            balance(|| format!("line of link {}", link.name), on_line, found)?;
            inside += queued + on_line;
        }
        let booked: Count = self.accounts.iter().map(FlowAccount::in_network).sum();
        balance(|| "flows against links".to_owned(), booked, inside)
    }
}
