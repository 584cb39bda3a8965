//! The network: links with their probes, packets on their paths, the books.

use crate::changes::Changes;
use crate::deadlines::Deadlines;
use crate::port::Port;
use crate::probe::{Joint, LinkProbe, Work};
use crate::routes::{END, Routes};
use crate::slab::{Body, Packet, Slab};
use crate::watched::Watched;
use sojourn_link::{Backlog, Link, Medium, Params, Sink};
use sojourn_measure::ledger::balance;
use sojourn_measure::{Count, FlowAccount, Imbalance, Kind, TraceHash};
use sojourn_plan::Plan;
use sojourn_queue::params::OtherDiscipline;
use sojourn_queue::{DropReason, MarkReason, TcpView};
use sojourn_units::{EPOCH, Nanos};

/// Sees what happens on links that are watched. The books are kept without it.
pub trait Witness<T> {
    /// A packet came to a link's queue.
    fn offered(&mut self, _at: Nanos, _link: u32, _packet: &Packet, _body: &Body<T>) {}

    /// A packet left a link's queue.
    fn departed(&mut self, _at: Nanos, _link: u32, _packet: &Packet, _body: &Body<T>) {}

    /// A link's queue set CE on a packet.
    fn marked(&mut self, _at: Nanos, _link: u32, _packet: &Packet, _body: &Body<T>) {}

    /// A link's queue dropped a packet, which had been `queued` or was refused.
    fn dropped(
        &mut self,
        _at: Nanos,
        _link: u32,
        _packet: &Packet,
        _body: &Body<T>,
        _reason: DropReason,
        _queued: bool,
    ) {
    }

    /// A link's line will lose a packet.
    fn lost(&mut self, _at: Nanos, _link: u32, _packet: &Packet, _body: &Body<T>) {}

    /// What can be read of a packet's TCP header, if it is TCP; asked on any link.
    fn tcp(&self, packet: &Packet, body: &Body<T>) -> Option<TcpView>;
}

/// A link with its probe.
#[derive(Clone, Debug)]
struct Hop {
    port: Port,
    probe: LinkProbe,
    /// Whether the witness sees it.
    witnessed: bool,
    /// Its number in a bottleneck of several links, or [`NONE`].
    member: u32,
    /// Its rate is not the same throughout.
    varies: bool,
}

impl Hop {
    fn work(&self, now: Nanos) -> Work {
        self.port.work(now, self.varies)
    }
}

/// Not one of several.
const NONE: u32 = u32::MAX;

/// Links, and the packets in them.
#[derive(Clone, Debug)]
pub struct Network<T, W> {
    /// Who sees what happens on the links chosen by [`Network::witness_link`].
    pub witness: W,
    hops: Vec<Hop>,
    media: Vec<Medium>,
    /// Of links that change, if there are any.
    changes: Option<Box<Changes>>,
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
#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own to have or not")]
pub struct Options {
    /// Hash every packet event.
    pub trace: bool,
    /// Histograms and averages at the links; the books are always kept.
    pub probes: bool,
    /// Times and delays of each flow for the monitor.
    pub monitor: bool,
    /// Links may be changed by [`Network::set`].
    pub adjustable: bool,
}

/// Takes down what a link does.
struct Tap<'a, T, W> {
    link: u32,
    witnessed: bool,
    options: Options,
    refused: bool,
    probe: &'a mut LinkProbe,
    witness: &'a mut W,
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
            witnessed: $hop.witnessed,
            witness: &mut $net.witness,
            slab: &mut $net.slab,
            accounts: &mut $net.accounts,
            watched: &mut $net.watched,
            trace: &mut $net.trace,
            delivered: &mut $net.moving,
        }
    };
}

impl<T, W> Tap<'_, T, W> {
    #[inline]
    fn trace(&mut self, at: Nanos, kind: Kind, packet: &Packet, verdict: u8) {
        if self.options.trace {
            self.trace.add(at, self.link, kind, u64::from(packet.slot), packet.len, verdict);
        }
    }
}

