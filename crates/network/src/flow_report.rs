//! The metrics of flows, groups and the whole run.

use crate::flow_probe::{GroupProbe, Tally};
use crate::link_report::{rate, share};
use crate::tables::Row;
use sojourn_measure::{FlowAccount, Histogram, Moments, Survival, Welford, jain};
use sojourn_plan::{Group, Plan, Transport};
use sojourn_traffic::App;
use sojourn_units::{EPOCH, Nanos, SECOND, time::seconds};

/// Counts of a flow since the end of the warm-up.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Whether the flow uses TCP.
    pub tcp: bool,
    /// Bytes of application payload delivered; with TCP, bytes delivered in order, each once.
    pub bytes: u64,
    /// Bytes of application payload that reached the receiving host, in order or not, each once.
    pub arrived: u64,
    /// TCP's counters.
    pub tally: Tally,
    /// The packet accounts of the data direction and of the opposite direction.
    pub books: [FlowAccount; 2],
    /// Interarrival jitter in seconds; NaN if the application has none.
    pub jitter: f64,
    /// Mean opinion score; NaN unless the application is a call.
    pub mos: f64,
}

/// The data of a flow's row in the table of flows.
#[derive(Clone, Copy, Debug)]
pub struct FlowLine<'a> {
    /// Index of the flow's group.
    pub group: usize,
    /// Number of the flow within its group.
    pub number: u32,
    /// Node of the server that a balancer chose last; `None` without a choice, when the group's
    /// pair of nodes names the server.
    pub server: Option<usize>,
    /// Time at which the flow begins; `Nanos::MAX` if it never does.
    pub start: Nanos,
    /// Time at which the flow ended; `None` if it did not.
    pub end: Option<Nanos>,
    /// The flow's counts since the end of the warm-up.
    pub counted: &'a Counted,
    /// Number of transfers completed.
    pub finished: u64,
    /// Number of Web pages loaded.
    pub pages: u64,
    /// Delays of the flow's packets with data; in simulations of packet sources over TCP, of its
    /// writes.
    pub delays: Moments,
    /// Delays of the flow's packets with data.
    pub packet_delays: Moments,
    /// Distribution of `delays`; `None` unless the plan sets `per_flow_histograms`.
    pub delay: Option<&'a Histogram>,
}

/// Returns the counts of a flow's packets that were added between `before` and `now`.
pub fn books_since(now: &FlowAccount, before: &FlowAccount) -> FlowAccount {
    FlowAccount {
        sent: now.sent - before.sent,
        duplicated: now.duplicated - before.duplicated,
        dropped: now.dropped - before.dropped,
        lost: now.lost - before.lost,
        received: now.received - before.received,
        missing: now.missing - before.missing,
    }
}

/// Returns the row of one flow, measured over `span`.
pub fn flow_row(plan: &Plan, flow: &FlowLine, span: Nanos) -> Row {
    let group = &plan.groups[flow.group];
    let mut pair = group.pairs[flow.number as usize % group.pairs.len()];
    if let Some(server) = flow.server {
        *if matches!(group.app, App::Web(_)) { &mut pair.0 } else { &mut pair.1 } = server;
    }
    let mut row = Row::default();
    row.text("group", &group.name);
    row.integer("flow", u64::from(flow.number));
    row.text("from", &plan.nodes[pair.0].name);
    row.text("to", &plan.nodes[pair.1].name);
    row.real("start", instant(Some(flow.start)));
    row.real("end", instant(flow.end));
    transfer_metrics(&mut row, &[*flow.counted], span);
    row.integer("finished", flow.finished);
    row.integer("pages", flow.pages);
    row.real("jitter", flow.counted.jitter);
    row.real("mos", flow.counted.mos);
    row.real("delay_mean", flow.delays.mean() / SECOND as f64);
    row.real("delay_sd", flow.delays.deviation() / SECOND as f64);
    row.real("packet_delay_mean", flow.packet_delays.mean() / SECOND as f64);
    row.real("packet_delay_sd", flow.packet_delays.deviation() / SECOND as f64);
    if let Some(histogram) = flow.delay {
        row.quantiles(histogram, &DELAYS);
    }
    row
}

