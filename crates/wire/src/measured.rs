//! A wire's measurements: flows, time series, and the record of the run.

use crate::flows::Flows;
use crate::packet_meta::PacketMeta;
use crate::watch::Watch;
use sojourn_link::Medium;
use sojourn_measure::Table;
use sojourn_network::{LinkSeries, Network, Record, Span, append, flow_report, table};
use sojourn_plan::{Plan, Transport};
use sojourn_units::{EPOCH, Nanos};

/// The measurements of a run.
#[derive(Debug)]
pub struct Measured {
    /// Measurements of the plan's flows.
    pub flows: Flows,
    series: Option<LinkSeries>,
    /// Payload bytes delivered until the last sample, for each group.
    delivered: Vec<u64>,
    since: Nanos,
    media_before: Vec<Medium>,
}

/// Returns names and units of the groups' columns in the time series.
pub fn series_columns(plan: &Plan) -> Vec<(String, &'static str)> {
    let mut columns = Vec::new();
    for group in &plan.groups {
        let tcp = matches!(group.transport, Transport::Tcp(_));
        let goodput = if tcp { "goodput" } else { "udp_goodput" };
        columns.push((format!("{}.{goodput}", group.name), "bit/s"));
        columns.push((format!("{}.active", group.name), "1"));
    }
    columns
}

impl Measured {
    /// Returns empty measurements, and opens two accounts in the network for each flow and for all
    /// other packets.
    pub fn new(plan: &Plan, net: &mut Network<PacketMeta, Watch>) -> Self {
        let flows = Flows::new(plan);
        for _ in 0..=flows.count() {
            net.open_account();
            net.open_account();
        }
        let sampled = plan.observe.series_interval != 0;
        Self {
            flows,
            series: sampled.then(|| LinkSeries::new(plan, series_columns(plan))),
            delivered: vec![0; plan.groups.len()],
            since: EPOCH,
            media_before: net.media().to_vec(),
        }
    }

    /// Ends the warm-up: the following measurements count from `now`.
    pub fn restart(&mut self, now: Nanos, net: &mut Network<PacketMeta, Watch>) {
        self.since = now;
        net.restart(now);
        self.media_before = net.media().to_vec();
        self.flows.restart(now, &net.accounts);
    }

    /// Takes a sample of the time series, if the plan has one.
    pub fn sample(&mut self, now: Nanos, plan: &Plan, net: &Network<PacketMeta, Watch>) {
        let Some(series) = &mut self.series else { return };
        let others = self.flows.sample(&mut self.delivered, plan.observe.series_interval);
        series.sample(net, plan, now, others);
    }

    /// Sets the start of the measurement to `now`, for a run that stopped in the warm-up. The
    /// record then covers a span of length 0.
    pub fn stopped_early(&mut self, now: Nanos) {
        self.since = now;
    }

    /// Returns the record of the measurements until `now`. `events` is the number of events on
    /// links.
    pub fn record(
        &mut self,
        now: Nanos,
        plan: &Plan,
        net: &Network<PacketMeta, Watch>,
        events: u64,
    ) -> Record {
        let counted = self.flows.count_up(&net.accounts);
        let span = Span { since: self.since, now, media: &self.media_before };
        let took = now - self.since;
        let rows = self.flows.lines(&counted).map(|l| flow_report::flow_row(plan, &l, took));
        let flows = table(rows.collect());
        let groups = &self.flows.groups;
        let mut summary = Table::default();
        let packets = net.slab.numbers();
        let total = flow_report::total_row(groups, &counted, events, packets, now, took);
        append(&mut summary, None, total);
        append(&mut summary, None, net.bottleneck_row(plan, &span));
        let mut rest = &counted[..];
        for (group, probe) in plan.groups.iter().zip(groups) {
            let (own, others) = rest.split_at(group.count as usize);
            rest = others;
            let row = flow_report::group_row(group, probe, own, now, took);
            append(&mut summary, Some(&group.name), row);
        }
        net.summarise_places(plan, &span, &mut summary);
        Record {
            summary,
            flows,
            queues: net.queue_table(plan, &span),
            distributions: net.distributions(plan, groups),
            series: self.series.take().map(LinkSeries::into_table).unwrap_or_default(),
            flow_series: Table::default(),
            captures: Vec::new(),
            captures_cut: false,
            qlogs: Vec::new(),
            trace_hash: 0,
            early_hash: 0,
            events,
            complete: false,
            reached: now - EPOCH,
        }
    }
}
