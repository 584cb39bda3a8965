//! A run's record, from what was measured.

use crate::engine::Engine;
use crate::link_report;
use crate::record::Record;
use crate::series::shown_links;
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
            flow_series: self.monitor.into_table(),
        }
    }

    fn link_row(&self, id: usize) -> Row {
        let mut row = Row::default();
        let span = self.now - self.since;
        link_report::append(&mut row, self.net.probe(id), self.net.link(id), self.now, span);
        row
    }

    fn queue_row(&self, id: usize) -> Row {
        let mut row = Row::default();
        row.text("link", &self.plan.links[id].name);
        row.0.extend(self.link_row(id).0);
        row
    }

    fn summary(&self, flows: &[crate::flow_report::Counted]) -> Table {
        let bottleneck = self.plan.observe.bottleneck;
        let mut summary = Table::default();
        append(&mut summary, None, self.total_row(flows));
        append(&mut summary, None, self.link_row(bottleneck));
        let mut rest = flows;
        for (g, group) in self.plan.groups.iter().enumerate() {
            let (own, others) = rest.split_at(group.count as usize);
            rest = others;
            append(&mut summary, Some(&group.name), self.group_row(g, own));
        }
        for id in shown_links(self.plan).into_iter().filter(|&id| id != bottleneck) {
            append(&mut summary, Some(&self.plan.links[id].name), self.link_row(id));
        }
        summary
    }

    fn distributions(&self) -> Table {
        let mut bins = Bins::default();
        for id in shown_links(self.plan) {
            let (place, probe) = (&self.plan.links[id].name, self.net.probe(id));
            bins.times(place, "sojourn", &probe.sojourn);
            for (length, count) in probe.runs.lengths() {
                bins.add(place, "consecutive_loss", length as f64, length as f64, count);
            }
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
