//! The results of a wire, and its counters while it runs.

use crate::capture::Captured;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use sojourn_measure::Histogram;
use sojourn_network::Record;
use sojourn_units::{Nanos, SECOND};

/// Measurements that show whether a run is valid.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// Times from a packet's theoretical arrival to its write to the device.
    pub lateness: Histogram,
    /// Number of events on links.
    pub events: u64,
    /// Number of reads of devices. A super-packet counts once.
    pub reads: u64,
    /// Number of writes to devices. A super-packet counts once.
    pub writes: u64,
    /// Packets that a device did not accept, for example because its host's queue was full.
    pub refused: u64,
    /// Packets lost because the network already held the maximum number of packets.
    pub overflowed: u64,
    /// Packets to addresses of no host in the plan, mostly multicast.
    pub unroutable: u64,
    /// Frames that could not be read, or whose packets are longer than the wire's MTU.
    pub malformed: u64,
    /// Packets discarded at hosts because of a partition.
    pub cut: u64,
    cpu: Nanos,
    wall: Nanos,
}

/// Returns the calling thread's CPU time, in nanoseconds.
fn cpu() -> Nanos {
    span(ClockId::ThreadCPUTime)
}

fn span(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    time.tv_sec as Nanos * SECOND + time.tv_nsec as Nanos
}

impl Health {
    /// Starts the measurement of CPU time.
    pub fn begin(&mut self) {
        self.cpu = cpu();
        self.wall = span(ClockId::Monotonic);
    }

    /// Resets all measurements except `events` at the end of the warm-up.
    pub fn restart(&mut self) {
        *self = Self { events: self.events, ..Self::default() };
        self.begin();
    }

    /// Ends the measurement of CPU time.
    pub fn end(&mut self) {
        self.cpu = cpu().saturating_sub(self.cpu);
        self.wall = span(ClockId::Monotonic).saturating_sub(self.wall);
    }

    /// Returns the measurements in a form for JSON. Call [`Health::end`] first.
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

/// [`Health`] in a form for JSON, with times in seconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HealthReport {
    /// Median of the lateness of writes, in seconds.
    pub lateness_p50: f64,
    /// 99th percentile of the lateness of writes, in seconds.
    pub lateness_p99: f64,
    /// 99.9th percentile of the lateness of writes, in seconds.
    pub lateness_p999: f64,
    /// Maximum lateness of writes, in seconds.
    pub lateness_max: f64,
    /// Number of reads of devices.
    pub reads: u64,
    /// Number of writes to devices.
    pub writes: u64,
    /// Packets that a device did not accept, for example because its host's queue was full.
    pub refused: u64,
    /// Packets lost because the network already held the maximum number of packets.
    pub overflowed: u64,
    /// Packets to addresses of no host in the plan.
    pub unroutable: u64,
    /// Frames that could not be read, or whose packets are longer than the wire's MTU.
    pub malformed: u64,
    /// Packets discarded at hosts because of a partition.
    pub cut: u64,
    /// CPU time of the wire's thread, as a share of the real time.
    pub cpu_share: f64,
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The tables of results, in the form of a simulated run's record.
    pub record: Record,
    /// Measurements that show whether the run is valid.
    pub health: Health,
    /// Result of the replay of each link's journal.
    pub agreements: Vec<Agreement>,
    /// Result of each capture.
    pub captures: Vec<Captured>,
}

/// The result of replaying a link's journal with a new, simulated link.
#[derive(Clone, Debug, Serialize)]
pub struct Agreement {
    /// Name of the link.
    pub link: String,
    /// Whether the replay made the same decisions as the run.
    pub agrees: bool,
    /// Whether the journal was full before the end.
    pub cut: bool,
    /// If the replay agrees: numbers of arrivals, drops, marks, and all entries of the journal.
    pub counts: Option<[usize; 4]>,
    /// If the replay does not agree: the first difference.
    pub difference: Option<String>,
}

/// All counters at one moment. They count from the run's start or, for lateness, from the end of
/// the warm-up.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// Seconds since the run's start.
    pub time: f64,
    /// Nanoseconds of the machine's monotonic clock.
    pub monotonic: Nanos,
    /// Counters of every link.
    pub links: Vec<LinkCounters>,
    /// Median and 99th percentile of the lateness of writes, in seconds.
    pub lateness: [f64; 2],
}

/// Counters of one link.
#[derive(Clone, Debug, Serialize)]
pub struct LinkCounters {
    /// Name of the link.
    pub link: String,
    /// Rate in bit/s; `None` if the link has no rate limit.
    pub rate: Option<u64>,
    /// Name of the queue discipline.
    pub queue: String,
    /// Packets in the queue.
    pub backlog_packets: u32,
    /// Bytes in the queue.
    pub backlog_bytes: u64,
    /// Sojourn time of the packet that left the queue last, in seconds.
    pub sojourn: f64,
    /// Packets and bytes that arrived at the queue.
    pub offered: [u64; 2],
    /// Packets whose transmission began, and bytes transmitted.
    pub sent: [u64; 2],
    /// Packets and bytes that arrived at the far end of the link.
    pub delivered: [u64; 2],
    /// Packets that the queue marked.
    pub marked: u64,
    /// Number of dropped packets for each drop reason.
    pub dropped: Vec<(&'static str, u64)>,
    /// Packets lost on the line.
    pub lost: u64,
    /// Time that the link has spent transmitting, in nanoseconds.
    pub busy: Nanos,
}
