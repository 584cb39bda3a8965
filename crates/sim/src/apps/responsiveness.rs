//! Tests of responsiveness: load-generating connections, foreign probes on separate connections,
//! and self probes on the load-generating connections.
//!
//! The flow's sender is the server, its receiver the client. First the client sends foreign probes
//! on the path without load; when they are complete, or after ten intervals, the load begins. A
//! load-generating connection is opened by the end that sends the load. A self probe is data of
//! that connection. In the direction of the load it follows the sent data and precedes all unsent
//! data, as with a server that keeps no unsent data in its socket (`TCP_NOTSENT_LOWAT`).

use crate::app::{App, Declared, Event, Report};
use crate::world::{Change, Handle, NEVER, World};
use sojourn_measure::Imbalance;
use sojourn_network::{Node, Place};
use sojourn_plan::PlanError;
use sojourn_random::Stream;
use sojourn_tcp::State;
use sojourn_traffic::responsiveness::{Params, Test, Timing, exchange, sizes};
use sojourn_units::{EPOCH, Nanos};
use std::collections::VecDeque;

/// Number of foreign probes on the path without load.
const IDLE_PROBES: u32 = 10;
/// Number of intervals after which the load begins even if some foreign probes are not complete.
const IDLE_INTERVALS: u32 = 10;
/// Maximum number of foreign probes at one time, and of self probes on one connection at one time.
const MOST_OPEN: usize = 1000;

/// A request or an answer on a load-generating connection.
#[derive(Clone, Copy, Debug)]
struct Message {
    /// When the request was made.
    asked: Nanos,
    /// Bytes of the message's direction up to the end of the message.
    end: u64,
}

/// A load-generating connection.
#[derive(Clone, Debug)]
struct Load {
    /// 0 for download, 1 for upload.
    way: usize,
    /// Slot of the opener's end, which sends the load.
    slot: u32,
    /// Whether the connection exists.
    open: bool,
    /// Requests in transit to the server.
    requests: VecDeque<Message>,
    /// Answers in transit to the client.
    answers: VecDeque<Message>,
    /// Bytes from the client up to the end of the last request.
    asked: u64,
    /// Bytes from the server up to the end of the last answer.
    answered: u64,
    /// Bytes of load delivered.
    delivered: u64,
}

impl Load {
    fn client(&self) -> u32 {
        self.slot + u32::from(self.way == 0)
    }

    fn server(&self) -> u32 {
        self.slot + u32::from(self.way == 1)
    }
}

/// A foreign probe, which has its own connection.
#[derive(Clone, Copy, Debug)]
struct Foreign {
    /// Whether the probe was sent before the load began.
    idle: bool,
    /// Number of exchanges begun, first of TLS and then of HTTP; 0 during TCP's handshake.
    stage: u32,
    /// When the present exchange or handshake began.
    since: Nanos,
    /// Bytes that the server will have received at the end of the present request.
    asked: u64,
    /// Bytes that the client will have received at the end of the present answer.
    answered: u64,
    /// Bytes of the answer that the server has not written yet.
    due: u64,
    /// Duration of TCP's handshake.
    tcp: Nanos,
    /// Sum of the durations of all TLS exchanges.
    tls: Nanos,
}

/// The phase of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The test has not begun.
    Waiting,
    /// The client probes the path without load; the number counts the intervals so far.
    Idle(u32),
    /// The path is loaded and probed.
    Loaded,
    /// The test has its result, and continues to load the path.
    Held,
    /// The test is over. Probes that complete later are not counted.
    Over,
    /// A load-generating connection ended early, so the test has no result.
    Aborted,
}

/// A test of responsiveness.
#[derive(Clone, Debug)]
pub struct Responsiveness {
    params: Params,
    test: Test,
    draws: Stream,
    /// Server and client, and the paths to the client and to the server.
    ends: (Node, Node, Place, Place),
    phase: Phase,
    loads: Vec<Load>,
    /// Foreign probes in progress, in slots that are reused.
    foreign: Vec<Option<Foreign>>,
    /// When the next probe is sent, or [`NEVER`].
    probe_at: Nanos,
    /// When the present interval ends, or [`NEVER`].
    evaluate_at: Nanos,
    /// Number of probes sent.
    sent: u32,
    /// Bytes of load delivered up to the last evaluation, for download and upload.
    delivered: [u64; 2],
    /// Whether the present interval is not evaluated because the warm-up ended in it.
    cut: bool,
}

