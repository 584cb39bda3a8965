//! The wire: carries real packets over a plan's links, by the machine's clock.
//!
//! # One turn
//! First, all due events on links are processed, each at its theoretical time, and the packets that
//! have arrived are written to their hosts' devices. Then the wire sleeps until the next event, or
//! until a device is readable. Finally it reads the devices. A packet's arrival time is the time at
//! which it is read; events that are due by this time are processed first.
//!
//! Therefore lateness does not accumulate. A packet that crosses three links leaves each at its
//! theoretical time, and only its last write can be late. The lateness of writes is measured.
//!
//! [`sojourn_network`] provides the links, the order of events and the random draws, as in a
//! simulation.

use crate::arena::Arena;
use crate::capture::{Captures, Order};
use crate::clock::Clock;
use crate::control::{Inbox, Request};
use crate::device::BUFFER;
use crate::edge::{Arrival, Edge};
use crate::endpoint::Attachment;
use crate::flows::{Belonging, Facts};
use crate::headers::{ETHERNET, Framing, Headers};
use crate::measured::Measured;
use crate::packet_meta::PacketMeta;
use crate::partitions::Partitions;
use crate::record::{Health, Outcome};
use crate::segment::{Piece, Segments};
use crate::steering::Way;
use crate::vnet::VnetHeader;
use crate::watch::Watch;
use rustix::event::epoll;
use sojourn_measure::Imbalance;
use sojourn_network::{Body, Class, Copies, Network, Options, Packet, node};
use sojourn_plan::{Plan, PlanError, PlanErrors, at};
use sojourn_units::{EPOCH, MICROSECOND, NEVER, Nanos, SECOND};
use std::io;
use std::num::NonZeroU64;

/// Settings of a wire.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Maximum length of an IP packet in bytes.
    pub mtu: usize,
    /// Maximum number of packets in the network. Packets beyond it are lost and counted.
    pub packets: usize,
    /// Maximum number of frames read from a device before another device is read.
    pub reads: usize,
    /// Whether the run uses virtual time, which stands still while any program works. Then there is
    /// no minimum interval between turns, and the clock, which costs a system call in virtual time,
    /// is read once in each turn.
    pub standing: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { mtu: 1500, packets: 1 << 18, reads: 16, standing: false }
    }
}

