//! Validation of a plan: whether it can be run.

mod balancers;
mod links;
mod reach;
mod store;

use crate::problems::{Names, PlanErrors, Problems};
use crate::{Bottleneck, Group, Plan, Transport, at, limits};
use reach::Reach;
use sojourn_traffic::App;
use sojourn_units::quantity::format_time;
use sojourn_units::{Nanos, SECOND};
use std::collections::BTreeSet;

impl Plan {
    /// Checks all conditions that a run requires.
    ///
    /// # Errors
    /// All errors in the plan. If a size or an index is out of range, only errors of sizes and
    /// indices are returned, since the other checks rely on them.
    pub fn validate(&self) -> Result<(), PlanErrors> {
        let mut problems = Problems::default();
        self.check_sizes(&mut problems);
        self.check_indices(&mut problems);
        problems.result()?;
        let duration = self.check_times(&mut problems);
        self.check_names_and_links(&mut problems);
        for i in 0..self.groups.len() {
            self.check_group(&mut problems, i, duration);
        }
        self.check_balancers(&mut problems);
        let reach = Reach::new(self);
        self.check_routes(&mut problems, &reach);
        for (i, crate::App::Store(store)) in self.apps.iter().enumerate() {
            store.check(i, self, &reach, &mut problems);
        }
        if let Some(duration) = duration {
            self.check_change_times(&mut problems, duration);
            self.check_series(&mut problems, duration);
        }
        self.check_observe(&mut problems);
        problems.result()
    }

    /// Checks that the plan has no part that needs real hosts, which the simulator does not have.
    ///
    /// # Errors
    /// All parts that need real hosts.
    pub fn check_simulated(&self) -> Result<(), PlanErrors> {
        let mut problems = Problems::default();
        for (i, group) in self.groups.iter().enumerate() {
            if matches!(group.app, App::Command(_)) {
                let name = &group.name;
                let message = format!(
                    "`{name}` runs a program, which the simulator cannot do: use `sojourn lab run` or \
                     `--engine linux`"
                );
                problems.add(at!["groups", i, "app"], message);
            }
        }
        problems.result()
    }

    /// Returns the links that have their own columns in series and summary: all links if there are
    /// at most [`limits::SHOWN_LINKS`], otherwise those of the bottleneck under the same condition.
    pub fn shown_links(&self) -> Vec<usize> {
        let bottleneck = &self.observe.bottleneck.links;
        if self.links.len() <= limits::SHOWN_LINKS {
            (0..self.links.len()).collect()
        } else if bottleneck.len() <= limits::SHOWN_LINKS {
            bottleneck.clone()
        } else {
            Vec::new()
        }
    }

