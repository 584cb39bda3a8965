//! The results of a wire, and its reports while it runs.

use crate::capture::Captured;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use sojourn_measure::Histogram;
use sojourn_network::Record;
use sojourn_units::{Nanos, SECOND};

/// The evidence of a run's validity.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// From the theoretical time of a packet's arrival to its write.
    pub lateness: Histogram,
    /// Events on links.
    pub events: u64,
    /// Reads of devices, and writes to them: super-packets count once.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Packets that a device would not take: its host's queue was full.
    pub refused: u64,
    /// Packets lost because too many were in the network at once.
    pub overflowed: u64,
    /// Packets to addresses of no node: multicast mostly.
    pub unroutable: u64,
    /// Super-packets that could not be split.
    pub malformed: u64,
    /// Packets thrown away at hosts that a partition keeps apart.
    pub cut: u64,
    cpu: Nanos,
    wall: Nanos,
}

/// Returns the calling thread's time on the processor.
fn cpu() -> Nanos {
    span(ClockId::ThreadCPUTime)
}

fn span(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    time.tv_sec as Nanos * SECOND + time.tv_nsec as Nanos
}

impl Health {
    /// The clocks start.
    pub fn begin(&mut self) {
        self.cpu = cpu();
        self.wall = span(ClockId::Monotonic);
    }

    /// The warm-up is over.
    pub fn restart(&mut self) {
        *self = Self { events: self.events, ..Self::default() };
        self.begin();
    }

    /// The run is over.
    pub fn end(&mut self) {
        self.cpu = cpu().saturating_sub(self.cpu);
        self.wall = span(ClockId::Monotonic).saturating_sub(self.wall);
    }

    /// In plain numbers, after the end.
    pub fn report(&self) -> HealthReport {
        let late = |q| self.lateness.quantile(q) / SECOND as f64;
        HealthReport {
            lateness_p50: late(0.5),
            lateness_p99: late(0.99),
            lateness_p999: late(0.999),
            lateness_max: late(1.0),
            reads: self.reads,
            writes: self.writes,
            refused: self.refused,
            overflowed: self.overflowed,
            unroutable: self.unroutable,
            malformed: self.malformed,
            cut: self.cut,
            cpu_share: self.cpu as f64 / self.wall as f64,
        }
    }
}

/// [`Health`] in plain numbers; times in seconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HealthReport {
    /// Median of the time by which writes are late.
    pub lateness_p50: f64,
    /// Its 99th percentile.
    pub lateness_p99: f64,
    /// Its 99.9th percentile.
    pub lateness_p999: f64,
    /// Its greatest.
    pub lateness_max: f64,
    /// Reads of devices.
    pub reads: u64,
    /// Writes to devices.
    pub writes: u64,
    /// Packets that a device would not take.
    pub refused: u64,
    /// Packets lost for lack of room in the wire.
    pub overflowed: u64,
    /// Packets to addresses of no node.
    pub unroutable: u64,
    /// Super-packets that could not be split.
    pub malformed: u64,
    /// Packets thrown away at hosts that a partition keeps apart.
    pub cut: u64,
    /// Share of the time that the loop was on a processor.
    pub cpu_share: f64,
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The tables, as a simulated run's.
    pub record: Record,
    /// The evidence of their validity.
    pub health: Health,
    /// The links' journals, replayed.
    pub agreements: Vec<Agreement>,
    /// The results of captures.
    pub captures: Vec<Captured>,
}

/// The results of replaying a link's journal through a fresh link.
#[derive(Clone, Debug, Serialize)]
pub struct Agreement {
    /// The link's name.
    pub link: String,
    /// Whether it decided the same.
    pub agrees: bool,
    /// Whether the journal was full before the end.
    pub cut: bool,
    /// Arrivals, drops, marks, and all that happened, if it agrees.
    pub counts: Option<[usize; 4]>,
    /// The first difference, if it does not.
    pub difference: Option<String>,
}

/// All counters at one moment, since the start of the run.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// Seconds since the run's start.
    pub time: f64,
    /// Nanoseconds of the machine's monotonic clock.
    pub monotonic: Nanos,
    /// Every link.
    pub links: Vec<LinkCounters>,
    /// Median and 99th percentile of the time by which writes are late, seconds.
    pub lateness: [f64; 2],
}

/// One link's counters.
#[derive(Clone, Debug, Serialize)]
pub struct LinkCounters {
    /// Its name.
    pub link: String,
    /// Its rate in bit/s, if it has one.
    pub rate: Option<u64>,
    /// Name of its queue discipline.
    pub queue: String,
    /// Packets queued now.
    pub backlog_packets: u32,
    /// Bytes queued now.
    pub backlog_bytes: u64,
    /// Sojourn time of the packet that left last, seconds.
    pub sojourn: f64,
    /// Packets and bytes that came to the queue.
    pub offered: [u64; 2],
    /// Packets whose transmission began, and bytes transmitted.
    pub sent: [u64; 2],
    /// Packets and bytes that arrived at the far end.
    pub delivered: [u64; 2],
    /// Packets that the queue marked.
    pub marked: u64,
    /// Packets that the queue dropped, by reason.
    pub dropped: Vec<(&'static str, u64)>,
    /// Packets lost on the line.
    pub lost: u64,
    /// Nanoseconds of transmission.
    pub busy: Nanos,
}
