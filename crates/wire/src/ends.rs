//! Measurement of flows over real links: from the packets that hosts sent and received.
//!
//! The metrics are those of [`crate::Wire`]. A packet that was sent but not received counts as lost
//! if the same flow's receiver received a packet that was sent later. Otherwise it may still be in
//! flight.

use crate::flows::{Facts, Flows};
use crate::measured::series_columns;
use sojourn_measure::{FlowAccount, Table, Values};
use sojourn_network::{append, flow_report, table};
use sojourn_plan::Plan;
use sojourn_units::{EPOCH, Nanos};
use std::collections::{BTreeMap, VecDeque};

/// Observation of one packet at one host.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Time of the observation in nanoseconds since the run's start.
    pub at: Nanos,
    /// Identifier of the packet, equal at its sender and its receiver.
    pub key: u64,
    /// True if the sender's host observed the packet, false if the receiver's host did.
    pub sent: bool,
    /// Indices of the sender's and the receiver's node in the plan.
    pub nodes: (u32, u32),
    /// Frame length in bytes.
    pub length: u32,
    /// Fields of the packet's headers.
    pub facts: Facts,
}

/// A packet in flight.
#[derive(Debug)]
struct Sent {
    at: Nanos,
    whose: crate::flows::Belonging,
    length: u32,
}

/// The tables of a record that are measured at the hosts.
#[derive(Debug, Default)]
pub struct Ends {
    /// One row for each flow, in the plan's order. If the packets of a flow's hosts were not
    /// observed, its counts are 0.
    pub flows: Table,
    /// One row for each group.
    pub groups: Table,
    /// One row for all flows together.
    pub total: Table,
    /// Distributions of delays and round-trip times for each group.
    pub distributions: Table,
    /// Delivered rate and number of active flows of each group, at each interval of the plan's
    /// series.
    pub series: Table,
}

/// The time series of all groups.
struct Series {
    interval: Nanos,
    next: Nanos,
    /// Payload bytes delivered until the last sample, for each group.
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

    /// Takes all samples that are due until `now`.
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

/// Returns the measurements of a plan's flows from the hosts' observations before `end`.
pub fn flows_seen(plan: &Plan, mut seen: Vec<Seen>, end: Nanos) -> Ends {
    seen.sort_by_key(|one| (one.at, !one.sent));
    let mut flows = Flows::new(plan);
    let mut accounts = vec![FlowAccount::default(); 2 * (flows.count() + 1)];
    let mut series = Series::new(plan);
    // For each account, the latest sending time of a received packet.
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
            accounts[account].missing += 1;
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
    // The number of events is 0: a real link has no simulated events.
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
        let tcp = Transport::Tcp(sojourn_tcp::Params::default());
        let group = |name: &str, app| Group::new(name, vec![(0, 1)], tcp.clone(), app);
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
                qlog: Vec::new(),
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

    /// Returns the observations of a packet sent at `at` milliseconds. It is received 5 ms later,
    /// unless it is `lost`.
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
    fn unclaimed_packets_belong_to_programs_in_both_directions() {
        let mut seen = Vec::new();
        for (at, back, ports, seq, payload, lost) in [
            (0, false, (40_000, 80), 0, 0, false),
            (10, true, (80, 40_000), 0, 0, false),
            (20, false, (40_000, 80), 1, 100, false),
            (30, true, (80, 40_000), 1, 1000, false),
            (40, true, (80, 40_000), 1001, 1000, true),
            (50, true, (80, 40_000), 2001, 1000, false),
            // A packet of the flow `bulk`, identified by its port.
            (60, false, (40_001, 20_000), 0, 0, false),
            (70, false, (40_001, 20_000), 1, 500, false),
            // A packet in flight at the end of the run.
            (999, true, (80, 40_000), 3001, 1000, false),
        ] {
            seen.extend(packet(at, back, ports, seq, payload, lost));
        }
        let Ends { flows, groups, total, series, .. } = flows_seen(&plan(), seen, SECOND);
        assert_eq!(values(&flows, "bytes"), [500.0, 1100.0]);
        assert_eq!(values(&flows, "sent"), [2.0, 7.0]);
        assert_eq!(values(&flows, "received"), [2.0, 5.0]);
        let loss = values(&flows, "packet_loss")[1];
        // The second response of the server arrived beyond a hole.
        let [delay, goodput, delivered] =
            ["delay_mean", "goodput", "delivered"].map(|name| values(&groups, name)[1]);
        for (found, expected) in
            [(loss, 1.0 / 7.0), (delay, 0.005), (goodput, 16800.0), (delivered, 8800.0)]
        {
            assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
        }
        assert_eq!(values(&total, "packets"), [9.0]);
        // A sample covers the interval before it. The last packets of the programs were received at
        // 55 ms.
        assert_eq!(values(&series, "get.goodput")[..2], [2100.0 * 8.0 / 0.1, 0.0]);
        assert_eq!(values(&series, "bulk.active").len(), 10);
    }
}
