//! A run's record, from what was measured.

use crate::captures::Captures;
use crate::engine::Engine;
use sojourn_measure::Table;
use sojourn_network::{Counted, Record, Span, append, flow_report, table};
use sojourn_units::EPOCH;

impl Engine<'_> {
    /// Makes the record, which ends the run.
    pub fn into_record(mut self) -> Record {
        let counted = self.count_up();
        let summary = self.summary(&counted);
        let rows = self.flows.iter().zip(&counted).map(|(flow, counted)| {
            let line = Self::flow_line(flow, counted);
            flow_report::flow_row(self.plan, &line, self.now - self.since)
        });
        let flows = table(rows.collect());
        let queues = self.net.queue_table(self.plan, &self.span());
        let mut distributions = self.net.distributions(self.plan, &self.groups);
        self.distribute_store(&mut distributions);
        let captures: &mut Captures = &mut self.net.witness;
        Record {
            summary,
            flows,
            queues,
            distributions,
            captures_cut: captures.is_cut(),
            captures: captures.take(&self.plan.observe.capture),
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

    fn span(&self) -> Span<'_> {
        Span { since: self.since, now: self.now, media: &self.media_before }
    }

    fn summary(&self, flows: &[Counted]) -> Table {
        let (now, took) = (self.now, self.now - self.since);
        let mut summary = Table::default();
        let packets = self.net.slab.numbers();
        let total = flow_report::total_row(&self.groups, flows, self.events, packets, now, took);
        append(&mut summary, None, total);
        append(&mut summary, None, self.net.bottleneck_row(self.plan, &self.span()));
        let mut rest = flows;
        for (group, probe) in self.plan.groups.iter().zip(&self.groups) {
            let (own, others) = rest.split_at(group.count as usize);
            rest = others;
            let row = flow_report::group_row(group, probe, own, now, took);
            append(&mut summary, Some(&group.name), row);
        }
        for (balancer, desk) in self.plan.balancers.iter().zip(&self.desks) {
            append(&mut summary, Some(&balancer.name), desk.row());
        }
        self.net.summarise_places(self.plan, &self.span(), &mut summary);
        self.summarise_store(&mut summary);
        summary
    }
}
