//! The network: links with their probes, packets on their paths, and the accounts of flows.

use crate::changes::Changes;
use crate::deadlines::Deadlines;
use crate::port;
use crate::probe::{Joint, LinkProbe, Work};
use crate::roles::Role;
use crate::routes::{END, Routes};
use crate::slab::{Body, Class, Packet, Slab};
use crate::watched::Watched;
use sojourn_link::{Event, Link, Medium, Observer, Params, Port};
use sojourn_measure::ledger::balance;
use sojourn_measure::{Count, FlowAccount, Imbalance, Kind, TraceHash};
use sojourn_plan::Plan;
use sojourn_queue::OtherDiscipline;
use sojourn_queue::{DropReason, Headers, Packet as _, Sender, TcpView};
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
    port: Port<Packet>,
    probe: LinkProbe,
    /// Hash of the packet events on the link.
    trace: TraceHash,
    /// Packets that reached the link's far end while another packet was offered to the link. They
    /// move on when the link is run next.
    landed: Vec<Packet>,
    /// How the link's events are processed.
    role: Role,
    /// Number of packets handed over to the next links, if the link forwards and is not deferred.
    handed: u64,
    /// Whether the observer receives the link's events.
    observed: bool,
    /// Index of the link in a bottleneck of several links, or [`NONE`].
    member: u32,
    /// Whether the link's rate may change during the run.
    varies: bool,
}

impl Hop {
    fn work(&self, now: Nanos) -> Work {
        port::work(&self.port, now, self.varies)
    }

    /// Returns the time of the link's next event, or [`NEVER`].
    #[inline]
    fn next_wakeup(&self) -> Nanos {
        let link = match &self.port {
            Port::Link(link) if self.role != Role::default() => link,
            port => return port.next_wakeup().unwrap_or(NEVER),
        };
        match (self.role.deferred, self.role.forwards) {
            (true, true) => NEVER,
            (true, false) => link.next_arrival(),
            (false, _) => link.next_departure(),
        }
    }
}

/// The link is not in a bottleneck of several links.
const NONE: u32 = u32::MAX;

/// The links of a plan, and the packets in them.
#[derive(Clone, Debug)]
pub struct Network<T, W> {
    /// Receives the events on the links chosen by [`Network::observe_link`], and provides the
    /// packet headers on all links.
    pub observer: W,
    hops: Vec<Hop>,
    media: Vec<Medium>,
    /// Numbers of the links whose role is not the default one.
    fused: Vec<u32>,
    /// The planned changes of links; `None` if the plan has none.
    changes: Option<Box<Changes>>,
    /// The measurements of a bottleneck of several links together.
    joint: Joint,
    /// Time of each link's next event.
    pub due: Deadlines,
    /// The paths of packets.
    pub routes: Routes,
    /// Bodies of the packets in the network.
    pub slab: Slab<T>,
    /// Packet accounts, one for each direction of a flow (see [`Network::open_account`]).
    pub accounts: Vec<FlowAccount>,
    /// The monitor's counts, with the indices of `accounts`; empty without a monitor.
    pub watched: Vec<Watched>,
    /// Hash of the packets that hosts received.
    hosts: TraceHash,
    /// Packets that have reached the far end of a link and are about to enter the next one.
    moving: Vec<Packet>,
    /// Packets that have reached their hosts and wait for [`Network::next_arrival`].
    arrived: Vec<Packet>,
    options: Options,
}

/// Options of a network, which stay the same during the run.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the options are independent of each other")]
pub struct Options {
    /// Whether every packet event is hashed.
    pub trace: bool,
    /// Whether links have histograms and averages. Ledgers and accounts exist in any case.
    pub probes: bool,
    /// Whether the times and delays of each flow are recorded for the monitor.
    pub monitor: bool,
    /// Whether the caller may change links by [`Network::set`].
    pub adjustable: bool,
    /// Whether [`Network::fuse`] has an effect. Tests check that results are the same without it.
    pub fused: bool,
}

