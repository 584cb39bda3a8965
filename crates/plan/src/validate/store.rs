//! Validation of a plan's store.

use super::reach::Reach;
use crate::problems::Problems;
use crate::store::{Arrivals, Fault, Store, What};
use crate::{Plan, at, limits};
use sojourn_replication::MOST_TOKENS;
use sojourn_units::Nanos;
use std::collections::BTreeSet;

impl Store {
    /// Checks that indices of nodes and data centres are in range. `app` is the index of the store
    /// among the plan's applications.
    pub(super) fn check_indices(&self, app: usize, plan: &Plan, problems: &mut Problems) {
        for (what, hosts) in [("nodes", &self.nodes), ("clients", &self.clients)] {
            for (i, host) in hosts.iter().enumerate() {
                let at = || at!["apps", app, what, i];
                problems.index(at(), "node", host.node, plan.nodes.len());
                let centre = host.data_centre as usize;
                problems.index(at(), "data centre", centre, self.data_centres.len());
            }
        }
    }

    /// Checks all conditions that a run requires. `app` is the index of the store among the plan's
    /// applications.
    pub(super) fn check(&self, app: usize, plan: &Plan, reach: &Reach, problems: &mut Problems) {
        self.check_hosts(app, plan, reach, problems);
        self.check_placement(app, problems);
        self.check_load(app, problems);
        self.check_workload(app, problems);
        self.check_service(app, problems);
        self.check_speculation(app, problems);
        self.check_faults(app, problems);
    }

    fn check_hosts(&self, app: usize, plan: &Plan, reach: &Reach, problems: &mut Problems) {
        if self.clients.is_empty() || self.clients.len() > limits::CLIENTS {
            let most = limits::CLIENTS;
            problems.add(
                at!["apps", app, "clients"],
                format!("the number of clients must be 1 to {most}"),
            );
        }
        let mut seen = BTreeSet::new();
        for (what, hosts) in [("nodes", &self.nodes), ("clients", &self.clients)] {
            for (i, host) in hosts.iter().enumerate() {
                if !seen.insert(host.node) {
                    let name = &plan.nodes[host.node].name;
                    problems.add(
                        at!["apps", app, what, i],
                        format!("`{name}` must not be listed twice"),
                    );
                }
            }
        }
        let Some(first) = self.nodes.first().map(|host| host.node) else { return };
        let apart = |&node: &usize| !(reach.reaches(first, node) && reach.reaches(node, first));
        let mut hosts = self.nodes.iter().chain(&self.clients).map(|host| host.node);
        if let Some(host) = hosts.find(|host| *host != first && apart(host)) {
            problems.add(at!["apps", app, "nodes"], plan.no_way(first, host));
        }
    }

    fn check_placement(&self, app: usize, problems: &mut Problems) {
        let tokens = self.nodes.len().saturating_mul(self.tokens as usize);
        if self.tokens == 0 || tokens > MOST_TOKENS {
            let message =
                format!("the total number of tokens must be 1 to {MOST_TOKENS}, found {tokens}");
            problems.add(at!["apps", app, "tokens"], message);
            return;
        }
        let ring = match self.ring(0) {
            Ok(ring) => ring,
            Err(why) => return problems.add(at!["apps", app, "nodes"], why),
        };
        if let Err(why) = self.placement.check(&ring) {
            return problems.add(at!["apps", app, "placement"], why);
        }
        for (at, level) in [("write_level", self.write_level), ("read_level", self.read_level)] {
            let local = self.nodes[0].data_centre;
            let (need, all) = (level.need(&self.placement, local).count(), self.placement.factor());
            if need > all {
                let message = format!("the level needs {need} replicas, but there are only {all}");
                problems.add(at!["apps", app, at], message);
            }
        }
    }

    fn check_load(&self, app: usize, problems: &mut Problems) {
        let load = &self.load;
        if load.outstanding > limits::OUTSTANDING {
            let most = limits::OUTSTANDING;
            problems
                .add(at!["apps", app, "load", "outstanding"], format!("must be at most {most}"));
        }
        match &load.arrivals {
            Arrivals::Closed { .. } if load.outstanding == 0 => {
                let message = "must be at least 1 for a closed loop";
                problems.add(at!["apps", app, "load", "outstanding"], message);
            }
            Arrivals::Open { every } => {
                let at = || at!["apps", app, "load", "arrivals", "every"];
                if let Err(why) = every.check() {
                    problems.add(at(), why);
                } else if every.mean().is_nan() || every.mean() < 1.0 {
                    problems.add(at(), "must be above zero");
                }
            }
            Arrivals::Closed { .. } => {}
        }
        if load.requests.is_some_and(|requests| requests <= load.warmup) {
            problems
                .add(at!["apps", app, "load", "warmup"], "must be below the number of requests");
        }
    }

