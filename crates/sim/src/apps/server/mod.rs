//! A UDP server whose handler processes messages at a fluctuating speed, and its clients, for the
//! study of receive buffers.
//!
//! The server has any number of sockets. Each socket has its own clients, receive buffer with a
//! policy, and handler; all sockets share the server's port and memory. With the load `open`,
//! clients send regardless of acknowledgements. With `closed`, each client has a window of
//! unacknowledged messages (a window of 1 is stop-and-wait) and repeats a message after a timeout.
//! The server acknowledges a message when it enters the buffer or when it has been processed.
//!
//! Messages are not divided into packets: a message arrives with its last byte, and occupies its
//! length in the buffer. Acknowledgements are not lost. The server recognises repetitions of
//! messages that it has buffered or processed, and does not buffer them again.
//!
//! No plan declares this application: [`run`](crate::server::run) adds it to a plan without nodes.
//! Its events are processed in the order of time and then of their addition to the schedule. The
//! warm-up and the run include the events at their end.

pub mod handler;
mod params;

use crate::app::{App, Declared, Event, Report};
use crate::schedule::Schedule;
use crate::world::World;
use handler::Handler;
pub use params::{Acknowledged, Load, Params};
use serde::Serialize;
use sojourn_buffer::{Memory, ReceiveBuffer};
use sojourn_measure::{Histogram, Imbalance};
use sojourn_plan::PlanError;
use sojourn_random::{Key, Stream};
use sojourn_units::{Bytes, EPOCH, Nanos, Rate, SECOND, clocking::Clocking};

/// One sample of the first socket.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Time since the start.
    pub at: Nanos,
    /// Size of the socket's buffer in bytes.
    pub size: Bytes,
    /// Bytes in the buffer.
    pub occupied: Bytes,
    /// Bytes that arrived since the start.
    pub arrived: Bytes,
    /// Bytes processed since the start.
    pub processed: Bytes,
    /// Bytes discarded since the start.
    pub discarded: Bytes,
}

/// The results of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Number of messages that arrived after the warm-up, without repetitions of accepted messages.
    pub arrived: u64,
    /// Number of messages that were discarded after the warm-up.
    pub discarded: u64,
    /// `discarded` divided by `arrived`: the paper's exhaustion probability; 0 without arrivals.
    pub exhaustion: f64,
    /// Bytes processed per second after the warm-up.
    pub throughput: f64,
    /// Number of repetitions that clients sent after the warm-up.
    pub repeated: u64,
    /// Maximum of the sum of all buffers' sizes in bytes, including the warm-up.
    pub peak_size: Bytes,
    /// Maximum of the sum of the bytes in all buffers, including the warm-up.
    pub peak_occupied: Bytes,
    /// Mean over time of the sum of all buffers' sizes in bytes, after the warm-up.
    pub mean_size: f64,
    /// Median sojourn time in seconds, from a message's arrival to the start of its processing,
    /// after the warm-up; `None` if no message was processed.
    pub sojourn_p50: Option<f64>,
    /// 99th percentile of the sojourn time in seconds; `None` if no message was processed.
    pub sojourn_p99: Option<f64>,
    /// Mean over the handlers of the share of time in which they worked, after the warm-up.
    pub utilisation: f64,
    /// Samples of the first socket.
    pub samples: Vec<Sample>,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// A client sends a burst or its next message.
    Send { slot: u32 },
    /// A message arrives at the server.
    Arrive { slot: u32, serial: u32 },
    /// A handler has processed its message.
    Done { socket: u32 },
    /// An acknowledgement arrives at its client.
    Acknowledge { slot: u32, serial: u32 },
    /// A client's timeout for one transmission of a message expires.
    Timeout { slot: u32, serial: u32, attempt: u32 },
    /// The policies of all buffers decide.
    Ask,
    /// A sample is taken.
    Sample,
}

