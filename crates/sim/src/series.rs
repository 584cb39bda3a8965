//! Time series: links, and what their hosts send through them: goodput of groups, windows of the
//! first flows.

use crate::engine::Engine;
use crate::flow::Flow;
use sojourn_measure::Table;
use sojourn_network::LinkSeries;
use sojourn_plan::{Plan, Transport};
use sojourn_units::time::seconds;

/// Flows of each group whose windows are shown.
const SHOWN_FLOWS: u32 = 4;

/// Samples so far.
#[derive(Clone, Debug, Default)]
pub struct Series {
    links: LinkSeries,
    /// Payload that had been delivered at the last sample, by group.
    delivered: Vec<u64>,
    flows: Vec<usize>,
}

impl Series {
    /// No samples yet.
    pub fn new(plan: &Plan) -> Self {
        if plan.observe.series_interval == 0 {
            return Self::default();
        }
        let mut others = Vec::new();
        let mut add = |name: String, unit| others.push((name, unit));
        for group in &plan.groups {
            let tcp = matches!(group.transport, Transport::Tcp(_));
            let goodput = if tcp { "goodput" } else { "udp_goodput" };
            add(format!("{}.{goodput}", group.name), "bit/s");
            add(format!("{}.active", group.name), "1");
        }
        if plan.observe.monitor {
            add("latest.queue".to_owned(), "1");
            add("latest.last_sojourn".to_owned(), "s");
        }
        let (mut first, mut flows) = (0, Vec::new());
        for group in &plan.groups {
            if matches!(group.transport, Transport::Tcp(_)) {
                for number in 0..group.count.min(SHOWN_FLOWS) {
                    add(format!("{}.{number}.cwnd", group.name), "B");
                    add(format!("{}.{number}.srtt", group.name), "s");
                    flows.push(first + number as usize);
                }
            }
            first += group.count as usize;
        }
        let links = LinkSeries::new(plan, others);
        Self { links, delivered: vec![0; plan.groups.len()], flows }
    }

    /// The table.
    pub fn into_table(self) -> Table {
        self.links.into_table()
    }
}

impl Engine<'_> {
    /// Takes a sample.
    pub(crate) fn sample(&mut self) {
        let mut series = std::mem::take(&mut self.series);
        let span = seconds(self.plan.observe.series_interval);
        let mut others = Vec::with_capacity(2 * (self.groups.len() + series.flows.len()) + 2);
        for (group, delivered) in self.groups.iter().zip(&mut series.delivered) {
            let bytes = group.bytes - std::mem::replace(delivered, group.bytes);
            others.push(bytes as f64 * 8.0 / span);
            others.push(group.active.value() as f64);
        }
        if self.plan.observe.monitor {
            let (queue, sojourn) = self.latest();
            others.extend([queue, sojourn]);
        }
        for &flow in &series.flows {
            let (cwnd, srtt) = self.window(&self.flows[flow]);
            others.extend([cwnd, srtt]);
        }
        series.links.sample(&self.net, self.plan, self.now, others);
        self.series = series;
    }

    /// Congestion window and smoothed round-trip time of a flow's connection.
    fn window(&self, flow: &Flow) -> (f64, f64) {
        flow.current.map_or((f64::NAN, f64::NAN), |id| self.connections.window(id))
    }
}
