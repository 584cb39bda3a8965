//! The wire: real packets on a plan's links, by the machine's clock.
//!
//! # One turn
//! What is due on the links happens first, each event at its theoretical time; packets that have
//! arrived are written to their hosts' devices. Then the devices are read: a packet is stamped with the
//! time at which it is read, after all that was due by then has happened. Then the wire sleeps until the
//! next event, or until a device has something.
//!
//! So lateness does not add up: a packet that crosses three links carries the theoretical time at which
//! it leaves each, and only the last write waits for the machine. How late the writes are is measured.
//!
//! The links, their order and their randomness are [`sojourn_network`]'s, as in simulation.

use crate::arena::Arena;
use crate::capture::{Captures, Order};
use crate::clock::Clock;
use crate::control::{Inbox, Request};
use crate::device::BUFFER;
use crate::endpoint::{Attachment, Endpoint};
use crate::flows::{Belonging, Facts, Flows};
use crate::headers::{ETHERNET, Framing, Headers, Transport as Carried};
use crate::partitions::Partitions;
use crate::record::{Agreement, Health, Outcome};
use crate::segment::{Piece, Segments};
use crate::steering::{Steering, Way};
use crate::vnet::{Partial, VnetHeader};
use crate::watch::Watch;
use rustix::event::epoll;
use sojourn_link::Medium;
use sojourn_measure::Imbalance;
use sojourn_network::journal::{self, Journal};
use sojourn_network::{
    Body, Class, Copies, LinkSeries, Network, Options, Packet, Span, append, flow_report, node,
    table,
};
use sojourn_plan::{Plan, PlanError, PlanErrors, Transport, at};
use sojourn_units::{EPOCH, MICROSECOND, NEVER, Nanos, SECOND};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::num::NonZeroU64;

/// What the wire keeps of a packet besides its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Bytes at its place in the arena.
    pub bytes: u32,
    /// What its flow's books need.
    pub facts: Facts,
    /// Where its checksum is still partial.
    pub partial: Option<Partial>,
    /// What its bytes begin with.
    pub framing: Framing,
    /// Its code point and ECN field as they stand in its bytes.
    pub tos: u8,
    /// As in [`Belonging`], wherever it is booked.
    pub whose: u32,
}

/// How a wire is run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The largest packet, without the Ethernet header.
    pub mtu: usize,
    /// The most packets that may be in the network at once; what comes beyond is lost and counted.
    pub packets: usize,
    /// How often a device is read before the others get their turn.
    pub reads: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { mtu: 1500, packets: 1 << 18, reads: 16 }
    }
}