impl Responsiveness {
    /// Makes the steps of the test that are due, and sets the timer to the next one.
    fn advance(&mut self, world: &mut World, id: u32) {
        let now = world.now;
        if now >= world.flows[id as usize].stop {
            return self.finish(world, id, Phase::Over);
        }
        if self.phase == Phase::Waiting {
            let flow = &world.flows[id as usize];
            self.ends = (flow.nodes.0, flow.nodes.1, flow.places.0, flow.places.1);
            world.groups[flow.group as usize].begin(now);
            self.phase = Phase::Idle(0);
            (self.probe_at, self.evaluate_at) = (now, now + self.params.interval);
        }
        if self.evaluate_at <= now {
            self.evaluate_at = now + self.params.interval;
            match self.phase {
                Phase::Idle(passed) => self.rest(world, id, passed + 1),
                _ => self.evaluate(world, id),
            }
        }
        if self.probe_at <= now && self.is_under_way() {
            self.probe(world, id);
        }
        let stop = world.flows[id as usize].stop;
        let next = self.probe_at.min(self.evaluate_at).min(stop);
        if next != NEVER && !matches!(self.phase, Phase::Over | Phase::Aborted) {
            world.set_timer(id, next);
        }
    }

    fn is_under_way(&self) -> bool {
        matches!(self.phase, Phase::Idle(_) | Phase::Loaded)
    }

    /// Handles the end of an interval without load, the `passed`-th one: begins the load if all
    /// foreign probes are complete or the maximum number of intervals has passed.
    fn rest(&mut self, world: &mut World, id: u32, passed: u32) {
        let waits = self.foreign.iter().any(Option::is_some);
        if waits && passed < IDLE_INTERVALS {
            self.phase = Phase::Idle(passed);
            return;
        }
        self.phase = Phase::Loaded;
        self.cut = false;
        self.probe_at = NEVER;
        self.load(world, id, self.params.initial);
    }

    /// Handles the end of an interval with load: evaluates it, and ends the test or adds load.
    fn evaluate(&mut self, world: &mut World, id: u32) {
        let mut total = [0; 2];
        for load in &self.loads {
            total[load.way] += load.delivered;
        }
        let bytes = [0, 1].map(|way| total[way] - self.delivered[way]);
        self.delivered = total;
        if std::mem::take(&mut self.cut) {
            self.test.skip();
        } else if self.test.evaluate(bytes) && world.now > EPOCH + world.plan.warmup {
            if self.params.hold {
                (self.phase, self.probe_at, self.evaluate_at) = (Phase::Held, NEVER, NEVER);
                return;
            }
            return self.finish(world, id, Phase::Over);
        }
        self.load(world, id, self.params.add);
        if let Some(gap) = self.test.gap() {
            // The new gap may be shorter than the one for which the next probe was scheduled.
            self.probe_at = self.probe_at.min(world.now.saturating_add(gap));
        }
    }

    /// Opens up to `more` further connections in each loaded direction, within the maximum.
    fn load(&mut self, world: &mut World, id: u32, more: u32) {
        let (server, client, down, up) = self.ends;
        for way in (0..2).filter(|&way| self.test.loads(way)) {
            let open = self.loads.iter().filter(|load| load.way == way).count() as u32;
            for _ in 0..more.min(self.params.most.saturating_sub(open)) {
                let ends =
                    if way == 0 { (server, client, down, up) } else { (client, server, up, down) };
                let tag = self.loads.len() as u32;
                let slot = world.open(id, (tag, true, true), ends);
                world.connections.end(slot).write_unlimited();
                let gone = world.flush(slot);
                assert!(gone.is_none(), "a new connection waits for an answer");
                self.loads.push(Load {
                    way,
                    slot,
                    open: true,
                    requests: VecDeque::new(),
                    answers: VecDeque::new(),
                    asked: 0,
                    answered: 0,
                    delivered: 0,
                });
            }
        }
    }

    /// Sends the next probe, and sets the time of the one after it.
    fn probe(&mut self, world: &mut World, id: u32) {
        let now = world.now;
        let gap = match self.phase {
            Phase::Idle(_) => self.params.interval / u64::from(2 * IDLE_PROBES),
            _ => self.test.gap().unwrap_or(NEVER),
        };
        self.probe_at = now.saturating_add(gap);
        let idle = self.phase != Phase::Loaded;
        if idle && self.sent + 1 >= IDLE_PROBES {
            self.probe_at = NEVER;
        }
        self.sent = self.sent.wrapping_add(1);
        if idle || self.sent.is_multiple_of(2) {
            self.probe_apart(world, id, idle);
        } else {
            self.probe_load(world, id);
        }
    }

