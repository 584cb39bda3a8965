//! The results of a run.

use sojourn_measure::Table;
use sojourn_units::Nanos;

/// The results of one run, which has one plan and one seed.
#[derive(Clone, Debug)]
pub struct Record {
    /// One row: metrics of the run and the bottleneck, then `<name>.<metric>` of groups, links, ...
    pub summary: Table,
    /// One row for each flow of the plan.
    pub flows: Table,
    /// One row for each link.
    pub queues: Table,
    /// Time series: one row for each sample, a column `time` and one for each metric of each link
    /// and group.
    pub series: Table,
    /// Cumulative counts of each flow at each sample; empty unless the plan sets `monitor`.
    pub flow_series: Table,
    /// Histograms: one row for each bin, with the columns place, metric, low, high and count.
    pub distributions: Table,
    /// The captures that the plan requests, one for each link, as pcap files with nanosecond times.
    pub captures: Vec<Vec<u8>>,
    /// Whether a capture reached its maximum size and therefore lacks later packets.
    pub captures_cut: bool,
    /// The qlog traces that the plan requests: name of the file, and its content.
    pub qlogs: Vec<(String, Vec<u8>)>,
    /// Hash over all packet events; 0 unless the plan sets `trace_hash`.
    pub trace_hash: u128,
    /// The same hash over the first 5 s of a run with a user's policy; over the whole run without
    /// such a policy, or if the run is shorter.
    pub early_hash: u128,
    /// Number of events processed.
    pub events: u64,
    /// Whether the run reached the plan's duration; false if it was stopped before.
    pub complete: bool,
    /// Time from the run's start to its end or stop.
    pub reached: Nanos,
}
