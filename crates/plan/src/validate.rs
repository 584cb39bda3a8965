//! Whether a plan can be run: indices in range, routes that exist, sizes that fit.

use crate::{Bottleneck, Link, Plan, Transport, Wire};
use serde::Serialize;
use sojourn_link::{Chance, Impairments, Loss, Trace};
use sojourn_traffic::App;
use sojourn_units::{Nanos, SECOND};
use std::collections::BTreeSet;
use std::fmt;

/// What is wrong with a plan, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanError {
    /// The place, such as `groups[2].pairs[0]`.
    pub at: String,
    /// The complaint.
    pub message: String,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}

impl std::error::Error for PlanError {}

/// Greatest numbers of what grows with a plan. Beyond them memory or 32-bit numbers would run out.
pub mod limits {
    use super::{Nanos, SECOND};
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
    /// Changes written of all links together.
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
}

pub(crate) fn fail<T>(at: impl Into<String>, message: impl Into<String>) -> Result<T, PlanError> {
    Err(PlanError { at: at.into(), message: message.into() })
}

pub(crate) fn at_most(at: &str, what: &str, n: usize, limit: usize) -> Result<(), PlanError> {
    if n > limit {
        return fail(at, format!("{n} {what}: at most {limit} are allowed"));
    }
    Ok(())
}

