//! Flows measured at their hosts, over links that are not ours: by the packets that hosts sent and took.
//!
//! The metrics are those of [`crate::Wire`]. A packet that was sent and never taken is lost if one that
//! its host sent later to the same flow was taken; otherwise it may be on its way.

use crate::flows::{Facts, Flows};
use crate::measured::series_columns;
use sojourn_measure::{FlowAccount, Table, Values};
use sojourn_network::{append, flow_report, table};
use sojourn_plan::Plan;
use sojourn_units::{EPOCH, Nanos};
use std::collections::{BTreeMap, VecDeque};

/// A packet that a host sent or took.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Nanoseconds since the run's start.
    pub at: Nanos,
    /// By which the same packet is recognised at its other end.
    pub key: u64,
    /// Whether its sender has sent it; otherwise its receiver has taken it.
    pub sent: bool,
    /// Nodes of its sender and its receiver.
    pub nodes: (u32, u32),
    /// Frame length in bytes.
    pub length: u32,
    /// Fields of its headers.
    pub facts: Facts,
}

/// A packet on its way.
#[derive(Debug)]
struct Sent {
    at: Nanos,
    whose: crate::flows::Belonging,
    length: u32,
}

/// The hosts' counts of a plan's flows, for the tables of a record.
#[derive(Debug, Default)]
pub struct Ends {
    /// A row a flow, in the plan's order. A flow between hosts whose packets were not seen has no more
    /// than zeros.
    pub flows: Table,
    /// A row a group.
    pub groups: Table,
    /// One row of all flows together.
    pub total: Table,
    /// Delays and round-trip times of the groups.
    pub distributions: Table,
    /// Rates and numbers of flows of the groups, at each interval of the plan's series.
    pub series: Table,
}

/// The time series of groups.
struct Series {
    interval: Nanos,
    next: Nanos,
    /// Payload that had been delivered at the last sample, by group.
    delivered: Vec<u64>,
    columns: Vec<(String, &'static str, Vec<f64>)>,
}

impl Series {
    fn new(plan: &Plan) -> Self {
        let interval = plan.observe.series_interval;
        let columns = if interval == 0 { Vec::new() } else { series_columns(plan) };
        let columns = columns.into_iter().map(|(name, unit)| (name, unit, Vec::new())).collect();
        let delivered = vec![0; plan.groups.len()];
        Self { interval, next: interval, delivered, columns }
    }

    /// Takes the samples that are due until `now`.
    fn sample(&mut self, now: Nanos, flows: &Flows) {
        while self.interval > 0 && self.next <= now {
            self.next += self.interval;
            let values = flows.sample(&mut self.delivered, self.interval);
            for (column, value) in self.columns.iter_mut().zip(values) {
                column.2.push(value);
            }
        }
    }

