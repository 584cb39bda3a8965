//! Transfers: one connection after the other, each for a given number of bytes.

use crate::app::{App, Declared, Event, Report};
use crate::world::{Access, Change, World};
use sojourn_measure::Imbalance;
use sojourn_plan::PlanError;
use sojourn_traffic::transfer::Transfers;
use sojourn_units::Nanos;

/// A flow's transfers.
#[derive(Clone, Debug)]
pub struct Transfer {
    transfers: Transfers,
    /// Start time and bytes of the present or next transfer.
    job: Option<(Nanos, u64)>,
}

impl Transfer {
    /// Records the end of a transfer, and schedules the next one. `success` is whether all its
    /// bytes were delivered.
    fn finish(&mut self, world: &mut World, id: u32, success: bool) {
        if success && !world.serve(id) {
            return;
        }
        world.release(id);
        let Some((start, _)) = self.job.take() else { return };
        let now = world.now;
        let flow = &mut world.flows[id as usize];
        let group = &mut world.groups[flow.group as usize];
        group.end(now);
        flow.current = None;
        if success {
            group.fct.record(now - start);
            flow.finished += 1;
        }
        let next = self.transfers.after(now).filter(|job| job.at < flow.stop);
        self.job = next.map(|job| (job.at, job.bytes));
        match next {
            Some(job) => world.set_timer(id, job.at),
            None => flow.end = Some(now),
        }
    }
}

impl App for Transfer {
    fn try_new(declared: Declared, world: &mut World, id: u32) -> Result<Option<Self>, PlanError> {
        let Declared::Flow(group, planned) = declared else { return Ok(None) };
        let sojourn_traffic::App::Transfer(params) = &group.app else { return Ok(None) };
        world.start_timer(id, world.flows[id as usize].start);
        Ok(Some(Self { transfers: Transfers::new(params, planned.key), job: None }))
    }

    fn on_timer(&mut self, world: &mut World, id: u32) {
        world.clear_timer(id);
        match world.access(id) {
            Access::Granted => {}
            Access::Pending => return,
            Access::Refused => return world.retry(id),
            Access::Served => return self.finish(world, id, true),
        }
        // The first transfer starts with the flow. The end of each transfer sets the next one.
        if self.job.is_none() {
            let start = world.flows[id as usize].start;
            self.job = self.transfers.after(start).map(|job| (job.at, job.bytes));
        }
        let Some((_, bytes)) = self.job else { return };
        let slot = world.connect(id, false);
        world.offer(slot, bytes);
    }

    fn on_event(&mut self, world: &mut World, id: u32, event: Event) {
        match event {
            Event::Connection(_, Change::Complete) => self.finish(world, id, true),
            Event::Connection(_, Change::Lost) => self.finish(world, id, false),
            _ => {}
        }
    }

    fn restart(&mut self) {}

    fn audit(&self, _world: &World, _id: u32) -> Result<(), Imbalance> {
        Ok(())
    }

    fn report(&self, world: &World, id: u32) -> Report {
        // The next transfer is known before it starts.
        let started = self.job.filter(|_| world.flows[id as usize].current.is_some());
        Report {
            open: [started.map(|(at, _)| at).into_iter().collect(), vec![]],
            ..Report::default()
        }
    }
}