impl Plan {
    /// Checks everything that a run relies on.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn validate(&self) -> Result<(), PlanError> {
        self.check_times()?;
        self.check_nodes()?;
        self.check_media()?;
        self.check_links()?;
        self.check_groups()?;
        self.check_balancers()?;
        self.check_routes()?;
        self.check_store()?;
        self.check_observe()
    }

    /// The links that have columns of their own in series and summary: all if they are few, else
    /// those of the bottleneck, if they are few.
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

    fn check_times(&self) -> Result<(), PlanError> {
        if self.duration == 0 {
            return fail("duration", "must be above zero");
        }
        if self.duration > limits::DURATION {
            return fail("duration", format!("at most {} hours", limits::DURATION / 3600 / SECOND));
        }
        if self.warmup >= self.duration {
            return fail("warmup", "must be shorter than the duration");
        }
        Ok(())
    }

    fn check_nodes(&self) -> Result<(), PlanError> {
        at_most("nodes", "nodes", self.nodes.len(), limits::NODES)?;
        let mut names = BTreeSet::new();
        for (i, node) in self.nodes.iter().enumerate() {
            let at = || format!("nodes[{i}].name");
            check_name(at, &node.name, &mut names)?;
        }
        Ok(())
    }

    fn check_media(&self) -> Result<(), PlanError> {
        at_most("media", "media", self.media.len(), limits::MEDIA)?;
        for (i, medium) in self.media.iter().enumerate() {
            if let Err(why) = medium.access.check() {
                return fail(format!("media[{i}].access"), why);
            }
        }
        Ok(())
    }

    fn check_links(&self) -> Result<(), PlanError> {
        at_most("links", "links", self.links.len(), limits::LINKS)?;
        // Both stand before the point in the summary's columns.
        let mut names = BTreeSet::new();
        for (i, medium) in self.media.iter().enumerate() {
            check_name(|| format!("media[{i}].name"), &medium.name, &mut names)?;
        }
        for (i, link) in self.links.iter().enumerate() {
            check_name(|| format!("links[{i}].name"), &link.name, &mut names)?;
            let n = self.nodes.len();
            for (end, node) in [("from", Some(link.from)), ("to", link.to)] {
                if let Some(node) = node.filter(|&node| node >= n) {
                    return fail(
                        format!("links[{i}].{end}"),
                        format!("there is no node {node}: there are {n}"),
                    );
                }
            }
            if link.to == Some(link.from) {
                return fail(format!("links[{i}]"), "leads from a node to itself");
            }
            let media = self.media.len();
            match link.medium {
                Some(medium) if medium >= media => {
                    return fail(
                        format!("links[{i}].medium"),
                        format!("there is no medium {medium}: there are {media}"),
                    );
                }
                None if link.to.is_none() => {
                    return fail(format!("links[{i}].to"), "only a shared medium leads to several");
                }
                _ => {}
            }
            if link.ring > limits::RING {
                return fail(
                    format!("links[{i}].ring"),
                    format!("at most {} packets", limits::RING),
                );
            }
            let sojourn_link::Params { delay, impairments, .. } = &link.params;
            check_wire(&format!("links[{i}].params"), *delay, impairments)?;
            check_changes(i, link)?;
            check_trace(i, link)?;
        }
        let changes: usize = self.links.iter().map(|link| link.changes.len()).sum();
        at_most("links", "changes", changes, limits::CHANGES)?;
        let traces = self.links.iter().filter_map(|link| link.params.trace.as_ref());
        at_most("links", "opportunities", traces.map(Trace::len).sum(), limits::OPPORTUNITIES)?;
        let mut times = 0u64;
        for (i, link) in self.links.iter().enumerate() {
            for change in &link.changes {
                times = times.saturating_add(change.times(self.duration));
            }
            if times > limits::CHANGE_TIMES {
                return fail(
                    format!("links[{i}].changes"),
                    format!(
                        "{times} changes in a run: at most {} are allowed; choose longer periods",
                        limits::CHANGE_TIMES
                    ),
                );
            }
        }
        Ok(())
    }

    fn check_groups(&self) -> Result<(), PlanError> {
        at_most("groups", "groups", self.groups.len(), limits::GROUPS)?;
        let flows: u64 = self.groups.iter().map(|g| u64::from(g.count)).sum();
        if flows > limits::FLOWS {
            return fail("groups", format!("{flows} flows: at most {} are allowed", limits::FLOWS));
        }
        // Links, media and groups share the summary's columns, so they may not share names.
        let links = self.links.iter().map(|link| link.name.as_str());
        let media = self.media.iter().map(|medium| medium.name.as_str());
        let mut names: BTreeSet<&str> = links.chain(media).collect();
        for (i, balancer) in self.balancers.iter().enumerate() {
            check_name(|| format!("balancers[{i}].name"), &balancer.name, &mut names)?;
        }
        for (i, group) in self.groups.iter().enumerate() {
            let at = |field: &str| format!("groups[{i}].{field}");
            check_name(|| at("name"), &group.name, &mut names)?;
            if group.count == 0 {
                return fail(at("count"), "must be above zero");
            }
            if group.pairs.is_empty() {
                return fail(at("pairs"), "there is no pair of nodes");
            }
            for (j, &(from, to)) in group.pairs.iter().enumerate() {
                let n = self.nodes.len();
                if let Some(node) = [from, to].into_iter().find(|&node| node >= n) {
                    return fail(
                        at(&format!("pairs[{j}]")),
                        format!("there is no node {node}: there are {n}"),
                    );
                }
                if from == to {
                    return fail(
                        at(&format!("pairs[{j}]")),
                        "sender and receiver are the same node",
                    );
                }
            }
            let latest = group.start.saturating_add(group.start_spread);
            if latest >= self.duration {
                return fail(at("start"), "starts must lie before the end of the run");
            }
            if group.start_every > 0
                && matches!(&group.app, App::Web(web) if web.inter_session.is_some())
            {
                return fail(at("start"), "sessions start by `intersession`, not one by one");
            }
            if group.stop.is_some_and(|stop| stop <= group.start) {
                return fail(at("stop"), "must lie after the start");
            }
            if group.dscp > 63 {
                return fail(at("dscp"), "has six bits: at most 63");
            }
            self.check_transport(i)?;
        }
        Ok(())
    }

    fn check_transport(&self, i: usize) -> Result<(), PlanError> {
        let group = &self.groups[i];
        let name = group.app.name();
        if let Err(message) = group.app.check() {
            return fail(format!("groups[{i}].app"), message);
        }
        match group.transport {
            Transport::Udp if !group.app.sends_packets() => {
                fail(format!("groups[{i}].transport"), format!("`{name}` goes over TCP"))
            }
            Transport::Tcp(ref tcp) if !(1..=limits::PAYLOAD).contains(&tcp.mss) => fail(
                format!("groups[{i}].transport.mss"),
                format!("must lie in 1 to {}", limits::PAYLOAD),
            ),
            _ => match &group.app {
                App::Replay(replay) if !replay.is_loaded() => {
                    fail(format!("groups[{i}].app"), "the capture has not been read")
                }
                App::Voip(voip) if voip.payload > limits::PAYLOAD || voip.interval == 0 => fail(
                    format!("groups[{i}].app"),
                    format!(
                        "a call needs an interval, and at most {} bytes of payload",
                        limits::PAYLOAD
                    ),
                ),
                _ => Ok(()),
            },
        }
    }

    /// Every pair must reach each other: data one way, acknowledgments the other.
    fn check_routes(&self) -> Result<(), PlanError> {
        let reach = Reach::new(self);
        for (i, group) in self.groups.iter().enumerate() {
            let back = matches!(group.transport, Transport::Tcp(_));
            let pairs = group.pairs.iter().enumerate().take(group.count as usize);
            for (j, &(from, to)) in pairs {
                let ways: &[(usize, usize)] =
                    if back { &[(from, to), (to, from)] } else { &[(from, to)] };
                for &(a, b) in ways {
                    if !reach.reaches(a, b) {
                        return self.no_way(format!("groups[{i}].pairs[{j}]"), a, b);
                    }
                }
            }
        }
        for (i, a, b) in self.balanced_ways() {
            if !reach.reaches(a, b) {
                return self.no_way(format!("groups[{i}].balancer"), a, b);
            }
        }
        Ok(())
    }

    fn no_way(&self, at: String, from: usize, to: usize) -> Result<(), PlanError> {
        let (a, b) = (&self.nodes[from].name, &self.nodes[to].name);
        fail(at, format!("no links lead from {a} to {b}"))
    }

    fn check_store(&self) -> Result<(), PlanError> {
        let Some(store) = &self.store else { return Ok(()) };
        store.check(self)?;
        let links = self.links.iter().map(|link| link.name.as_str());
        let media = self.media.iter().map(|medium| medium.name.as_str());
        let groups = self.groups.iter().map(|group| group.name.as_str());
        let mut names: BTreeSet<&str> = links.chain(media).chain(groups).collect();
        names.insert(self.observe.bottleneck.name.as_str());
        check_name(|| "store.name".to_owned(), &store.name, &mut names)?;
        let reach = Reach::new(self);
        let first = store.nodes[0].node;
        for host in store.nodes.iter().chain(&store.clients).map(|host| host.node) {
            if host != first && !(reach.reaches(first, host) && reach.reaches(host, first)) {
                let (a, b) = (&self.nodes[first].name, &self.nodes[host].name);
                return fail("store.nodes", format!("no links lead from {a} to {b}"));
            }
        }
        Ok(())
    }

    fn check_observe(&self) -> Result<(), PlanError> {
        self.check_bottleneck()?;
        let observe = &self.observe;
        let n = self.links.len();
        let mut seen = BTreeSet::new();
        for (i, &link) in observe.capture.iter().enumerate() {
            if link >= n {
                return fail(
                    format!("observe.capture[{i}]"),
                    format!("there is no link {link}: there are {n}"),
                );
            }
            if !seen.insert(link) {
                return fail(format!("observe.capture[{i}]"), "is captured already");
            }
        }
        if observe.snaplen == 0 || observe.snaplen > limits::SNAPLEN {
            return fail("observe.snaplen", format!("must lie in 1 to {}", limits::SNAPLEN));
        }
        if let Some(samples) = self.duration.checked_div(observe.series_interval) {
            let instants = samples + 1;
            // Five values a link shown, some of its queue's state, and ten a group.
            let shown = self.shown_links().len() as u64 + 1;
            let values = instants.saturating_mul(15 * shown + 10 * self.groups.len() as u64);
            if values > limits::SERIES_VALUES {
                return fail(
                    "observe.series_interval",
                    format!(
                        "{values} values: at most {} are allowed; choose a longer interval",
                        limits::SERIES_VALUES
                    ),
                );
            }
            let flows: u64 = self.groups.iter().map(|group| u64::from(group.count)).sum();
            let rows = instants.saturating_mul(2 * flows);
            if observe.monitor && rows > limits::MONITOR_ROWS {
                return fail(
                    "observe.monitor",
                    format!(
                        "{rows} rows: at most {} are allowed; choose a longer interval",
                        limits::MONITOR_ROWS
                    ),
                );
            }
        } else if observe.monitor {
            return fail("observe.monitor", "needs a series: its samples are taken with it");
        }
        Ok(())
    }
}