/// A client, or with the load `closed` one message of a client's window.
struct Slot {
    socket: u32,
    /// Number of the present message.
    serial: u32,
    /// Transmissions of the present message so far.
    attempt: u32,
    /// When the present message was sent for the first time.
    sent: Nanos,
    /// Number of the last message of this slot that entered the buffer.
    taken: Option<u32>,
    /// Whether the message `taken` has been processed.
    processed: bool,
    srtt: f64,
    rttvar: f64,
    draws: Stream,
}

struct Socket {
    buffer: ReceiveBuffer<(u32, u32)>,
    handler: Handler,
    /// The message that the handler processes: slot, number and bytes.
    at_work: Option<(u32, u32, Bytes)>,
}

/// Totals since the start.
#[derive(Clone, Copy, Default)]
struct Totals {
    arrived: u64,
    discarded: u64,
    busy: Nanos,
}

/// The server and its clients.
pub struct Server {
    params: Params,
    /// Time since the start.
    now: Nanos,
    schedule: Schedule<What>,
    slots: Vec<Slot>,
    sockets: Vec<Socket>,
    /// The server's port.
    port: Line,
    /// The clients' links.
    links: Vec<Line>,
    sojourn: Histogram,
    repeated: u64,
    processed: Bytes,
    sizes: Bytes,
    held: Bytes,
    peaks: (Bytes, Bytes),
    size_time: f64,
    since: Nanos,
    samples: Vec<Sample>,
    /// Totals at the end of the warm-up.
    before: Totals,
}

impl Server {
    fn new(params: &Params, policy: &sojourn_buffer::Params, seed: u64) -> Self {
        let key = Key::new(seed, "server");
        let (window, link) = match params.load {
            Load::Open { .. } => (1, 0),
            Load::Closed { window, link, .. } => (window, link),
        };
        let clients = params.sockets * params.clients;
        let slot = |i: u32| Slot {
            socket: i / window / params.clients,
            serial: 0,
            attempt: 0,
            sent: 0,
            taken: None,
            processed: false,
            srtt: 0.0,
            rttvar: 0.0,
            draws: key.child(u64::from(i)).stream("client"),
        };
        let socket = |i: u32| Socket {
            buffer: ReceiveBuffer::new(policy.clone(), params.ask == 0),
            handler: Handler::new(&params.handler, Key::new(seed, "handler").child(u64::from(i))),
            at_work: None,
        };
        let mut server = Self {
            params: params.clone(),
            now: 0,
            schedule: Schedule::default(),
            slots: (0..clients * window).map(slot).collect(),
            sockets: (0..params.sockets).map(socket).collect(),
            port: Line::new(params.port),
            links: vec![Line::new(link); clients as usize],
            sojourn: Histogram::new(),
            repeated: 0,
            processed: 0,
            sizes: policy.initial() * Bytes::from(params.sockets),
            held: 0,
            peaks: (0, 0),
            size_time: 0.0,
            since: 0,
            samples: Vec::new(),
            before: Totals::default(),
        };
        server.peaks.0 = server.sizes;
        server.set_memory();
        for slot in 0..server.slots.len() as u32 {
            // Each slot begins at a random time: in an open load within the first gap between
            // bursts, in a closed load within the first 10 ms.
            let spread = server.gap().unwrap_or(10_000_000).max(1);
            let start = server.slots[slot as usize].draws.below(spread);
            server.at(start, What::Send { slot });
        }
        if params.ask > 0 {
            server.at(params.ask, What::Ask);
        }
        if params.samples > 0 {
            server.at(params.samples, What::Sample);
        }
        server
    }

    fn at(&mut self, time: Nanos, what: What) {
        self.schedule.add(time, what);
    }

    /// Returns the mean time between a client's bursts at the present rate; `None` for a closed
    /// load.
    fn gap(&self) -> Option<Nanos> {
        let Load::Open { rates, burst, .. } = &self.params.load else { return None };
        let rate = rates.iter().rev().find(|r| r.0 <= self.now).map_or(0, |r| r.1);
        if rate == 0 {
            // At a rate of 0, the next burst is after the next change of the rate.
            let next = rates.iter().find(|r| r.0 > self.now).map_or(self.params.duration, |r| r.0);
            return Some(next - self.now.min(next) + 1);
        }
        let bits = u128::from(self.params.message) * u128::from(*burst) * u128::from(SECOND);
        Some((bits / u128::from(rate)) as Nanos)
    }

