//! Time series: queues, rates, the policy's state, and the windows of the first flows.

use crate::engine::Engine;
use crate::flow::Flow;
use sojourn_measure::{Table, Values};
use sojourn_plan::{Plan, Transport};
use sojourn_queue::Discipline;
use sojourn_units::{EPOCH, Nanos, SECOND, time::seconds};

/// Beyond this number of links, only the bottleneck has columns in series and summary.
pub const SHOWN_LINKS: usize = 64;
/// Flows of each group whose windows are shown.
const SHOWN_FLOWS: u32 = 4;

/// Samples so far, a column each.
#[derive(Clone, Debug, Default)]
pub struct Series {
    columns: Vec<(String, &'static str, Vec<f64>)>,
    links: Vec<usize>,
    /// Bytes that had departed at the last sample, by link shown.
    departed: Vec<u64>,
    /// How long they had transmitted.
    busy: Vec<Nanos>,
    /// Payload that had been delivered at the last sample, by group.
    delivered: Vec<u64>,
    flows: Vec<usize>,
    /// Columns before those of policies' states.
    fixed: usize,
}

/// The links that have columns of their own.
pub fn shown_links(plan: &Plan) -> Vec<usize> {
    if plan.links.len() <= SHOWN_LINKS {
        (0..plan.links.len()).collect()
    } else {
        vec![plan.observe.bottleneck]
    }
}

impl Series {
    /// No samples yet.
    pub fn new(plan: &Plan) -> Self {
        if plan.observe.series_interval == 0 {
            return Self::default();
        }
        let mut series = Self { links: shown_links(plan), ..Self::default() };
        let mut add = |name: String, unit| series.columns.push((name, unit, Vec::new()));
        add("time".to_owned(), "s");
        for &link in &series.links {
            let name = &plan.links[link].name;
            add(format!("{name}.queue"), "1");
            add(format!("{name}.backlog"), "B");
            add(format!("{name}.throughput"), "bit/s");
            add(format!("{name}.utilisation"), "1");
            add(format!("{name}.last_sojourn"), "s");
        }
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
        let mut first = 0;
        for group in &plan.groups {
            if matches!(group.transport, Transport::Tcp(_)) {
                for number in 0..group.count.min(SHOWN_FLOWS) {
                    add(format!("{}.{number}.cwnd", group.name), "B");
                    add(format!("{}.{number}.srtt", group.name), "s");
                    series.flows.push(first + number as usize);
                }
            }
            first += group.count as usize;
        }
        series.fixed = series.columns.len();
        series.departed = vec![0; series.links.len()];
        series.busy = vec![0; series.links.len()];
        series.delivered = vec![0; plan.groups.len()];
        series
    }

    /// The table.
    pub fn into_table(self) -> Table {
        let mut table = Table::default();
        for (name, unit, values) in self.columns {
            table.push(name, unit, Values::Real(values));
        }
        table
    }
}

impl Engine<'_> {
    /// Takes a sample.
    pub(crate) fn sample(&mut self) {
        let mut series = std::mem::take(&mut self.series);
        let rows = series.columns[0].2.len();
        let mut values = Vec::with_capacity(series.fixed);
        values.push(seconds(self.now - EPOCH));
        let span = seconds(self.plan.observe.series_interval);
        let before = series.departed.iter_mut().zip(&mut series.busy);
        for (&id, (departed, busy)) in series.links.iter().zip(before) {
            let (probe, link) = (self.net.probe(id), self.net.link(id));
            let backlog = link.backlog();
            let bytes = probe.all().departed.bytes;
            let throughput = (bytes - std::mem::replace(departed, bytes)) as f64 * 8.0 / span;
            let worked = link.busy(self.now);
            let worked = seconds(worked - std::mem::replace(busy, worked));
            values.push(f64::from(backlog.packets));
            values.push(backlog.bytes as f64);
            values.push(throughput);
            values.push(if link.is_timed() { worked / span } else { f64::NAN });
            values.push(probe.last_sojourn as f64 / SECOND as f64);
        }
        for (group, delivered) in self.groups.iter().zip(&mut series.delivered) {
            let bytes = group.bytes - std::mem::replace(delivered, group.bytes);
            values.push(bytes as f64 * 8.0 / span);
            values.push(group.active.value() as f64);
        }
        if self.plan.observe.monitor {
            let (queue, sojourn) = self.latest();
            values.extend([queue, sojourn]);
        }
        for &flow in &series.flows {
            let (cwnd, srtt) = self.window(&self.flows[flow]);
            values.push(cwnd);
            values.push(srtt);
        }
        for (column, value) in series.columns.iter_mut().zip(values) {
            column.2.push(value);
        }
        let columns = &mut series.columns;
        let mut next = series.fixed;
        for &id in &series.links {
            let link = &self.plan.links[id].name;
            self.net.link(id).queue().state(&mut |name, value| {
                let name = format!("{link}.state.{name}");
                // A policy nearly always visits the same names in the same order.
                if columns.get(next).is_none_or(|column| column.0 != name) {
                    next =
                        columns.iter().position(|column| column.0 == name).unwrap_or_else(|| {
                            columns.push((name, "", vec![f64::NAN; rows]));
                            columns.len() - 1
                        });
                }
                columns[next].2.push(value as f64);
                next += 1;
            });
        }
        for column in &mut columns[series.fixed..] {
            column.2.resize(rows + 1, f64::NAN);
        }
        self.series = series;
    }

    /// Congestion window and smoothed round-trip time of a flow's connection.
    fn window(&self, flow: &Flow) -> (f64, f64) {
        flow.current.map_or((f64::NAN, f64::NAN), |id| self.connections.window(id))
    }
}
