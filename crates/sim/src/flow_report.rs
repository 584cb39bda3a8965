//! What was measured of flows.

use crate::engine::Engine;
use crate::flow::{Driver, Flow, Packets};
use sojourn_measure::Moments;
use sojourn_network::flow_report::books_since;
use sojourn_network::{Counted, FlowLine, Tally};
use sojourn_plan::Transport;
use sojourn_traffic::App;

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
        let books =
            [0, 1].map(|way| books_since(&self.net.accounts[account + way], &flow.books[way]));
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

    /// The flow, for its row.
    pub fn flow_line<'a>(flow: &'a Flow, counted: &'a Counted) -> FlowLine<'a> {
        let packets = match &flow.driver {
            Driver::Packets(packets) => Some(packets),
            _ => None,
        };
        let delays = match (&flow.delay, packets) {
            (Some(histogram), _) => *histogram.moments(),
            (None, Some(packets)) => packets.receiver.delays,
            (None, None) => Moments::default(),
        };
        let of_stream = |packets: &Packets| packets.stream.as_ref().map(|s| s.packet_delays);
        FlowLine {
            group: flow.group as usize,
            number: flow.number,
            server: flow.balanced.and_then(|balanced| balanced.node),
            start: flow.start,
            end: flow.end,
            counted,
            finished: flow.finished,
            pages: if let Driver::Web(web) = &flow.driver { web.pages } else { 0 },
            delays,
            packet_delays: packets.and_then(|p| of_stream(p)).unwrap_or(delays),
            delay: flow.delay.as_deref(),
        }
    }
}
