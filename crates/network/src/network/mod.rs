//! The network: links with their probes, packets on their paths, the books.

use crate::changes::Changes;
use crate::deadlines::Deadlines;
use crate::port::Port;
use crate::probe::{Joint, LinkProbe, Work};
use crate::roles::Role;
use crate::routes::{END, Routes};
use crate::slab::{Body, Class, Packet, Slab};
use crate::watched::Watched;
use sojourn_link::{Event, Link, Medium, Observer, Params};
use sojourn_measure::ledger::balance;
use sojourn_measure::{Count, FlowAccount, Imbalance, Kind, TraceHash};
use sojourn_plan::Plan;
use sojourn_queue::OtherDiscipline;
use sojourn_queue::{DropReason, Headers, Sender, TcpView};
use sojourn_units::{EPOCH, NEVER, Nanos};

mod fused;

/// A packet on a link, as observers of the network see it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a, T> {
    /// Number of the link.
    pub link: u32,
    /// The packet.
    pub packet: &'a Packet,
    /// Its body.
    pub body: &'a Body<T>,
}

/// A link with its probe.
#[derive(Clone, Debug)]
struct Hop {
    port: Port,
    probe: LinkProbe,
    /// The hash of what happened on it.
    trace: TraceHash,
    /// Packets that reached its far end when another one came to it, and move on in its own turn.
    landed: Vec<Packet>,
    /// How its events are processed.
    role: Role,
    /// Packets that it has handed over, if it forwards and is not deferred.
    handed: u64,
    /// Whether the observer sees it.
    observed: bool,
    /// Its number in a bottleneck of several links, or [`NONE`].
    member: u32,
    /// Its rate is not the same throughout.
    varies: bool,
}

impl Hop {
    fn work(&self, now: Nanos) -> Work {
        self.port.work(now, self.varies)
    }

    /// When it has its next event.
    #[inline]
    fn next_event(&self) -> Nanos {
        let link = match &self.port {
            Port::Link(link) if self.role != Role::default() => link,
            port => return port.next_event().unwrap_or(NEVER),
        };
        match (self.role.deferred, self.role.forwards) {
            (true, true) => NEVER,
            (true, false) => link.next_arrival(),
            (false, _) => link.next_departure(),
        }
    }
}

/// Not one of several.
const NONE: u32 = u32::MAX;

/// Links, and the packets in them.
#[derive(Clone, Debug)]
pub struct Network<T, W> {
    /// Sees the events on the links chosen by [`Network::observe_link`], and reads TCP headers on all.
    pub observer: W,
    hops: Vec<Hop>,
    media: Vec<Medium>,
    /// Links with a role.
    fused: Vec<u32>,
    /// Of links that change, if there are any.
    changes: Option<Box<Changes>>,
    /// The measurements of a bottleneck of several links together.
    joint: Joint,
    /// When each link is due.
    pub due: Deadlines,
    /// Paths.
    pub routes: Routes,
    /// Bodies of the packets in the network.
    pub slab: Slab<T>,
    /// The books of each flow, by direction.
    pub accounts: Vec<FlowAccount>,
    /// The monitor's counts, by direction; empty without a monitor.
    pub watched: Vec<Watched>,
    /// The hash of what hosts received.
    hosts: TraceHash,
    /// Packets on their way into their next link.
    moving: Vec<Packet>,
    /// Packets that have reached their hosts.
    arrived: Vec<Packet>,
    options: Options,
}

/// The measurements, fixed for the run.
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
    /// Links may cost no event of their own. That changes no result; without it there is something to compare with.
    pub fused: bool,
}

/// Receives the events of one link: measures, keeps the accounts of flows, and notifies the
/// observer.
struct Tap<'a, T, W> {
    link: u32,
    observed: bool,
    /// Delivered packets were handed over before.
    forwards: bool,
    options: Options,
    refused: bool,
    probe: &'a mut LinkProbe,
    observer: &'a mut W,
    slab: &'a mut Slab<T>,
    accounts: &'a mut [FlowAccount],
    watched: &'a mut [Watched],
    trace: &'a mut TraceHash,
    delivered: &'a mut Vec<Packet>,
}