    /// Processes all events until `end`.
    fn process(&mut self, end: Nanos) {
        while let Some((time, what)) = self.schedule.take_due(end) {
            self.now = time;
            match what {
                What::Send { slot } => self.send(slot),
                What::Arrive { slot, serial } => self.arrive(slot, serial),
                What::Done { socket } => self.done(socket),
                What::Acknowledge { slot, serial } => self.acknowledge(slot, serial),
                What::Timeout { slot, serial, attempt } => self.timeout(slot, serial, attempt),
                What::Ask => {
                    for socket in 0..self.sockets.len() {
                        self.changing(socket, ReceiveBuffer::tick);
                    }
                    self.set_memory();
                    self.at(time + self.params.ask, What::Ask);
                }
                What::Sample => {
                    self.sample();
                    self.at(time + self.params.samples, What::Sample);
                }
            }
        }
    }

    /// Processes all events until `end`, and returns the totals at `end`.
    fn advance(&mut self, end: Nanos) -> Totals {
        self.process(end);
        self.now = end;
        self.weigh();
        let sum = |f: fn(&sojourn_buffer::receive_buffer::Counters) -> u64| -> u64 {
            self.sockets.iter().map(|s| f(s.buffer.counters())).sum()
        };
        Totals {
            arrived: sum(|c| c.arrived.packets),
            discarded: sum(|c| c.discarded.packets),
            busy: self.sockets.iter().map(|s| s.handler.busy).sum(),
        }
    }

    /// Sets the application's timer to the next event.
    fn set_timer(&self, world: &mut World, id: u32) {
        match self.schedule.next_at() {
            Some(at) => world.set_timer(id, EPOCH + at),
            None => world.clear_timer(id),
        }
    }

    fn send(&mut self, slot: u32) {
        let Load::Open { ref rates, burst, random } = self.params.load else {
            return self.transmit(slot);
        };
        let silent = rates.iter().rev().find(|r| r.0 <= self.now).is_none_or(|r| r.1 == 0);
        if !silent {
            for _ in 0..burst {
                self.slots[slot as usize].serial += 1;
                let serial = self.slots[slot as usize].serial;
                let there = self.through_port(self.now);
                self.at(there, What::Arrive { slot, serial });
            }
        }
        let mut gap = self.gap().unwrap_or(1);
        if random && !silent {
            let u = self.slots[slot as usize].draws.uniform();
            gap = (gap as f64 * -libm::log(u)) as Nanos;
        }
        self.at(self.now + gap.max(1), What::Send { slot });
    }

    /// Returns when a message that reaches the server's port at `time` has been transmitted there.
    fn through_port(&mut self, time: Nanos) -> Nanos {
        self.port.send(time, self.params.message)
    }

    /// Sends a slot's present message in a closed load, for the first time or as a repetition.
    fn transmit(&mut self, slot: u32) {
        let Load::Closed { window, rtt, rto, jitter, .. } = self.params.load else { return };
        let client = (slot / window) as usize;
        let sent = self.links[client].send(self.now, self.params.message);
        // Simplification: the port transmits in the order of these calls. The order of arrival may
        // differ, since a message may wait for its client's link.
        let there = self.through_port(sent) + rtt / 2;
        let s = &mut self.slots[slot as usize];
        if s.attempt == 0 {
            s.sent = self.now;
        }
        s.attempt += 1;
        let estimate = s.srtt + 4.0 * s.rttvar;
        let base = (rto as f64).max(estimate) * f64::from(1u32 << (s.attempt - 1).min(6));
        let timeout = sent + (base * (1.0 + jitter * s.draws.uniform())) as Nanos;
        let (serial, attempt) = (s.serial, s.attempt);
        self.at(there, What::Arrive { slot, serial });
        self.at(timeout, What::Timeout { slot, serial, attempt });
    }

