//! The event loop: virtual time, and who acts next.
//!
//! # Order of events
//! By time, then
//! 1. the clock: end of the warm-up, samples of time series, audits, changes of links in the order of
//!    the plan, readings of queues by balancers, the end of the run;
//! 2. links, by their number in the plan: what arrives at a far end enters the next link, or is
//!    taken by its host, within the same event, and what the host sends in answer follows at once;
//! 3. timers: flows in the order of the plan (groups, then flows in them), the store, then
//!    connections by slot.
//!
//! Nothing else decides, so a run is a function of plan and seed.

use crate::balance::{Balanced, Desk};
use crate::captures::Captures;
use crate::channel::Channels;
use crate::flow::{Driver, Flow, Packets};
use crate::load::{Cargo, Datagram};
use crate::monitor::Monitor;
use crate::progress::{Control, Progress, RunError};
use crate::series::Series;
use crate::store::Store;
use crate::stream::Stream;
use crate::tcp_host::Connections;
use sojourn_link::Medium;
use sojourn_measure::{Imbalance, Moments};
use sojourn_network::Deadlines;
use sojourn_network::{Body, Class, Copies, GroupProbe, Packet, Tally, node};
use sojourn_network::{Network, Options};
use sojourn_plan::{Plan, PlanError, Transport};
use sojourn_traffic::Receiver;
use sojourn_traffic::{App, UDP_HEADERS};
use sojourn_units::{EPOCH, Nanos};

/// Later than any event.
pub const NEVER: Nanos = Nanos::MAX;

/// Audits of the books in a run, besides the last one at its end.
const AUDITS: u64 = 16;
/// Calls of `progress` by simulated time.
const STEPS: u64 = 200;
/// ... and by events, for runs whose steps are long.
const EVENTS_A_STEP: u64 = 1 << 22;

/// A run in progress.
pub struct Engine<'a> {
    /// What is run.
    pub plan: &'a Plan,
    pub(crate) seed: u64,
    /// The time.
    pub now: Nanos,
    /// Events so far.
    pub events: u64,
    /// Links and packets.
    pub net: Network<Cargo, Captures>,
    /// Deadlines of flows, then of connections.
    pub timers: Deadlines,
    /// All flows, group by group.
    pub flows: Vec<Flow>,
    /// Balancers.
    pub desks: Vec<Desk>,
    /// What is measured of each group.
    pub groups: Vec<GroupProbe>,
    /// TCP connections.
    pub connections: Connections,
    /// Those of them that carry messages.
    pub(crate) channels: Channels,
    /// The store; taken out while it acts.
    pub(crate) store: Option<Box<Store>>,
    /// Time series.
    pub series: Series,
    /// Counts of each flow over time.
    pub monitor: Monitor,
    /// Since when things are measured.
    pub since: Nanos,
    /// The media as they were then.
    pub(crate) media_before: Vec<Medium>,
    /// Whether the run reached its end.
    pub complete: bool,
    end: Nanos,
    ticks: Ticks,
    /// Events and arrivals at the present instant.
    instant: u64,
    instant_limit: u64,
}

/// When the clock itself acts.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    warmup: Nanos,
    sample: Nanos,
    audit: Nanos,
    change: Nanos,
    reading: Nanos,
    step: Nanos,
    next: Nanos,
}

impl Ticks {
    fn schedule(&mut self, end: Nanos) {
        self.next = [self.sample, self.audit, self.change, self.reading, self.step, end]
            .into_iter()
            .fold(self.warmup, Nanos::min);
    }
}