    fn flow_count(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.count)).sum()
    }

    fn check_sizes(&self, problems: &mut Problems) {
        let balanced: usize = self.balancers.iter().map(|balancer| balancer.servers.len()).sum();
        for (key, what, n, limit) in [
            ("nodes", "nodes", self.nodes.len(), limits::NODES),
            ("media", "media", self.media.len(), limits::MEDIA),
            ("links", "links", self.links.len(), limits::LINKS),
            ("groups", "groups", self.groups.len(), limits::GROUPS),
            ("balancers", "balancers", self.balancers.len(), limits::BALANCERS),
            ("apps", "applications", self.apps.len(), limits::APPS),
            ("balancers", "servers", balanced, limits::GROUPS),
        ] {
            problems.at_most(at![key], what, n as u64, limit as u64);
        }
    }

    fn check_indices(&self, problems: &mut Problems) {
        self.check_ends(problems);
        let nodes = self.nodes.len();
        for (i, group) in self.groups.iter().enumerate() {
            for (j, &(from, to)) in group.pairs.iter().enumerate() {
                problems.index(at!["groups", i, "pairs", j], "node", from, nodes);
                problems.index(at!["groups", i, "pairs", j], "node", to, nodes);
            }
            if let Some(balancer) = group.balancer {
                let at = at!["groups", i, "balancer"];
                problems.index(at, "balancer", balancer, self.balancers.len());
            }
        }
        for (i, balancer) in self.balancers.iter().enumerate() {
            balancer.check_indices(i, self, problems);
        }
        for (i, crate::App::Store(store)) in self.apps.iter().enumerate() {
            store.check_indices(i, self, problems);
        }
        for (j, &link) in self.observe.bottleneck.links.iter().enumerate() {
            let at = at!["observe", "bottleneck", "links", j];
            problems.index(at, "link", link, self.links.len());
        }
        for (j, &link) in self.observe.capture.iter().enumerate() {
            problems.index(at!["observe", "capture", j], "link", link, self.links.len());
        }
    }

    /// Checks duration and warm-up. Returns the duration if it is valid.
    fn check_times(&self, problems: &mut Problems) -> Option<Nanos> {
        if self.duration == 0 {
            problems.add(at!["duration"], "must be above zero");
            return None;
        }
        if self.duration > limits::DURATION {
            let hours = limits::DURATION / 3600 / SECOND;
            problems.add(at!["duration"], format!("must be at most {hours} hours"));
            return None;
        }
        if self.warmup >= self.duration {
            let length = format_time(self.duration);
            problems.add(at!["warmup"], format!("must be shorter than the duration ({length})"));
        }
        Some(self.duration)
    }

    /// Checks links and media, and that names are unique: results are identified by the names of
    /// links, media, balancers, groups and applications.
    fn check_names_and_links(&self, problems: &mut Problems) {
        let mut nodes = Names::default();
        for (i, node) in self.nodes.iter().enumerate() {
            nodes.give(problems, || at!["nodes", i, "name"], &node.name, "a node");
        }
        let mut names = Names::default();
        for (i, medium) in self.media.iter().enumerate() {
            names.give(problems, || at!["media", i, "name"], &medium.name, "a medium");
            problems.add_failed(at!["media", i, "access"], medium.access.check());
        }
        self.check_links(problems, &mut names);
        let bottleneck = &self.observe.bottleneck;
        // A medium's columns differ from those of its links, so the bottleneck may have the
        // medium's name.
        let lent = self.media.iter().any(|medium| medium.name == bottleneck.name);
        if bottleneck.links.len() > 1 && !lent {
            let at = || at!["observe", "bottleneck"];
            names.give(problems, at, &bottleneck.name, "the bottleneck");
        }
        for (i, balancer) in self.balancers.iter().enumerate() {
            names.give(problems, || at!["balancers", i, "name"], &balancer.name, "a balancer");
        }
        for (i, group) in self.groups.iter().enumerate() {
            names.give(problems, || at!["groups", i, "name"], &group.name, "another flow");
        }
        for (i, app) in self.apps.iter().enumerate() {
            names.give(problems, || at!["apps", i, "name"], app.name(), app.what());
        }
    }

    fn check_group(&self, problems: &mut Problems, i: usize, duration: Option<Nanos>) {
        let group = &self.groups[i];
        let at = |field: &'static str| at!["groups", i, field];
        if group.count == 0 {
            problems.add(at("count"), "must be above zero");
        }
        if group.pairs.is_empty() {
            problems.add(at("pairs"), "must contain a pair of nodes");
        }
        if let Some(j) = group.pairs.iter().position(|(from, to)| from == to) {
            let node = &self.nodes[group.pairs[j].0].name;
            problems
                .add(at("pairs").join(j), format!("a flow must not go from `{node}` to itself"));
        }
        let latest = group.start.saturating_add(group.start_spread);
        if let Some(end) = duration.filter(|&end| latest >= end) {
            let end = format_time(end);
            problems.add(at("start"), format!("must be before the end of the run ({end})"));
        }
        if group.start_every > 0
            && matches!(&group.app, App::Web(web) if web.inter_session.is_some())
        {
            problems.add(at("start"), "with `intersession`, the start must not have an interval");
        }
        if group.stop.is_some_and(|stop| stop <= group.start) {
            problems.add(at("stop"), "must be after the start");
        }
        if group.dscp > 63 {
            problems.add(at("dscp"), "must be at most 63 (six bits)");
        }
        self.check_transport(problems, i);
        check_ports(problems, i, group);
        if !group.app.is_balanced() && group.balancer.is_some() {
            problems.add(at("balancer"), format!("`{}` cannot use a balancer", group.app.name()));
        }
        if matches!(group.app, App::Command(_)) {
            if group.dscp != 0 {
                problems.add(
                    at("dscp"),
                    "must be 0 for `command`, whose programs mark their packets themselves",
                );
            }
            if group.balancer.is_some() {
                problems.add(at("balancer"), "`command` cannot use a balancer");
            }
        }
    }

    fn check_transport(&self, problems: &mut Problems, i: usize) {
        let group = &self.groups[i];
        problems.add_failed(at!["groups", i, "app"], group.app.check());
        match group.transport {
            Transport::Udp if !group.app.sends_packets() => {
                let name = group.app.name();
                problems.add(at!["groups", i, "transport"], format!("`{name}` needs TCP"));
            }
            Transport::Tcp(ref tcp) if !(1..=limits::PAYLOAD).contains(&tcp.mss) => {
                let most = limits::PAYLOAD;
                problems
                    .add(at!["groups", i, "transport", "mss"], format!("must be from 1 to {most}"));
            }
            _ => {}
        }
        match &group.app {
            App::Replay(replay) if !replay.is_loaded() => {
                problems.add(at!["groups", i, "app"], "the capture has not been read");
            }
            App::Voip(voip) if voip.payload > limits::PAYLOAD || voip.interval == 0 => {
                let most = limits::PAYLOAD;
                problems.add(
                    at!["groups", i, "app"],
                    format!("a call must have an interval above zero and at most {most} bytes of payload"),
                );
            }
            _ => {}
        }
    }

    /// Checks that each pair's sender reaches the receiver and, with TCP, that the receiver reaches
    /// the sender.
    fn check_routes(&self, problems: &mut Problems, reach: &Reach) {
        problems.at_most(at!["groups"], "flows", self.flow_count(), limits::FLOWS);
        for (i, group) in self.groups.iter().enumerate() {
            let back = matches!(group.transport, Transport::Tcp(_));
            let missing = |(from, to): (usize, usize)| {
                let (there, here) = (reach.reaches(from, to), !back || reach.reaches(to, from));
                if there { (!here).then_some((to, from)) } else { Some((from, to)) }
            };
            let pairs = group.pairs.iter().enumerate().take(group.count as usize);
            let balanced = || self.balanced_ways(i).find(|&(a, b)| !reach.reaches(a, b));
            let pair = pairs.clone().find_map(|(j, &pair)| Some((j, missing(pair)?)));
            if let Some((j, (a, b))) = pair {
                problems.add(at!["groups", i, "pairs", j], self.no_way(a, b));
            } else if let Some((a, b)) = balanced() {
                problems.add(at!["groups", i, "balancer"], self.no_way(a, b));
            }
        }
    }

    /// Returns the message that no path leads from one node to another.
    pub(super) fn no_way(&self, from: usize, to: usize) -> String {
        format!("no links lead from `{}` to `{}`", self.nodes[from].name, self.nodes[to].name)
    }

    fn check_observe(&self, problems: &mut Problems) {
        self.check_bottleneck(problems);
        let observe = &self.observe;
        for (j, link) in observe.capture.iter().enumerate() {
            if observe.capture[..j].contains(link) {
                problems.add(at!["observe", "capture", j], "must not be listed twice");
                break;
            }
        }
        for (j, &group) in observe.qlog.iter().enumerate() {
            let tcp = |group: &Group| matches!(group.transport, Transport::Tcp(_));
            let problem = match self.groups.get(group) {
                Some(named) if !tcp(named) => "must be a group of TCP flows",
                Some(_) if observe.qlog[..j].contains(&group) => "must not be listed twice",
                Some(_) => continue,
                None => "there is no such group",
            };
            problems.add(at!["observe", "qlog", j], problem);
        }
        if observe.snaplen == 0 || observe.snaplen > limits::SNAPLEN {
            let most = limits::SNAPLEN;
            problems.add(at!["observe", "snaplen"], format!("must be from 1 to {most}"));
        }
        if observe.monitor && observe.series_interval == 0 {
            let message =
                "needs a time series, since the monitor takes its samples at the same times";
            problems.add(at!["observe", "monitor"], message);
        }
    }

    fn check_series(&self, problems: &mut Problems, duration: Nanos) {
        let observe = &self.observe;
        let Some(samples) = duration.checked_div(observe.series_interval) else { return };
        let instants = samples + 1;
        // A generous estimate for an instant: 15 values for each shown link and the bottleneck, and
        // 10 for each group.
        let shown = self.shown_links().len() as u64 + 1;
        let values = instants.saturating_mul(15 * shown + 10 * self.groups.len() as u64);
        let rows = instants.saturating_mul(2 * self.flow_count());
        let mut at_most = |key, what, n, most| {
            if n > most {
                let message =
                    format!("{n} {what}: at most {most} are allowed; choose a longer interval");
                problems.add(at!["observe", key], message);
            }
        };
        at_most("series_interval", "values", values, limits::SERIES_VALUES);
        if observe.monitor {
            at_most("monitor", "rows", rows, limits::MONITOR_ROWS);
        }
    }

    fn check_bottleneck(&self, problems: &mut Problems) {
        let Bottleneck { name, links } = &self.observe.bottleneck;
        let at = || at!["observe", "bottleneck"];
        let mut seen = BTreeSet::new();
        if let Some(j) = links.iter().position(|link| !seen.insert(link)) {
            let twice = &self.links[links[j]].name;
            problems.add(at().join("links").join(j), format!("`{twice}` must not be listed twice"));
        }
        match links[..] {
            [] => problems.add(at(), "must contain a link"),
            [link] if self.links[link].name != *name => {
                let own = &self.links[link].name;
                problems.add(
                    at(),
                    format!("the bottleneck of a single link must have the link's name, `{own}`"),
                );
            }
            _ => {}
        }
    }
}

/// Checks the given ports of a group. Real programs select their ports themselves, and two given
/// ports identify a single connection.
fn check_ports(problems: &mut Problems, i: usize, group: &Group) {
    let given = [("source_port", group.source_port), ("destination_port", group.destination_port)];
    for (field, port) in given {
        if port == Some(0) {
            problems.add(at!["groups", i, field], "must be from 1 to 65535");
        }
        if port.is_some() && matches!(group.app, App::Command(_)) {
            let message = "the programs of `command` choose their ports themselves";
            problems.add(at!["groups", i, field], message);
        }
    }
    let is_one = group.count == 1 && !group.app.opens_sessions();
    if given.iter().all(|(_, port)| port.is_some()) && !is_one {
        let message =
            "with both ports given, all connections would be the same one: give only one port";
        problems.add(at!["groups", i, "destination_port"], message);
    }
}