/// Receives the events of one link, measures them, updates the accounts of flows, and notifies the
/// observer.
struct Tap<'a, T, W> {
    link: u32,
    observed: bool,
    /// Whether delivered packets need no further step, as in [`View`].
    forwards: bool,
    options: Options,
    /// Whether the link dropped a packet on its arrival.
    refused: bool,
    probe: &'a mut LinkProbe,
    observer: &'a mut W,
    slab: &'a mut Slab<T>,
    accounts: &'a mut [FlowAccount],
    watched: &'a mut [Watched],
    trace: &'a mut TraceHash,
    delivered: &'a mut Vec<Packet>,
}

/// How the events on a link, and the packets that arrive at its far end, are processed.
#[derive(Clone, Copy, Debug)]
struct View {
    /// Whether the observer receives the events.
    observed: bool,
    /// Whether packets at the far end need no further step, because they were handed over before
    /// or because the caller takes them.
    forwards: bool,
    /// Whether packets at the far end wait until the link is run, instead of moving on at once.
    lands: bool,
}

/// Returns the kind and the verdict with which an event enters the trace hash; `None` if it does
/// not.
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
        // The packet's next event, on the next link or at its host, implies the delivery.
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
        self.accounts[flow as usize].missing += u64::from(self.slab.release(packet.slot));
    }

    fn lost(&mut self, packet: &Packet) {
        let flow = self.slab.get(packet.slot).flow;
        self.accounts[flow as usize].lost.count(packet.len);
        self.accounts[flow as usize].missing += u64::from(self.slab.release(packet.slot));
    }

    fn duplicated(&mut self, packet: &Packet) {
        let flow = self.slab.get(packet.slot).flow;
        self.accounts[flow as usize].duplicated.count(packet.len);
        self.slab.copy(packet.slot);
    }
}

impl<T: Copy, W: for<'a> Observer<Seen<'a, T>>> Tap<'_, T, W> {
    /// Counts a dropped super-packet as one packet, and notifies the observer of each frame.
    #[cold]
    fn dropped_super(&mut self, at: Nanos, packet: &Packet, reason: DropReason, queued: bool) {
        let frames = self.slab.split(packet);
        if self.observed {
            for frame in &frames {
                let seen = Seen { link: self.link, packet: frame, body: self.slab.get(frame.slot) };
                self.observer.on_event(at, &seen, Event::Dropped { reason, queued });
            }
        }
        for frame in &frames[1..] {
            self.slab.release(frame.slot);
        }
        self.dropped(packet, reason, queued);
    }
}

