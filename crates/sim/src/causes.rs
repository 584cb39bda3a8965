//! Limits of a run other than the studied queue: sentences on its figures, each with a remedy.
//!
//! Idea: the studied queue explains a run only if packets wait there. Each cause compares a few
//! figures of the run's summary with the plan and names what limited the run instead.

use sojourn_balance::{Params as Policy, Signal, tables};
use sojourn_measure::Values;
use sojourn_network::{Packet, Record, Routes};
use sojourn_plan::{Link, Plan, Transport};
use sojourn_queue::{Discipline, Queue};
use sojourn_units::quantity::format_size;
use std::collections::BTreeSet;

/// Least mean queueing delay in seconds at which a queue is named.
const NAMED: f64 = 1e-3;
/// Least ratio of the delay in a queue to the delay in the studied queue at which it is named.
const LONGER: f64 = 4.0;
/// Utilisation of the bottleneck above which nothing else limits the run.
const BUSY: f64 = 0.9;
/// Least share of the time in which a limit must have acted.
const OFTEN: f64 = 0.25;
/// Mean queue length in packets below which a queue does not inform a balancer.
const EMPTY: f64 = 0.05;
/// Least number of packets outside all classes that is named; the warm-up ends between two counts.
const ASTRAY: f64 = 10.0;
/// Least share of the packets outside all classes that is named.
const UNLIKELY: f64 = 0.01;
/// Most classes that are named.
const NAMED_CLASSES: usize = 4;
/// Bytes of a full frame.
const FRAME: f64 = 1514.0;

/// Kind of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Packets wait in another queue.
    Elsewhere,
    /// A flow is held by its send buffer or its receiver's window.
    Held,
    /// The limit of netem caps a link's rate.
    Capped,
    /// The information that a balancer uses never differs between its servers.
    Blind,
    /// Packets pass a queue outside all of its classes.
    Bypassed,
    /// No packet reaches the studied queue, or a class.
    Unreached,
}

impl Kind {
    /// Returns the kind's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Elsewhere => "elsewhere",
            Self::Held => "held",
            Self::Capped => "capped",
            Self::Blind => "blind",
            Self::Bypassed => "bypassed",
            Self::Unreached => "unreached",
        }
    }
}

/// Something other than the studied queue that limited a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Kind of the cause.
    pub kind: Kind,
    /// Name of the link, group of flows or balancer concerned.
    pub subject: String,
    /// Sentences on the limit and on its remedy.
    pub text: String,
}

/// Returns the causes of a simulated run.
pub fn of_record(plan: &Plan, record: &Record) -> Vec<Cause> {
    causes(plan, &|name| {
        let column = record.summary.columns.iter().find(|column| column.name == name)?;
        match &column.values {
            Values::Real(values) => values.first().copied().filter(|value| value.is_finite()),
            Values::Integer(values) => values.first().map(|&value| value as f64),
            Values::Text(_) | Values::Bool(_) => None,
        }
    })
}

/// The figures of a run, with its plan.
struct Figures<'a> {
    plan: &'a Plan,
    value: &'a dyn Fn(&str) -> Option<f64>,
}

/// Returns what limited a run apart from the studied queue.
///
/// `value` returns a metric of the run's summary by name, or the mean over several runs of the plan;
/// `None` if it was not measured.
pub fn causes(plan: &Plan, value: &dyn Fn(&str) -> Option<f64>) -> Vec<Cause> {
    let figures = Figures { plan, value };
    let mut found: Vec<Cause> = figures.unreached().into_iter().collect();
    found.extend(figures.elsewhere());
    found.extend(figures.held());
    found.extend(figures.capped());
    found.extend(figures.blind());
    found.extend(plan.shown_links().into_iter().flat_map(|link| figures.of_classes(link)));
    found
}