/// What becomes of the events on a link and of the packets that arrive at its far end.
#[derive(Clone, Copy, Debug)]
struct View {
    /// The observer sees the events.
    observed: bool,
    /// Arrivals need no step: the packets were handed over before, or the caller takes them.
    forwards: bool,
    /// Packets that arrive move on in the link's own turn, not at once.
    lands: bool,
}

/// How the trace hash has an event, and its verdict.
#[inline]
fn traced(event: Event) -> Option<(Kind, u8)> {
    let plain = |kind| Some((kind, 0));
    match event {
        Event::Offered => plain(Kind::Offered),
        Event::Dropped { reason, queued } => {
            Some((Kind::Dropped, reason as u8 * 2 + u8::from(queued)))
        }
        Event::Marked(reason) => Some((Kind::Marked, reason as u8)),
        Event::Departed => plain(Kind::Departed),
        Event::Abandoned => plain(Kind::Abandoned),
        Event::Lost => plain(Kind::Lost),
        Event::Duplicated => plain(Kind::Duplicated),
        Event::Corrupted(_) => plain(Kind::Corrupted),
        // That a packet has left a link goes without saying.
        Event::Delivered => None,
    }
}

impl<T: Copy, W> Tap<'_, T, W> {
    #[inline]
    fn departed(&mut self, at: Nanos, packet: &Packet) {
        self.probe.udp.departed += u64::from(packet.class() == Class::Udp);
        self.probe.waited += u64::from(at > packet.queued_at);
        if self.options.probes {
            let sojourn = at - packet.queued_at;
            self.probe.sojourn.record(sojourn);
            self.probe.last_sojourn = sojourn;
            self.probe.last_departed = at;
        }
    }

    fn dropped(&mut self, packet: &Packet, reason: DropReason, queued: bool) {
        self.refused |= !queued;
        self.probe.udp.dropped += u64::from(packet.class() == Class::Udp);
        self.probe.runs.dropped();
        let flow = self.slab.get(packet.slot).flow;
        self.accounts[flow as usize].dropped.count(packet.len);
        if let Some(watched) = self.watched.get_mut(flow as usize) {
            watched.dropped(reason);
        }
        self.slab.release(packet.slot);
    }

    fn lost(&mut self, packet: &Packet) {
        let flow = self.slab.get(packet.slot).flow;
        self.accounts[flow as usize].lost.count(packet.len);
        self.slab.release(packet.slot);
    }

    fn duplicated(&mut self, packet: &Packet) {
        let flow = self.slab.get(packet.slot).flow;
        self.accounts[flow as usize].duplicated.count(packet.len);
        self.slab.copy(packet.slot);
    }
}

impl<T: Copy, W: for<'a> Observer<Seen<'a, T>>> Observer<Packet> for Tap<'_, T, W> {
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "each caller has one event, whose branch alone remains"
    )]
    fn on_event(&mut self, at: Nanos, packet: &Packet, event: Event) {
        if self.options.trace
            && let Some((kind, verdict)) = traced(event)
        {
            self.trace.add(at, self.link, kind, u64::from(packet.slot), packet.len, verdict);
        }
        if self.observed {
            let seen = Seen { link: self.link, packet, body: self.slab.get(packet.slot) };
            self.observer.on_event(at, &seen, event);
        }
        match event {
            Event::Offered | Event::Marked(_) | Event::Corrupted(_) => {}
            Event::Departed => self.departed(at, packet),
            Event::Dropped { reason, queued } => self.dropped(packet, reason, queued),
            Event::Abandoned | Event::Lost => self.lost(packet),
            Event::Duplicated => self.duplicated(packet),
            Event::Delivered if self.forwards => {}
            Event::Delivered => self.delivered.push(*packet),
        }
    }

    fn tcp(&self, packet: &Packet) -> Option<TcpView> {
        let body = self.slab.get(packet.slot);
        self.observer.tcp(&Seen { link: self.link, packet, body })
    }

    fn headers(&self, packet: &Packet) -> Headers {
        let body = self.slab.get(packet.slot);
        self.observer.headers(&Seen { link: self.link, packet, body })
    }

    #[cold]
    #[inline(never)]
    fn sender(&self, packet: &Packet) -> Sender {
        let body = self.slab.get(packet.slot);
        self.observer.sender(&Seen { link: self.link, packet, body })
    }
}

