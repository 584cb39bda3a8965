//! Validation of a plan's links: nodes, media, impairments, changes, traces.

use crate::apps::App;
use crate::problems::{Names, Path, Problems};
use crate::{Link, Plan, Wire, at, limits};
use sojourn_link::{Impairments, Trace};
use sojourn_units::Nanos;
use std::collections::BTreeSet;

impl Plan {
    /// Checks that indices of nodes and media are in range.
    pub(super) fn check_ends(&self, problems: &mut Problems) {
        for (i, link) in self.links.iter().enumerate() {
            for (end, node) in [("from", Some(link.from)), ("to", link.to)] {
                if let Some(node) = node {
                    problems.index(at!["links", i, end], "node", node, self.nodes.len());
                }
            }
            if let Some(medium) = link.medium {
                problems.index(at!["links", i, "medium"], "medium", medium, self.media.len());
            } else if link.to.is_none() {
                problems.add(
                    at!["links", i, "to"],
                    "only a link on a shared medium may have no receiver",
                );
            }
        }
    }

    pub(super) fn check_links<'a>(&'a self, problems: &mut Problems, names: &mut Names<'a>) {
        for (i, link) in self.links.iter().enumerate() {
            names.give(problems, || at!["links", i, "name"], &link.name, "a link");
            if link.to == Some(link.from) {
                let node = &self.nodes[link.from].name;
                problems.add(at!["links", i], format!("a link must not join `{node}` to itself"));
            }
            for (key, value, most) in Link::MOST {
                if value(link) > *most {
                    problems.add(at!["links", i, *key], format!("must be at most {most} packets"));
                }
            }
            let sojourn_link::Params { delay, impairments, .. } = &link.params;
            check_wire(problems, || at!["links", i, "params"], *delay, impairments);
            check_changes(problems, i, link);
            check_trace(problems, i, link);
            check_host(problems, i, link);
            if link.offload.is_some() && !(link.host_queue && link.has_own_transmitter()) {
                let message =
                    "`offload` needs `host_queue`, and no `ring`, late host or shared medium";
                problems.add(at!["links", i, "offload"], message);
            }
        }
        self.check_host_queues(problems);
        let changes = self.links.iter().map(|link| link.changes.len() as u64).sum();
        problems.at_most(at!["links"], "changes", changes, limits::CHANGES as u64);
        let traces = self.links.iter().filter_map(|link| link.params.trace.as_ref());
        let opportunities = traces.map(|trace| Trace::len(trace) as u64).sum();
        let most = limits::OPPORTUNITIES as u64;
        problems.at_most(at!["links"], "opportunities", opportunities, most);
    }

    /// Checks that links with a host's own queue begin at hosts.
    fn check_host_queues(&self, problems: &mut Problems) {
        if !self.links.iter().any(|link| link.host_queue) {
            return;
        }
        let ends: BTreeSet<usize> = self.ends().collect();
        for (i, link) in self.links.iter().enumerate().filter(|(_, link)| link.host_queue) {
            if !ends.contains(&link.from) {
                let node = &self.nodes[link.from].name;
                let message = format!("`{node}` is not a host: no flow begins or ends there");
                problems.add(at!["links", i, "host_queue"], message);
            }
        }
    }

    /// Returns the nodes at which flows or connections of applications may begin or end.
    fn ends(&self) -> impl Iterator<Item = usize> {
        let pairs = self.groups.iter().flat_map(|group| &group.pairs);
        let servers = self.balancers.iter().flat_map(|balancer| &balancer.servers);
        let hosts =
            self.apps.iter().flat_map(|App::Store(store)| store.nodes.iter().chain(&store.clients));
        pairs
            .flat_map(|&(from, to)| [from, to])
            .chain(servers.map(|server| server.node))
            .chain(hosts.map(|host| host.node))
    }

    /// Checks that the links do not change too often in a run of length `duration`.
    pub(super) fn check_change_times(&self, problems: &mut Problems, duration: Nanos) {
        let mut times = 0u64;
        for (i, link) in self.links.iter().enumerate() {
            let own = link.changes.iter().map(|change| change.times(duration));
            times = own.fold(times, u64::saturating_add);
            if times > limits::CHANGE_TIMES {
                let most = limits::CHANGE_TIMES;
                let message = format!(
                    "{times} changes in a run: at most {most} are allowed; choose longer periods"
                );
                problems.add(at!["links", i, "changes"], message);
                return;
            }
        }
    }
}

fn check_changes(problems: &mut Problems, i: usize, link: &Link) {
    for (j, change) in link.changes.iter().enumerate() {
        let at = || at!["links", i, "changes", j];
        if change.rate.is_none() && change.wire.is_none() {
            problems.add(at(), "a change must set a rate or netem's impairments");
        }
        if change.rate.is_some() && link.medium.is_some() {
            problems.add(at().join("rate"), "the rate of a shared medium cannot change");
        }
        if change.rate.is_some() && link.params.rate.is_none() {
            problems
                .add(at().join("rate"), "the rate of a link without an initial rate cannot change");
        }
        if let Some(Wire { delay, impairments }) = &change.wire {
            check_wire(problems, || at().join("wire"), *delay, impairments);
        }
    }
}

fn check_trace(problems: &mut Problems, i: usize, link: &Link) {
    if link.params.trace.is_none() {
        return;
    }
    let at = || at!["links", i, "params", "trace"];
    if link.params.rate.is_some() {
        problems.add(at(), "a link must not have both a rate and a trace");
    }
    if !link.has_own_transmitter() || link.host.is_some() {
        let [device, _] = link.features();
        problems.add(at(), format!("a link with {} cannot follow a trace", device[0].phrase));
    }
}

fn check_host(problems: &mut Problems, i: usize, link: &Link) {
    let Some(host) = &link.host else { return };
    if let Err((key, why)) = host.check() {
        problems.add(at!["links", i, "host", key], why);
    }
    if link.medium.is_some() {
        problems.add(at!["links", i, "host"], "hosts of a shared medium cannot be late");
    }
}

/// Checks impairments for values that the texts of a scenario exclude but the numbers of a plan do
/// not.
fn check_wire(problems: &mut Problems, at: impl Fn() -> Path, delay: Nanos, wire: &Impairments) {
    let jitter = wire.jitter.map_or(0, |jitter| jitter.span);
    let slot = wire.slot.map_or(0, |slot| slot.delay.max(slot.spread));
    for (name, span) in [("delay", delay), ("jitter", jitter), ("slot", slot)] {
        if span > limits::DELAY {
            problems.add(at().join(name), "must be at most one hour");
        }
    }
    wire.check(|keys, why| problems.add(keys.iter().fold(at(), |path, key| path.join(*key)), why));
}