impl Figures<'_> {
    /// Returns a metric of the bottleneck, or of the run.
    fn own(&self, metric: &str) -> Option<f64> {
        (self.value)(metric)
    }

    /// Returns a metric of a link, which has no prefix if the link is the bottleneck.
    fn of_link(&self, index: usize, metric: &str) -> Option<f64> {
        if self.plan.observe.bottleneck.links == [index] {
            return self.own(metric);
        }
        self.of(&self.plan.links[index].name, metric)
    }

    fn of(&self, owner: &str, metric: &str) -> Option<f64> {
        (self.value)(&format!("{owner}.{metric}"))
    }

    /// No packet came to the studied queue.
    fn unreached(&self) -> Option<Cause> {
        if self.own("arrivals")? > 0.0 || self.own("departures")? > 0.0 {
            return None;
        }
        let name = &self.plan.observe.bottleneck.name;
        let shares = (0..self.plan.links.len())
            .filter_map(|index| Some((index, self.of_link(index, "utilisation")?)));
        let busiest =
            shares.filter(|one| one.1 > 0.0).max_by(|one, other| one.1.total_cmp(&other.1));
        let remedy = busiest.map_or(String::new(), |(index, share)| {
            let link = &self.plan.links[index].name;
            format!(" The busiest link is `{link}` ({}): bottleneck = \"{link}\".", percent(share))
        });
        let text = format!(
            "No packet reached `{name}`, whose queue is studied: no flow passes it in this direction, or none was active in the measured time.{remedy}"
        );
        Some(Cause { kind: Kind::Unreached, subject: name.clone(), text })
    }

    /// Packets wait much longer in another queue than in the studied one.
    fn elsewhere(&self) -> Option<Cause> {
        let bottleneck = &self.plan.observe.bottleneck;
        let here = self.own("sojourn_mean")?;
        let waits = (0..self.plan.links.len())
            .filter(|index| !bottleneck.links.contains(index))
            .filter_map(|index| Some((index, self.of_link(index, "sojourn_mean")?)));
        let (index, wait) = waits.max_by(|one, other| one.1.total_cmp(&other.1))?;
        if wait < NAMED.max(LONGER * here) {
            return None;
        }
        let link = &self.plan.links[index];
        let (name, studied) = (&link.name, &bottleneck.name);
        let share = self.own("utilisation").map(percent);
        let share = share.map_or(String::new(), |share| format!(" (utilisation {share})"));
        let remedy = match link.params.rate.filter(|_| self.follows(index)) {
            Some(rate) => format!(
                "To move the queue to `{studied}`, limit it to less than the {} of `{name}`; or study `{name}`: bottleneck = \"{name}\".",
                speed(rate.bits() as f64)
            ),
            None => format!("To study that queue: bottleneck = \"{name}\"."),
        };
        let text = format!(
            "Packets wait {} on average at `{name}`, and {} at `{studied}`{share}, whose queue is studied. {remedy}",
            duration(wait),
            duration(here)
        );
        Some(Cause { kind: Kind::Elsewhere, subject: name.clone(), text })
    }

    /// Returns whether packets of a flow pass the link after the bottleneck.
    fn follows(&self, index: usize) -> bool {
        let mut routes = Routes::new(self.plan);
        let pairs: BTreeSet<_> = self.plan.groups.iter().flat_map(|g| &g.pairs).collect();
        for &&(from, to) in pairs.iter().take(1000) {
            routes.path(from as u32, to as u32);
            routes.path(to as u32, from as u32);
        }
        let bottleneck = &self.plan.observe.bottleneck.links;
        routes.paths().any(|path| {
            let place =
                |wanted: &dyn Fn(usize) -> bool| path.iter().position(|&l| wanted(l as usize));
            let (first, second) = (place(&|l| bottleneck.contains(&l)), place(&|l| l == index));
            first.zip(second).is_some_and(|(first, second)| first < second)
        })
    }

    /// Returns whether a group's data wait mainly in the studied queue, which may be a shaper far
    /// below the line's rate.
    fn is_queued(&self, group: &str) -> bool {
        let times = self.own("sojourn_mean").zip(self.of(group, "rtt_mean"));
        times.is_some_and(|(waited, rtt)| 2.0 * waited >= rtt)
    }

    /// A group's flows wait for their send buffers or for their receivers' windows.
    fn held(&self) -> Vec<Cause> {
        if self.own("utilisation").is_some_and(|share| share >= BUSY) {
            return Vec::new();
        }
        let mut found = Vec::new();
        for group in &self.plan.groups {
            let Transport::Tcp(params) = &group.transport else { continue };
            let limits = [
                ("sndbuf_limited", "send buffer", "sndbuf", params.send_buffer),
                ("rwnd_limited", "receiver's window", "rwnd", params.receive_window),
            ];
            let shares = limits.map(|(metric, ..)| self.of(&group.name, metric).unwrap_or(0.0));
            let (worst, share) =
                if shares[0] >= shares[1] { (0, shares[0]) } else { (1, shares[1]) };
            if share < OFTEN || self.is_queued(&group.name) {
                continue;
            }
            let (_, what, word, size) = limits[worst];
            let text = format!(
                "`{}` was held by its {what} in {} of the time (`{word} {}`), not by a queue. A larger `{word}` admits more data per round trip.",
                group.name,
                percent(share),
                format_size(size)
            );
            found.push(Cause { kind: Kind::Held, subject: group.name.clone(), text });
        }
        found
    }

    /// Netem's limit on the packets in flight caps the rate below that of the link.
    fn capped(&self) -> Vec<Cause> {
        let links = self.plan.links.iter().enumerate();
        links.filter_map(|(index, link)| self.capped_link(index, link)).collect()
    }

    fn capped_link(&self, index: usize, link: &Link) -> Option<Cause> {
        let wire = &link.params.impairments;
        let limit = wire.limit?;
        let delay = link.params.delay as f64 / 1e9;
        let rates = [link.params.rate, wire.rate.map(|shaper| shaper.rate)];
        let rate = rates.into_iter().flatten().min()?;
        let cap = f64::from(limit) * FRAME * 8.0 / delay;
        let reached = self.of_link(index, "throughput")?;
        if delay == 0.0 || cap >= rate.bits() as f64 || reached < cap / 2.0 {
            return None;
        }
        let needed = (rate.bits() as f64 * delay / 8.0 / FRAME).ceil();
        let text = format!(
            "Netem's limit of {limit} packets caps `{}` at {}, because each packet counts for the delay of {}. `limit {needed}` admits {}. Hosts with segmentation offload get more, since a super-packet counts as one packet.",
            link.name,
            speed(cap),
            duration(delay),
            speed(rate.bits() as f64),
        );
        Some(Cause { kind: Kind::Capped, subject: link.name.clone(), text })
    }

    /// Packets without a class, and classes without packets.
    fn of_classes(&self, index: usize) -> Vec<Cause> {
        let Link { name, params, .. } = &self.plan.links[index];
        let stated = params.queue.stated_classes();
        let Some(sent) = self.of_link(index, "departures").filter(|_| !stated.is_empty()) else {
            return Vec::new();
        };
        let mut leaves = Vec::new();
        let queue: Queue<Packet> = params.queue.build(0);
        queue.leaves(&mut |class, _| leaves.push(class.to_owned()));
        // Only classes that received packets have figures.
        let of_class = |class: &str| self.of(&format!("{name}.{class}"), "departures");
        let classified: f64 = leaves.iter().filter_map(|class| of_class(class)).sum();
        let mut found = Vec::new();
        let outside = sent - classified;
        if outside > ASTRAY.max(UNLIKELY * sent) {
            let text = format!(
                "{} of the packets of `{name}` ({outside:.0}) pass outside all classes, which do not limit them: no filter matches them, and no default is a class with packets. A filter, or a class for `default`, catches them.",
                percent(outside / sent)
            );
            found.push(Cause { kind: Kind::Bypassed, subject: name.clone(), text });
        }
        let reached: BTreeSet<&String> =
            leaves.iter().filter(|leaf| of_class(leaf).is_some()).collect();
        let is_reached = |class: &&String| {
            let inner = format!("{class}/");
            // Names of inner classes follow that of their class.
            let first = reached.range::<String, _>(*class..).next();
            first.is_some_and(|leaf| leaf == class || leaf.starts_with(&inner))
        };
        let missed: Vec<_> = stated.iter().filter(|class| !is_reached(class)).collect();
        if let [first, rest @ ..] = &missed[..]
            && sent > 0.0
        {
            let names = missed.iter().take(NAMED_CLASSES).map(|class| format!("`{class}`"));
            let (names, more) =
                (names.collect::<Vec<_>>(), missed.len().saturating_sub(NAMED_CLASSES));
            let noun = if rest.is_empty() { "class" } else { "classes" };
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            let subject = format!("{name}.{first}");
            let text = format!(
                "No packet reached the {noun} {}{more} of `{name}`: the scenario has no such traffic, or their filters match none of it. Filters see addresses, ports, `dscp` and `mark` of the flows.",
                names.join(", ")
            );
            found.push(Cause { kind: Kind::Unreached, subject, text });
        }
        found
    }

    /// A balancer reads the backlogs of ports at which nothing waits.
    fn blind(&self) -> Vec<Cause> {
        let mut found = Vec::new();
        for balancer in &self.plan.balancers {
            if balancer.policy.needs().signal != Signal::Backlog {
                continue;
            }
            let ports: Vec<usize> = balancer.servers.iter().map(|server| server.port).collect();
            let together =
                ports.iter().all(|port| self.plan.observe.bottleneck.links.contains(port));
            let lengths: Option<Vec<f64>> = if together {
                self.own("queue_mean").map(|mean| vec![mean])
            } else {
                ports.iter().map(|&port| self.of_link(port, "queue_mean")).collect()
            };
            let Some(longest) = lengths.and_then(|all| all.into_iter().max_by(f64::total_cmp))
            else {
                continue;
            };
            if longest >= EMPTY {
                continue;
            }
            let counting = |name: &&str| {
                Policy::parse(name).is_ok_and(|policy| {
                    matches!(policy.needs().signal, Signal::Connections | Signal::Latency)
                })
            };
            let names: Vec<_> = tables().iter().map(|table| table.name).filter(counting).collect();
            let text = format!(
                "`{}` chooses by the queues of the ports to the servers, which were empty ({longest:.2} packets on average), so all servers looked alike. Policies that count requests see the servers' load: {}.",
                balancer.policy.to_string().split(' ').next().unwrap_or_default(),
                names.join(", ")
            );
            found.push(Cause { kind: Kind::Blind, subject: balancer.name.clone(), text });
        }
        found
    }
}

/// Returns a number with about three digits.
fn digits(value: f64) -> String {
    let places = if value >= 99.95 { 0 } else { usize::from(value < 9.995) + 1 };
    format!("{value:.places$}")
}

fn percent(share: f64) -> String {
    format!("{} %", digits(100.0 * share))
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{} s", digits(s)),
        s if s >= 1e-3 => format!("{} ms", digits(1e3 * s)),
        s => format!("{} µs", digits(1e6 * s)),
    }
}

fn speed(rate: f64) -> String {
    match rate {
        r if r >= 1e9 => format!("{} Gbit/s", digits(r / 1e9)),
        r if r >= 1e6 => format!("{} Mbit/s", digits(r / 1e6)),
        r => format!("{} kbit/s", digits(r / 1e3)),
    }
}