/// Why a wire ended.
#[derive(Debug)]
pub enum WireError {
    /// The plan cannot be run on it.
    Plan(PlanErrors),
    /// A device or the clock failed.
    Io(&'static str, io::Error),
    /// The books did not balance: a bug.
    Conservation(Imbalance),
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(error) => error.fmt(f),
            Self::Io(what, error) => write!(f, "{what}: {error}"),
            Self::Conservation(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WireError {}

impl From<PlanErrors> for WireError {
    fn from(errors: PlanErrors) -> Self {
        Self::Plan(errors)
    }
}

impl From<PlanError> for WireError {
    fn from(error: PlanError) -> Self {
        Self::Plan(error.into())
    }
}

impl From<Imbalance> for WireError {
    fn from(error: Imbalance) -> Self {
        Self::Conservation(error)
    }
}

/// A wire that is ready to run.
pub struct Wire {
    pub(crate) plan: Plan,
    pub(crate) net: Network<Load, Watch>,
    endpoints: Vec<Endpoint>,
    steering: Steering,
    partitions: Partitions,
    flows: Flows,
    series: Option<LinkSeries>,
    delivered: Vec<u64>,
    clock: Clock,
    settings: Settings,
    seed: u64,
    /// The time to which everything has happened.
    pub(crate) now: Nanos,
    since: Nanos,
    media_before: Vec<Medium>,
    ticks: Ticks,
    pub(crate) health: Health,
    buffer: Vec<u8>,
}

/// When the clock itself acts.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    warmup: Nanos,
    sample: Nanos,
    end: Nanos,
}

/// Turns begin no sooner after each other, unless a device has something: on a fast link several packets
/// are then due together, and are written as one.
const GRAIN: Nanos = 50 * MICROSECOND;

/// Bytes of VLAN tags that a frame may have.
const TAGS: usize = 8;

impl Ticks {
    fn next(&self) -> Nanos {
        self.warmup.min(self.sample).min(self.end)
    }
}

impl Wire {
    /// The links of a plan between `attachments`, with journals and captures of some links.
    ///
    /// # Errors
    /// If the plan cannot be run on a wire, or no path leads from a host to another.
    pub fn new(
        plan: Plan,
        seed: u64,
        attachments: Vec<Attachment>,
        journals: &[usize],
        captures: Vec<Order>,
        settings: Settings,
    ) -> Result<Self, WireError> {
        plan.validate()?;
        let options = Options { trace: false, probes: true, monitor: false, adjustable: true };
        let arena = Arena::new(settings.mtu + ETHERNET + TAGS, settings.packets);
        let captures = captures_of(&plan, &attachments, captures)?;
        let captured = captures.links();
        let mut net = Network::new(&plan, seed, options, Watch::new(arena, journals, captures));
        for &link in journals.iter().chain(&captured) {
            net.observe_link(link);
        }
        let flows = Flows::new(&plan);
        for _ in 0..=flows.count() {
            net.open_account();
            net.open_account();
        }
        let steering = Steering::new(&mut net.routes, &attachments)?;
        let partitions = Partitions::new(&plan);
        let endpoints = attachments.into_iter().map(Endpoint::new).collect();
        let interval = plan.observe.series_interval;
        let ticks = Ticks {
            warmup: if plan.warmup == 0 { NEVER } else { EPOCH + plan.warmup },
            sample: if interval == 0 { NEVER } else { EPOCH + interval },
            end: EPOCH + plan.duration,
        };
        Ok(Self {
            series: (interval != 0).then(|| LinkSeries::new(&plan, series_columns(&plan))),
            delivered: vec![0; plan.groups.len()],
            media_before: net.media().to_vec(),
            plan,
            net,
            endpoints,
            steering,
            partitions,
            flows,
            clock: Clock::new(0),
            seed,
            settings,
            now: EPOCH,
            since: EPOCH,
            ticks,
            health: Health::default(),
            buffer: vec![0; BUFFER],
        })
    }

    /// What it is attached to, for a wire that is to run before or after this one.
    pub fn attachments(&self) -> Vec<Attachment> {
        self.endpoints.iter().map(|endpoint| endpoint.attachment.clone()).collect()
    }

    /// Runs from `start`, on the machine's monotonic clock, until the plan's end, or until told to stop.
    /// For `linger` after the end, or until told to stop, packets are carried on, so that programs can
    /// take leave of each other; nothing of it is measured.
    ///
    /// # Errors
    /// If a device fails, or the books do not balance.
    pub fn run(
        mut self,
        start: Nanos,
        linger: Nanos,
        inbox: &mut Inbox,
    ) -> Result<Outcome, WireError> {
        self.clock = Clock::new(start);
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|e| WireError::Io("epoll", e.into()))?;
        for (number, endpoint) in self.endpoints.iter().enumerate() {
            epoll::add(
                &poll,
                endpoint,
                epoll::EventData::new_u64(number as u64),
                epoll::EventFlags::IN,
            )
            .map_err(|e| WireError::Io("epoll", e.into()))?;
        }
        epoll::add(&poll, inbox.fd(), epoll::EventData::new_u64(u64::MAX), epoll::EventFlags::IN)
            .map_err(|e| WireError::Io("epoll", e.into()))?;
        // The kernel may wake a thread late to save power, but not this one. Where that is refused,
        // lateness will tell.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        self.net.observer.captures.start(start).map_err(|e| WireError::Io("capture", e))?;
        self.health.begin();
        let mut events = Vec::with_capacity(self.endpoints.len() + 1);
        let mut outcome = None;
        let mut stopped = false;
        while !stopped {
            let now = self.clock.now();
            if self.run_until(now) {
                if outcome.is_some() {
                    break;
                }
                outcome = Some(self.outcome(true)?);
                self.ticks = Ticks { warmup: NEVER, sample: NEVER, end: self.now + linger };
                continue;
            }
            self.flush();
            let wait = self.clock.until(self.next().max(now + GRAIN));
            let timeout = rustix::time::Timespec {
                tv_sec: (wait / SECOND) as i64,
                tv_nsec: (wait % SECOND) as i64,
            };
            events.clear();
            match epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(WireError::Io("epoll", error.into())),
            }
            for event in &events {
                match event.data.u64() {
                    u64::MAX => stopped |= self.answer(inbox),
                    number => self.read(number as usize)?,
                }
            }
        }
        outcome.map_or_else(|| self.outcome(false), Ok)
    }

