//! Controllers of balancers: the assignment of servers to flows and requests, with measurements.
//!
//! A flow's first packet is held at the switch, which is taken to be at the sender. The switch
//! requests a server from the controller, and the flow begins when the answer arrives. Readings of
//! queues for a policy are taken at the switch and reach the controller one delay later.
//!
//! | event | time after the first packet; d is the one-way delay between switch and controller |
//! |---|---|
//! | the request reaches the controller | d |
//! | queues are read, if the policy reads them for each choice | 2 d |
//! | the server is chosen | d, or 3 d with a reading, plus the time of a decision |
//! | the flow begins | one more d |
//!
//! Packets that the flow sends before it begins wait at the switch. If no server is available, the
//! flow makes another request after one second, as TCP does after the loss of a SYN; UDP packets
//! that are due in this second are never sent.
//!
//! # Detection of unreachable servers
//! The controller probes every server once in each period. A probe reaches the server after one
//! delay. If the server is reachable at that time, it answers at once, and the answer takes another
//! delay. If the last `misses` probes had no answer when the next probe is due, the controller
//! takes the server for down and assigns no new flow to it. After the next answer the server is up
//! again. The detection of a fault at time t is therefore between t + `misses` periods and t +
//! (`misses` + 1) periods, each less one delay; the end of a fault is detected at most one period
//! and one delay later. `sojourn lb serve` has the same rule. Probes do not occupy links, so none
//! is lost in a full queue. Flows that are assigned to a server stay with it.

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

/// Time after which a flow makes a new request if its request for a server was refused.
pub const AGAIN: Nanos = SECOND;
/// Bytes of a full frame. A choice counts as misplaced if its server's wait exceeds the least by
/// more than the transmission time of one such frame.
const FRAME: u64 = 1514;

/// The stage of an assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// No server is assigned or requested.
    Idle,
    /// The request is on its way, and queues are read when `advance` is called next.
    Reading,
    /// The controller chooses a server at the next call of `advance`.
    Deciding,
    /// The answer is on its way to the switch.
    Installing,
    /// A server is assigned.
    Open,
    /// The server processes the data that it has received.
    Serving,
}

/// The assignment of a server to a flow or to a request.
#[derive(Clone, Copy, Debug)]
pub struct Assignment {
    /// Index of the balancer.
    pub balancer: usize,
    /// The stage of the assignment.
    pub stage: Stage,
    /// When the server was requested.
    asked: Nanos,
    /// Index of the server that was chosen last.
    pub(super) server: usize,
    /// Node of the server that was assigned last; `None` before the first assignment.
    pub node: Option<usize>,
}

/// The next step of a request for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The request continues at this time.
    Wait(Nanos),
    /// The server with this index is assigned.
    Open(usize),
    /// No server is available.
    Refused,
}

/// Returns the hash that all packets of a connection have in common, for policies that use it.
pub fn hashed(seed: u64, flow: u32, connection: u32) -> Flow {
    let parts = [0, 1].map(|way| hash(seed, flow, connection, way));
    Flow { hash: u64::from(parts[0]) << 32 | u64::from(parts[1]) }
}

impl Assignment {
    /// Returns the assignment of a flow that has not requested a server.
    pub fn new(balancer: usize) -> Self {
        Self { balancer, stage: Stage::Idle, asked: 0, server: 0, node: None }
    }

    /// Returns whether the server is processing received data.
    pub fn is_serving(&self) -> bool {
        self.stage == Stage::Serving
    }

    /// Returns the assignment after its server has finished processing.
    #[must_use]
    pub fn served(self) -> Self {
        Self { stage: Stage::Open, ..self }
    }
}

/// A message from the switch to the controller: a reading of all queues with its time, or the end
/// of an assignment with its server and its duration.
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
    /// Distribution and random numbers of service times; `None` if processing takes no time.
    service: Option<(Distribution, Stream)>,
    /// When the server has processed all data received so far.
    busy: Nanos,
    /// The times in which the server is unreachable.
    faults: Vec<Fault>,
}