impl<'a> Engine<'a> {
    /// A run at its beginning.
    ///
    /// # Errors
    /// If the plan cannot be run.
    pub fn new(plan: &'a Plan, seed: u64, options: Options) -> Result<Self, RunError> {
        plan.validate()?;
        let mut net = Network::new(plan, seed, options, Captures::new(plan));
        plan.observe.capture.iter().for_each(|&link| net.witness_link(link));
        let desks = Desk::all(plan, seed);
        let count = plan.groups.iter().map(|g| g.count as usize).sum();
        let mut flows = Vec::with_capacity(count);
        net.accounts.reserve_exact(2 * count);
        for (g, group) in plan.groups.iter().enumerate() {
            for planned in group.flows(seed, plan.duration) {
                let (from, to) = (planned.pair.0 as u32, planned.pair.1 as u32);
                let mut path = |from, to| {
                    net.routes.path(from, to).ok_or_else(|| PlanError {
                        at: format!("groups[{g}]"),
                        message: "no links lead from a sender to its receiver".to_owned(),
                    })
                };
                let there = path(from, to)?;
                let back = match group.transport {
                    Transport::Tcp(_) => path(to, from)?,
                    Transport::Udp => 0,
                };
                let servers: Vec<u32> =
                    group.balancer.into_iter().flat_map(|b| desks[b].nodes()).collect();
                let client = group.client_first(planned.pair).0 as u32;
                check_ways(&mut path, client, &servers, back != 0)?;
                let begins = planned.begins(plan.duration);
                let driver = driver(&mut path, group, &planned, begins, servers)?;
                let account = net.open_account();
                net.open_account();
                flows.push(Flow {
                    group: g as u32,
                    number: planned.number,
                    nodes: (node(from), node(to)),
                    places: (there, back),
                    balanced: group.balancer.map(Balanced::new),
                    account,
                    start: planned.start.unwrap_or(NEVER),
                    stop: planned.stop.unwrap_or(NEVER),
                    end: None,
                    driver,
                    connections: 0,
                    current: None,
                    job: None,
                    closed: Tally::default(),
                    before: Tally::default(),
                    books: Default::default(),
                    bytes_before: 0,
                    delay: plan.observe.per_flow_histograms.then(Default::default),
                    finished: 0,
                });
            }
        }
        let store = plan.store.as_deref().map(|of| Store::new(of, plan, seed)).transpose()?;
        let first_connection = (flows.len() + usize::from(store.is_some())) as u32;
        let mut timers = Deadlines::new(first_connection);
        for (i, flow) in flows.iter().enumerate() {
            if let Some(at) = flow.first_event(EPOCH + plan.duration) {
                timers.set(i as u32, at);
            }
        }
        if let Some(at) = store.as_ref().and_then(Store::next_event) {
            timers.set(flows.len() as u32, at);
        }
        let end = EPOCH + plan.duration;
        let interval = plan.observe.series_interval;
        let mut ticks = Ticks {
            warmup: EPOCH + plan.warmup,
            sample: if interval > 0 { EPOCH } else { NEVER },
            audit: EPOCH + plan.duration.div_ceil(AUDITS),
            change: net.next_change().unwrap_or(NEVER),
            reading: Desk::next_of(&desks),
            step: EPOCH,
            next: EPOCH,
        };
        ticks.schedule(end);
        let flow_count = flows.len() as u64;
        Ok(Self {
            plan,
            seed,
            now: EPOCH,
            events: 0,
            connections: Connections::new(plan, first_connection),
            channels: Channels::new(plan, seed),
            store: store.map(Box::new),
            series: Series::new(plan),
            monitor: Monitor::default(),
            media_before: net.media().to_vec(),
            net,
            timers,
            flows,
            desks,
            groups: plan.groups.iter().map(GroupProbe::new).collect(),
            since: EPOCH,
            complete: false,
            end,
            ticks,
            instant: 0,
            instant_limit: 1_000_000 + 1_000 * (flow_count + plan.links.len() as u64),
        })
    }

    /// Runs to the end, or until told to stop.
    ///
    /// # Errors
    /// If the books do not balance, or time stands still.
    pub fn run(&mut self, progress: &mut dyn FnMut(Progress) -> Control) -> Result<(), RunError> {
        let mut quota = EVENTS_A_STEP;
        loop {
            let link = self.net.due.first();
            let timer = self.timers.first();
            let link_at = link.map_or(NEVER, |(at, _)| at);
            let timer_at = timer.map_or(NEVER, |(at, _)| at);
            let at = link_at.min(timer_at);
            if self.ticks.next <= at {
                if self.tick(progress)? {
                    break;
                }
                continue;
            }
            assert!(at >= self.now, "time went back from {} to {at}", self.now);
            self.events += 1;
            self.instant = if at > self.now { 0 } else { self.instant + 1 };
            self.now = at;
            match (link, timer) {
                (Some((_, id)), _) if link_at <= timer_at => self.net.run(at, id),
                (_, Some((_, id))) => self.fire(id),
                _ => unreachable!("an event has a link or a timer"),
            }
            self.take_arrivals();
            if self.instant > self.instant_limit {
                return Err(RunError::NoProgress { at: at - EPOCH });
            }
            if self.events >= quota {
                quota = self.events + EVENTS_A_STEP;
                if progress(self.progress()) == Control::Stop {
                    break;
                }
            }
        }
        self.audit()?;
        Ok(())
    }