/// Appends the metrics that rows of flows, of groups and of the run have in common.
fn transfer_metrics(row: &mut Row, flows: &[Counted], span: Nanos) {
    let sum = |of: fn(&Counted) -> u64| flows.iter().map(of).sum::<u64>();
    let tcp = |f: &Counted, bytes: u64| if f.tcp { bytes - f.tally.datagrams } else { 0 };
    let [delivered, arrived] = [|f: &Counted| f.bytes, |f: &Counted| f.arrived]
        .map(|of| flows.iter().map(|f| tcp(f, of(f))).sum::<u64>());
    let udp = sum(|f| if f.tcp { f.tally.datagrams } else { f.bytes });
    row.integer("bytes", delivered + udp);
    row.real("goodput", rate(arrived, span));
    row.real("delivered", rate(delivered, span));
    row.real("udp_goodput", rate(udp, span));
    let sent = sum(|f| f.books[0].sent.packets);
    row.integer("sent", sent);
    row.integer("received", sum(|f| f.books[0].received.packets));
    row.real("packet_loss", share(sum(|f| f.books[0].missing), sent));
    row.integer("retransmissions", sum(|f| f.tally.retransmissions));
    row.integer("timeouts", sum(|f| f.tally.timeouts));
    row.integer("recoveries", sum(|f| f.tally.recoveries));
    row.integer("writes", sum(|f| f.tally.writes));
    row.integer("refused", sum(|f| f.tally.refused));
    let mut windows = Welford::default();
    for tally in flows.iter().map(|f| &f.tally).filter(|t| t.time > 0) {
        windows.add(tally.window as f64 / tally.time as f64);
    }
    row.real("cwnd_mean", windows.mean());
    let open = sum(|f| f.tally.time);
    row.real("rwnd_limited", share(sum(|f| f.tally.window_limited), open));
    row.real("sndbuf_limited", share(sum(|f| f.tally.buffer_limited), open));
}

/// Returns the metrics of a group, measured over `span` up to `now`; `flows` are the counts of its
/// flows.
pub fn group_row(
    group: &Group,
    probe: &GroupProbe,
    flows: &[Counted],
    now: Nanos,
    span: Nanos,
) -> Row {
    let mut row = Row::default();
    row.integer("flows", probe.flows);
    transfer_metrics(&mut row, flows, span);
    row.real("jain", jain(flows.iter().map(|f| f.arrived as f64)));
    let delay = probe.delay.moments();
    row.real("delay_mean", delay.mean() / SECOND as f64);
    row.real("delay_sd", delay.deviation() / SECOND as f64);
    row.quantiles(&probe.delay, &DELAYS);
    let packets = probe.packet_delay.as_deref().unwrap_or(&probe.delay);
    row.real("packet_delay_mean", packets.moments().mean() / SECOND as f64);
    row.real("packet_delay_sd", packets.moments().deviation() / SECOND as f64);
    row.quantiles(packets, &PACKET_DELAYS);
    row.real("rtt_mean", probe.rtt.moments().mean() / SECOND as f64);
    row.quantiles(&probe.rtt, &[("rtt_p50", 0.5), ("rtt_p95", 0.95), ("rtt_p99", 0.99)]);
    row.real("srtt_mean", probe.srtt.moments().mean() / SECOND as f64);
    row.quantiles(&probe.srtt, &[("srtt_p50", 0.5), ("srtt_p95", 0.95)]);
    row.real("active_mean", probe.active.mean(now));
    completion_metrics(&mut row, group, probe);
    let mean = |of: fn(&Counted) -> f64| {
        let mut mean = Welford::default();
        flows.iter().map(of).filter(|x| !x.is_nan()).for_each(|x| mean.add(x));
        mean.mean()
    };
    row.real("jitter", mean(|f| f.jitter));
    row.real("mos", mean(|f| f.mos));
    row.real("mos_min", flows.iter().map(|f| f.mos).fold(f64::NAN, f64::min));
    row
}