    /// Opens a connection for a foreign probe.
    fn probe_apart(&mut self, world: &mut World, id: u32, idle: bool) {
        let free = self.foreign.iter().position(Option::is_none);
        let tag = free.unwrap_or(self.foreign.len());
        if tag >= MOST_OPEN {
            return;
        }
        if tag == self.foreign.len() {
            self.foreign.push(None);
        }
        self.foreign[tag] = Some(Foreign {
            idle,
            stage: 0,
            since: world.now,
            asked: 0,
            answered: 0,
            due: 0,
            tcp: 0,
            tls: 0,
        });
        let (server, client, down, up) = self.ends;
        let slot = world.open(id, (tag as u32, false, true), (client, server, up, down));
        let gone = world.flush(slot);
        assert!(gone.is_none(), "a new connection waits for an answer");
    }

    /// Sends a self probe on one of the connections that carry load.
    fn probe_load(&mut self, world: &mut World, id: u32) {
        let mut active = |load: &Load| {
            let room = load.requests.len() + load.answers.len() < MOST_OPEN;
            room && load.open && world.connections.end(load.client()).state() == State::Established
        };
        let found: Vec<usize> = (0..self.loads.len()).filter(|&i| active(&self.loads[i])).collect();
        if found.is_empty() {
            return;
        }
        let load = &mut self.loads[found[self.draws.below(found.len() as u64) as usize]];
        let client = load.client();
        load.asked = write(world, client, load.way == 1, load.asked, sizes::REQUEST);
        load.requests.push_back(Message { asked: world.now, end: load.asked });
        if world.flush(client).is_some() {
            load.open = false;
            self.finish(world, id, Phase::Aborted);
        }
    }

    /// Handles the delivery of data at an end of a load-generating connection.
    fn follow_load(&mut self, world: &mut World, connection: Handle, delivered: u64) {
        let load = &mut self.loads[connection.tag as usize];
        if connection.slot != load.slot {
            load.delivered = delivered;
        }
        if connection.slot == load.server() {
            while let Some(request) = due(&mut load.requests, delivered) {
                let server = load.server();
                load.answered = write(world, server, load.way == 0, load.answered, sizes::ANSWER);
                load.answers.push_back(Message { asked: request.asked, end: load.answered });
            }
        } else {
            while let Some(answer) = due(&mut load.answers, delivered) {
                if self.phase == Phase::Loaded {
                    self.test.record(Timing::Loaded, world.now - answer.asked, false);
                }
            }
        }
    }

    /// Handles the arrival of a segment at an end of a foreign probe's connection.
    fn follow_apart(&mut self, world: &mut World, connection: Handle, delivered: u64) {
        let Some(probe) = &mut self.foreign[connection.tag as usize] else { return };
        let tcp = world.connections.end(connection.slot);
        if !connection.slot.is_multiple_of(2) {
            if probe.due > 0 && delivered >= probe.asked {
                tcp.write(std::mem::take(&mut probe.due));
            }
            return;
        }
        let now = world.now;
        let exchanges = self.params.tls + 1;
        if probe.stage == 0 {
            if tcp.state() != State::Established {
                return;
            }
            probe.tcp = now - probe.since;
        } else if probe.stage > exchanges || delivered < probe.answered {
            return;
        } else if probe.stage < exchanges {
            probe.tls += now - probe.since;
        } else {
            tcp.close();
            let (probe, http) = (*probe, now - probe.since);
            self.complete(&probe, http);
            self.foreign[connection.tag as usize] = Some(Foreign { stage: exchanges + 1, ..probe });
            return;
        }
        let (request, answer) = exchange(probe.stage, self.params.tls);
        probe.stage += 1;
        probe.since = now;
        probe.asked += request;
        probe.answered += answer;
        probe.due = answer;
        tcp.write(request);
    }

    /// Records the durations of a foreign probe that has received its HTTP answer.
    fn complete(&mut self, probe: &Foreign, http: Nanos) {
        // A probe that was sent before the load began and is completed under load is not counted.
        if !self.is_under_way() || probe.idle == (self.phase == Phase::Loaded) {
            return;
        }
        self.test.record(Timing::Tcp, probe.tcp, probe.idle);
        if self.params.tls > 0 {
            let trip = probe.tls / u64::from(self.params.tls);
            self.test.record(Timing::Tls, trip, probe.idle);
        }
        self.test.record(Timing::Http, http, probe.idle);
    }

