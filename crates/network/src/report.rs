//! The parts of a record's tables that come from links.

use crate::link_report::{self, share, utilisation};
use crate::network::Network;
use crate::port::transmitters;
use crate::probe::LinkProbe;
use crate::tables::{Row, append, table};
use sojourn_link::Medium;
use sojourn_measure::{Histogram, Table, Values, jain};
use sojourn_plan::Plan;
use sojourn_queue::Discipline;
use sojourn_units::{Nanos, SECOND};

use crate::flow_probe::GroupProbe;

/// The measured time, and the state of the media at its start.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    /// Start of the measured time: the end of the warm-up.
    pub since: Nanos,
    /// End of the measured time.
    pub now: Nanos,
    /// Copies of the media at `since`.
    pub media: &'a [Medium],
}

impl<T, W> Network<T, W> {
    /// Returns the metrics of one link, or of several links that `probe` measured together.
    fn links_row(&self, plan: &Plan, links: &[usize], probe: &LinkProbe, span: &Span) -> Row {
        let mut row = Row::default();
        let work = |&id: &usize| self.probe(id).measured_work(self.work(id, span.now));
        let works: Vec<_> = links.iter().map(work).collect();
        let ledger = |&id: &usize| self.probe(id).measured_ledger(*self.link(id).stats());
        let ledger = links.iter().map(ledger).sum();
        let (transmitters, took) = (self.transmitters(plan, links), span.now - span.since);
        link_report::append(&mut row, probe, &ledger, &works, transmitters, span.now, took);
        row
    }

    fn link_row(&self, plan: &Plan, id: usize, span: &Span) -> Row {
        self.links_row(plan, &[id], self.probe(id), span)
    }

    /// Returns the number of transmitters of `links`, or 0 if one of the links has no rate limit.
    pub(crate) fn transmitters(&self, plan: &Plan, links: &[usize]) -> u64 {
        let timed = links.iter().all(|&id| self.link(id).is_timed());
        if timed { transmitters(plan, links) } else { 0 }
    }

    /// Returns the combined probe of the bottleneck's links; `None` if the bottleneck is one link.
    fn joint_probe(&self, plan: &Plan) -> Option<LinkProbe> {
        let links = &plan.observe.bottleneck.links;
        let probes = links.iter().map(|&id| self.probe(id));
        (links.len() > 1).then(|| self.joint().merged(probes))
    }

    /// Returns the metrics of the bottleneck, which appear in the summary without a prefix.
    pub fn bottleneck_row(&self, plan: &Plan, span: &Span) -> Row {
        let links = &plan.observe.bottleneck.links;
        match self.joint_probe(plan) {
            None => self.link_row(plan, links[0], span),
            Some(probe) => {
                let mut row = self.links_row(plan, links, &probe, span);
                row.real("utilisation_jain", self.evenness(plan, links, span));
                row
            }
        }
    }

    /// Returns Jain's fairness index of the utilisations of `links`.
    fn evenness(&self, plan: &Plan, links: &[usize], span: &Span) -> f64 {
        let used = |&id: &usize| {
            let work = self.probe(id).measured_work(self.work(id, span.now));
            utilisation(&[work], self.transmitters(plan, &[id]), span.now - span.since)
        };
        jain(links.iter().map(used))
    }

    fn medium_row(&self, id: usize, span: &Span) -> Row {
        let mut row = Row::default();
        let (medium, before) = (self.medium(id), &span.media[id]);
        let occupied = medium.occupied(span.now) - before.occupied(span.since);
        row.real("occupancy", share(occupied, span.now - span.since));
        row.integer("attempts", medium.counters().attempts - before.counters().attempts);
        row.integer("deferrals", medium.counters().deferrals - before.counters().deferrals);
        row
    }

    /// Returns the table of queues, with one row for each link.
    pub fn queue_table(&self, plan: &Plan, span: &Span) -> Table {
        let row = |id: usize| {
            let mut row = Row::default();
            row.text("link", &plan.links[id].name);
            row.0.extend(self.link_row(plan, id, span).0);
            row
        };
        table((0..plan.links.len()).map(row).collect())
    }