impl Plan {
    fn check_bottleneck(&self) -> Result<(), PlanError> {
        let Bottleneck { name, links } = &self.observe.bottleneck;
        let at = "observe.bottleneck";
        let n = self.links.len();
        if let Some(link) = links.iter().find(|&&link| link >= n) {
            return fail(at, format!("there is no link {link}: there are {n}"));
        }
        if links.iter().collect::<BTreeSet<_>>().len() < links.len() {
            return fail(at, "a link is named twice");
        }
        match links[..] {
            [] => fail(at, "there is no link"),
            [link] if self.links[link].name != *name => fail(
                at,
                format!("a single link is called by its name, `{}`", self.links[link].name),
            ),
            [_] => Ok(()),
            // A medium's columns are others than its links', so it may lend its name.
            _ => {
                let mut names = BTreeSet::new();
                names.extend(self.links.iter().map(|link| link.name.as_str()));
                names.extend(self.groups.iter().map(|group| group.name.as_str()));
                names.extend(self.balancers.iter().map(|balancer| balancer.name.as_str()));
                check_name(|| at.to_owned(), name, &mut names)
            }
        }
    }
}

fn check_changes(i: usize, link: &Link) -> Result<(), PlanError> {
    if link.medium.is_some() && !link.changes.is_empty() {
        return fail(format!("links[{i}].changes"), "a link on a shared medium does not change");
    }
    for (j, change) in link.changes.iter().enumerate() {
        let at = format!("links[{i}].changes[{j}]");
        if change.rate.is_none() && change.wire.is_none() {
            return fail(at, "changes nothing");
        }
        if change.rate.is_some() && link.params.rate.is_none() {
            return fail(format!("{at}.rate"), "the link has no rate to begin with");
        }
        if let Some(Wire { delay, impairments }) = &change.wire {
            check_wire(&format!("{at}.wire"), *delay, impairments)?;
        }
    }
    Ok(())
}

