//! The results of a run.

use sojourn_measure::Table;
use sojourn_units::Nanos;

/// One run: one plan, one seed.
#[derive(Clone, Debug)]
pub struct Record {
    /// One row: run-level metrics, then `<group>.<metric>`, then `<link>.<metric>`.
    pub summary: Table,
    /// A row a flow; flows that only acknowledge are not flows.
    pub flows: Table,
    /// A row a link.
    pub queues: Table,
    /// Time series, long form: time, place, metric, value.
    pub series: Table,
    /// Each flow's cumulative counts at each sample, if asked for: see the metrics of `monitor`.
    pub flow_series: Table,
    /// Histogram bins: place, metric, low, high, count.
    pub distributions: Table,
    /// One capture for each link asked for, as nanosecond pcap.
    pub captures: Vec<Vec<u8>>,
    /// Whether a capture reached its greatest size and lacks later packets.
    pub captures_cut: bool,
    /// Hash over every packet event; 0 if not asked for.
    pub trace_hash: u128,
    /// Events processed.
    pub events: u64,
    /// Whether the run reached its end.
    pub complete: bool,
    /// Time reached, since the run's start.
    pub reached: Nanos,
}