    /// Compares all books with what is there.
    fn audit(&self) -> Result<(), Imbalance> {
        self.net.audit(self.plan)?;
        for flow in &self.flows {
            if let Driver::Packets(packets) = &flow.driver
                && let Some(stream) = &packets.stream
            {
                let group = &self.plan.groups[flow.group as usize].name;
                stream.audit(&packets.receiver, || format!("writes of {group}.{}", flow.number))?;
            }
        }
        self.store.as_ref().map_or(Ok(()), |store| store.audit(&self.channels))
    }

    fn progress(&self) -> Progress {
        Progress { now: self.now - EPOCH, duration: self.plan.duration, events: self.events }
    }

    /// The clock acts. Says whether the run is over.
    #[cold]
    fn tick(&mut self, progress: &mut dyn FnMut(Progress) -> Control) -> Result<bool, RunError> {
        self.now = self.ticks.next;
        let now = self.now;
        if now == self.ticks.warmup {
            self.ticks.warmup = NEVER;
            self.restart();
        }
        if now == self.ticks.sample {
            self.ticks.sample += self.plan.observe.series_interval;
            self.sample();
            if self.plan.observe.monitor {
                self.monitor();
            }
        }
        if now == self.ticks.audit {
            self.ticks.audit += self.plan.duration.div_ceil(AUDITS);
            self.audit()?;
        }
        if now == self.ticks.change {
            self.net.change_links(now);
            self.ticks.change = self.net.next_change().unwrap_or(NEVER);
        }
        if now == self.ticks.reading {
            for desk in &mut self.desks {
                desk.read_due(now, &self.net);
            }
            self.ticks.reading = Desk::next_of(&self.desks);
        }
        let mut over = now == self.end;
        self.complete |= over;
        if now == self.ticks.step || over {
            self.ticks.step += self.plan.duration.div_ceil(STEPS);
            over |= progress(self.progress()) == Control::Stop;
        }
        self.ticks.schedule(self.end);
        Ok(over)
    }

    /// The warm-up is over: measuring begins.
    fn restart(&mut self) {
        let now = self.now;
        self.since = now;
        self.net.restart(now);
        self.media_before = self.net.media().to_vec();
        for group in &mut self.groups {
            group.restart(now);
        }
        self.desks.iter_mut().for_each(Desk::restart);
        let mut tallies = self.tallies();
        for (flow, before) in self.flows.iter_mut().zip(&mut tallies) {
            flow.before = std::mem::take(before);
            let account = flow.account as usize;
            flow.books = [self.net.accounts[account], self.net.accounts[account + 1]];
            flow.finished = 0;
            if let Some(delay) = &mut flow.delay {
                delay.clear();
            }
            match &mut flow.driver {
                Driver::Packets(packets) => {
                    flow.bytes_before = packets.receiver.received.bytes;
                    packets.receiver.restart();
                    if let Some(stream) = &mut packets.stream {
                        stream.packet_delays = Moments::default();
                    }
                }
                Driver::Web(web) => web.pages = 0,
                Driver::Bulk | Driver::Transfer(_) => {}
            }
        }
    }

    /// Something whose time has come: a flow's application or a connection.
    #[inline]
    fn fire(&mut self, id: u32) {
        if id >= self.connections.first_timer() {
            self.connection_due(id);
            if self.channels.has_news() {
                self.serve();
            }
            return;
        }
        if id as usize == self.flows.len() {
            self.store_due();
            return;
        }
        match &self.flows[id as usize].driver {
            Driver::Packets(packets) if packets.stream.is_none() => {
                if self.is_assigned(id) {
                    self.send_datagrams(id);
                }
            }
            _ => self.application_due(id),
        }
    }

    /// Sends the datagram that is due, and those that have waited for a server.
    #[inline]
    fn send_datagrams(&mut self, id: u32) {
        self.send_datagram(id);
        while let Driver::Packets(packets) = &self.flows[id as usize].driver
            && packets.next.at < self.now
            && packets.next.at < self.flows[id as usize].stop
        {
            self.send_datagram(id);
        }
    }