fn check_trace(i: usize, link: &Link) -> Result<(), PlanError> {
    let at = format!("links[{i}].params.trace");
    if link.params.trace.is_none() {
        return Ok(());
    }
    if link.params.rate.is_some() {
        return fail(at, "a link has a rate or follows a trace, not both");
    }
    if link.medium.is_some() || link.ring > 0 {
        return fail(at, "a link with a transmit ring or on a shared medium follows no trace");
    }
    Ok(())
}

/// What a scenario's words cannot say wrong, but a plan's numbers can.
fn check_wire(at: &str, delay: Nanos, impairments: &Impairments) -> Result<(), PlanError> {
    let spans = [("delay", delay), ("jitter", impairments.jitter.map_or(0, |j| j.span))];
    for (name, span) in spans {
        if span > limits::DELAY {
            return fail(format!("{at}.{name}"), "is at most one hour");
        }
    }
    let loss = match impairments.loss {
        Loss::None => vec![],
        Loss::Random { probability, correlation } => vec![probability, correlation],
        Loss::Gemodel { p, r, bad_loss, good_loss } => vec![p, r, bad_loss, good_loss],
    };
    let chance = |c: Chance| vec![c.probability, c.correlation];
    let reorder = impairments.reorder.map_or(vec![], |r| vec![r.probability, r.correlation]);
    for (name, shares) in [
        ("loss", loss),
        ("duplicate", chance(impairments.duplicate)),
        ("corrupt", chance(impairments.corrupt)),
        ("reorder", reorder),
        ("jitter", impairments.jitter.map_or(vec![], |j| vec![j.correlation])),
    ] {
        if shares.iter().any(|share| !(0.0..=1.0).contains(share)) {
            return fail(format!("{at}.{name}"), "probabilities and correlations lie in 0 to 1");
        }
    }
    if impairments.reorder.is_some_and(|reorder| reorder.gap == 0) {
        return fail(format!("{at}.reorder.gap"), "must be above zero");
    }
    Ok(())
}

fn check_name<'a>(
    at: impl Fn() -> String,
    name: &'a str,
    names: &mut BTreeSet<&'a str>,
) -> Result<(), PlanError> {
    if name.is_empty() {
        return fail(at(), "is empty");
    }
    if !names.insert(name) {
        return fail(at(), format!("`{name}` is taken"));
    }
    Ok(())
}

/// Which nodes reach which. Nearly always all do, by links in both directions; so nodes that reach
/// node 0 and back are settled at once, and only others are searched for. Media follow the nodes.
struct Reach {
    out: Vec<Vec<u32>>,
    hub: Vec<bool>,
}

fn search(edges: &[Vec<u32>], from: usize) -> Vec<bool> {
    let mut reached = vec![false; edges.len()];
    let mut open = Vec::new();
    if let Some(first) = reached.get_mut(from) {
        *first = true;
        open.push(from as u32);
    }
    while let Some(node) = open.pop() {
        for &next in &edges[node as usize] {
            if !std::mem::replace(&mut reached[next as usize], true) {
                open.push(next);
            }
        }
    }
    reached
}

impl Reach {
    fn new(plan: &Plan) -> Self {
        let mut out = vec![Vec::new(); plan.nodes.len() + plan.media.len()];
        let mut into = out.clone();
        let mut edge = |from: usize, to: usize| {
            out[from].push(to as u32);
            into[to].push(from as u32);
        };
        for link in &plan.links {
            let medium = || plan.nodes.len() + link.medium.expect("checked with the links");
            edge(link.from, link.to.unwrap_or_else(medium));
            if link.to.is_none() {
                edge(medium(), link.from);
            }
        }
        let hub = search(&out, 0).iter().zip(search(&into, 0)).map(|(&a, b)| a && b).collect();
        Self { out, hub }
    }

    fn reaches(&self, from: usize, to: usize) -> bool {
        self.hub[from] && self.hub[to] || search(&self.out, from)[to]
    }
}
