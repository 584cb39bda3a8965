//! Largest sizes of the parts of a plan. Beyond them memory or 32-bit numbers would be exhausted.

use sojourn_units::{Nanos, SECOND};

/// Nodes.
pub const NODES: usize = 1_000_000;
/// Links.
pub const LINKS: usize = 1_000_000;
/// Shared media.
pub const MEDIA: usize = 10_000;
/// Links that have columns of their own in series and summary.
pub const SHOWN_LINKS: usize = 64;
/// Packets in a device's transmit ring.
pub const RING: u32 = 1_000_000;
/// Opportunities in the traces of all links together.
pub const OPPORTUNITIES: usize = 5_000_000;
/// Changes in the plan of all links together.
pub const CHANGES: usize = 250_000;
/// Times at which links change in a run, each link's counted.
pub const CHANGE_TIMES: u64 = 50_000_000;
/// Groups of flows.
pub const GROUPS: usize = 10_000;
/// Flows in all groups together.
pub const FLOWS: u64 = 1_000_000;
/// Length of a run: exact sums of squared nanoseconds must fit 128 bits.
pub const DURATION: Nanos = 72 * 3600 * SECOND;
/// Values in the time series.
pub const SERIES_VALUES: u64 = 50_000_000;
/// Rows of the monitor's table: two a flow and sample.
pub const MONITOR_ROWS: u64 = 4_000_000;
/// Propagation delay of a link, and its variation.
pub const DELAY: Nanos = 3600 * SECOND;
/// Payload of a datagram or a segment.
pub const PAYLOAD: u32 = 65_000;
/// Bytes kept of a captured frame.
pub const SNAPLEN: u32 = 65_535;

/// Applications of the plan itself.
pub const APPS: usize = 100;
/// Balancers.
pub const BALANCERS: usize = 1000;
/// The longest delay of a control channel, and the longest decision: sums stay far from overflow.
pub const CONTROL: Nanos = 60 * SECOND;
/// The shortest period of readings.
pub const SHORTEST_PERIOD: Nanos = 10_000;
/// Readings on their way to a controller at once.
pub const READINGS: u64 = 10_000;
/// The shortest time between probes.
pub const SHORTEST_PROBES: Nanos = 1_000_000;
/// Probes without an answer.
pub const MISSES: u32 = 100;
/// Faults of a balancer's servers, and of a store.
pub const FAULTS: usize = 1000;

/// Clients of a store.
pub const CLIENTS: usize = 100_000;
/// Requests of a client under way.
pub const OUTSTANDING: u32 = 1 << 20;
/// Records at the beginning.
pub const RECORDS: u64 = 1_000_000_000;
/// Bytes of a record.
pub const VALUE: u64 = 1 << 24;
/// Greatest number of records of a scan.
pub const SCAN: u32 = 100_000;
/// Work that waits at a node.
pub const QUEUE: u32 = 1 << 24;
/// Timeouts of a store.
pub const TIMEOUT: Nanos = 24 * 3600 * SECOND;

/// The limits of numbers in a scenario, by name, for checks of texts.
pub const TABLE: &[(&str, u64)] = &[
    ("ring", RING as u64),
    ("opportunities", OPPORTUNITIES as u64),
    ("flows", FLOWS),
    ("balancers", BALANCERS as u64),
    ("misses", MISSES as u64),
    ("faults", FAULTS as u64),
    ("replicas", sojourn_replication::MOST_REPLICAS as u64),
    ("outstanding", OUTSTANDING as u64),
    ("records", RECORDS),
    ("scan", SCAN as u64),
    ("queue", QUEUE as u64),
];
