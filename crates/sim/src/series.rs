//! Time series: queues, rates, the policy's state, and the windows of the first flows.

use crate::engine::Engine;
use crate::flow::Flow;
use crate::link_report::{rate, share};
use crate::probe::Work;
use sojourn_measure::{Table, Values};
use sojourn_plan::{Plan, Transport};
use sojourn_queue::Discipline;
use sojourn_units::{EPOCH, SECOND, time::seconds};

/// Flows of each group whose windows are shown.
const SHOWN_FLOWS: u32 = 4;

/// Samples so far, a column each.
#[derive(Clone, Debug, Default)]
pub struct Series {
    columns: Vec<(String, &'static str, Vec<f64>)>,
    /// Links shown, one at a time; then the bottleneck's together, if they are several.
    places: Vec<Vec<usize>>,
    /// What their transmitters had done at the last sample.
    work: Vec<Work>,
    /// Payload that had been delivered at the last sample, by group.
    delivered: Vec<u64>,
    flows: Vec<usize>,
    /// Columns before those of policies' states.
    fixed: usize,
}

impl Series {
    /// No samples yet.
    pub fn new(plan: &Plan) -> Self {
        if plan.observe.series_interval == 0 {
            return Self::default();
        }
        let mut series = Self::default();
        let bottleneck = &plan.observe.bottleneck;
        series.places = plan.shown_links().into_iter().map(|link| vec![link]).collect();
        if bottleneck.links.len() > 1 {
            series.places.push(bottleneck.links.clone());
        }
        let mut add = |name: String, unit| series.columns.push((name, unit, Vec::new()));
        add("time".to_owned(), "s");
        for links in &series.places {
            let name = match links[..] {
                [link] => &plan.links[link].name,
                _ => &bottleneck.name,
            };
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
        series.work = vec![Work::default(); series.places.len()];
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
        let interval = self.plan.observe.series_interval;
        let span = seconds(interval);
        for (links, before) in series.places.iter().zip(&mut series.work) {
            let done = self.net.work(links, self.now);
            let work = done - std::mem::replace(before, done);
            let backlogs = || links.iter().map(|&id| self.net.link(id).backlog());
            let left =
                links.iter().map(|&id| self.net.probe(id)).max_by_key(|probe| probe.last_departed);
            values.push(backlogs().map(|b| f64::from(b.packets)).sum());
            values.push(backlogs().map(|b| b.bytes as f64).sum());
            values.push(rate(work.begun.bytes, interval));
            values.push(share(work.busy, self.transmitters(links) * interval));
            values.push(left.map_or(f64::NAN, |probe| probe.last_sojourn as f64 / SECOND as f64));
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
        for links in &series.places {
            let [id] = links[..] else { continue };
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