    /// Appends the metrics of the shown links, of their queues' classes that received packets, and
    /// of the media to a summary. A link that alone is the bottleneck is left out, since its metrics
    /// are the run's own.
    pub fn summarise_places(&self, plan: &Plan, span: &Span, summary: &mut Table) {
        let bottleneck = &plan.observe.bottleneck;
        for id in plan.shown_links().into_iter().filter(|&id| bottleneck.links != [id]) {
            append(summary, Some(&plan.links[id].name), self.link_row(plan, id, span));
        }
        for id in plan.shown_links() {
            self.link(id).queue().leaves(&mut |class, leaf| {
                if leaf.offered > 0 {
                    let name = format!("{}.{class}", plan.links[id].name);
                    let row = link_report::class(leaf, span.now - span.since);
                    append(summary, Some(&name), row);
                }
            });
        }
        for (id, medium) in plan.media.iter().enumerate() {
            append(summary, Some(&medium.name), self.medium_row(id, span));
        }
    }

    /// Returns the table of distributions of the shown links, of a bottleneck of several links, and
    /// of the groups.
    pub fn distributions(&self, plan: &Plan, groups: &[GroupProbe]) -> Table {
        let mut bins = Bins::default();
        for id in plan.shown_links() {
            bins.link(&plan.links[id].name, self.probe(id));
        }
        if let Some(probe) = self.joint_probe(plan) {
            bins.link(&plan.observe.bottleneck.name, &probe);
        }
        for (group, probe) in plan.groups.iter().zip(groups) {
            bins.group(&group.name, probe);
        }
        bins.into_table()
    }
}

impl GroupProbe {
    /// Appends the distributions of the group called `name` to a table of distributions.
    pub fn append_distributions(&self, name: &str, to: &mut Table) {
        let mut bins = Bins::default();
        bins.group(name, self);
        bins.append(to);
    }
}

/// Appends the distribution of a histogram of nanoseconds to a table of distributions.
pub fn append_times(table: &mut Table, place: &str, metric: &str, histogram: &Histogram) {
    let mut bins = Bins::default();
    bins.times(place, metric, histogram);
    bins.append(table);
}

#[derive(Default)]
struct Bins {
    places: Vec<String>,
    metrics: Vec<String>,
    low: Vec<f64>,
    high: Vec<f64>,
    counts: Vec<i64>,
}

impl Bins {
    fn add(&mut self, place: &str, metric: &str, low: f64, high: f64, count: u64) {
        self.places.push(place.to_owned());
        self.metrics.push(metric.to_owned());
        self.low.push(low);
        self.high.push(high);
        self.counts.push(count as i64);
    }

    fn link(&mut self, place: &str, probe: &LinkProbe) {
        self.times(place, "sojourn", &probe.sojourn);
        for (length, count) in probe.runs.lengths() {
            self.add(place, "consecutive_loss", length as f64, length as f64, count);
        }
    }

    fn times(&mut self, place: &str, metric: &str, histogram: &Histogram) {
        let scale = 1.0 / SECOND as f64;
        for bin in histogram.bins() {
            self.add(place, metric, bin.low as f64 * scale, bin.high as f64 * scale, bin.count);
        }
    }

    fn group(&mut self, name: &str, probe: &GroupProbe) {
        self.times(name, "delay", &probe.delay);
        if let Some(delay) = &probe.packet_delay {
            self.times(name, "packet_delay", delay);
        }
        self.times(name, "rtt", &probe.rtt);
        self.times(name, "fct", &probe.fct);
        self.times(name, "page", &probe.page);
    }

    /// Appends all bins to a table of distributions.
    fn append(self, table: &mut Table) {
        let added = self.into_table();
        if table.columns.is_empty() {
            *table = added;
            return;
        }
        for (column, added) in table.columns.iter_mut().zip(added.columns) {
            match (&mut column.values, added.values) {
                (Values::Text(v), Values::Text(more)) => v.extend(more),
                (Values::Real(v), Values::Real(more)) => v.extend(more),
                (Values::Integer(v), Values::Integer(more)) => v.extend(more),
                _ => unreachable!("both are tables of distributions"),
            }
        }
    }

    fn into_table(self) -> Table {
        let mut table = Table::default();
        table.push("place", "", Values::Text(self.places));
        table.push("metric", "", Values::Text(self.metrics));
        table.push("low", "", Values::Real(self.low));
        table.push("high", "", Values::Real(self.high));
        table.push("count", "1", Values::Integer(self.counts));
        table
    }
}
