//! Measurements of the store.

use sojourn_measure::Histogram;
use sojourn_replication::{Ledger, Outcome};
use sojourn_units::Nanos;

/// Kinds of requests: reads, writes, scans.
pub(super) const KINDS: usize = 3;
pub(super) const NAMES: [&str; KINDS] = ["reads", "writes", "scans"];

/// The measurements.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    /// Time from which requests are measured: the end of the run's warm-up.
    since: Nanos,
    /// Number of requests at the start of the load that are not measured.
    warmup: u64,
    /// All requests, for the audit.
    pub(super) ledgers: [Ledger; KINDS],
    /// The measured requests.
    pub(super) measured: [Ledger; KINDS],
    pub(super) latency: [Histogram; KINDS],
    /// When the first measured request began.
    pub(super) first: Option<Nanos>,
    /// When the last measured request ended; `since` before the first.
    pub(super) last: Nanos,
    pub(super) coordinated: Vec<u64>,
    pub(super) stored: Vec<u64>,
    pub(super) messages: u64,
    pub(super) hints: u64,
    pub(super) hints_handed: u64,
    pub(super) mismatches: u64,
    pub(super) repairs: u64,
    pub(super) speculations: u64,
}

impl Probe {
    pub(super) fn new(since: Nanos, warmup: u64, nodes: usize) -> Self {
        Self {
            since,
            warmup,
            ledgers: Default::default(),
            measured: Default::default(),
            latency: Default::default(),
            first: None,
            last: since,
            coordinated: vec![0; nodes],
            stored: vec![0; nodes],
            messages: 0,
            hints: 0,
            hints_handed: 0,
            mismatches: 0,
            repairs: 0,
            speculations: 0,
        }
    }

    /// Records that a request is made, the `number`-th of all. Returns whether it is measured.
    pub(super) fn offer(&mut self, kind: usize, now: Nanos, number: u64) -> bool {
        self.ledgers[kind].offered += 1;
        let measured = now >= self.since && number > self.warmup;
        if measured {
            self.measured[kind].offered += 1;
            self.first.get_or_insert(now);
        }
        measured
    }

    /// Records the outcome of a request at `now`.
    pub(super) fn finish(
        &mut self,
        kind: usize,
        outcome: Outcome,
        latency: Nanos,
        measured: bool,
        now: Nanos,
    ) {
        self.ledgers[kind].book(outcome);
        if measured {
            self.measured[kind].book(outcome);
            self.last = now;
            if outcome == Outcome::Acknowledged {
                self.latency[kind].record(latency);
            }
        }
    }
}
