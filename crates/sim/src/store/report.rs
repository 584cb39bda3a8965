//! What is measured of the store, and its row in the summary.

use super::Store;
use crate::engine::Engine;
use sojourn_measure::{Histogram, Table};
use sojourn_network::{Row, append};
use sojourn_replication::{Ledger, Outcome};
use sojourn_units::{Nanos, SECOND, time::seconds};

/// Kinds of requests: reads, writes, scans.
pub(super) const KINDS: usize = 3;
pub(super) const NAMES: [&str; KINDS] = ["reads", "writes", "scans"];

/// What is measured.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// Requests that are measured begin after this time and this number.
    since: Nanos,
    warmup: u64,
    /// All requests, for the audit, and those measured.
    pub(super) ledgers: [Ledger; KINDS],
    measured: [Ledger; KINDS],
    latency: [Histogram; KINDS],
    /// When the first request measured began, and the last one ended.
    first: Option<Nanos>,
    last: Nanos,
    pub(super) coordinated: Vec<u64>,
    pub(super) stored: Vec<u64>,
    pub(super) messages: u64,
    pub(super) hints: u64,
    pub(super) hints_handed: u64,
    pub(super) mismatches: u64,
    pub(super) repairs: u64,
    pub(super) speculations: u64,
}

impl Report {
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

    /// A request, the `number`-th of all, is made. Says whether it is measured.
    pub(super) fn offer(&mut self, kind: usize, now: Nanos, number: u64) -> bool {
        self.ledgers[kind].offered += 1;
        let measured = now >= self.since && number > self.warmup;
        if measured {
            self.measured[kind].offered += 1;
            self.first.get_or_insert(now);
        }
        measured
    }

    /// A request has an outcome.
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

/// Nodes that have columns of their own at most.
const SHOWN_NODES: usize = 64;

fn requests(row: &mut Row, ledger: &Ledger, latency: &Histogram) {
    row.integer("requests", ledger.offered);
    row.integer("acknowledged", ledger.acknowledged);
    row.integer("unavailable", ledger.unavailable);
    row.integer("errors", ledger.errors);
    row.integer("timed_out", ledger.timed_out);
    row.integer("pending", ledger.pending().unwrap_or(0));
    let moments = latency.moments();
    row.real("latency_mean", moments.mean() / SECOND as f64);
    row.real("latency_sd", moments.deviation() / SECOND as f64);
    let named = [
        ("latency_p50", 0.5),
        ("latency_p95", 0.95),
        ("latency_p99", 0.99),
        ("latency_p999", 0.999),
    ];
    row.quantiles(latency, &named);
    let most = if moments.count() > 0 { seconds(moments.greatest()) } else { f64::NAN };
    row.real("latency_max", most);
}

impl Engine<'_> {
    /// Appends the store's metrics to a summary.
    pub(crate) fn summarise_store(&self, summary: &mut Table) {
        let Some(store) = &self.store else { return };
        let name = &store.params.name;
        let report = &store.report;
        let (mut all, mut latency) = (Ledger::default(), Histogram::new());
        for kind in 0..KINDS {
            all.add(&report.measured[kind]);
            latency.merge(&report.latency[kind]);
        }
        let mut row = Row::default();
        requests(&mut row, &all, &latency);
        let span = report.first.map_or(f64::NAN, |first| seconds(report.last.max(first) - first));
        row.real("elapsed", span);
        row.integer("messages", report.messages);
        row.integer("messages_lost", self.channels.lost);
        row.integer("speculations", report.speculations);
        row.integer("mismatches", report.mismatches);
        row.integer("read_repairs", report.repairs);
        row.integer("hints", report.hints);
        row.integer("hints_handed", report.hints_handed);
        row.integer("unconverged", store.unconverged());
        let tally = self.channel_tally();
        row.integer("retransmissions", tally.retransmissions);
        row.integer("timeouts", tally.timeouts);
        row.integer("recoveries", tally.recoveries);
        append(summary, Some(name), row);
        let kinds = NAMES.iter().zip(&report.measured).zip(&report.latency);
        for ((kind, ledger), latency) in kinds.filter(|((_, ledger), _)| ledger.offered > 0) {
            let mut row = Row::default();
            requests(&mut row, ledger, latency);
            append(summary, Some(&format!("{name}.{kind}")), row);
        }
        if store.params.nodes.len() <= SHOWN_NODES {
            for (i, host) in store.params.nodes.iter().enumerate() {
                let mut row = Row::default();
                row.integer("coordinated", report.coordinated[i]);
                row.integer("stored", report.stored[i]);
                let node = &self.plan.nodes[host.node].name;
                append(summary, Some(&format!("{name}.{node}")), row);
            }
        }
    }

    /// Appends the distribution of the store's latencies.
    pub(crate) fn distribute_store(&self, distributions: &mut Table) {
        let Some(store) = &self.store else { return };
        for (kind, latency) in NAMES.iter().zip(&store.report.latency) {
            if latency.moments().count() > 0 {
                let place = format!("{}.{kind}", store.params.name);
                sojourn_network::append_times(distributions, &place, "latency", latency);
            }
        }
    }
}

impl Store {
    /// Records that not all of their replicas have in the newest version that any of them has.
    fn unconverged(&self) -> u64 {
        let mut newest = std::collections::BTreeMap::new();
        for replica in &self.replicas {
            for (key, version) in replica.versions() {
                let most = newest.entry(key).or_insert(0);
                *most = version.max(*most);
            }
        }
        let mut replicas = Vec::new();
        let mut behind = |key: u64, version: u64| {
            let bytes = self.base.wrapping_add(key).to_be_bytes();
            let token = sojourn_replication::murmur3::token(&bytes);
            self.placement.replicas(&self.ring, token, &mut replicas);
            replicas.iter().any(|&node| self.replicas[node as usize].version(key) < version)
        };
        newest.into_iter().filter(|&(key, version)| behind(key, version)).count() as u64
    }
}
