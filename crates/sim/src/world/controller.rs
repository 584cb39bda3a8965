//! Flows to a balancer: who asks for a server, when it is known, and what the choice was worth.
//!
//! A flow's first packet goes no further than the switch, as if the switch were at the sender: the
//! switch asks the controller, whose answer lets the flow begin. Readings for a policy are taken at
//! the switch and are of that time; they reach the controller one delay later.
//!
//! | what | after the first packet, with a one-way delay d |
//! |---|---|
//! | the controller is asked | d |
//! | queues are read, if the policy has them read for each choice | 2 d |
//! | the server is chosen | d, or 3 d with a reading, and what a decision takes |
//! | the flow begins | another d |
//!
//! Packets of a flow that begin meanwhile wait at the switch. A flow that is refused asks again
//! after a second, as a TCP whose SYN is lost does; what UDP had to send meanwhile is never sent.
//!
//! # Servers that go and come back
//! The controller probes every server once a period. A probe takes one delay to the server, which
//! answers at once if it can be reached then, and the answer another. When a probe is due and as many
//! before it as `misses` had no answer, the server is down, and gets no new flow; with the next answer
//! it is up. So what happens at t is known between `misses` and `misses + 1` periods later, and that it
//! is over at most a period and two delays later, as `sojourn lb serve` knows it. Probes take no room on links: none is lost in a full queue.
//! Flows that a server has stay with it.

use super::hash::hash;
use super::timers::NEVER;
use sojourn_balance::{
    Backlog, Balancer, Counters, Flow, Freshness, Limit, Reading, Server as Known,
};
use sojourn_measure::{Histogram, Welford, jain};
use sojourn_network::{Network, Row};
use sojourn_plan::{Fault, Plan};
use sojourn_queue::Unit;
use sojourn_random::{Distribution, Key, Stream};
use sojourn_units::time::seconds;
use sojourn_units::{EPOCH, Nanos, Rate, SECOND};
use std::collections::VecDeque;

/// When a refused flow asks again.
pub const AGAIN: Nanos = SECOND;
/// Bytes of a full frame: waits are distinguished if they differ by more than one.
const FRAME: u64 = 1514;

/// How far an assignment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It has no server.
    Idle,
    /// Queues are about to be read for it.
    Reading,
    /// The controller is about to choose.
    Deciding,
    /// The answer is on its way to the switch.
    Installing,
    /// It has a server.
    Open,
    /// Its server works on what has come in.
    Serving,
}

/// The assignment of a server to a flow or to a request.
#[derive(Clone, Copy, Debug)]
pub struct Assignment {
    /// Index of its balancer.
    pub balancer: usize,
    /// How far it is.
    pub stage: Stage,
    /// When it asked.
    asked: Nanos,
    /// Its server, chosen last.
    pub(super) server: usize,
    /// The server's node, once one has been chosen.
    pub node: Option<usize>,
}

/// The next step of a request for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing before this time.
    Wait(Nanos),
    /// This server is open to it.
    Open(usize),
    /// No server is available.
    Refused,
}

/// Returns the common fields of all packets of a connection, for policies that use them.
pub fn hashed(seed: u64, flow: u32, connection: u32) -> Flow {
    let parts = [0, 1].map(|way| hash(seed, flow, connection, way));
    Flow { hash: u64::from(parts[0]) << 32 | u64::from(parts[1]) }
}

impl Assignment {
    /// A flow that has not asked yet.
    pub fn new(balancer: usize) -> Self {
        Self { balancer, stage: Stage::Idle, asked: 0, server: 0, node: None }
    }

    /// Whether its server works on what has come in.
    pub fn is_serving(&self) -> bool {
        self.stage == Stage::Serving
    }

    /// Returns the assignment after its server has done its work.
    #[must_use]
    pub fn served(self) -> Self {
        Self { stage: Stage::Open, ..self }
    }
}

/// A message from the switch to the controller.
#[derive(Clone, Debug)]
enum ControlMessage {
    Read(Nanos, Vec<Reading>),
    Finished(usize, Nanos),
}

