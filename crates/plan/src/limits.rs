//! Maximum sizes of the parts of a plan. Larger values would exhaust memory or overflow numbers.

use sojourn_units::{Nanos, SECOND};

/// Maximum number of nodes.
pub const NODES: usize = 1_000_000;
/// Maximum number of links.
pub const LINKS: usize = 1_000_000;
/// Maximum number of shared media.
pub const MEDIA: usize = 10_000;
/// Maximum number of links that have their own columns in series and summary.
pub const SHOWN_LINKS: usize = 64;
/// Maximum number of opportunities in the traces of all links.
pub const OPPORTUNITIES: usize = 5_000_000;
/// Maximum number of changes in the plans of all links.
pub const CHANGES: usize = 250_000;
/// Maximum number of times at which links change in a run, summed over all links.
pub const CHANGE_TIMES: u64 = 50_000_000;
/// Maximum number of groups of flows.
pub const GROUPS: usize = 10_000;
/// Maximum number of flows in all groups.
pub const FLOWS: u64 = 1_000_000;
/// Maximum length of a run in nanoseconds. Sums of squared nanoseconds must be exact in 128 bits.
pub const DURATION: Nanos = 72 * 3600 * SECOND;
/// Maximum number of values in the time series.
pub const SERIES_VALUES: u64 = 50_000_000;
/// Maximum number of rows of the monitor's table, which has two for each flow and sample.
pub const MONITOR_ROWS: u64 = 4_000_000;
/// Maximum propagation delay of a link in nanoseconds, and maximum of its variation.
pub const DELAY: Nanos = 3600 * SECOND;
/// Maximum payload of a datagram or segment in bytes.
pub const PAYLOAD: u32 = 65_000;
/// Maximum number of bytes captured of a frame.
pub const SNAPLEN: u32 = 65_535;

/// Maximum number of applications that are not flows of a group.
pub const APPS: usize = 100;
/// Maximum number of balancers.
pub const BALANCERS: usize = 1000;
/// Maximum delay of a balancer's control channel and of its decisions, in nanoseconds. Sums of them
/// cannot overflow.
pub const CONTROL: Nanos = 60 * SECOND;
/// Minimum period of a balancer's readings in nanoseconds.
pub const SHORTEST_PERIOD: Nanos = 10_000;
/// Maximum number of readings in transit to a controller at the same time.
pub const READINGS: u64 = 10_000;
/// Minimum time between two probes of a server in nanoseconds.
pub const SHORTEST_PROBES: Nanos = 1_000_000;
/// Maximum number of unanswered probes after which a server counts as down.
pub const MISSES: u32 = 100;
/// Maximum number of faults of a balancer's servers, and of a store.
pub const FAULTS: usize = 1000;

/// Maximum number of clients of a store.
pub const CLIENTS: usize = 100_000;
/// Maximum number of concurrent requests of a store's client.
pub const OUTSTANDING: u32 = 1 << 20;
/// Maximum number of records that a store has at the beginning.
pub const RECORDS: u64 = 1_000_000_000;
/// Maximum length of a store's record in bytes.
pub const VALUE: u64 = 1 << 24;
/// Maximum number of records that a scan reads.
pub const SCAN: u32 = 100_000;
/// Maximum number of tasks that wait at a store's node.
pub const QUEUE: u32 = 1 << 24;
/// Maximum timeout of a store in nanoseconds.
pub const TIMEOUT: Nanos = 24 * 3600 * SECOND;

/// Limits of numbers in a scenario, by name, for checks of its texts. [`crate::Link::MOST`] has
/// those of a link.
pub const TABLE: &[(&str, u64)] = &[
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
