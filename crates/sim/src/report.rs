//! A run's record, from what was measured.

use crate::engine::Engine;
use crate::link_report::{self, share};
use crate::port::transmitters;
use crate::probe::LinkProbe;
use crate::record::Record;
use crate::tables::{Row, append, table};
use sojourn_measure::{Histogram, Table, Values};
use sojourn_units::{EPOCH, SECOND};

impl Engine<'_> {
    /// Makes the record, which ends the run.
    pub fn into_record(mut self) -> Record {
        let flows = self.count_up();
        let summary = self.summary(&flows);
        let rows =
            self.flows.iter().zip(&flows).map(|(flow, counted)| self.flow_row(flow, counted));
        let flows = table(rows.collect());
        let queues = table((0..self.plan.links.len()).map(|id| self.queue_row(id)).collect());
        let distributions = self.distributions();
        Record {
            summary,
            flows,
            queues,
            distributions,
            captures_cut: self.net.captures_cut(),
            captures: self.net.take_captures(&self.plan.observe.capture),
            trace_hash: if self.net.traced() { self.net.trace.value() } else { 0 },
            events: self.events,
            complete: self.complete,
            reached: self.now - EPOCH,
            series: self.series.into_table(),
            flow_series: if self.plan.observe.monitor {
                self.monitor.into_table()
            } else {
                Table::default()
            },
        }
    }

    /// The metrics of a link, or of several that `probe` has measured together.
    fn links_row(&self, links: &[usize], probe: &LinkProbe) -> Row {
        let mut row = Row::default();
        let (work, span) = (self.net.work(links, self.now), self.now - self.since);
        link_report::append(&mut row, probe, work, self.transmitters(links), self.now, span);
        row
    }

    fn link_row(&self, id: usize) -> Row {
        self.links_row(&[id], self.net.probe(id))
    }

    /// How many transmitters `links` have between them; none counts if one of them takes no time.
    pub(crate) fn transmitters(&self, links: &[usize]) -> u64 {
        let timed = links.iter().all(|&id| self.net.link(id).is_timed());
        if timed { transmitters(self.plan, links) } else { 0 }
    }

    /// The probe of the bottleneck's links taken together, if they are several.
    fn joint_probe(&self) -> Option<LinkProbe> {
        let links = &self.plan.observe.bottleneck.links;
        let probes = links.iter().map(|&id| self.net.probe(id));
        (links.len() > 1).then(|| self.net.joint().merged(probes))
    }

    fn bottleneck_row(&self) -> Row {
        let links = &self.plan.observe.bottleneck.links;
        match self.joint_probe() {
            None => self.link_row(links[0]),
            Some(probe) => self.links_row(links, &probe),
        }
    }

    fn medium_row(&self, id: usize) -> Row {
        let mut row = Row::default();
        let (medium, before) = (self.net.medium(id), &self.media_before[id]);
        let occupied = medium.occupied(self.now) - before.occupied(self.since);
        row.real("occupancy", share(occupied, self.now - self.since));
        row.integer("attempts", medium.counters().attempts - before.counters().attempts);
        row.integer("deferrals", medium.counters().deferrals - before.counters().deferrals);
        row
    }

    fn queue_row(&self, id: usize) -> Row {
        let mut row = Row::default();
        row.text("link", &self.plan.links[id].name);
        row.0.extend(self.link_row(id).0);
        row
    }

    fn summary(&self, flows: &[crate::flow_report::Counted]) -> Table {
        let bottleneck = &self.plan.observe.bottleneck;
        let mut summary = Table::default();
        append(&mut summary, None, self.total_row(flows));
        append(&mut summary, None, self.bottleneck_row());
        let mut rest = flows;
        for (g, group) in self.plan.groups.iter().enumerate() {
            let (own, others) = rest.split_at(group.count as usize);
            rest = others;
            append(&mut summary, Some(&group.name), self.group_row(g, own));
        }
        for id in self.plan.shown_links().into_iter().filter(|&id| bottleneck.links != [id]) {
            append(&mut summary, Some(&self.plan.links[id].name), self.link_row(id));
        }
        for (id, medium) in self.plan.media.iter().enumerate() {
            append(&mut summary, Some(&medium.name), self.medium_row(id));
        }
        summary
    }

    fn distributions(&self) -> Table {
        let mut bins = Bins::default();
        for id in self.plan.shown_links() {
            bins.link(&self.plan.links[id].name, self.net.probe(id));
        }
        if let Some(probe) = self.joint_probe() {
            bins.link(&self.plan.observe.bottleneck.name, &probe);
        }
        for (group, probe) in self.plan.groups.iter().zip(&self.groups) {
            bins.times(&group.name, "delay", &probe.delay);
            if let Some(delay) = &probe.packet_delay {
                bins.times(&group.name, "packet_delay", delay);
            }
            bins.times(&group.name, "rtt", &probe.rtt);
            bins.times(&group.name, "fct", &probe.fct);
            bins.times(&group.name, "page", &probe.page);
        }
        bins.into_table()
    }
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