impl Server {
    fn read<T, W>(&self, net: &Network<T, W>) -> Reading {
        let backlog = net.link(self.port).backlog();
        let sent = net.link(self.port).stats().departed;
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

    /// Returns the transmission time in seconds of `bytes` at the server's port; 0 without a rate.
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
    /// When the next periodic reading of the queues is due; [`NEVER`] if the policy needs none.
    next_reading: Nanos,
    /// Messages in transit to the controller, with their times of arrival.
    messages: VecDeque<(Nanos, ControlMessage)>,
    /// Detected changes of servers in order of time: time, server's index, and whether it is up.
    found: VecDeque<(Nanos, usize, bool)>,
    /// Vectors of past readings, for reuse without allocation.
    spare: Vec<Vec<Reading>>,
    last: Option<usize>,
    probe: Probe,
}

impl Controller {
    /// Returns the controllers of a plan's balancers.
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

    /// Returns the time of the next periodic reading of any controller, or [`NEVER`].
    pub fn next_of(controllers: &[Self]) -> Nanos {
        controllers.iter().map(|controller| controller.next_reading).min().unwrap_or(NEVER)
    }

    /// Reads the queues if the periodic reading is due at `now`.
    pub fn read_due<T, W>(&mut self, now: Nanos, net: &Network<T, W>) {
        if self.next_reading == now {
            self.read(now, net);
            let period = self.fresh.period().expect("periodic readings have a period");
            self.next_reading = now.saturating_add(period);
        }
    }

    fn read<T, W>(&mut self, now: Nanos, net: &Network<T, W>) {
        let mut readings = self.spare.pop().unwrap_or_default();
        readings.clear();
        readings.extend(self.servers.iter().map(|server| server.read(net)));
        self.send(now, ControlMessage::Read(now, readings));
    }

    /// Sends a message from the switch to the controller. All messages take the same delay, so they
    /// arrive in the order of sending.
    fn send(&mut self, now: Nanos, message: ControlMessage) {
        self.messages.push_back((now.saturating_add(self.delay), message));
    }

    /// Processes the messages and detections that have reached the controller by `now`.
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

    /// Measures a choice when its flow begins; `took` is the time since the request.
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

    /// Advances a request that is due at `now`: makes one step, and all further steps that are due
    /// at the same time.
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
                Stage::Serving | Stage::Open => unreachable!("the flow has a server"),
            };
            asking.stage = stage;
            if at > now {
                return Step::Wait(at);
            }
        }
    }

    /// Passes data that have just been received to the server of an assignment. Returns when the
    /// server has processed them. If that is later than `now`, the stage becomes `Serving`.
    pub fn serve_one(&mut self, now: Nanos, asked: &mut Assignment) -> Nanos {
        let done = self.serve(now, asked.server);
        if done > now {
            asked.stage = Stage::Serving;
        }
        done
    }

    /// Reports to the controller that an assignment, or a request for one, has ended.
    pub fn release(&mut self, now: Nanos, asked: &Assignment) {
        self.send(now, ControlMessage::Finished(asked.server, now - asked.asked));
    }

    /// Returns when `server` will have processed the data that it received at `now` and all earlier
    /// data.
    fn serve(&mut self, now: Nanos, server: usize) -> Nanos {
        let server = &mut self.servers[server];
        let Some((service, stream)) = &mut server.service else { return now };
        server.busy = server.busy.max(now).saturating_add(service.sample_nanos(stream));
        server.busy
    }

    /// Begins the measurements anew at the end of the warm-up.
    pub fn restart(&mut self) {
        self.probe = Probe::new(self.servers.len());
    }

    /// Returns the balancer's measurements.
    pub fn row(&self) -> Row {
        self.probe.row()
    }

    /// Returns the node of the server with index `server`.
    pub(super) fn node(&self, server: usize) -> u32 {
        self.servers[server].node
    }

    /// Returns the nodes of all servers.
    pub fn nodes(&self) -> impl Iterator<Item = u32> + '_ {
        self.servers.iter().map(|server| server.node)
    }
}

/// Returns the detections of faults and of their ends, by the rule of the module's comment: time,
/// server's index, and whether the server is up.
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
    // `probe`: number of the first probe that reaches its server at this time or later.
    // `sent`: time at which a probe is sent.
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