    fn timeout(&mut self, slot: u32, serial: u32, attempt: u32) {
        let s = &self.slots[slot as usize];
        if s.serial == serial && s.attempt == attempt {
            self.repeated += 1;
            self.transmit(slot);
        }
    }

    fn acknowledge(&mut self, slot: u32, serial: u32) {
        let now = self.now;
        let s = &mut self.slots[slot as usize];
        if s.serial != serial {
            return;
        }
        // Karn's rule (RFC 6298, section 3): only messages sent once give a sample.
        if s.attempt == 1 {
            let rtt = (now - s.sent) as f64;
            if s.srtt == 0.0 {
                (s.srtt, s.rttvar) = (rtt, rtt / 2.0);
            } else {
                s.rttvar = 0.75 * s.rttvar + 0.25 * (s.srtt - rtt).abs();
                s.srtt = 0.875 * s.srtt + 0.125 * rtt;
            }
        }
        (s.serial, s.attempt) = (serial + 1, 0);
        self.transmit(slot);
    }

    fn arrive(&mut self, slot: u32, serial: u32) {
        let socket = self.slots[slot as usize].socket as usize;
        let s = &self.slots[slot as usize];
        let closed = match self.params.load {
            Load::Closed { acknowledged, rtt, .. } => Some((acknowledged, rtt / 2)),
            Load::Open { .. } => None,
        };
        if let Some((acknowledged, back)) = closed
            && s.taken >= Some(serial)
        {
            // A repetition of an accepted message is acknowledged if the message has been
            // acknowledged.
            if acknowledged == Acknowledged::Enqueued || s.taken > Some(serial) || s.processed {
                self.at(self.now + back, What::Acknowledge { slot, serial });
            }
            return;
        }
        let bytes = self.params.message;
        let held = self.sockets[socket].buffer.occupied();
        let taken = self.changing(socket, |buffer, now| buffer.offer(now, bytes, (slot, serial)));
        if taken.is_err() {
            return;
        }
        self.held += self.sockets[socket].buffer.occupied() - held;
        self.peaks.1 = self.peaks.1.max(self.held);
        if let Some((acknowledged, back)) = closed {
            let s = &mut self.slots[slot as usize];
            (s.taken, s.processed) = (Some(serial), false);
            if acknowledged == Acknowledged::Enqueued {
                self.at(self.now + back, What::Acknowledge { slot, serial });
            }
        }
        self.begin(socket);
    }

    /// Makes an idle handler begin with the oldest message. The message stays in the buffer until
    /// it has been processed, since its memory is in use until then.
    fn begin(&mut self, socket: usize) {
        let s = &mut self.sockets[socket];
        if s.at_work.is_some() {
            return;
        }
        let Some(first) = s.buffer.first() else { return };
        let ((slot, serial), bytes) = (first.item, first.bytes);
        self.sojourn.record(self.now - first.arrived);
        s.at_work = Some((slot, serial, bytes));
        let end = s.handler.finish(self.now, bytes);
        self.at(end, What::Done { socket: socket as u32 });
    }

    fn done(&mut self, socket: u32) {
        let s = &mut self.sockets[socket as usize];
        let Some((slot, serial, bytes)) = s.at_work.take() else { return };
        s.buffer.take();
        self.held -= bytes;
        self.processed += bytes;
        if let Load::Closed { acknowledged: Acknowledged::Processed, rtt, .. } = self.params.load {
            self.slots[slot as usize].processed = true;
            self.at(self.now + rtt / 2, What::Acknowledge { slot, serial });
        }
        self.begin(socket as usize);
    }

    /// Calls `act`, which may change the size of a socket's buffer, and updates the sums of sizes.
    fn changing<R>(
        &mut self,
        socket: usize,
        act: impl FnOnce(&mut ReceiveBuffer<(u32, u32)>, Nanos) -> R,
    ) -> R {
        let buffer = &mut self.sockets[socket].buffer;
        let before = buffer.size();
        let result = act(buffer, self.now);
        let after = buffer.size();
        if after != before {
            self.weigh();
            self.sizes = self.sizes - before + after;
            self.peaks.0 = self.peaks.0.max(self.sizes);
            if self.params.ask == 0 {
                self.set_memory();
            }
        }
        result
    }

