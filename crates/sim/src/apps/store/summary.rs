//! The store's metrics in a summary.

use super::Store;
use super::probe::{KINDS, NAMES};
use super::staleness::AGES;
use crate::world::World;
use sojourn_measure::Histogram;
use sojourn_network::Row;
use sojourn_replication::Ledger;
use sojourn_units::{SECOND, time::seconds};

/// Number of nodes above which the summary has no columns for single nodes.
const SHOWN_NODES: usize = 64;

/// Metrics of staleness, by [`AGES`].
const STALE: [&str; AGES.len()] = ["stale_0ms", "stale_10ms", "stale_100ms", "stale_1s"];

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

impl Store {
    /// Returns the rows of the store's metrics with their names.
    pub(super) fn rows(&self, world: &World, id: u32) -> Vec<(String, Row)> {
        let name = &self.params.name;
        let probe = &self.probe;
        let mut rows = Vec::new();
        let (mut all, mut latency) = (Ledger::default(), Histogram::new());
        for kind in 0..KINDS {
            all.add(&probe.measured[kind]);
            latency.merge(&probe.latency[kind]);
        }
        let mut row = Row::default();
        requests(&mut row, &all, &latency);
        let span = probe.first.map_or(f64::NAN, |first| seconds(probe.last.max(first) - first));
        row.real("elapsed", span);
        row.integer("messages", probe.messages);
        row.integer("messages_lost", self.channels.lost);
        row.integer("speculations", probe.speculations);
        row.integer("mismatches", probe.mismatches);
        row.integer("read_repairs", probe.repairs);
        row.integer("hints", probe.hints);
        row.integer("hints_handed", probe.hints_handed);
        row.integer("unconverged", self.unconverged());
        let missed = self.staleness.probabilities(world.now);
        for (name, probability) in STALE.into_iter().zip(missed) {
            row.real(name, probability);
        }
        let tally = world.connections.tallies(world.now)[id as usize];
        row.integer("retransmissions", tally.retransmissions);
        row.integer("timeouts", tally.timeouts);
        row.integer("recoveries", tally.recoveries);
        rows.push((name.clone(), row));
        let kinds = NAMES.iter().zip(&probe.measured).zip(&probe.latency);
        for ((kind, ledger), latency) in kinds.filter(|((_, ledger), _)| ledger.offered > 0) {
            let mut row = Row::default();
            requests(&mut row, ledger, latency);
            rows.push((format!("{name}.{kind}"), row));
        }
        if self.params.nodes.len() <= SHOWN_NODES {
            for (i, host) in self.params.nodes.iter().enumerate() {
                let mut row = Row::default();
                row.integer("coordinated", probe.coordinated[i]);
                row.integer("stored", probe.stored[i]);
                let node = &world.plan.nodes[host.node].name;
                rows.push((format!("{name}.{node}"), row));
            }
        }
        rows
    }

    /// Returns the distributions of the store's latencies.
    pub(super) fn distributions(&self) -> Vec<(String, &'static str, Histogram)> {
        let kinds = NAMES.iter().zip(&self.probe.latency);
        let seen = kinds.filter(|(_, latency)| latency.moments().count() > 0);
        let place = |kind: &str| format!("{}.{kind}", self.params.name);
        seen.map(|(kind, latency)| (place(kind), "latency", latency.clone())).collect()
    }

    /// Returns the number of records of which a replica lacks the newest version that any node has.
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