    /// When something is due next.
    fn next(&self) -> Nanos {
        let change = self.net.next_change().unwrap_or(NEVER);
        self.net.due.first().map_or(NEVER, |(at, _)| at).min(self.ticks.next()).min(change)
    }

    /// Lets everything happen that is due until `now`, in order. Says whether the run is over.
    fn run_until(&mut self, now: Nanos) -> bool {
        loop {
            let link = self.net.due.first();
            let at = link.map_or(NEVER, |(at, _)| at);
            let tick = self.ticks.next();
            if let Some(change) =
                self.net.next_change().filter(|&c| c <= now && c <= at && c <= tick)
            {
                self.now = change;
                self.net.change_links(change);
                continue;
            }
            if tick <= at {
                if tick > now {
                    break;
                }
                self.now = tick;
                if self.tick() {
                    return true;
                }
                continue;
            }
            let Some((at, id)) = link.filter(|_| at <= now) else { break };
            self.now = at;
            self.health.events += 1;
            self.net.run(at, id);
            self.take_arrivals();
        }
        self.now = now;
        false
    }

    /// The clock acts. Says whether the run is over.
    #[cold]
    fn tick(&mut self) -> bool {
        let now = self.now;
        if now == self.ticks.warmup {
            self.ticks.warmup = NEVER;
            self.since = now;
            self.net.restart(now);
            self.media_before = self.net.media().to_vec();
            self.flows.restart(now, &self.net.accounts);
            self.health.restart();
        }
        if now == self.ticks.sample {
            self.ticks.sample += self.plan.observe.series_interval;
            self.sample();
        }
        now == self.ticks.end
    }

    fn sample(&mut self) {
        let Some(series) = &mut self.series else { return };
        let span = self.plan.observe.series_interval as f64 / SECOND as f64;
        let groups = self.flows.groups.iter().zip(&mut self.delivered);
        let others = groups.flat_map(|(group, delivered)| {
            let bytes = group.bytes - std::mem::replace(delivered, group.bytes);
            [bytes as f64 * 8.0 / span, group.active.value() as f64]
        });
        series.sample(&self.net, &self.plan, self.now, others.collect::<Vec<_>>());
    }