    fn into_table(self) -> Table {
        let mut table = Table::default();
        for (name, unit, values) in self.columns {
            table.push(name, unit, Values::Real(values));
        }
        table
    }
}

/// Measures the flows of a plan by what hosts saw until `end`.
pub fn flows_seen(plan: &Plan, mut seen: Vec<Seen>, end: Nanos) -> Ends {
    seen.sort_by_key(|one| (one.at, !one.sent));
    let mut flows = Flows::new(plan);
    let mut accounts = vec![FlowAccount::default(); 2 * (flows.count() + 1)];
    let mut series = Series::new(plan);
    // When the latest packet that was taken had been sent.
    let mut latest: Vec<Nanos> = vec![0; accounts.len()];
    let mut waiting: BTreeMap<(u64, u32), VecDeque<Sent>> = BTreeMap::new();
    let since = EPOCH + plan.warmup;
    let (mut warm, mut packets) = (false, 0);
    for one in seen.iter().filter(|one| one.at < end) {
        let now = EPOCH + one.at;
        series.sample(one.at, &flows);
        if !warm && now >= since {
            warm = true;
            flows.restart(since, &accounts);
        }
        let place = (one.key, one.nodes.1);
        if one.sent {
            packets += 1;
            let whose = flows.belonging(now, one.nodes, (false, false), &one.facts);
            flows.sent(now, whose, &one.facts);
            accounts[whose.account as usize].sent.count(one.length);
            let sent = Sent { at: now, whose, length: one.length };
            waiting.entry(place).or_default().push_back(sent);
            continue;
        }
        let Some(list) = waiting.get_mut(&place) else { continue };
        let Some(Sent { at, whose, length }) = list.pop_front() else { continue };
        if list.is_empty() {
            waiting.remove(&place);
        }
        flows.received(now, at, whose, &one.facts, true);
        let account = whose.account as usize;
        accounts[account].received.count(length);
        latest[account] = latest[account].max(at);
    }
    series.sample(end, &flows);
    let now = EPOCH + end;
    if !warm {
        flows.restart(since.min(now), &accounts);
    }
    for lost in waiting.into_values().flatten() {
        let account = lost.whose.account as usize;
        if lost.at >= since && lost.at < latest[account] {
            accounts[account].lost.count(lost.length);
        }
    }
    let counted = flows.count_up(&accounts);
    let span = now.saturating_sub(since);
    let rows = flows.lines(&counted).map(|line| flow_report::flow_row(plan, &line, span));
    let mut ends = Ends { flows: table(rows.collect()), ..Ends::default() };
    let (mut groups, mut rest) = (Vec::new(), &counted[..]);
    for (group, probe) in plan.groups.iter().zip(&flows.groups) {
        let (own, others) = rest.split_at(group.count as usize);
        rest = others;
        groups.push(flow_report::group_row(group, probe, own, now, span));
        probe.append_distributions(&group.name, &mut ends.distributions);
    }
    ends.groups = table(groups);
    // Only the simulator has events.
    let total = flow_report::total_row(&flows.groups, &counted, 0, packets, now, span);
    append(&mut ends.total, None, total);
    ends.series = series.into_table();
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_plan::{Bottleneck, Group, Node, Observe, Transport};
    use sojourn_queue::TcpView;
    use sojourn_traffic::App;
    use sojourn_units::{MILLISECOND, SECOND};

    fn plan() -> Plan {
        let App::Command(mut params) = App::parse("command").unwrap() else { panic!() };
        params.client.push("get".to_owned());
        let group = |name: &str, app| Group {
            name: name.to_owned(),
            pairs: vec![(0, 1)],
            balancer: None,
            count: 1,
            start: 0,
            start_spread: 0,
            start_every: 0,
            stop: None,
            dscp: 0,
            source_port: None,
            destination_port: None,
            mark: 0,
            transport: Transport::Tcp(sojourn_tcp::Params::default()),
            app,
        };
        Plan {
            duration: SECOND,
            warmup: 0,
            nodes: ["a", "b"].map(|name| Node { name: name.to_owned() }).into(),
            media: Vec::new(),
            links: Vec::new(),
            balancers: Vec::new(),
            groups: vec![
                group("bulk", App::parse("bulk").unwrap()),
                group("get", App::Command(params)),
            ],
            apps: Vec::new(),
            observe: Observe {
                bottleneck: Bottleneck { name: String::new(), links: Vec::new() },
                series_interval: 100 * MILLISECOND,
                per_flow_histograms: false,
                monitor: false,
                capture: Vec::new(),
                snaplen: 64,
                trace_hash: false,
            },
            sources: BTreeMap::new(),
        }
    }

    fn values(table: &Table, name: &str) -> Vec<f64> {
        let column = table.columns.iter().find(|column| column.name == name).unwrap();
        match &column.values {
            Values::Real(values) => values.clone(),
            Values::Integer(values) => values.iter().map(|&value| value as f64).collect(),
            _ => panic!("{name} has no numbers"),
        }
    }

    /// Returns a packet sent at `at` milliseconds and taken 5 ms later, or lost.
    fn packet(
        at: u64,
        back: bool,
        ports: (u16, u16),
        seq: u32,
        payload: u32,
        lost: bool,
    ) -> Vec<Seen> {
        let nodes = if back { (1, 0) } else { (0, 1) };
        let flags = if seq == 0 { TcpView::SYN | TcpView::ACK } else { TcpView::ACK };
        let facts = Facts { tcp: true, ports, seq, ack: 1, flags, payload };
        let key = u64::from(seq) << 32 | at;
        let one =
            |at, sent| Seen { at: at * MILLISECOND, key, sent, nodes, length: payload + 54, facts };
        if lost { vec![one(at, true)] } else { vec![one(at, true), one(at + 5, false)] }
    }

    #[test]
    fn programs_have_what_is_nobody_elses_in_both_directions() {
        let mut seen = Vec::new();
        for (at, back, ports, seq, payload, lost) in [
            (0, false, (40_000, 80), 0, 0, false),
            (10, true, (80, 40_000), 0, 0, false),
            (20, false, (40_000, 80), 1, 100, false),
            (30, true, (80, 40_000), 1, 1000, false),
            (40, true, (80, 40_000), 1001, 1000, true),
            (50, true, (80, 40_000), 2001, 1000, false),
            // Of the other flow, by its port.
            (60, false, (40_001, 20_000), 0, 0, false),
            (70, false, (40_001, 20_000), 1, 500, false),
            // On its way at the end.
            (999, true, (80, 40_000), 3001, 1000, false),
        ] {
            seen.extend(packet(at, back, ports, seq, payload, lost));
        }
        let Ends { flows, groups, total, series, .. } = flows_seen(&plan(), seen, SECOND);
        assert_eq!(values(&flows, "bytes"), [500.0, 1100.0]);
        assert_eq!(values(&flows, "sent"), [2.0, 7.0]);
        assert_eq!(values(&flows, "received"), [2.0, 5.0]);
        let loss = values(&flows, "packet_loss")[1];
        let group = ["delay_mean", "goodput"].map(|name| values(&groups, name)[1]);
        for (found, told) in [(loss, 1.0 / 7.0), (group[0], 0.005), (group[1], 8800.0)] {
            assert!((found - told).abs() < 1e-9, "{found} is not {told}");
        }
        assert_eq!(values(&total, "packets"), [9.0]);
        // A sample has what came before it; the last packets of the programs came at 55 ms.
        assert_eq!(values(&series, "get.goodput")[..2], [1100.0 * 8.0 / 0.1, 0.0]);
        assert_eq!(values(&series, "bulk.active").len(), 10);
    }
}
