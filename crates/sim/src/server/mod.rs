//! A UDP server with a receive buffer before a handler whose speed fluctuates, and its clients.
//!
//! The subject of the study of receive buffers: any number of sockets, each with clients, a buffer
//! under a policy and a handler of its own; all share the server's port and its memory. Clients
//! send without asking (`open`), or each keeps a window of messages until they are acknowledged
//! (`closed`; a window of 1 is stop-and-wait), when they are put in the buffer or when they are
//! processed, and sends again after a timeout.
//!
//! Messages are not cut into packets: a message arrives when its last byte does, and is charged its
//! length. Acknowledgements are not lost. A message that is already buffered or processed is known
//! when it comes again, and not buffered twice.
//!
//! Events are ordered by time and then by the order in which they were made.

pub mod handler;

use crate::schedule::Schedule;
use handler::Handler;
use serde::{Deserialize, Serialize};
use sojourn_buffer::{Memory, ReceiveBuffer};
use sojourn_measure::histogram::Histogram;
use sojourn_random::{Key, Stream};
use sojourn_units::{Bytes, Nanos, SECOND};

/// When a message is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Acknowledged {
    /// When it is put in the buffer.
    Enqueued,
    /// When the handler is done with it.
    Processed,
}

/// How clients send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Load {
    /// Without asking.
    Open {
        /// Bytes a second of each client from a time on, in order of time; the first from 0.
        rates: Vec<(Nanos, u64)>,
        /// Messages that are sent together.
        burst: u32,
        /// Whether the time between bursts is exponential; otherwise it is constant.
        random: bool,
    },
    /// As acknowledgements allow.
    Closed {
        /// Messages of a client that are not yet acknowledged.
        window: u32,
        /// When the server acknowledges.
        acknowledged: Acknowledged,
        /// Round-trip time without queueing and transmission.
        rtt: Nanos,
        /// Time to the first repetition, and the least; it follows RFC 6298 above that.
        rto: Nanos,
        /// The timeout is drawn within this part above itself, so that losses do not lock in step.
        jitter: f64,
        /// Bits a second of a client's own link.
        link: u64,
    },
}

/// The simulated server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Simulated time.
    pub duration: Nanos,
    /// Part of it that is not measured (peaks are).
    pub warmup: Nanos,
    /// The policy of every buffer, in one line.
    pub policy: String,
    /// The policy is asked so often; 0: before each message.
    pub ask: Nanos,
    /// Sockets, each with a buffer and a handler.
    pub sockets: u32,
    /// Clients of each socket.
    pub clients: u32,
    /// Bytes of a message.
    pub message: Bytes,
    /// How they send.
    pub load: Load,
    /// How each socket's messages are processed.
    pub handler: handler::Params,
    /// Bits a second of the server's port; 0: without limit.
    pub port: u64,
    /// All memory of the server; 0: unknown to the policy.
    pub memory: Bytes,
    /// Its use by others.
    pub used: Bytes,
    /// Time between samples; 0: none.
    pub samples: Nanos,
}

/// Clients and messages that are kept count of at most.
const MOST_SLOTS: u128 = 1 << 20;
/// Most messages of one run, as far as they are known in advance.
const MOST_EVENTS: u128 = 2_000_000_000;

impl Params {
    fn check(&self) -> Result<(), String> {
        self.handler.check()?;
        let need = |good: bool, what: &str| if good { Ok(()) } else { Err(what.to_owned()) };
        need(self.duration > 0 && self.duration <= 86_400 * SECOND, "`duration` is up to a day")?;
        need(self.warmup < self.duration, "`warmup` must be shorter than `duration`")?;
        need((1..=1 << 24).contains(&self.message), "`message` is 1 byte to 16 MiB")?;
        need(self.sockets > 0 && self.clients > 0, "there must be sockets and clients")?;
        need(self.samples == 0 || self.duration / self.samples <= 1 << 20, "too many samples")?;
        let window = match &self.load {
            Load::Open { rates, burst, .. } => {
                need(*burst > 0, "`burst` is at least 1")?;
                need(rates.first().is_some_and(|r| r.0 == 0), "`rates` begin at 0")?;
                need(rates.windows(2).all(|w| w[0].0 < w[1].0), "`rates` are in order of time")?;
                let most = rates.iter().map(|r| r.1).max().unwrap_or(0);
                let each = u128::from(most) * u128::from(self.duration / SECOND + 1)
                    / u128::from(self.message);
                let all = each * u128::from(self.sockets) * u128::from(self.clients);
                need(all <= MOST_EVENTS, "too many messages")?;
                1
            }
            Load::Closed { window, rto, jitter, link, .. } => {
                need(*window > 0 && *link > 0 && *rto > 0, "window, link and rto are above 0")?;
                need((0.0..=1.0).contains(jitter), "`jitter` must be between 0 and 1")?;
                *window
            }
        };
        let slots = u128::from(self.sockets) * u128::from(self.clients) * u128::from(window);
        need(slots <= MOST_SLOTS, "too many clients")
    }
}