    fn check_workload(&self, app: usize, problems: &mut Problems) {
        let w = &self.workload;
        let at = |field: &'static str| at!["apps", app, "workload", field];
        let shares = [w.read, w.update, w.insert, w.scan, w.modify];
        let sum: f64 = shares.iter().sum();
        if shares.iter().any(|share| !(0.0..=1.0).contains(share)) || (sum - 1.0).abs() > 1e-9 {
            problems
                .add(at!["apps", app, "workload"], "shares must be from 0 to 1 and add up to 1");
        }
        if w.records == 0 && w.insert < 1.0 {
            problems.add(at("records"), "must be above zero: requests read or update records");
        }
        for (field, n, most) in [
            ("records", w.records, limits::RECORDS),
            ("value", w.value, limits::VALUE),
            ("scan_length", w.scan_length.into(), limits::SCAN.into()),
        ] {
            if n > most {
                problems.add(at(field), format!("must be at most {most}"));
            }
        }
        if w.scan > 0.0 && w.scan_length == 0 {
            problems
                .add(at("scan_length"), "must be at least 1, since the workload contains scans");
        }
    }

    fn check_service(&self, app: usize, problems: &mut Problems) {
        let s = &self.service;
        let at = |field: &'static str| at!["apps", app, "service", field];
        for (field, time) in [("coordinate", s.coordinate), ("write", s.write), ("read", s.read)] {
            problems.add_failed(at(field), time.check());
        }
        if s.threads == 0 {
            problems.add(at("threads"), "a node must execute at least one task at a time");
        }
        if s.queue > limits::QUEUE {
            problems.add(at("queue"), format!("must be at most {}", limits::QUEUE));
        }
        let p = &self.patience;
        for (field, span, least) in [
            ("write", p.write, 1),
            ("read", p.read, 1),
            ("client", p.client, 1),
            ("detect", p.detect, 0),
            ("recover", p.recover, 0),
            ("speculate", p.speculate.unwrap_or(0), 0),
        ] {
            if !(least..=limits::TIMEOUT).contains(&span) {
                problems.add(
                    at!["apps", app, "patience", field],
                    "must be above zero and at most one day",
                );
            }
        }
    }

    fn check_speculation(&self, app: usize, problems: &mut Problems) {
        let Some(rule) = self.patience.percentile else { return };
        let at = || at!["apps", app, "patience", "speculate"];
        if !(rule.share > 0.0 && rule.share <= 1.0) {
            problems.add(at(), "a percentile must be above 0 and at most 100");
        }
        if self.patience.speculate.is_some() {
            problems.add(at(), "a fixed time and a percentile exclude each other");
        }
        let most = rule.most.unwrap_or(limits::TIMEOUT);
        if rule.least > most || most > limits::TIMEOUT {
            problems.add(at(), "the waiting time must be at most one day");
        }
    }

    fn check_faults(&self, app: usize, problems: &mut Problems) {
        let (faults, most) = (self.faults.len() as u64, limits::FAULTS as u64);
        problems.at_most(at!["apps", app, "faults"], "faults", faults, most);
        for (i, fault) in self.faults.iter().enumerate() {
            let at = || at!["apps", app, "faults", i];
            if fault.until.is_some_and(|until| until <= fault.at) {
                problems.add(at().join("until"), "the end must be after the begin");
            }
            let (nodes, clients): (&[u32], &[u32]) = match &fault.what {
                What::Crash { node } => (std::slice::from_ref(node), &[]),
                What::Partition { nodes, clients } => (nodes, clients),
            };
            if nodes.iter().any(|&node| node as usize >= self.nodes.len())
                || clients.iter().any(|&client| client as usize >= self.clients.len())
            {
                problems.add(at(), "names a host that the store does not have");
            }
            let during = |other: &Fault| {
                fault.at < other.until.unwrap_or(Nanos::MAX)
                    && other.at < fault.until.unwrap_or(Nanos::MAX)
            };
            if let What::Crash { .. } = fault.what
                && self.faults[..i].iter().any(|other| other.what == fault.what && during(other))
            {
                problems.add(at(), "the crashes of a node must not overlap");
            }
        }
    }
}