/// A server behind a balancer.
#[derive(Clone, Debug)]
struct Server {
    node: u32,
    port: usize,
    limit: Option<Limit>,
    rate: Option<Rate>,
    /// How long it works, and until when it is busy.
    service: Option<(Distribution, Stream)>,
    busy: Nanos,
    /// When it cannot be reached.
    faults: Vec<Fault>,
}

impl Server {
    fn read<T, W>(&self, net: &Network<T, W>) -> Reading {
        let backlog = net.link(self.port).backlog();
        let sent = net.link(self.port).ledger().departed;
        Reading {
            backlog: Some(Backlog {
                packets: u64::from(backlog.packets),
                bytes: backlog.bytes,
                limit: self.limit,
                rate: self.rate,
            }),
            counters: Some(Counters { bytes: sent.bytes, packets: sent.packets }),
        }
    }

    /// Seconds that `bytes` take its port.
    fn seconds_of(&self, bytes: u64) -> f64 {
        self.rate.map_or(0.0, |rate| bytes as f64 * 8.0 / rate.bits() as f64)
    }
}

/// The measurements of a balancer.
#[derive(Clone, Debug)]
struct Probe {
    chosen: Vec<u64>,
    refused: u64,
    repeated: u64,
    unreachable: u64,
    misplaced: u64,
    excess: Welford,
    age: Welford,
    decision: Histogram,
}

impl Probe {
    fn new(servers: usize) -> Self {
        Self {
            chosen: vec![0; servers],
            refused: 0,
            repeated: 0,
            unreachable: 0,
            misplaced: 0,
            excess: Welford::default(),
            age: Welford::default(),
            decision: Histogram::new(),
        }
    }

    fn row(&self) -> Row {
        let mut row = Row::default();
        let choices: u64 = self.chosen.iter().sum();
        let share = |n: u64| if choices == 0 { f64::NAN } else { n as f64 / choices as f64 };
        row.integer("choices", choices);
        row.integer("choices_refused", self.refused);
        row.real("choices_jain", jain(self.chosen.iter().map(|&n| n as f64)));
        row.real("choices_repeated", share(self.repeated));
        row.real("choices_unreachable", share(self.unreachable));
        row.real("misplaced", share(self.misplaced));
        row.real("excess_wait_mean", self.excess.mean());
        row.real("age_mean", self.age.mean());
        row.real("decision_mean", self.decision.moments().mean() / SECOND as f64);
        row.quantiles(&self.decision, &[("decision_p50", 0.5), ("decision_p99", 0.99)]);
        row
    }
}

/// A balancer in a run: switch and controller.
#[derive(Clone, Debug)]
pub struct Controller {
    balancer: Balancer,
    servers: Vec<Server>,
    draws: Stream,
    delay: Nanos,
    decision: Nanos,
    fresh: Freshness,
    /// When the queues are read next, of themselves.
    next_reading: Nanos,
    messages: VecDeque<(Nanos, ControlMessage)>,
    /// When the controller finds which server down or up, in order.
    found: VecDeque<(Nanos, usize, bool)>,
    /// Room for readings, used again.
    spare: Vec<Vec<Reading>>,
    last: Option<usize>,
    probe: Probe,
}

impl Controller {
    /// The balancers of a plan.
    pub fn all(plan: &Plan, seed: u64) -> Vec<Self> {
        let make = |planned: &sojourn_plan::Balancer| {
            let key = Key::new(seed, &planned.name);
            let known: Vec<Known> = planned
                .servers
                .iter()
                .map(|server| Known::new(&plan.nodes[server.node].name, server.weight))
                .collect();
            let servers = planned.servers.iter().enumerate().map(|(i, server)| {
                let params = &plan.links[server.port].params;
                Server {
                    node: server.node as u32,
                    port: server.port,
                    limit: params.queue.limit().map(|(unit, limit)| match unit {
                        Unit::Packets => Limit::Packets(u64::from(limit)),
                        Unit::Bytes => Limit::Bytes(u64::from(limit)),
                    }),
                    rate: params.rate,
                    service: server.service.map(|s| (s, key.child(i as u64).stream("service"))),
                    busy: 0,
                    faults: planned.faults.iter().filter(|f| f.server == i).copied().collect(),
                }
            });
            let draws = key.stream("policy").next_u64();
            let balancer = Balancer::new(&planned.policy, &known, draws);
            let fresh = balancer.needs().freshness;
            Self {
                next_reading: match fresh {
                    Freshness::Sampled { .. } | Freshness::Averaged { .. } => EPOCH,
                    Freshness::Unread | Freshness::Now => NEVER,
                },
                balancer,
                servers: servers.collect(),
                draws: key.stream("choice"),
                delay: planned.delay,
                decision: planned.decision,
                fresh,
                messages: VecDeque::new(),
                found: detections(planned, plan.duration, &mut key.stream("probes")),
                spare: Vec::new(),
                last: None,
                probe: Probe::new(known.len()),
            }
        };
        plan.balancers.iter().map(make).collect()
    }