    fn send_datagram(&mut self, id: u32) {
        let now = self.now;
        let flow = &mut self.flows[id as usize];
        let Driver::Packets(packets) = &mut flow.driver else { return };
        if packets.seq == 0 {
            self.groups[flow.group as usize].begin(now);
        }
        let (emitted, payload) = (packets.next.at, packets.next.payload);
        let seq = packets.seq;
        packets.seq += 1;
        packets.next = packets.source.next_packet();
        let over = packets.next.at >= flow.stop;
        if over {
            self.timers.clear(id);
            flow.end = Some(now);
            self.groups[flow.group as usize].end(now);
        } else {
            self.timers.set(id, packets.next.at.max(now));
        }
        let tos = self.plan.groups[flow.group as usize].dscp << 2;
        let hash = hash(self.seed, id, 0, 0);
        let len = payload + UDP_HEADERS;
        let packet = Packet::new(Class::Udp, flow.nodes, flow.places.0, hash, len, tos);
        let body = Body {
            number: 0,
            sent_at: emitted,
            endpoint: id,
            connection: 0,
            flow: flow.account,
            copies: Copies::ONE,
            load: Cargo::Datagram(Datagram { seq, payload }),
        };
        self.net.send(now, packet, body);
        if over {
            self.release(id);
        }
    }

    /// Hands packets that have reached their hosts to them.
    #[inline]
    fn take_arrivals(&mut self) {
        let mut taken = 0;
        while let Some(packet) = self.net.next_arrival(&mut taken) {
            // What hosts answer may arrive at this same instant, so an end is not certain.
            self.instant += 1;
            if self.instant > self.instant_limit {
                return;
            }
            let body = self.net.receive(self.now, &packet);
            match body.load {
                _ if packet.is_damaged() => {}
                // The application has this one already.
                Cargo::Datagram(_) if body.copies.taken() => {}
                Cargo::Segment(segment) => self.receive_segment(&packet, &body, &segment),
                Cargo::Datagram(datagram) => {
                    let flow = &mut self.flows[body.endpoint as usize];
                    let Driver::Packets(packets) = &mut flow.driver else { continue };
                    let delay = self.now - body.sent_at;
                    let playout = packets.playout;
                    packets.receiver.receive(datagram.seq, datagram.payload, delay, playout);
                    let group = &mut self.groups[flow.group as usize];
                    group.delay.record(delay);
                    group.bytes += u64::from(datagram.payload);
                    if let Some(histogram) = &mut flow.delay {
                        histogram.record(delay);
                    }
                }
            }
        }
    }
}

/// A flow's hash as packet headers would give it: the same in every run with the same seed,
/// whatever the queues are.
pub fn hash(seed: u64, flow: u32, connection: u32, direction: u32) -> u32 {
    let mut x = seed
        ^ (u64::from(flow) << 33 | u64::from(connection) << 1 | u64::from(direction))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (x ^ (x >> 32)) as u32
}

/// Whether links lead from a client to all of its servers, and back if need be.
fn check_ways(
    path: &mut impl FnMut(u32, u32) -> Result<u32, PlanError>,
    client: u32,
    servers: &[u32],
    back: bool,
) -> Result<(), PlanError> {
    for &server in servers {
        path(client, server)?;
        if back {
            path(server, client)?;
        }
    }
    Ok(())
}

fn driver(
    path: &mut impl FnMut(u32, u32) -> Result<u32, PlanError>,
    group: &sojourn_plan::Group,
    planned: &sojourn_plan::Flow,
    start: Nanos,
    balanced: Vec<u32>,
) -> Result<Driver, PlanError> {
    use crate::flow::Web;
    use sojourn_traffic::{transfer::Transfers, web::Session};
    let key = planned.key;
    Ok(match &group.app {
        App::Bulk(_) => Driver::Bulk,
        App::Transfer(params) => Driver::Transfer(Box::new(Transfers::new(params, key))),
        App::Web(params) => {
            let client = planned.pair.1 as u32;
            let own = group.servers(planned.pair.1);
            // A user knows one address if a balancer is behind it.
            let session = Session::new(params, key, own.len() as u32, start);
            let all = if balanced.is_empty() {
                own.into_iter().map(|server| server as u32).collect()
            } else {
                balanced
            };
            let servers = all
                .into_iter()
                .map(|server| Ok((node(server), path(server, client)?, path(client, server)?)))
                .collect::<Result<Vec<_>, PlanError>>()?;
            let web = Web { session, servers, objects: Vec::new(), asked: 0, pages: 0 };
            Driver::Web(Box::new(web))
        }
        app => {
            let mut source = app.packet_source(key, start).expect("all others send packets");
            let next = source.next_packet();
            let playout = match app {
                App::Voip(voip) => Some(voip.playout),
                _ => None,
            };
            Driver::Packets(Box::new(Packets {
                source,
                next,
                seq: 0,
                playout,
                receiver: Receiver::default(),
                stream: matches!(group.transport, Transport::Tcp(_)).then(Stream::default),
            }))
        }
    })
}