/// One sample of the first socket.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// When.
    pub at: Nanos,
    /// Size of its buffer.
    pub size: Bytes,
    /// Bytes in it.
    pub occupied: Bytes,
    /// Bytes that arrived, from the beginning.
    pub arrived: Bytes,
    /// Bytes processed, from the beginning.
    pub processed: Bytes,
    /// Bytes discarded, from the beginning.
    pub discarded: Bytes,
}

/// The results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Messages that arrived after the warm-up.
    pub arrived: u64,
    /// Of these, discarded.
    pub discarded: u64,
    /// `discarded` of `arrived`: the paper's exhaustion probability.
    pub exhaustion: f64,
    /// Bytes processed a second after the warm-up.
    pub throughput: f64,
    /// Messages that clients sent again.
    pub repeated: u64,
    /// Greatest sum of the buffers' sizes in bytes.
    pub peak_size: Bytes,
    /// Greatest sum of what they held.
    pub peak_occupied: Bytes,
    /// Mean sum of the sizes, over time, after the warm-up.
    pub mean_size: f64,
    /// Median time of a message in the buffer, in seconds; none if none was taken.
    pub sojourn_p50: Option<f64>,
    /// Its 99th percentile.
    pub sojourn_p99: Option<f64>,
    /// Share of the time that handlers were at work.
    pub utilisation: f64,
    /// Samples of the first socket.
    pub samples: Vec<Sample>,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// A client sends.
    Send { slot: u32 },
    /// A message is there.
    Arrive { slot: u32, serial: u32 },
    /// A handler is done with the message it took.
    Done { socket: u32 },
    /// An acknowledgement is there.
    Acknowledge { slot: u32, serial: u32 },
    /// An acknowledgement is not there.
    Timeout { slot: u32, serial: u32, attempt: u32 },
    /// The policies are asked.
    Ask,
    /// A sample is taken.
    Sample,
}

/// A client, or one place in a client's window.
struct Slot {
    socket: u32,
    /// Number of the message being sent, its transmissions, and when the first one left.
    serial: u32,
    attempt: u32,
    sent: Nanos,
    /// The last message of this slot that the server took.
    taken: Option<u32>,
    /// Whether it has been processed.
    processed: bool,
    srtt: f64,
    rttvar: f64,
    draws: Stream,
}

struct Socket {
    buffer: ReceiveBuffer<(u32, u32)>,
    handler: Handler,
    /// The message the handler works on.
    at_work: Option<(u32, u32, Bytes)>,
}

struct Server<'a> {
    params: &'a Params,
    now: Nanos,
    schedule: Schedule<What>,
    slots: Vec<Slot>,
    sockets: Vec<Socket>,
    port_free: Nanos,
    /// When each client's link is free.
    link_free: Vec<Nanos>,
    sojourn: Histogram,
    repeated: u64,
    processed: Bytes,
    sizes: Bytes,
    held: Bytes,
    peaks: (Bytes, Bytes),
    size_time: f64,
    since: Nanos,
    samples: Vec<Sample>,
}

/// Runs a server for its time.
///
/// # Errors
/// What is wrong with `params`.
pub fn run(params: &Params, seed: u64) -> Result<Outcome, String> {
    let policy = sojourn_buffer::Params::parse(&params.policy).map_err(|e| e.to_string())?;
    run_with(params, &policy, seed)
}

/// As [`run`], with this policy instead of the one that `params` name.
///
/// # Errors
/// What is wrong with `params`.
pub fn run_with(
    params: &Params,
    policy: &sojourn_buffer::Params,
    seed: u64,
) -> Result<Outcome, String> {
    params.check()?;
    let mut server = Server::new(params, policy, seed);
    let before = server.run_to(params.warmup);
    server.sojourn = Histogram::new();
    (server.repeated, server.processed, server.size_time) = (0, 0, 0.0);
    let after = server.run_to(params.duration);
    Ok(server.outcome(before, after))
}

