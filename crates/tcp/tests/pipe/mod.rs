//! Two ends of a connection and a path in each direction, with a rate, a delay, a drop-tail queue,
//! and a fate for each packet.
#![allow(dead_code, reason = "each test uses its part")]

use sojourn_tcp::{Connection, Flags, Params, Role, Segment};
use sojourn_units::{EPOCH, Nanos, Rate};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Deliver,
    Drop,
    Duplicate,
    /// The packet arrives later by this time, and others overtake it.
    Late(Nanos),
    /// The packet arrives marked if it is ECN-capable, else it is dropped.
    Mark,
}

/// Returns the fate of a packet, from its number on the path (from 1) and the segment.
pub type Judge = Box<dyn FnMut(u64, &Segment) -> Fate>;
/// Gets each segment that leaves: time, end, segment.
pub type Log = Box<dyn FnMut(Nanos, usize, &Segment)>;

/// The path in one direction.
pub struct Path {
    pub rate: Option<Rate>,
    pub delay: Nanos,
    /// Most packets that wait for the transmitter.
    pub limit: usize,
    /// Number of waiting packets above which ECN-capable packets are marked.
    pub mark_above: usize,
    leaving: VecDeque<Nanos>,
    pub sent: u64,
    pub dropped: u64,
    pub marked: u64,
    pub fate: Judge,
}

impl Path {
    pub fn new(rate: Option<Rate>, delay: Nanos, limit: usize) -> Self {
        Self {
            rate,
            delay,
            limit,
            mark_above: usize::MAX,
            leaving: VecDeque::new(),
            sent: 0,
            dropped: 0,
            marked: 0,
            fate: Box::new(|_, _| Fate::Deliver),
        }
    }
}

/// Both ends of a connection, and the paths between them.
pub struct Pipe {
    pub now: Nanos,
    pub ends: [Connection; 2],
    /// `paths[i]` leads away from end `i`.
    pub paths: [Path; 2],
    arrivals: BTreeMap<(Nanos, u64), (usize, Segment, bool)>,
    numbers: u64,
    /// Called for each segment sent: time, end, segment.
    pub log: Option<Log>,
}

impl Pipe {
    pub fn new(params: [&Arc<Params>; 2], paths: [Path; 2]) -> Self {
        let now = EPOCH;
        let ends = [
            Connection::new(params[0], Role::Active, now),
            Connection::new(params[1], Role::Passive, now),
        ];
        Self { now, ends, paths, arrivals: BTreeMap::new(), numbers: 0, log: None }
    }

    /// Returns a pipe with the same parameters at both ends, and the same rate and delay in both
    /// directions.
    pub fn simple(text: &str, rate: &str, delay: Nanos, limit: usize) -> Self {
        let params = Arc::new(Params::parse(text).unwrap());
        let rate = (!rate.is_empty()).then(|| sojourn_units::quantity::parse_rate(rate).unwrap());
        Self::new(
            [&params, &params],
            [Path::new(rate, delay, limit), Path::new(rate, delay, limit)],
        )
    }

    /// Returns the debugging text of an end without its scoreboard.
    pub fn show(&self, end: usize) -> String {
        let text = format!("{:?}", self.ends[end]);
        let ring = text.find("board:").unwrap()..text.find("window: Window").unwrap();
        format!("{}{}", &text[..ring.start], &text[ring.end..])
    }

    /// Lets an end run its due timers and send its segments.
    pub fn drain(&mut self, end: usize) {
        for _ in 0..4 {
            let mut count = 0;
            while let Some(segment) = self.ends[end].poll_transmit(self.now) {
                count += 1;
                assert!(count < 200_000, "an end sends without end");
                self.send(end, segment);
            }
            if self.ends[end].deadline().is_none_or(|at| at > self.now) {
                return;
            }
            self.ends[end].on_deadline(self.now);
        }
        panic!("end {end} is due now, again and again: {}", self.show(end));
    }

    fn send(&mut self, end: usize, segment: Segment) {
        let now = self.now;
        if let Some(log) = &mut self.log {
            log(now, end, &segment);
        }
        let path = &mut self.paths[end];
        path.sent += 1;
        let mut ce = false;
        let mut at = now;
        if let Some(rate) = path.rate {
            while path.leaving.front().is_some_and(|&t| t <= now) {
                path.leaving.pop_front();
            }
            if path.leaving.len() > path.limit {
                path.dropped += 1;
                return;
            }
            ce = path.leaving.len() > path.mark_above;
            at = path.leaving.back().copied().unwrap_or(now).max(now)
                + rate.transmission_time(segment.wire_len());
            path.leaving.push_back(at);
        }
        at += path.delay;
        let mut copies = 1;
        match (path.fate)(path.sent, &segment) {
            Fate::Deliver => {}
            Fate::Drop => {
                path.dropped += 1;
                return;
            }
            Fate::Duplicate => copies = 2,
            Fate::Late(extra) => at += extra,
            Fate::Mark => ce = true,
        }
        if ce {
            if !segment.flags.any(Flags::ECT0 | Flags::ECT1) {
                path.dropped += 1;
                return;
            }
            path.marked += 1;
        }
        for _ in 0..copies {
            self.numbers += 1;
            self.arrivals.insert((at, self.numbers), (1 - end, segment, ce));
        }
    }

    /// Returns the time of the next event.
    pub fn next(&self) -> Option<Nanos> {
        let arrival = self.arrivals.keys().next().map(|k| k.0);
        let timers = self.ends.iter().filter_map(Connection::deadline).min();
        match (arrival, timers) {
            (Some(a), Some(t)) => Some(a.min(t)),
            (a, t) => a.or(t),
        }
    }

    /// Runs the next event. Returns false without an event.
    pub fn step(&mut self) -> bool {
        let Some(at) = self.next() else {
            return false;
        };
        assert!(at >= self.now, "time goes back");
        self.now = at;
        if self.arrivals.keys().next().is_some_and(|k| k.0 == at) {
            let (_, (end, segment, ce)) = self.arrivals.pop_first().unwrap();
            self.ends[end].on_segment(at, &segment, ce);
            self.drain(end);
        } else {
            for end in 0..2 {
                if self.ends[end].deadline() == Some(at) {
                    self.ends[end].on_deadline(at);
                    self.drain(end);
                }
            }
        }
        true
    }

    /// Runs for `span`; the first call also sends the SYN.
    pub fn run(&mut self, span: Nanos) {
        let until = self.now + span;
        self.drain(0);
        while self.next().is_some_and(|at| at <= until) {
            self.step();
        }
        self.now = until;
    }

    /// Runs until `done` returns true, for `span` at most. Returns whether it did.
    pub fn run_until(&mut self, span: Nanos, done: impl Fn(&Self) -> bool) -> bool {
        let until = self.now + span;
        self.drain(0);
        self.drain(1);
        while !done(self) {
            match self.next() {
                Some(at) if at <= until => {
                    self.step();
                }
                Some(_) => return false,
                None => return done(self),
            }
        }
        true
    }
}

/// A small generator of random numbers with a seed (`SplitMix64`).
pub struct Draws(pub u64);

impl Draws {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        ((self.next() >> 11) as f64) < probability * (1u64 << 53) as f64
    }
}