    /// Ends the test and its load; `last` is the final phase.
    fn finish(&mut self, world: &mut World, id: u32, last: Phase) {
        world.clear_timer(id);
        if matches!(self.phase, Phase::Over | Phase::Aborted) {
            return;
        }
        let begun = self.phase != Phase::Waiting;
        self.phase = last;
        for load in self.loads.iter_mut().filter(|load| load.open) {
            for slot in [load.slot, load.slot + 1] {
                if load.open {
                    world.connections.end(slot).close();
                    load.open = world.flush(slot).is_none();
                }
            }
        }
        if begun {
            world.end_flow(id);
        }
    }
}

/// Writes a message of `bytes` at an end whose last message ended after `last` bytes. Returns the
/// number of bytes up to the end of this message. If the end is `unlimited`, it always has data,
/// and the message takes the next bytes that are sent.
fn write(world: &mut World, slot: u32, unlimited: bool, last: u64, bytes: u64) -> u64 {
    let tcp = world.connections.end(slot);
    if unlimited {
        return last.max(tcp.bytes_acked() + tcp.bytes_outstanding()) + bytes;
    }
    tcp.write(bytes);
    last + bytes
}

/// Removes and returns the first message if it ends within the first `delivered` bytes.
fn due(messages: &mut VecDeque<Message>, delivered: u64) -> Option<Message> {
    let first = *messages.front().filter(|message| message.end <= delivered)?;
    messages.pop_front();
    Some(first)
}

impl App for Responsiveness {
    fn try_new(declared: Declared, world: &mut World, id: u32) -> Result<Option<Self>, PlanError> {
        let Declared::Flow(group, planned) = declared else { return Ok(None) };
        let sojourn_traffic::App::Responsiveness(params) = &group.app else { return Ok(None) };
        let flow = &world.flows[id as usize];
        let ends = (flow.nodes.0, flow.nodes.1, flow.places.0, flow.places.1);
        world.start_timer(id, flow.start);
        Ok(Some(Self {
            params: *params,
            test: Test::new(params),
            draws: planned.key.stream("connection"),
            ends,
            phase: Phase::Waiting,
            loads: Vec::new(),
            foreign: Vec::new(),
            probe_at: NEVER,
            evaluate_at: NEVER,
            sent: 0,
            delivered: [0; 2],
            cut: false,
        }))
    }

    fn on_timer(&mut self, world: &mut World, id: u32) {
        world.clear_timer(id);
        self.advance(world, id);
    }

    fn on_event(&mut self, world: &mut World, id: u32, event: Event) {
        let Event::Connection(connection, change) = event else { return };
        match change {
            Change::Progress { delivered, .. } if connection.forward => {
                self.follow_load(world, connection, delivered);
            }
            Change::Progress { delivered, .. } => self.follow_apart(world, connection, delivered),
            Change::Closed | Change::Lost if connection.forward => {
                self.loads[connection.tag as usize].open = false;
                if self.phase == Phase::Loaded {
                    self.finish(world, id, Phase::Aborted);
                }
            }
            Change::Closed | Change::Lost => self.foreign[connection.tag as usize] = None,
            Change::Complete | Change::Settled => {}
        }
    }

    fn restart(&mut self) {
        self.test.restart();
        self.cut = true;
    }

    fn audit(&self, _world: &World, _id: u32) -> Result<(), Imbalance> {
        Ok(())
    }

    fn report(&self, _world: &World, _id: u32) -> Report {
        let aborted = self.phase == Phase::Aborted;
        let outcome = self.test.outcome().filter(|_| !aborted);
        let idle = self.test.idle();
        let [tcp, tls, http, own] = outcome.map_or([f64::NAN; 4], |outcome| outcome.means);
        let found = |of: fn(sojourn_traffic::responsiveness::Responsiveness) -> f64| {
            outcome.map_or(f64::NAN, |outcome| of(outcome.responsiveness))
        };
        let total = found(|r| r.total);
        Report {
            means: vec![
                ("responsiveness_08", total),
                ("responsiveness_08_foreign", found(|r| r.foreign)),
                ("responsiveness_08_loaded", found(|r| r.loaded)),
                ("responsiveness_08_idle", 60.0 / idle),
                (
                    "responsiveness_08_confidence",
                    outcome.map_or(f64::NAN, |o| f64::from(o.confidence as u8)),
                ),
                ("probe_tcp", tcp),
                ("probe_tls", tls),
                ("probe_http", http),
                ("probe_loaded", own),
                ("probe_added", 60.0 / total - idle),
            ],
            ..Report::default()
        }
    }
}