impl<'a> Server<'a> {
    fn new(params: &'a Params, policy: &sojourn_buffer::Params, seed: u64) -> Self {
        let key = Key::new(seed, "server");
        let window = match params.load {
            Load::Open { .. } => 1,
            Load::Closed { window, .. } => window,
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
            params,
            now: 0,
            schedule: Schedule::default(),
            slots: (0..clients * window).map(slot).collect(),
            sockets: (0..params.sockets).map(socket).collect(),
            port_free: 0,
            link_free: vec![0; clients as usize],
            sojourn: Histogram::new(),
            repeated: 0,
            processed: 0,
            sizes: policy.initial() * Bytes::from(params.sockets),
            held: 0,
            peaks: (0, 0),
            size_time: 0.0,
            since: 0,
            samples: Vec::new(),
        };
        server.peaks.0 = server.sizes;
        server.set_memory();
        for slot in 0..server.slots.len() as u32 {
            // Clients begin within the first 10 ms, or within one gap of an open load.
            let spread = server.gap(slot).unwrap_or(10_000_000).max(1);
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

    /// Mean time between the bursts of an open load now; `None` if it is closed.
    fn gap(&self, _slot: u32) -> Option<Nanos> {
        let Load::Open { rates, burst, .. } = &self.params.load else { return None };
        let rate = rates.iter().rev().find(|r| r.0 <= self.now).map_or(0, |r| r.1);
        if rate == 0 {
            // Silent until the next change.
            let next = rates.iter().find(|r| r.0 > self.now).map_or(self.params.duration, |r| r.0);
            return Some(next - self.now.min(next) + 1);
        }
        let bits = u128::from(self.params.message) * u128::from(*burst) * u128::from(SECOND);
        Some((bits / u128::from(rate)) as Nanos)
    }

    fn run_to(&mut self, end: Nanos) -> (u64, u64, Nanos) {
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
        self.now = end;
        self.weigh();
        let sum = |f: fn(&sojourn_buffer::receive_buffer::Counters) -> u64| -> u64 {
            self.sockets.iter().map(|s| f(s.buffer.counters())).sum()
        };
        let busy = self.sockets.iter().map(|s| s.handler.busy).sum();
        (sum(|c| c.arrived.packets), sum(|c| c.discarded.packets), busy)
    }

    fn send(&mut self, slot: u32) {
        let Load::Open { rates, burst, random } = &self.params.load else {
            return self.transmit(slot);
        };
        let silent = rates.iter().rev().find(|r| r.0 <= self.now).is_none_or(|r| r.1 == 0);
        let (burst, random) = (*burst, *random);
        if !silent {
            for _ in 0..burst {
                self.slots[slot as usize].serial += 1;
                let serial = self.slots[slot as usize].serial;
                let there = self.through_port(self.now);
                self.at(there, What::Arrive { slot, serial });
            }
        }
        let mut gap = self.gap(slot).unwrap_or(1);
        if random && !silent {
            let u = self.slots[slot as usize].draws.uniform();
            gap = (gap as f64 * -libm::log(u)) as Nanos;
        }
        self.at(self.now + gap.max(1), What::Send { slot });
    }

    /// When a message that is ready at `time` has passed the server's port.
    fn through_port(&mut self, time: Nanos) -> Nanos {
        self.port_free =
            self.port_free.max(time) + transmission(self.params.message, self.params.port);
        self.port_free
    }

    /// Sends the message of a slot of a closed load, for the first time or again.
    fn transmit(&mut self, slot: u32) {
        let Load::Closed { window, rtt, rto, jitter, link, .. } = self.params.load else { return };
        let client = (slot / window) as usize;
        let sent = self.link_free[client].max(self.now) + transmission(self.params.message, link);
        self.link_free[client] = sent;
        // The port serves in the order of sending; with one round-trip time for all it is that of
        // arrival.
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
        // Karn: only messages sent once are measured.
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
            // A repetition of a known message: acknowledged again if it was before.
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

    /// Lets an idle handler begin with the oldest message. It leaves the buffer when it is done with:
    /// until then its memory is needed.
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

    /// Does something that may change a buffer's size, and keeps the sum.
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

    /// Adds up the sizes over time.
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

    fn outcome(self, before: (u64, u64, Nanos), after: (u64, u64, Nanos)) -> Outcome {
        let (arrived, discarded) = (after.0 - before.0, after.1 - before.1);
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
            utilisation: (after.2 - before.2) as f64 / (measured * f64::from(self.params.sockets)),
            samples: self.samples,
        }
    }
}

/// Time that `bytes` take at `rate` bits a second; none without a rate.
fn transmission(bytes: Bytes, rate: u64) -> Nanos {
    if rate == 0 {
        return 0;
    }
    (u128::from(bytes) * 8 * u128::from(SECOND) / u128::from(rate)) as Nanos
}

#[cfg(test)]
mod tests;