impl<T: Copy, W: Witness<T>> Sink<Packet> for Tap<'_, T, W> {
    #[inline]
    fn offered(&mut self, at: Nanos, packet: &Packet, _before: Backlog) {
        self.probe.account[packet.class() as usize].arrived.count(packet.len);
        self.trace(at, Kind::Offered, packet, 0);
        if self.witnessed {
            self.witness.offered(at, self.link, packet, self.slab.get(packet.slot));
        }
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
        if self.witnessed {
            self.witness.departed(at, self.link, packet, self.slab.get(packet.slot));
        }
    }

    fn dropped(&mut self, at: Nanos, packet: Packet, reason: DropReason, queued: bool) {
        self.refused |= !queued;
        self.probe.account[packet.class() as usize].dropped[reason as usize].count(packet.len);
        self.probe.runs.dropped();
        self.trace(at, Kind::Dropped, &packet, reason as u8 * 2 + u8::from(queued));
        let body = self.slab.get(packet.slot);
        if self.witnessed {
            self.witness.dropped(at, self.link, &packet, body, reason, queued);
        }
        let flow = body.flow;
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
        if self.witnessed {
            self.witness.marked(at, self.link, packet, self.slab.get(packet.slot));
        }
    }

    fn lost(&mut self, at: Nanos, packet: Packet) {
        self.probe.account[packet.class() as usize].lost.count(packet.len);
        self.trace(at, Kind::Lost, &packet, 0);
        let body = self.slab.get(packet.slot);
        if self.witnessed {
            self.witness.lost(at, self.link, &packet, body);
        }
        let flow = body.flow;
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
        self.witness.tcp(packet, self.slab.get(packet.slot))
    }

    #[inline]
    fn delivered(&mut self, _at: Nanos, packet: Packet) {
        self.probe.account[packet.class() as usize].delivered.count(packet.len);
        self.delivered.push(packet);
    }
}

impl<T: Copy, W: Witness<T>> Network<T, W> {
    /// The links of a plan, empty.
    pub fn new(plan: &Plan, seed: u64, options: Options, witness: W) -> Self {
        let mut hops: Vec<_> = plan
            .links
            .iter()
            .map(|link| Hop {
                port: Port::new(link, seed),
                probe: LinkProbe::new(EPOCH),
                witnessed: false,
                member: NONE,
                // What the others on a shared medium leave is no capacity of its own.
                varies: link.medium.is_none() && (link.varies() || options.adjustable),
            })
            .collect();
        let bottleneck = &plan.observe.bottleneck.links;
        if bottleneck.len() > 1 {
            for (member, &link) in bottleneck.iter().enumerate() {
                hops[link].member = member as u32;
            }
        }
        let changing = plan.links.iter().any(|link| !link.changes.is_empty());
        Self {
            witness,
            changes: changing.then(|| Box::new(Changes::new(plan))),
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

    /// When links change next, if they do: [`Network::change_links`] is to be called then.
    pub fn next_change(&self) -> Option<Nanos> {
        self.changes.as_ref().and_then(|changes| changes.next_at())
    }

    /// Changes the links that change up to `now`, each at its own time. What is due before a change must
    /// have been run; what is due at the same time finds the link as it is afterwards.
    #[cold]
    pub fn change_links(&mut self, now: Nanos) {
        let Some(mut changes) = self.changes.take() else { return };
        changes.take_due(now, |at, id, params| self.change(at, id, params));
        self.changes = Some(changes);
    }

    fn change(&mut self, at: Nanos, id: u32, params: &Params) {
        let hop = &mut self.hops[id as usize];
        let mut tap = tap!(self, hop, id);
        match &mut hop.port {
            Port::Link(link) => link.set_wire(at, params, &mut tap),
            Port::Station(station, medium) => {
                let medium = medium.map(|medium| &mut self.media[medium as usize]);
                station.set_wire(at, params, medium, &mut tap);
            }
        }
        debug_assert!(self.moving.is_empty(), "something was due before {at}");
    }

    /// Gives a link new parameters at `now`, its queue's too.
    ///
    /// # Errors
    /// If the queue is to become another discipline; the link is as it was then.
    pub fn set(&mut self, now: Nanos, id: u32, params: &Params) -> Result<(), OtherDiscipline> {
        let hop = &mut self.hops[id as usize];
        let mut tap = tap!(self, hop, id);
        match &mut hop.port {
            Port::Link(link) => link.change(now, params, &mut tap)?,
            Port::Station(station, medium) => {
                let medium = medium.map(|medium| &mut self.media[medium as usize]);
                station.change(now, params, medium, &mut tap)?;
            }
        }
        // Its next event may be another one now, and its backlog may have been cut.
        self.run(now, id);
        Ok(())
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
        call: impl FnOnce(&mut Link<Packet>, &mut Tap<'_, T, W>),
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

    /// What a link's transmitter has done until `now`.
    pub fn work(&self, id: usize, now: Nanos) -> Work {
        self.hops[id].work(now)
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
            hop.probe.restart(now, hop.work(now));
        }
        self.joint.restart(now);
    }

    /// Lets the witness see what happens on a link.
    pub fn witness_link(&mut self, id: usize) {
        self.hops[id].witnessed = true;
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