    /// Extends the integral of the sum of sizes over time from the last call to now.
    fn weigh(&mut self) {
        self.size_time += self.sizes as f64 * (self.now - self.since) as f64;
        self.since = self.now;
    }

    fn set_memory(&mut self) {
        let total = self.params.memory;
        if total == 0 {
            return;
        }
        let available = total.saturating_sub(self.params.used).saturating_sub(self.sizes);
        for socket in &mut self.sockets {
            socket.buffer.set_memory(Some(Memory { total, available }));
        }
    }

    fn sample(&mut self) {
        let buffer = &self.sockets[0].buffer;
        let c = buffer.counters();
        self.samples.push(Sample {
            at: self.now,
            size: buffer.size(),
            occupied: buffer.occupied(),
            arrived: c.arrived.bytes,
            processed: c.processed.bytes,
            discarded: c.discarded.bytes,
        });
    }

    /// Ends the run, and returns its results.
    pub fn outcome(mut self) -> Outcome {
        let (before, after) = (self.before, self.advance(self.params.duration));
        let arrived = after.arrived - before.arrived;
        let discarded = after.discarded - before.discarded;
        let measured = (self.params.duration - self.params.warmup) as f64;
        let seconds = |q| Some(self.sojourn.quantile(q) / SECOND as f64).filter(|v| v.is_finite());
        Outcome {
            arrived,
            discarded,
            exhaustion: if arrived == 0 { 0.0 } else { discarded as f64 / arrived as f64 },
            throughput: self.processed as f64 * SECOND as f64 / measured,
            repeated: self.repeated,
            peak_size: self.peaks.0,
            peak_occupied: self.peaks.1,
            mean_size: self.size_time / measured,
            sojourn_p50: seconds(0.5),
            sojourn_p99: seconds(0.99),
            utilisation: (after.busy - before.busy) as f64
                / (measured * f64::from(self.params.sockets)),
            samples: self.samples,
        }
    }
}

impl App for Server {
    fn try_new(declared: Declared, world: &mut World, id: u32) -> Result<Option<Self>, PlanError> {
        let Declared::Server(params, policy) = declared else { return Ok(None) };
        let server = Self::new(params, policy, world.seed);
        server.set_timer(world, id);
        Ok(Some(server))
    }

    fn on_timer(&mut self, world: &mut World, id: u32) {
        self.process(world.now - EPOCH);
        self.set_timer(world, id);
    }

    fn on_event(&mut self, _world: &mut World, _id: u32, _event: Event) {
        unreachable!("a server has neither flows nor connections");
    }

    fn restart(&mut self) {
        self.before = self.advance(self.params.warmup);
        self.sojourn = Histogram::new();
        (self.repeated, self.processed, self.size_time) = (0, 0, 0.0);
    }

    fn audit(&self, _world: &World, _id: u32) -> Result<(), Imbalance> {
        Ok(())
    }

    /// Returns an empty report: [`Server::outcome`] has the results.
    fn report(&self, _world: &World, _id: u32) -> Report {
        Report::default()
    }
}

/// A transmitter of messages.
#[derive(Clone, Copy)]
struct Line {
    /// `None` for no limit.
    rate: Option<(Rate, Clocking)>,
    /// When all messages have been sent.
    free: Nanos,
}

impl Line {
    /// Returns a transmitter of `rate` bits per second; 0 for no limit.
    fn new(rate: u64) -> Self {
        Self { rate: Rate::new(rate).map(|rate| (rate, Clocking::down(rate))), free: 0 }
    }

    /// Returns when a message of `bytes` that comes at `at` has been sent.
    fn send(&mut self, at: Nanos, bytes: Bytes) -> Nanos {
        let idle = at > self.free;
        self.free = self.free.max(at);
        if let Some((rate, clocking)) = &mut self.rate {
            if idle {
                *clocking = Clocking::down(*rate);
            }
            self.free += clocking.step(rate.span(bytes as u32));
        }
        self.free
    }
}

#[cfg(test)]
mod tests;