    /// Reads a device until it has no more, or others should have their turn.
    fn read(&mut self, number: usize) -> Result<(), WireError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..self.settings.reads {
            let (vnet, length, from) =
                match self.endpoints[number].attachment.device.read(&mut buffer) {
                    Ok(None) => break,
                    Ok(Some(frame)) => (frame.vnet, frame.bytes.len(), frame.start),
                    Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                        self.health.malformed += 1;
                        continue;
                    }
                    Err(error) => return Err(WireError::Io("reading a device", error)),
                };
            self.health.reads += 1;
            self.catch_up();
            self.enter(number as u32, &vnet, &buffer[from..from + length]);
        }
        self.buffer = buffer;
        self.flush();
        Ok(())
    }

    /// Lets everything happen that is due by now, short of the run's end.
    fn catch_up(&mut self) {
        let now = self.clock.now().min(self.ticks.end - 1).max(self.now);
        self.run_until(now);
    }

    /// A packet, or a super-packet of several, comes from a device.
    fn enter(&mut self, from: u32, vnet: &VnetHeader, frame: &[u8]) {
        let framing = self.endpoints[from as usize].attachment.device.framing();
        let mut segments = Segments::new(framing, vnet, frame);
        let whole = *segments.headers();
        let destination = whole.ip.map(|ip| ip.destination);
        let Some(way) = self.steering.way(from, destination) else {
            self.health.unroutable += 1;
            return;
        };
        while let Some(length) = segments.next_length() {
            let slot = self.net.slab.next_slot();
            let Some(place) = self.net.observer.arena.make(slot) else {
                self.health.overflowed += 1;
                return;
            };
            if length > place.len() {
                self.health.malformed += 1;
                return;
            }
            let Some(piece) = segments.write_next(place) else { return };
            self.offer(from, way, framing, &piece);
        }
    }

    /// One packet of wire size, which is at the arena's next place, goes on its way.
    fn offer(&mut self, from: u32, way: Way, framing: Framing, piece: &Piece) {
        let headers = &piece.headers;
        let end = |number: u32| &self.endpoints[number as usize].attachment;
        let (source, target) = (end(from), end(way.to));
        let nodes = (source.node as u32, target.node as u32);
        let passing = (source.passing, target.passing);
        let facts = facts(headers);
        let whose = self.flows.belonging(self.now, nodes, passing, &facts);
        if !passing.0 {
            self.flows.sent(self.now, whose, &facts);
        }
        // A packet that passes a switch is booked once, on its way from or to the data's receiver.
        let elsewhere = if whose.account.is_multiple_of(2) { passing.1 } else { passing.0 };
        let account = if elsewhere { self.flows.strangers() } else { whose.account };
        let tos = headers.ip.map_or(0, |ip| ip.tos);
        let class = if facts.tcp { Class::Tcp } else { Class::Udp };
        let ends = (node(nodes.0), node(nodes.1));
        let hash = headers.flow_hash(self.seed);
        let packet = Packet::new(class, ends, way.place, hash, headers.length, tos);
        let body = Body {
            number: 0,
            sent_at: self.now,
            endpoint: way.to,
            connection: whose.connection,
            flow: account,
            copies: Copies::ONE,
            load: Load {
                bytes: piece.length as u32,
                facts,
                partial: piece.partial,
                framing,
                tos,
                whose: whose.account,
            },
        };
        self.net.send(self.now, packet, body);
        self.take_arrivals();
    }

    /// Hands packets that have arrived to their hosts' devices.
    pub(crate) fn take_arrivals(&mut self) {
        let mut taken = 0;
        while let Some(packet) = self.net.next_arrival(&mut taken) {
            let slot = packet.slot;
            let first = !self.net.slab.get(slot).copies.taken();
            // Its bytes stay where they are until they are written.
            self.net.slab.copy(slot);
            let body = self.net.receive(self.now, &packet);
            if body.load.whose == self.flows.strangers() && self.partitions.cut(self.now, &packet) {
                self.health.cut += 1;
                self.net.slab.release(slot);
                continue;
            }
            let load = &body.load;
            let bytes = &mut self.net.observer.arena.get_mut(slot)[..load.bytes as usize];
            let mut headers = Headers::parse(load.framing, bytes);
            if packet.tos != load.tos {
                headers.set_tos(bytes, packet.tos);
            }
            let mut partial = load.partial;
            if packet.is_damaged() {
                if let Some(partial) = partial.take() {
                    partial.finish(bytes);
                }
                flip_bit(bytes, &headers, body.number);
            } else if !self.endpoints[body.endpoint as usize].attachment.passing {
                let whose = Belonging { account: load.whose, connection: body.connection };
                self.flows.received(self.now, body.sent_at, whose, &load.facts, first);
            }
            let endpoint = &mut self.endpoints[body.endpoint as usize];
            endpoint.add(slot, bytes, &headers, partial, self.now);
            if endpoint.is_full() {
                self.write(body.endpoint as usize);
            }
        }
    }

    /// Writes what waits for the devices.
    fn flush(&mut self) {
        for number in 0..self.endpoints.len() {
            if !self.endpoints[number].is_empty() {
                self.write(number);
            }
        }
    }

    /// Writes what waits for one device.
    fn write(&mut self, number: usize) {
        let (endpoint, net) = (&mut self.endpoints[number], &mut self.net);
        endpoint.write(&net.observer.arena, self.clock, &mut self.health);
        endpoint.clear(|slot| net.slab.release(slot));
    }

    /// Answers requests. Says whether one of them was to stop.
    fn answer(&mut self, inbox: &mut Inbox) -> bool {
        self.catch_up();
        let mut stop = false;
        while let Some(request) = inbox.take() {
            match request {
                Request::Stop => stop = true,
                Request::Counters(reply) => reply.send(self.snapshot()),
                Request::Set(change, reply) => reply.send(self.set(&change)),
            }
        }
        self.flush();
        stop
    }

    /// What was measured until now.
    fn outcome(&mut self, complete: bool) -> Result<Outcome, WireError> {
        self.flush();
        self.health.end();
        self.net.audit()?;
        if self.ticks.warmup != NEVER {
            // Stopped in the warm-up: nothing was measured, and the record says so by its span.
            self.since = self.now;
        }
        let captures = self.net.observer.captures.finish();
        let counted = self.flows.count_up(&self.net.accounts);
        let span = Span { since: self.since, now: self.now, media: &self.media_before };
        let took = self.now - self.since;
        let rows = self.flows.lines(&counted).map(|l| flow_report::flow_row(&self.plan, &l, took));
        let flows = table(rows.collect());
        let mut summary = sojourn_measure::Table::default();
        let packets = self.net.slab.numbers();
        let total = flow_report::total_row(
            &self.flows.groups,
            &counted,
            self.health.events,
            packets,
            self.now,
            took,
        );
        append(&mut summary, None, total);
        append(&mut summary, None, self.net.bottleneck_row(&self.plan, &span));
        let mut rest = &counted[..];
        for (group, probe) in self.plan.groups.iter().zip(&self.flows.groups) {
            let (own, others) = rest.split_at(group.count as usize);
            rest = others;
            let row = flow_report::group_row(group, probe, own, self.now, took);
            append(&mut summary, Some(&group.name), row);
        }
        self.net.summarise_places(&self.plan, &span, &mut summary);
        Ok(Outcome {
            record: sojourn_network::Record {
                summary,
                flows,
                queues: self.net.queue_table(&self.plan, &span),
                distributions: self.net.distributions(&self.plan, &self.flows.groups),
                series: self.series.take().map(LinkSeries::into_table).unwrap_or_default(),
                flow_series: sojourn_measure::Table::default(),
                captures: Vec::new(),
                captures_cut: captures.iter().any(|capture| !capture.is_whole()),
                trace_hash: 0,
                events: self.health.events,
                complete,
                reached: self.now - EPOCH,
            },
            health: self.health.clone(),
            captures,
            agreements: agreements(&self.plan, self.seed, self.net.observer.take_journals()),
        })
    }
}