    /// When queues are read next, of all balancers.
    pub fn next_of(controllers: &[Self]) -> Nanos {
        controllers.iter().map(|controller| controller.next_reading).min().unwrap_or(NEVER)
    }

    /// Reads the queues if it is time.
    pub fn read_due<T, W>(&mut self, now: Nanos, net: &Network<T, W>) {
        if self.next_reading == now {
            self.read(now, net);
            let period = self.fresh.period().expect("it has one");
            self.next_reading = now.saturating_add(period);
        }
    }

    fn read<T, W>(&mut self, now: Nanos, net: &Network<T, W>) {
        let mut readings = self.spare.pop().unwrap_or_default();
        readings.clear();
        readings.extend(self.servers.iter().map(|server| server.read(net)));
        self.send(now, ControlMessage::Read(now, readings));
    }

    /// Something sets out from the switch to the controller. All take as long, so their order stays.
    fn send(&mut self, now: Nanos, message: ControlMessage) {
        self.messages.push_back((now.saturating_add(self.delay), message));
    }

    /// The controller hears what has reached it.
    fn receive(&mut self, now: Nanos) {
        loop {
            let news_at = self.messages.front().map_or(NEVER, |(at, _)| *at);
            let verdict = self.found.front().copied().filter(|&(at, ..)| at <= news_at.min(now));
            if let Some((_, server, up)) = verdict {
                self.found.pop_front();
                self.balancer.set_up(server, up);
                continue;
            }
            if news_at > now {
                return;
            }
            match self.messages.pop_front() {
                Some((_, ControlMessage::Read(at, readings))) => {
                    self.balancer.observe(at, &readings);
                    self.spare.push(readings);
                }
                Some((at, ControlMessage::Finished(server, latency))) => {
                    self.balancer.finished(at, server, Some(latency));
                }
                None => {}
            }
        }
    }

    fn choose(&mut self, now: Nanos, flow: Flow) -> Option<usize> {
        self.receive(now);
        let draws = &mut self.draws;
        let Some(choice) = self.balancer.choose(now, &flow, &mut |n| draws.below(n)) else {
            self.probe.refused += 1;
            return None;
        };
        let server = choice.server;
        self.probe.chosen[server] += 1;
        self.probe.repeated += u64::from(self.last == Some(server));
        self.last = Some(server);
        if let Some(age) = choice.age {
            self.probe.age.add(seconds(age));
        }
        Some(server)
    }

    /// The flow begins: what the choice turned out to be worth.
    fn begin<T, W>(&mut self, now: Nanos, server: usize, took: Nanos, net: &Network<T, W>) {
        let wait = |s: &Server| s.seconds_of(net.link(s.port).backlog().bytes);
        let least = self.servers.iter().map(wait).fold(f64::INFINITY, f64::min);
        let chosen = &self.servers[server];
        self.probe.unreachable += u64::from(chosen.faults.iter().any(|f| f.holds(now - EPOCH)));
        let excess = wait(chosen) - least;
        self.probe.misplaced += u64::from(excess > chosen.seconds_of(FRAME));
        self.probe.excess.add(excess);
        self.probe.decision.record(took);
    }

