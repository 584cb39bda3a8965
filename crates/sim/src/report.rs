//! The record of a run, made from its measurements.

use crate::app::{App, Report};
use crate::captures::Captures;
use crate::engine::Engine;
use crate::flow_report::{count_up, flow_line};
use crate::world::World;
use sojourn_measure::{Table, Welford};
use sojourn_network::{Counted, Record, Row, Span, append, append_times, flow_report, table};
use sojourn_units::EPOCH;

/// Ends a run and returns its record.
pub fn record(engine: Engine) -> Record {
    let events = engine.events();
    let Engine { mut world, apps, .. } = engine;
    let reports: Vec<_> = apps.iter().zip(0..).map(|(app, id)| app.report(&world, id)).collect();
    let counted = count_up(&world, &reports);
    let summary = summary(&world, events, &counted, &reports);
    let rows = world.flows.iter().zip(&counted).zip(&reports).map(|((flow, counted), report)| {
        let line = flow_line(flow, counted, report);
        flow_report::flow_row(world.plan, &line, world.now - world.since)
    });
    let flows = table(rows.collect());
    let queues = world.net.queue_table(world.plan, &span(&world));
    let mut distributions = world.net.distributions(world.plan, &world.groups);
    for (place, metric, values) in reports.iter().flat_map(|report| &report.distributions) {
        append_times(&mut distributions, place, metric, values);
    }
    let observe = &world.plan.observe;
    let captures: &mut Captures = &mut world.net.observer.captures;
    Record {
        summary,
        flows,
        queues,
        distributions,
        captures_cut: captures.is_cut(),
        captures: captures.take(&observe.capture),
        qlogs: world.connections.qlogs(),
        trace_hash: world.net.trace_hash(),
        early_hash: engine.early.unwrap_or_else(|| world.net.trace_hash()),
        events,
        complete: engine.complete,
        reached: world.now - EPOCH,
        series: engine.series.into_table(),
        flow_series: if observe.monitor { engine.monitor.into_table() } else { Table::default() },
    }
}

fn span<'a>(world: &'a World) -> Span<'a> {
    Span { since: world.since, now: world.now, media: &world.media_before }
}

/// Adds a group's further metrics: means over the group's flows, which ignore NaN values.
fn add_means(row: &mut Row, flows: &[Report]) {
    let Some(any) = flows.first() else { return };
    for (i, &(name, _)) in any.means.iter().enumerate() {
        let mut mean = Welford::default();
        flows.iter().map(|flow| flow.means[i].1).filter(|x| !x.is_nan()).for_each(|x| mean.add(x));
        row.real(name, mean.mean());
    }
}

fn summary(world: &World, events: u64, flows: &[Counted], reports: &[Report]) -> Table {
    let (now, took) = (world.now, world.now - world.since);
    let mut summary = Table::default();
    let packets = world.net.slab.numbers();
    let total = flow_report::total_row(&world.groups, flows, events, packets, now, took);
    append(&mut summary, None, total);
    append(&mut summary, None, world.net.bottleneck_row(world.plan, &span(world)));
    let mut first = 0;
    for (group, probe) in world.plan.groups.iter().zip(&world.groups) {
        let own = first..first + group.count as usize;
        first = own.end;
        let mut row = flow_report::group_row(group, probe, &flows[own.clone()], now, took);
        let ages = |of: usize| {
            let starts = reports[own.clone()].iter().flat_map(|report| &report.open[of]);
            starts.map(|start| now - start).collect()
        };
        flow_report::all_completions(&mut row, group, probe, [ages(0), ages(1)]);
        add_means(&mut row, &reports[own]);
        append(&mut summary, Some(&group.name), row);
    }
    for (balancer, controller) in world.plan.balancers.iter().zip(&world.controllers) {
        append(&mut summary, Some(&balancer.name), controller.row());
    }
    world.net.summarise_places(world.plan, &span(world), &mut summary);
    for (name, row) in reports.iter().flat_map(|report| &report.rows) {
        append(&mut summary, Some(name), row.clone());
    }
    summary
}