/// What the flows' books need of a packet's headers.
fn facts(headers: &Headers) -> Facts {
    match &headers.transport {
        Carried::Tcp(tcp) => Facts {
            tcp: true,
            ports: tcp.ports,
            seq: tcp.sequence,
            ack: tcp.acknowledgement,
            flags: tcp.flags,
            payload: tcp.payload,
        },
        Carried::Udp(udp) => Facts { ports: udp.ports, payload: udp.payload, ..Facts::default() },
        Carried::Icmp(_) | Carried::Opaque => Facts::default(),
    }
}

/// Flips a bit behind the IP header, so that the transport's checksum tells the host.
fn flip_bit(bytes: &mut [u8], headers: &Headers, entropy: u64) {
    let from = headers.ip.map_or(0, |ip| usize::from(ip.at + ip.header)).min(bytes.len() - 1);
    let bits = 8 * (bytes.len() - from) as u64;
    let bit = (entropy.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16) % bits;
    bytes[from + (bit / 8) as usize] ^= 1 << (bit % 8);
}

/// The captures that are asked for; frames are all like those of the first device.
fn captures_of(
    plan: &Plan,
    attachments: &[Attachment],
    orders: Vec<Order>,
) -> Result<Captures, PlanError> {
    let fail = |message| PlanError::new(at!["captures"], message);
    let mut links: Vec<_> = orders.iter().map(|order| order.link).collect();
    links.sort_unstable();
    if let Some(&link) = links.last().filter(|&&link| link >= plan.links.len()) {
        return Err(fail(format!("there is no link {link}")));
    }
    if links.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(fail("a link is captured twice".to_owned()));
    }
    let names: Vec<_> = plan.links.iter().map(|link| link.name.as_str()).collect();
    let framing = attachments.first().map_or(Framing::Ip, |first| first.device.framing());
    Ok(Captures::new(&names, framing, plan.observe.snaplen, orders))
}

/// Replays all journals.
fn agreements(plan: &Plan, seed: u64, journals: BTreeMap<u32, Journal>) -> Vec<Agreement> {
    let replay = |(link, journal): (u32, Journal)| {
        let found = journal::replay(plan, seed, link as usize, &journal);
        Agreement {
            link: plan.links[link as usize].name.clone(),
            agrees: found.is_ok(),
            cut: journal.is_cut(),
            counts: found.ok().map(|a| [a.arrivals, a.drops, a.marks, a.entries]),
            difference: found.err().map(|difference| difference.to_string()),
        }
    };
    journals.into_iter().map(replay).collect()
}

/// Columns of the series that tell of groups.
fn series_columns(plan: &Plan) -> Vec<(String, &'static str)> {
    let mut columns = Vec::new();
    for group in &plan.groups {
        let tcp = matches!(group.transport, Transport::Tcp(_));
        let goodput = if tcp { "goodput" } else { "udp_goodput" };
        columns.push((format!("{}.{goodput}", group.name), "bit/s"));
        columns.push((format!("{}.active", group.name), "1"));
    }
    columns
}
