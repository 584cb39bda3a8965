//! The metrics of flows, groups and the whole run.

use crate::engine::Engine;
use crate::flow::{Driver, Flow, GroupProbe, Tally};
use crate::link_report::{rate, share};
use crate::tables::Row;
use sojourn_measure::{FlowAccount, Moments, Welford, jain};
use sojourn_plan::Transport;
use sojourn_traffic::App;
use sojourn_units::{EPOCH, Nanos, SECOND, time::seconds};

/// What is left of a flow when it is counted up.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Whether it is TCP.
    tcp: bool,
    /// Application payload delivered.
    bytes: u64,
    /// What TCP did.
    tally: Tally,
    /// The books of its data, and of what comes back.
    books: [FlowAccount; 2],
    jitter: f64,
    mos: f64,
}

fn since(now: &FlowAccount, before: &FlowAccount) -> FlowAccount {
    FlowAccount {
        sent: now.sent - before.sent,
        duplicated: now.duplicated - before.duplicated,
        dropped: now.dropped - before.dropped,
        lost: now.lost - before.lost,
        received: now.received - before.received,
    }
}

impl Engine<'_> {
    /// Counts up all flows since the end of the warm-up.
    pub fn count_up(&self) -> Vec<Counted> {
        let tallies = self.tallies();
        self.flows.iter().zip(&tallies).map(|(flow, tally)| self.counted(flow, tally)).collect()
    }

    fn counted(&self, flow: &Flow, tally: &Tally) -> Counted {
        let group = &self.plan.groups[flow.group as usize];
        let tally = tally.since(&flow.before);
        let account = flow.account as usize;
        let books = [0, 1].map(|way| since(&self.net.accounts[account + way], &flow.books[way]));
        let (mut bytes, mut jitter, mut mos) = (tally.bytes, f64::NAN, f64::NAN);
        if let Driver::Packets(packets) = &flow.driver {
            let receiver = &packets.receiver;
            jitter = receiver.jitter();
            let inside = if let Some(stream) = &packets.stream {
                stream.pending()
            } else {
                bytes = receiver.received.bytes - flow.bytes_before;
                self.net.accounts[account].in_network().packets
            };
            let settled = packets.seq.saturating_sub(inside);
            let call = receiver.call(settled);
            if let (App::Voip(voip), Some((delay, loss, burst))) = (&group.app, call) {
                mos = voip.quality(delay, loss, burst).mos;
            }
        }
        let tcp = matches!(group.transport, Transport::Tcp(_));
        Counted { tcp, bytes, tally, books, jitter, mos }
    }

    /// The row of one flow.
    pub fn flow_row(&self, flow: &Flow, counted: &Counted) -> Row {
        let group = &self.plan.groups[flow.group as usize];
        let pair = group.pairs[flow.number as usize % group.pairs.len()];
        let mut row = Row::default();
        row.text("group", &group.name);
        row.integer("flow", u64::from(flow.number));
        row.text("from", &self.plan.nodes[pair.0].name);
        row.text("to", &self.plan.nodes[pair.1].name);
        row.real("start", instant(Some(flow.start)));
        row.real("end", instant(flow.end));
        let span = self.now - self.since;
        Self::transfer_metrics(&mut row, &[*counted], span);
        row.integer("finished", flow.finished);
        row.integer("pages", if let Driver::Web(web) = &flow.driver { web.pages } else { 0 });
        row.real("jitter", counted.jitter);
        row.real("mos", counted.mos);
        let delays = match (&flow.delay, &flow.driver) {
            (Some(histogram), _) => *histogram.moments(),
            (None, Driver::Packets(packets)) => packets.receiver.delays,
            _ => Moments::default(),
        };
        row.real("delay_mean", delays.mean() / SECOND as f64);
        row.real("delay_sd", delays.deviation() / SECOND as f64);
        let packets = match &flow.driver {
            Driver::Packets(packets) => packets.stream.as_ref().map(|s| s.packet_delays),
            _ => None,
        };
        let packets = packets.unwrap_or(delays);
        row.real("packet_delay_mean", packets.mean() / SECOND as f64);
        row.real("packet_delay_sd", packets.deviation() / SECOND as f64);
        if let Some(histogram) = &flow.delay {
            row.quantiles(histogram, &DELAYS);
        }
        row
    }

    /// What flows and groups have in common.
    fn transfer_metrics(row: &mut Row, flows: &[Counted], span: Nanos) {
        let sum = |of: fn(&Counted) -> u64| flows.iter().map(of).sum::<u64>();
        let tcp = sum(|f| if f.tcp { f.bytes } else { 0 });
        let udp = sum(|f| if f.tcp { 0 } else { f.bytes });
        row.integer("bytes", tcp + udp);
        row.real("goodput", rate(tcp, span));
        row.real("udp_goodput", rate(udp, span));
        let sent = sum(|f| f.books[0].sent.packets);
        row.integer("sent", sent);
        row.integer("received", sum(|f| f.books[0].received.packets));
        let gone = sum(|f| f.books[0].dropped.packets + f.books[0].lost.packets);
        row.real("packet_loss", share(gone, sent));
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
    }

    /// The metrics of group `g`, whose flows are counted up in `flows`.
    pub fn group_row(&self, g: usize, flows: &[Counted]) -> Row {
        let probe = &self.groups[g];
        let now = self.now;
        let mut row = Row::default();
        row.integer("flows", probe.flows);
        Self::transfer_metrics(&mut row, flows, now - self.since);
        row.real("jain", jain(flows.iter().map(|f| f.bytes as f64)));
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
        row.real("active_mean", probe.active.mean(now));
        self.completion_metrics(&mut row, g, probe);
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

    fn completion_metrics(&self, row: &mut Row, g: usize, probe: &GroupProbe) {
        let finished = probe.fct.moments().count();
        let group = &self.plan.groups[g];
        let tcp = matches!(group.transport, Transport::Tcp(_));
        let ends = group.stop.is_some() || group.app.ends();
        let stream = tcp && ends && group.app.sends_packets();
        let transfers = stream || matches!(group.app, App::Transfer(_) | App::Web(_));
        row.integer("finished", finished);
        row.integer("unfinished", if transfers { probe.active.value() } else { 0 });
        row.real("fct_mean", probe.fct.moments().mean() / SECOND as f64);
        row.quantiles(&probe.fct, &[("fct_p50", 0.5), ("fct_p95", 0.95), ("fct_p99", 0.99)]);
        let web = matches!(self.plan.groups[g].app, App::Web(_));
        row.integer("pages", probe.page.moments().count());
        row.integer("objects", if web { finished } else { 0 });
        row.real("page_mean", probe.page.moments().mean() / SECOND as f64);
        row.quantiles(&probe.page, &[("page_p50", 0.5), ("page_p95", 0.95), ("page_p99", 0.99)]);
    }

    /// The metrics of all flows together.
    pub fn total_row(&self, flows: &[Counted]) -> Row {
        let mut row = Row::default();
        row.real("measured", seconds(self.now - self.since));
        row.integer("events", self.events);
        row.integer("packets", self.net.slab.numbers());
        Self::transfer_metrics(&mut row, flows, self.now - self.since);
        row.real("jain", jain(flows.iter().filter(|f| f.tcp).map(|f| f.bytes as f64)));
        row.integer("finished", self.groups.iter().map(|g| g.fct.moments().count()).sum());
        let active = |g: &GroupProbe| g.active.mean(self.now);
        row.real("active_mean", self.groups.iter().map(active).sum());
        row
    }
}

const DELAYS: [(&str, f64); 4] =
    [("delay_p50", 0.5), ("delay_p95", 0.95), ("delay_p99", 0.99), ("delay_p999", 0.999)];

const PACKET_DELAYS: [(&str, f64); 3] =
    [("packet_delay_p50", 0.5), ("packet_delay_p95", 0.95), ("packet_delay_p99", 0.99)];

/// Seconds since the run's start; NaN for what did not happen.
fn instant(at: Option<Nanos>) -> f64 {
    at.filter(|&at| at != Nanos::MAX).map_or(f64::NAN, |at| seconds(at - EPOCH))
}
