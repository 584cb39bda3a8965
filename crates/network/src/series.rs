//! Time series of links: queue lengths, rates, states of queue disciplines, and further columns
//! whose values the caller supplies.

use crate::link_report::{rate, utilisation};
use crate::network::Network;
use crate::probe::Work;
use sojourn_link::Ledger;
use sojourn_measure::{Table, Values};
use sojourn_plan::Plan;
use sojourn_queue::Discipline;
use sojourn_units::{EPOCH, Nanos, SECOND, time::seconds};

/// The time series of a run: the samples taken so far.
#[derive(Clone, Debug, Default)]
pub struct LinkSeries {
    /// Name, unit and values of each column.
    columns: Vec<(String, &'static str, Vec<f64>)>,
    /// Sets of links that are sampled together (places): each shown link alone; then all links of
    /// the bottleneck, if it has several.
    places: Vec<Vec<usize>>,
    /// Work of the transmitters of each place at the last sample.
    work: Vec<Vec<Work>>,
    /// Number of packets dropped, and marked, by the queues of each place until the last sample.
    verdicts: Vec<[u64; 2]>,
    /// Number of columns before the columns of the disciplines' states and classes.
    fixed: usize,
}

impl LinkSeries {
    /// Returns series without samples. `others` are the names and units of the caller's columns.
    pub fn new(plan: &Plan, others: Vec<(String, &'static str)>) -> Self {
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
            add(format!("{name}.drops"), "1");
            add(format!("{name}.marks"), "1");
        }
        for (name, unit) in others {
            add(name, unit);
        }
        series.fixed = series.columns.len();
        series.work =
            series.places.iter().map(|links| vec![Work::default(); links.len()]).collect();
        series.verdicts = vec![[0; 2]; series.places.len()];
        series
    }

    /// Takes the sample at `now`, which is the plan's `series_interval` after the last sample.
    /// `others` are the values of the caller's columns.
    pub fn sample<T, W>(
        &mut self,
        net: &Network<T, W>,
        plan: &Plan,
        now: Nanos,
        others: impl IntoIterator<Item = f64>,
    ) {
        let rows = self.columns[0].2.len();
        let mut columns = self.columns.iter_mut();
        let mut add = |value: f64| {
            if let Some(column) = columns.next() {
                column.2.push(value);
            }
        };
        add(seconds(now - EPOCH));
        let interval = plan.observe.series_interval;
        let befores = self.work.iter_mut().zip(&mut self.verdicts);
        for (links, (before, verdicts)) in self.places.iter().zip(befores) {
            let since = |(&id, before): (&usize, &mut Work)| {
                let done = net.work(id, now);
                done - std::mem::replace(before, done)
            };
            let works: Vec<_> = links.iter().zip(before).map(since).collect();
            let work: Work = works.iter().copied().sum();
            let backlogs = || links.iter().map(|&id| net.link(id).backlog());
            let left = links.iter().map(|&id| net.probe(id)).max_by_key(|p| p.last_departed);
            add(backlogs().map(|b| f64::from(b.packets)).sum());
            add(backlogs().map(|b| b.bytes as f64).sum());
            add(rate(work.transmitted, interval));
            add(utilisation(&works, net.transmitters(plan, links), interval));
            add(left.map_or(f64::NAN, |probe| probe.last_sojourn as f64 / SECOND as f64));
            let all: Ledger = links.iter().map(|&id| *net.link(id).stats()).sum();
            let so_far = [all.drops().packets, all.marked.packets];
            let before = std::mem::replace(verdicts, so_far);
            add((so_far[0] - before[0]) as f64);
            add((so_far[1] - before[1]) as f64);
        }
        others.into_iter().for_each(add);
        debug_assert_eq!(self.columns[self.fixed - 1].2.len(), rows + 1);
        self.sample_states(net, plan, rows);
    }

    /// Adds the state of each shown link's queue discipline, and the backlogs of its classes. A
    /// column is added when its name occurs for the first time; its earlier samples are NaN.
    fn sample_states<T, W>(&mut self, net: &Network<T, W>, plan: &Plan, rows: usize) {
        let columns = &mut self.columns;
        let mut next = self.fixed;
        let mut add = |name: String, unit, value| {
            // A queue nearly always visits the same names in the same order.
            if columns.get(next).is_none_or(|column| column.0 != name) {
                next = columns.iter().position(|column| column.0 == name).unwrap_or_else(|| {
                    columns.push((name, unit, vec![f64::NAN; rows]));
                    columns.len() - 1
                });
            }
            columns[next].2.push(value);
            next += 1;
        };
        for links in &self.places {
            let [id] = links[..] else { continue };
            let link = &plan.links[id].name;
            let queue = net.link(id).queue();
            queue.state(&mut |name, value| add(format!("{link}.state.{name}"), "", value as f64));
            queue.leaves(&mut |class, leaf| {
                add(format!("{link}.{class}.queue"), "1", leaf.backlog.packets as f64);
                add(format!("{link}.{class}.backlog"), "B", leaf.backlog.bytes as f64);
            });
        }
        for column in &mut columns[self.fixed..] {
            column.2.resize(rows + 1, f64::NAN);
        }
    }

    /// Returns the table of all samples.
    pub fn into_table(self) -> Table {
        let mut table = Table::default();
        for (name, unit, values) in self.columns {
            table.push(name, unit, Values::Real(values));
        }
        table
    }
}