    /// Advances a request that is due as far as possible now. Steps that take no time are done at
    /// once.
    pub fn advance<T, W>(
        &mut self,
        now: Nanos,
        asking: &mut Assignment,
        net: &Network<T, W>,
        flow: impl Fn() -> Flow,
    ) -> Step {
        loop {
            let (stage, at) = match asking.stage {
                Stage::Idle => {
                    asking.asked = now;
                    match self.fresh {
                        Freshness::Now => (Stage::Reading, now + 2 * self.delay),
                        _ => (Stage::Deciding, now + self.delay + self.decision),
                    }
                }
                Stage::Reading => {
                    self.read(now, net);
                    (Stage::Deciding, now + self.delay + self.decision)
                }
                Stage::Deciding => {
                    let Some(server) = self.choose(now, flow()) else {
                        asking.stage = Stage::Idle;
                        return Step::Refused;
                    };
                    asking.server = server;
                    (Stage::Installing, now + self.delay)
                }
                Stage::Installing => {
                    self.begin(now, asking.server, now - asking.asked, net);
                    asking.stage = Stage::Open;
                    asking.node = Some(self.servers[asking.server].node as usize);
                    return Step::Open(asking.server);
                }
                Stage::Serving | Stage::Open => unreachable!("it has a server"),
            };
            asking.stage = stage;
            if at > now {
                return Step::Wait(at);
            }
        }
    }

    /// When the server is done with what has come in now for one who has it; it is open or being
    /// served then.
    pub fn serve_one(&mut self, now: Nanos, asked: &mut Assignment) -> Nanos {
        let done = self.serve(now, asked.server);
        if done > now {
            asked.stage = Stage::Serving;
        }
        done
    }

    /// One who has a server, or is about to have it, needs it no more.
    pub fn release(&mut self, now: Nanos, asked: &Assignment) {
        self.send(now, ControlMessage::Finished(asked.server, now - asked.asked));
    }

    /// When `server` is done with what has come in now.
    fn serve(&mut self, now: Nanos, server: usize) -> Nanos {
        let server = &mut self.servers[server];
        let Some((service, stream)) = &mut server.service else { return now };
        server.busy = server.busy.max(now).saturating_add(service.sample_nanos(stream));
        server.busy
    }

    /// The warm-up is over.
    pub fn restart(&mut self) {
        self.probe = Probe::new(self.servers.len());
    }

    /// Returns its measurements.
    pub fn row(&self) -> Row {
        self.probe.row()
    }

    /// Returns the node of a server.
    pub(super) fn node(&self, server: usize) -> u32 {
        self.servers[server].node
    }

    /// The nodes of its servers.
    pub fn nodes(&self) -> impl Iterator<Item = u32> + '_ {
        self.servers.iter().map(|server| server.node)
    }
}

/// When the controller finds which server down or up: see the module's comment.
fn detections(
    planned: &sojourn_plan::Balancer,
    duration: Nanos,
    draws: &mut Stream,
) -> VecDeque<(Nanos, usize, bool)> {
    let (every, delay) = (planned.probes.every, planned.delay);
    let misses = u64::from(planned.probes.misses);
    let mut found = Vec::new();
    let faults: Vec<&Fault> = planned.faults.iter().filter(|fault| fault.at < duration).collect();
    if faults.is_empty() {
        return VecDeque::new();
    }
    let phase = draws.below(every);
    // The first probe that is at its server at this time or later, and when it is sent.
    let probe = |reached: Nanos| reached.saturating_sub(phase + delay).div_ceil(every);
    let sent = |number: u64| phase.saturating_add(number.saturating_mul(every));
    for fault in faults {
        let first = probe(fault.at);
        let answered = fault.until.map_or(NEVER, probe);
        if answered - first < misses {
            continue;
        }
        found.push((EPOCH.saturating_add(sent(first + misses)), fault.server, false));
        if fault.until.is_some() {
            let heard = sent(answered).saturating_add(2 * delay);
            found.push((EPOCH.saturating_add(heard), fault.server, true));
        }
    }
    found.sort_by_key(|&(at, ..)| at);
    found.into()
}