/// Reason why a wire ended with an error.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The plan cannot be run on a wire.
    #[error(transparent)]
    Plan(#[from] PlanErrors),
    /// A device or a system call failed: the step and the system's error.
    #[error("{0}: {1}")]
    Io(&'static str, io::Error),
    /// The counts of packets do not balance, which is a bug.
    #[error(transparent)]
    Conservation(#[from] Imbalance),
}

impl From<PlanError> for WireError {
    fn from(error: PlanError) -> Self {
        Self::Plan(error.into())
    }
}

/// A wire that is ready to run.
pub struct Wire {
    pub(crate) plan: Plan,
    pub(crate) net: Network<PacketMeta, Watch>,
    edge: Edge,
    partitions: Partitions,
    measured: Measured,
    clock: Clock,
    settings: Settings,
    seed: u64,
    /// Time until which all events have been processed.
    pub(crate) now: Nanos,
    ticks: Ticks,
    pub(crate) health: Health,
    buffer: Vec<u8>,
}

/// Times of the next actions that belong to no link: end of the warm-up, next sample, end of the
/// run.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    warmup: Nanos,
    sample: Nanos,
    end: Nanos,
}

/// Minimum interval between turns, in nanoseconds, unless a device is readable. On a fast link
/// several packets are then due together, and can be written as one super-packet.
const GRAIN: Nanos = 50 * MICROSECOND;

/// Maximum length of VLAN tags in a frame, in bytes.
const TAGS: usize = 8;

impl Ticks {
    fn next(&self) -> Nanos {
        self.warmup.min(self.sample).min(self.end)
    }
}

impl Wire {
    /// Returns a wire with a plan's links between `attachments`. `journals` are the indices of the
    /// links with a journal.
    ///
    /// # Errors
    /// If the plan cannot be run on a wire, or if attachments or captures are invalid.
    pub fn new(
        plan: Plan,
        seed: u64,
        attachments: Vec<Attachment>,
        journals: &[usize],
        captures: Vec<Order>,
        settings: Settings,
    ) -> Result<Self, WireError> {
        plan.validate()?;
        if let Some(i) = plan.links.iter().position(|link| link.offload.is_some()) {
            let message = "a wire has no super-packets: real hosts send them";
            return Err(PlanError::new(at!["links", i, "offload"], message).into());
        }
        let options =
            Options { trace: false, probes: true, monitor: false, adjustable: true, fused: false };
        let arena = Arena::new(settings.mtu + ETHERNET + TAGS, settings.packets);
        let framing = attachments.first().map_or(Framing::Ip, |first| first.device.framing());
        let captures = Captures::of_plan(&plan, framing, captures)?;
        let captured = captures.links();
        let mut net =
            Network::new(&plan, seed, options, Watch::new(arena, &plan, journals, captures));
        for &link in journals.iter().chain(&captured) {
            net.observe_link(EPOCH, link);
        }
        let interval = plan.observe.series_interval;
        let ticks = Ticks {
            // The end of the warm-up is processed even if the warm-up is 0, since the measurement
            // of the links' capacity begins at this time.
            warmup: EPOCH + plan.warmup,
            sample: if interval == 0 { NEVER } else { EPOCH + interval },
            end: EPOCH + plan.duration,
        };
        Ok(Self {
            edge: Edge::new(&mut net.routes, attachments)?,
            partitions: Partitions::new(&plan),
            measured: Measured::new(&plan, &mut net),
            plan,
            net,
            clock: Clock::new(0),
            seed,
            settings,
            now: EPOCH,
            ticks,
            health: Health::default(),
            buffer: vec![0; BUFFER],
        })
    }

    /// Returns the wire's attachments, for another wire that runs before or after this one.
    pub fn attachments(&self) -> Vec<Attachment> {
        self.edge.attachments().cloned().collect()
    }

    /// Runs from `start`, in nanoseconds of the machine's monotonic clock, until the plan's end or
    /// a stop. For `linger` nanoseconds after the plan's end, packets are still carried, so that
    /// programs can close their connections; the packets of this time are not measured. A stop also
    /// ends this time.
    ///
    /// # Errors
    /// If a device fails, or the counts of packets do not balance.
    pub fn run(
        mut self,
        start: Nanos,
        linger: Nanos,
        inbox: &mut Inbox,
    ) -> Result<Outcome, WireError> {
        let standing = self.settings.standing;
        self.clock = if standing { Clock::standing(start) } else { Clock::new(start) };
        let grain = if standing { 0 } else { GRAIN };
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|e| WireError::Io("epoll", e.into()))?;
        self.edge.register(&poll).map_err(|e| WireError::Io("epoll", e))?;
        epoll::add(&poll, inbox.fd(), epoll::EventData::new_u64(u64::MAX), epoll::EventFlags::IN)
            .map_err(|e| WireError::Io("epoll", e.into()))?;
        // Prevents the kernel from delaying the thread's wake-ups to save power. If the call fails,
        // the measured lateness shows the effect.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let calendar = (!standing).then_some(start);
        self.net.observer.captures.start(calendar).map_err(|e| WireError::Io("capture", e))?;
        self.health.begin();
        let mut events = Vec::with_capacity(self.edge.attachments().count() + 1);
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
            let wait = self.clock.until(self.next().max(now + grain));
            let timeout = rustix::time::Timespec {
                tv_sec: (wait / SECOND) as i64,
                tv_nsec: (wait % SECOND) as i64,
            };
            events.clear();
            match epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(WireError::Io("epoll", error.into())),
            }
            self.clock.look();
            for event in &events {
                match event.data.u64() {
                    u64::MAX => stopped |= self.answer(inbox),
                    number => self.read(number as u32)?,
                }
            }
        }
        outcome.map_or_else(|| self.outcome(false), Ok)
    }

    /// Returns the time of the next event or action.
    fn next(&self) -> Nanos {
        let change = self.net.next_change().unwrap_or(NEVER);
        self.net.due.first().map_or(NEVER, |(at, _)| at).min(self.ticks.next()).min(change)
    }

    /// Processes all events that are due until `now`, in order. Returns whether the run has ended.
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

    /// Performs the action that is due: a sample, or the end of the warm-up. Returns whether the
    /// run has ended.
    #[cold]
    fn tick(&mut self) -> bool {
        let now = self.now;
        if now == self.ticks.warmup {
            self.ticks.warmup = NEVER;
            self.measured.restart(now, &mut self.net);
            self.health.restart();
        }
        if now == self.ticks.sample {
            self.ticks.sample += self.plan.observe.series_interval;
            self.measured.sample(now, &self.plan, &self.net);
        }
        now == self.ticks.end
    }

    /// Reads a device until no frame waits, or until the limit [`Settings::reads`].
    fn read(&mut self, number: u32) -> Result<(), WireError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..self.settings.reads {
            let (vnet, length, from) = match self.edge.attachment(number).device.read(&mut buffer) {
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
            self.enter(number, &vnet, &buffer[from..from + length]);
        }
        self.buffer = buffer;
        self.flush();
        Ok(())
    }

    /// Processes all events that are due by the current time, but not the end of the run.
    fn catch_up(&mut self) {
        let now = self.clock.now().min(self.ticks.end - 1).max(self.now);
        self.run_until(now);
    }

    /// Splits a frame from a device into packets and sends each one on its path.
    fn enter(&mut self, from: u32, vnet: &VnetHeader, frame: &[u8]) {
        let framing = self.edge.framing(from);
        let mut segments = Segments::new(framing, vnet, frame);
        let whole = *segments.headers();
        let destination = whole.ip.map(|ip| ip.destination);
        let Some(way) = self.edge.way(from, destination) else {
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

    /// Sends one packet, whose bytes are in the arena's next slot, on its path.
    fn offer(&mut self, from: u32, way: Way, framing: Framing, piece: &Piece) {
        let headers = &piece.headers;
        let (source, target) = (self.edge.attachment(from), self.edge.attachment(way.to));
        let nodes = (source.node as u32, target.node as u32);
        let passing = (source.passing, target.passing);
        let facts = Facts::of(headers);
        let whose = self.measured.flows.belonging(self.now, nodes, passing, &facts);
        if !passing.0 {
            self.measured.flows.sent(self.now, whose, &facts);
        }
        // A packet that passes a switch is counted once: between the switch and the data's
        // receiver.
        let elsewhere = if whose.account.is_multiple_of(2) { passing.1 } else { passing.0 };
        let account = if elsewhere { self.measured.flows.strangers() } else { whose.account };
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
            load: PacketMeta {
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

    /// Moves arrived packets into the batches of their hosts' devices.
    pub(crate) fn take_arrivals(&mut self) {
        let mut taken = 0;
        while let Some(packet) = self.net.next_arrival(&mut taken) {
            let slot = packet.slot;
            let first = !self.net.slab.get(slot).copies.taken();
            // Keeps the packet's bytes in the arena until they are written.
            self.net.slab.copy(slot);
            let body = self.net.receive(self.now, &packet);
            if body.load.whose == self.measured.flows.strangers()
                && self.partitions.cut(self.now, &packet)
            {
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
            } else if !self.edge.attachment(body.endpoint).passing {
                let whose = Belonging { account: load.whose, connection: body.connection };
                self.measured.flows.received(self.now, body.sent_at, whose, &load.facts, first);
            }
            let arrival = Arrival { slot, at: self.now, bytes, headers: &headers, partial };
            if self.edge.add(body.endpoint, &arrival) {
                self.write(body.endpoint);
            }
        }
    }

    /// Writes the packets that wait for all devices.
    fn flush(&mut self) {
        while let Some(number) = self.edge.first_waiting() {
            self.write(number);
        }
    }

    /// Writes the packets that wait for a device.
    fn write(&mut self, number: u32) {
        let Network { observer, slab, accounts, .. } = &mut self.net;
        self.edge.write(number, &observer.arena, self.clock, &mut self.health, |slot| {
            let flow = slab.get(slot).flow as usize;
            accounts[flow].missing += u64::from(slab.release(slot));
        });
    }

    /// Answers all waiting requests. Returns whether one of them stops the run.
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

    /// Returns the measurements until the current time.
    fn outcome(&mut self, complete: bool) -> Result<Outcome, WireError> {
        self.flush();
        self.health.end();
        self.net.audit()?;
        if self.ticks.warmup != NEVER {
            self.measured.stopped_early(self.now);
        }
        let captures = self.net.observer.captures.finish();
        let events = self.health.events;
        let record = self.measured.record(self.now, &self.plan, &self.net, events);
        let captures_cut = captures.iter().any(|capture| !capture.is_whole());
        Ok(Outcome {
            record: sojourn_network::Record { captures_cut, complete, ..record },
            health: self.health.clone(),
            captures,
            agreements: self.net.observer.replay_journals(&self.plan, self.seed),
        })
    }
}

/// Flips one bit after the IP header, so that the receiving host detects an error in the transport
/// checksum.
fn flip_bit(bytes: &mut [u8], headers: &Headers, entropy: u64) {
    let from = headers.ip.map_or(0, |ip| usize::from(ip.at + ip.header)).min(bytes.len() - 1);
    let bits = 8 * (bytes.len() - from) as u64;
    let bit = (entropy.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16) % bits;
    bytes[from + (bit / 8) as usize] ^= 1 << (bit % 8);
}