impl<T, W> Network<T, W> {
    /// The links of a plan, empty.
    pub fn new(plan: &Plan, seed: u64, options: Options, observer: W) -> Self {
        let mut hops: Vec<_> = plan
            .links
            .iter()
            .map(|link| Hop {
                port: Port::new(link, seed),
                probe: LinkProbe::new(EPOCH),
                trace: TraceHash::new(),
                landed: Vec::new(),
                role: Role::default(),
                handed: 0,
                observed: false,
                member: NONE,
                // Capacity that other stations on a shared medium leave is not its own.
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
            observer,
            changes: changing.then(|| Box::new(Changes::new(plan))),
            due: Deadlines::new(hops.len() as u32),
            hops,
            fused: Vec::new(),
            media: plan.media.iter().map(|medium| Medium::new(medium.access)).collect(),
            joint: Joint::new(EPOCH, bottleneck.len()),
            routes: Routes::new(plan),
            slab: Slab::default(),
            accounts: Vec::new(),
            watched: Vec::new(),
            hosts: TraceHash::new(),
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

    /// When links change next, if they do: [`Network::change_links`] is to be called then.
    pub fn next_change(&self) -> Option<Nanos> {
        self.changes.as_ref().and_then(|changes| changes.next_at())
    }

    /// The probe of a link.
    pub fn probe(&self, id: usize) -> &LinkProbe {
        &self.hops[id].probe
    }

    /// A link.
    pub fn link(&self, id: usize) -> &Link<Packet> {
        self.hops[id].port.link()
    }

    /// Returns the work of a link's transmitter until `now`.
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

    /// Returns the measurements of a bottleneck of several links together.
    pub fn joint(&self) -> &Joint {
        &self.joint
    }

    /// The hash of all packet events so far: of each link's, in the plan's order, and of hosts'. 0 if they are not hashed.
    pub fn trace_hash(&self) -> u128 {
        if !self.options.trace {
            return 0;
        }
        let places = self.hops.iter().map(|hop| hop.trace).chain([self.hosts]);
        TraceHash::of_places(places).value()
    }

    /// Events on links so far: packets that reached a far end, and transmissions of packets that had waited.
    pub fn events(&self) -> u64 {
        let events = |hop: &Hop| hop.port.link().ledger().delivered.packets + hop.probe.waited;
        self.hops.iter().map(events).sum()
    }

    /// The warm-up is over.
    pub fn restart(&mut self, now: Nanos) {
        for hop in &mut self.hops {
            hop.probe.restart(now, *hop.port.link().ledger(), hop.work(now));
        }
        self.joint.restart(now);
    }

    /// Audits the ledgers: of each link against its queue and its line, and of flows against links.
    ///
    /// # Errors
    /// If flows and links differ.
    ///
    /// # Panics
    /// If a link's ledger is not what its queue and line hold.
    pub fn audit(&self) -> Result<(), Imbalance> {
        let mut inside = Count::default();
        for hop in &self.hops {
            hop.port.assert_conserved();
            let ledger = hop.port.link().ledger();
            inside += ledger.queued() + ledger.on_line();
            hop.landed.iter().for_each(|packet| inside.count(packet.len));
        }
        let booked: Count = self.accounts.iter().map(FlowAccount::in_network).sum();
        balance(|| "flows against links".to_owned(), booked, inside)
    }
}

impl<T: Copy, W: for<'a> Observer<Seen<'a, T>>> Network<T, W> {
    /// Lets the observer see the events on a link. All links have events of their own from then on; those before `now`
    /// have been processed.
    pub fn observe_link(&mut self, now: Nanos, id: usize) {
        self.hops[id].observed = true;
        self.split(now);
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
        if self.hops[id as usize].role.deferred {
            return self.run_deferred(now, id);
        }
        if !self.hops[id as usize].landed.is_empty() {
            self.moving.append(&mut self.hops[id as usize].landed);
        }
        self.with_port(now, id, false, |port, media, tap| port.advance(now, media, tap));
        self.settle(now);
    }

    /// Changes the links whose changes are due up to `now`, each at its own time. Events due before
    /// a change must have been run; events due at the same time find the changed link.
    #[cold]
    pub fn change_links(&mut self, now: Nanos) {
        let Some(mut changes) = self.changes.take() else { return };
        changes.take_due(now, |at, id, params| self.change(at, id, params));
        self.changes = Some(changes);
    }

    fn change(&mut self, at: Nanos, id: u32, params: &Params) {
        self.with_port(at, id, false, |port, media, tap| {
            port.set_wire(at, params, media, tap);
        });
        debug_assert!(self.moving.is_empty(), "something was due before {at}");
    }

    /// Gives a link new parameters at `now`, its queue's too.
    ///
    /// # Errors
    /// If the queue is to become another discipline; the link is as it was then.
    pub fn set(&mut self, now: Nanos, id: u32, params: &Params) -> Result<(), OtherDiscipline> {
        let mut changed = Ok(());
        self.with_port(now, id, false, |port, media, tap| {
            changed = port.change(now, params, media, tap);
        });
        // Its next event may be another one now, and its backlog may have been cut.
        self.run(now, id);
        changed
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
            self.hosts.add(now, body.endpoint, kind, body.number, packet.len, packet.tos & 3);
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

    /// Lets `call` do something with link `id`, and says whether it refused a packet. What reaches the far end moves on
    /// at once if it is the link's turn, and else it `lands`.
    #[inline]
    fn with_port(
        &mut self,
        now: Nanos,
        id: u32,
        lands: bool,
        call: impl FnOnce(&mut Port, &mut [Medium], &mut Tap<'_, T, W>),
    ) -> bool {
        let refused = self.call(now, id, lands, call);
        let hop = &self.hops[id as usize];
        let next = if hop.landed.is_empty() { hop.next_event() } else { now };
        self.due.set(id, next);
        if hop.role.forwards && !hop.role.deferred {
            self.hand_over(now, id);
        }
        refused
    }

    /// As [`Self::with_port`], but leaves the link's next event as it was.
    #[inline]
    fn call(
        &mut self,
        now: Nanos,
        id: u32,
        lands: bool,
        call: impl FnOnce(&mut Port, &mut [Medium], &mut Tap<'_, T, W>),
    ) -> bool {
        let hop = &self.hops[id as usize];
        let view = View { observed: hop.observed, forwards: hop.role.forwards, lands };
        let refused = self.tapped(id, view, |port, media, tap| {
            call(port, media, tap);
            tap.refused
        });
        let hop = &mut self.hops[id as usize];
        let backlog = hop.port.backlog();
        if self.options.probes && hop.probe.backlog(now, backlog) && hop.member != NONE {
            self.joint.backlog(now, hop.member, backlog);
        }
        refused
    }

    /// Lets `call` do something with link `id`, whose events the network records.
    #[inline]
    fn tapped<R>(
        &mut self,
        id: u32,
        view: View,
        call: impl FnOnce(&mut Port, &mut [Medium], &mut Tap<'_, T, W>) -> R,
    ) -> R {
        let hop = &mut self.hops[id as usize];
        let mut tap = Tap {
            link: id,
            observed: view.observed,
            forwards: view.forwards,
            options: self.options,
            refused: false,
            probe: &mut hop.probe,
            observer: &mut self.observer,
            slab: &mut self.slab,
            accounts: &mut self.accounts,
            watched: &mut self.watched,
            trace: &mut hop.trace,
            delivered: if view.lands { &mut hop.landed } else { &mut self.moving },
        };
        call(&mut hop.port, &mut self.media, &mut tap)
    }

    /// Offers a packet to the link at its place.
    #[inline]
    fn enter(&mut self, now: Nanos, mut packet: Packet) {
        let id = self.routes.link(packet.place);
        packet.queued_at = now;
        if self.hops[id as usize].role.deferred {
            return self.bring(now, id, packet);
        }
        let refused =
            self.with_port(now, id, true, |port, media, tap| port.offer(now, packet, media, tap));
        if !refused {
            self.hops[id as usize].probe.runs.accepted();
        }
    }

    /// Moves a delivered packet on, into its next link or to its host.
    #[inline]
    fn move_on(&mut self, now: Nanos, mut packet: Packet) {
        packet.place += 1;
        if self.routes.link(packet.place) == END {
            self.arrived.push(packet);
        } else {
            self.enter(now, packet);
        }
    }

    /// Moves delivered packets on, each into its next link or to its host.
    #[inline]
    fn settle(&mut self, now: Nanos) {
        let mut next = 0;
        while let Some(&packet) = self.moving.get(next) {
            next += 1;
            self.move_on(now, packet);
        }
        self.moving.clear();
    }
}
