//! A packet, a recorder of events, and functions that drive a link.
#![allow(dead_code)]

use sojourn_link::{
    Corrupt, Ecn, Event, Headers, Link, Observer, Packet, Params, Sender, Station, TcpView,
};
use sojourn_queue::{Device, Return};
use sojourn_random::Key;
use sojourn_units::quantity::format_rate;
use sojourn_units::{EPOCH, Nanos, Rate};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub number: u32,
    pub bytes: u32,
    pub flow: u32,
    pub ecn: Ecn,
    /// When the packet comes to a link in closed form.
    pub at: Nanos,
}

impl Frame {
    pub fn new(number: u32, bytes: u32) -> Self {
        Self { number, bytes, flow: number % 7, ecn: Ecn::NotEct, at: 0 }
    }
}

impl Packet for Frame {
    fn len(&self) -> u32 {
        self.bytes
    }
    fn truesize(&self) -> u32 {
        self.bytes + 256
    }
    fn flow_hash(&self) -> u32 {
        self.flow.wrapping_mul(0x9E37_79B9)
    }
    fn hosts(&self) -> (u32, u32) {
        (self.flow, 1)
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ce(&mut self) -> bool {
        self.ecn.mark()
    }
}

impl Corrupt for Frame {
    fn corrupt(&mut self, _: u32) {}
}

/// The events in order: time, packet's number, event.
#[derive(Default)]
pub struct Log(pub Vec<(Nanos, u32, Event)>);

impl Log {
    pub fn times(&self, wanted: impl Fn(&Event) -> bool) -> Vec<(u32, Nanos)> {
        self.0.iter().filter(|e| wanted(&e.2)).map(|e| (e.1, e.0)).collect()
    }
    pub fn delivered(&self) -> Vec<(u32, Nanos)> {
        self.times(|what| *what == Event::Delivered)
    }
    pub fn departed(&self) -> Vec<(u32, Nanos)> {
        self.times(|what| *what == Event::Departed)
    }
}

impl Observer<Frame> for Log {
    fn on_event(&mut self, at: Nanos, packet: &Frame, event: Event) {
        self.0.push((at, packet.number, event));
    }
    fn tcp(&self, _: &Frame) -> Option<TcpView> {
        None
    }
    fn headers(&self, _: &Frame) -> Headers {
        Headers::default()
    }

    fn sender(&self, _: &Frame) -> Sender {
        Sender::default()
    }
}

/// Returns a link's parameters from a rate in bit/s (0 for none), words of netem, and a queue's
/// words.
pub fn params(rate: u64, netem: &str, queue: &str) -> Params {
    let rate = Rate::new(rate).map(format_rate).unwrap_or_default();
    Params::parse(&rate, netem, queue).unwrap()
}

pub fn link(params: &Params, seed: u64) -> Link<Frame> {
    Link::new(params, Key::new(seed, "link"), EPOCH)
}

/// The common calls of a link and of a station on its own medium.
pub trait Drive {
    fn send(&mut self, now: Nanos, frame: Frame, log: &mut Log) -> Return;
    fn poll(&mut self, now: Nanos, log: &mut Log);
    fn next_wakeup(&self) -> Option<Nanos>;
    fn assert_conserved(&self);
}

impl Drive for Link<Frame> {
    fn send(&mut self, now: Nanos, frame: Frame, log: &mut Log) -> Return {
        self.send(now, frame, log)
    }
    fn poll(&mut self, now: Nanos, log: &mut Log) {
        self.poll(now, log);
    }
    fn next_wakeup(&self) -> Option<Nanos> {
        self.next_wakeup()
    }
    fn assert_conserved(&self) {
        self.assert_conserved();
    }
}

impl Drive for Station<Frame> {
    fn send(&mut self, now: Nanos, frame: Frame, log: &mut Log) -> Return {
        self.send(now, frame, None, log)
    }
    fn poll(&mut self, now: Nanos, log: &mut Log) {
        self.poll(now, None, log);
    }
    fn next_wakeup(&self) -> Option<Nanos> {
        self.next_wakeup()
    }
    fn assert_conserved(&self) {
        self.assert_conserved();
    }
}

pub fn station(params: &Params, ring: u32, seed: u64) -> Station<Frame> {
    Station::new(params, ring, Key::new(seed, "link"), EPOCH)
}

/// Runs every event at its time, up to `until`.
pub fn run(link: &mut (impl Drive + ?Sized), until: Nanos, log: &mut Log) {
    while let Some(at) = link.next_wakeup().filter(|at| *at <= until) {
        link.poll(at, log);
    }
}

/// Runs all events.
pub fn drain(link: &mut (impl Drive + ?Sized), log: &mut Log) {
    run(link, Nanos::MAX - 1, log);
    link.assert_conserved();
}

/// A queue that shapes.
pub const SHAPER: &str = "cake bandwidth 6mbit rtt 10ms memlimit 40kb";

/// Returns a description of every discipline, with a small limit if it has a limit, and [`SHAPER`].
pub fn all_queues() -> Vec<String> {
    sojourn_queue::tables()
        .iter()
        .filter_map(|table| {
            [format!("{} limit 20", table.name), table.name.to_owned()]
                .into_iter()
                .find(|text| sojourn_queue::Params::parse(text, &Device::default()).is_ok())
        })
        .chain([SHAPER.to_owned()])
        .collect()
}
