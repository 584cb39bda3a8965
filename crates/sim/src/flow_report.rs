//! The counts and rows of flows, from the world's data and the applications' reports.

use crate::app::Report;
use crate::world::{Before, Flow, World};
use sojourn_network::flow_report::books_since;
use sojourn_network::{Counted, FlowLine, Tally};
use sojourn_plan::Transport;

/// Returns the counts of each flow since the end of the warm-up.
pub fn count_up(world: &World, reports: &[Report]) -> Vec<Counted> {
    let tallies = world.connections.tallies(world.now);
    let flows = world.flows.iter().zip(&tallies).zip(reports);
    flows.map(|((flow, tally), report)| counted(world, flow, tally, report)).collect()
}

fn counted(world: &World, flow: &Flow, tally: &Tally, report: &Report) -> Counted {
    let none = Before::default();
    let before = flow.before.as_deref().unwrap_or(&none);
    let tally =
        Tally { writes: report.writes, refused: report.refused, ..tally.since(&before.tally) };
    let account = flow.account as usize;
    let books =
        [0, 1].map(|way| books_since(&world.net.accounts[account + way], &before.books[way]));
    let group = &world.plan.groups[flow.group as usize];
    Counted {
        tcp: matches!(group.transport, Transport::Tcp(_)),
        bytes: report.bytes.unwrap_or(tally.bytes),
        arrived: report.bytes.unwrap_or(tally.arrived),
        tally,
        books,
        jitter: report.jitter,
        mos: report.mos,
    }
}

/// Returns the data of a flow's row in the table of flows.
pub fn flow_line<'a>(flow: &'a Flow, counted: &'a Counted, report: &Report) -> FlowLine<'a> {
    let delays = flow.delay.as_ref().map_or(report.delays, |histogram| *histogram.moments());
    FlowLine {
        group: flow.group as usize,
        number: flow.number,
        server: flow.assignment.and_then(|assignment| assignment.node),
        start: flow.start,
        end: flow.end,
        counted,
        finished: flow.finished,
        pages: report.pages,
        delays,
        packet_delays: flow.packet_delays.as_deref().copied().unwrap_or(delays),
        delay: flow.delay.as_deref(),
    }
}