/// Returns whether a group's flows are transfers or consist of transfers.
fn transfers(group: &Group) -> bool {
    let ends = group.stop.is_some() || group.app.ends();
    let tcp = matches!(group.transport, Transport::Tcp(_));
    let stream = tcp && ends && group.app.sends_packets();
    stream || matches!(group.app, App::Web(_) | App::Transfer(_))
}

/// Appends the completion times of all transfers of a group and of all its pages. `open` has the
/// ages of the transfers and of the pages that have not ended.
pub fn all_completions(row: &mut Row, group: &Group, probe: &GroupProbe, open: [Vec<u64>; 2]) {
    let [transfers_open, pages_open] = open;
    let mut add = |ended, ages, names: [&'static str; 4]| {
        let found = Survival::new(ended, ages);
        let values =
            [found.mean(), found.quantile(0.5), found.quantile(0.95), found.quantile(0.99)];
        names.into_iter().zip(values).for_each(|(name, x)| row.real(name, x / SECOND as f64));
    };
    if transfers(group) {
        let names = ["fct_mean_all", "fct_p50_all", "fct_p95_all", "fct_p99_all"];
        add(&probe.fct, transfers_open, names);
    }
    if matches!(group.app, App::Web(_)) {
        let names = ["page_mean_all", "page_p50_all", "page_p95_all", "page_p99_all"];
        add(&probe.page, pages_open, names);
    }
}

fn completion_metrics(row: &mut Row, group: &Group, probe: &GroupProbe) {
    let finished = probe.fct.moments().count();
    let web = matches!(group.app, App::Web(_));
    row.integer("finished", finished);
    row.integer("unfinished", if transfers(group) { probe.active.value() } else { 0 });
    row.real("fct_mean", probe.fct.moments().mean() / SECOND as f64);
    row.quantiles(&probe.fct, &[("fct_p50", 0.5), ("fct_p95", 0.95), ("fct_p99", 0.99)]);
    row.integer("pages", probe.page.moments().count());
    row.integer("objects", if web { finished } else { 0 });
    row.real("page_mean", probe.page.moments().mean() / SECOND as f64);
    row.quantiles(&probe.page, &[("page_p50", 0.5), ("page_p95", 0.95), ("page_p99", 0.99)]);
}

/// Returns the metrics of all flows together, measured over `span` up to `now`. `events` and
/// `packets` are counted from the run's start.
pub fn total_row(
    groups: &[GroupProbe],
    flows: &[Counted],
    events: u64,
    packets: u64,
    now: Nanos,
    span: Nanos,
) -> Row {
    let mut row = Row::default();
    row.real("measured", seconds(span));
    row.integer("events", events);
    row.integer("packets", packets);
    transfer_metrics(&mut row, flows, span);
    row.real("jain", jain(flows.iter().filter(|f| f.tcp).map(|f| f.arrived as f64)));
    row.integer("finished", groups.iter().map(|g| g.fct.moments().count()).sum());
    row.real("active_mean", groups.iter().map(|g| g.active.mean(now)).sum());
    row
}

const DELAYS: [(&str, f64); 4] =
    [("delay_p50", 0.5), ("delay_p95", 0.95), ("delay_p99", 0.99), ("delay_p999", 0.999)];

const PACKET_DELAYS: [(&str, f64); 3] =
    [("packet_delay_p50", 0.5), ("packet_delay_p95", 0.95), ("packet_delay_p99", 0.99)];

/// Returns a time in seconds since the run's start; NaN for `None` and `Nanos::MAX`.
fn instant(at: Option<Nanos>) -> f64 {
    at.filter(|&at| at != Nanos::MAX).map_or(f64::NAN, |at| seconds(at - EPOCH))
}