impl<T: Copy, W: for<'a> Observer<Seen<'a, T>>> Observer<Packet> for Tap<'_, T, W> {
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "each caller passes one event, so only its branch remains"
    )]
    fn on_event(&mut self, at: Nanos, packet: &Packet, event: Event) {
        if self.options.trace
            && let Some((kind, verdict)) = traced(event)
        {
            self.trace.add(at, self.link, kind, u64::from(packet.slot), packet.len, verdict);
        }
        if let Event::Dropped { reason, queued } = event
            && packet.is_super()
        {
            return self.dropped_super(at, packet, reason, queued);
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

    #[cold]
    fn split(&mut self, packet: Packet) -> Vec<Packet> {
        let frames = self.slab.split(&packet);
        let flow = self.slab.get(packet.slot).flow;
        self.accounts[flow as usize].sent.packets += frames.len() as u64 - 1;
        frames
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
    /// Returns the network of a plan, without packets.
    pub fn new(plan: &Plan, seed: u64, options: Options, observer: W) -> Self {
        let mut hops: Vec<_> = plan
            .links
            .iter()
            .map(|link| Hop {
                port: port::port(link, seed),
                probe: LinkProbe::new(EPOCH),
                trace: TraceHash::new(),
                landed: Vec::new(),
                role: Role::default(),
                handed: 0,
                observed: false,
                member: NONE,
                // On a shared medium the available capacity depends on other stations, so the share
                // of busy time is used instead.
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

    /// Adds the account of one direction of a flow, and returns its index.
    pub fn open_account(&mut self) -> u32 {
        self.accounts.push(FlowAccount::default());
        if self.options.monitor {
            self.watched.push(Watched::default());
        }
        (self.accounts.len() - 1) as u32
    }

    /// Returns the time of the next planned change, at which [`Network::change_links`] must be
    /// called; `None` without a further change.
    pub fn next_change(&self) -> Option<Nanos> {
        self.changes.as_ref().and_then(|changes| changes.next_at())
    }

    /// Returns the probe of a link.
    pub fn probe(&self, id: usize) -> &LinkProbe {
        &self.hops[id].probe
    }

    /// Returns a link.
    pub fn link(&self, id: usize) -> &Link<Packet> {
        self.hops[id].port.link()
    }

    /// Returns the work of a link's transmitter until `now`.
    pub fn work(&self, id: usize, now: Nanos) -> Work {
        self.hops[id].work(now)
    }

    /// Returns all shared media.
    pub fn media(&self) -> &[Medium] {
        &self.media
    }

    /// Returns a shared medium.
    pub fn medium(&self, id: usize) -> &Medium {
        &self.media[id]
    }

    /// Returns the measurements of a bottleneck of several links together.
    pub fn joint(&self) -> &Joint {
        &self.joint
    }

    /// Returns the hash of all packet events so far: of each link in the plan's order, then of the
    /// hosts. It is 0 if packet events are not hashed.
    pub fn trace_hash(&self) -> u128 {
        if !self.options.trace {
            return 0;
        }
        let places = self.hops.iter().map(|hop| hop.trace).chain([self.hosts]);
        TraceHash::of_places(places).value()
    }

    /// Returns the number of events on links so far. An event is the arrival of a packet at a
    /// link's far end, or the start of transmission of a packet that had waited.
    pub fn events(&self) -> u64 {
        let events = |hop: &Hop| hop.port.stats().delivered.packets + hop.probe.waited;
        self.hops.iter().map(events).sum()
    }

    /// Begins the measurements of all links anew, at the end of the warm-up.
    pub fn restart(&mut self, now: Nanos) {
        for hop in &mut self.hops {
            hop.probe.restart(now, *hop.port.stats(), hop.work(now));
            hop.port.restart();
        }
        self.joint.restart(now);
    }

    /// Audits the ledgers: compares each link's ledger with the packets in its queue and on its
    /// line, and the accounts of flows with the ledgers of all links.
    ///
    /// # Errors
    /// If the accounts of flows differ from the ledgers of links.
    ///
    /// # Panics
    /// If a link's ledger differs from the contents of its queue and line.
    pub fn audit(&self) -> Result<(), Imbalance> {
        let mut inside = Count::default();
        for hop in &self.hops {
            hop.port.assert_conserved();
            let ledger = hop.port.stats();
            inside += ledger.queued() + ledger.on_line();
            hop.landed.iter().for_each(|packet| inside.count(packet.len));
        }
        let booked: Count = self.accounts.iter().map(FlowAccount::in_network).sum();
        balance(|| "flows against links".to_owned(), booked, inside)
    }
}

impl<T: Copy, W: for<'a> Observer<Seen<'a, T>>> Network<T, W> {
    /// Makes the observer receive the events on a link from `now` on. From then on all links have
    /// events of their own. The caller has processed all events before `now`.
    pub fn observe_link(&mut self, now: Nanos, id: usize) {
        self.hops[id].observed = true;
        self.split(now);
    }

    /// Sends a packet from its host into the network.
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

    /// Sends the frames of a super-packet, with their lengths, as one packet from their host.
    #[cold]
    pub fn send_super(&mut self, now: Nanos, packet: Packet, frames: &[(u32, Body<T>)]) {
        let flow = frames[0].1.flow as usize;
        let packet = self.slab.merge(packet, frames);
        self.accounts[flow].sent.count(packet.len);
        if let Some(watched) = self.watched.get_mut(flow) {
            watched.sent(now);
        }
        self.enter(now, packet);
        self.settle(now);
    }

    /// Processes the events of link `id`, which is due at `now`.
    #[inline]
    pub fn run(&mut self, now: Nanos, id: u32) {
        if self.hops[id as usize].role.deferred {
            return self.run_deferred(now, id);
        }
        if !self.hops[id as usize].landed.is_empty() {
            self.moving.append(&mut self.hops[id as usize].landed);
        }
        self.with_port(now, id, false, |port, media, tap| port.poll(now, media, tap));
        self.settle(now);
    }

    /// Makes the planned changes of links that are due up to `now`, each at its own time. Events
    /// due before a change must have been processed; events due at the same time must follow it.
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
        debug_assert!(self.moving.is_empty(), "a packet was due before {at}");
    }

    /// Gives a link new parameters at `now`, except its queue (see [`Link::set_wire`]).
    pub fn set_wire(&mut self, now: Nanos, id: u32, params: &Params) {
        self.change(now, id, params);
        // The change may have moved the link's next event.
        self.run(now, id);
    }

    /// Gives a link and its queue new parameters at `now`.
    ///
    /// # Errors
    /// If `params` have another queue discipline; the link stays unchanged then.
    pub fn set(&mut self, now: Nanos, id: u32, params: &Params) -> Result<(), OtherDiscipline> {
        let mut changed = Ok(());
        self.with_port(now, id, false, |port, media, tap| {
            changed = port.change(now, params, media, tap);
        });
        // The change may have moved the link's next event or shortened its queue.
        self.run(now, id);
        changed
    }

    /// Passes a packet to the host that it has reached, and returns the packet's body.
    #[inline]
    pub fn receive(&mut self, now: Nanos, packet: &Packet) -> Body<T> {
        let body = *self.slab.get(packet.slot);
        let account = &mut self.accounts[body.flow as usize];
        let kind = if packet.is_damaged() {
            // The host discards the packet, so the flow's account counts it as lost.
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
        self.accounts[body.flow as usize].missing += u64::from(self.slab.release(packet.slot));
        body
    }

    /// Returns the next packet that has reached its host, in the order of arrival. `taken` counts
    /// the packets returned since the last `None`; the caller starts with 0.
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

    /// Calls `call` with the port of link `id`, and updates the link's next event. Returns whether
    /// the link dropped a packet on its arrival. If `lands`, packets that reach the far end wait
    /// until the link is run next; otherwise they move on at once.
    #[inline]
    fn with_port(
        &mut self,
        now: Nanos,
        id: u32,
        lands: bool,
        call: impl FnOnce(&mut Port<Packet>, &mut [Medium], &mut Tap<'_, T, W>),
    ) -> bool {
        let refused = self.call(now, id, lands, call);
        let hop = &self.hops[id as usize];
        let next = if hop.landed.is_empty() { hop.next_wakeup() } else { now };
        self.due.set(id, next);
        if hop.role.forwards && !hop.role.deferred {
            self.hand_over(now, id);
        }
        refused
    }

    /// Does the same as [`Self::with_port`], but does not update the link's next event.
    #[inline]
    fn call(
        &mut self,
        now: Nanos,
        id: u32,
        lands: bool,
        call: impl FnOnce(&mut Port<Packet>, &mut [Medium], &mut Tap<'_, T, W>),
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

    /// Calls `call` with the port of link `id` and with the [`Tap`] that records the link's events.
    #[inline]
    fn tapped<R>(
        &mut self,
        id: u32,
        view: View,
        call: impl FnOnce(&mut Port<Packet>, &mut [Medium], &mut Tap<'_, T, W>) -> R,
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

    /// Offers a packet to the link at the packet's position on its path.
    #[inline]
    fn enter(&mut self, now: Nanos, mut packet: Packet) {
        let id = self.routes.link(packet.place);
        packet.queued_at = now;
        if self.hops[id as usize].role.deferred {
            return self.bring(now, id, packet);
        }
        let refused = self.with_port(now, id, true, |port, media, tap| {
            port.send(now, packet, media, tap);
        });
        if !refused {
            self.hops[id as usize].probe.runs.accepted();
        }
    }

    /// Moves a delivered packet into its next link or to its host.
    #[inline]
    fn move_on(&mut self, now: Nanos, mut packet: Packet) {
        packet.place += 1;
        if self.routes.link(packet.place) == END {
            self.arrived.push(packet);
        } else {
            self.enter(now, packet);
        }
    }

    /// Moves all delivered packets, each into its next link or to its host.
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
