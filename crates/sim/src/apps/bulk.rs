//! Bulk transfers: one connection that always has data to send.

use crate::app::{App, Declared, Event, Report};
use crate::world::{Access, Change, NEVER, World};
use sojourn_measure::Imbalance;
use sojourn_plan::PlanError;

/// A bulk transfer.
#[derive(Clone, Copy, Debug)]
pub struct Bulk;

impl Bulk {
    fn finish(world: &mut World, id: u32) {
        if world.serve(id) {
            world.release(id);
            world.end_flow(id);
        }
    }
}

impl App for Bulk {
    fn try_new(declared: Declared, world: &mut World, id: u32) -> Result<Option<Self>, PlanError> {
        let Declared::Flow(group, _) = declared else { return Ok(None) };
        let sojourn_traffic::App::Bulk(_) = group.app else { return Ok(None) };
        world.start_timer(id, world.flows[id as usize].start);
        Ok(Some(Self))
    }

    fn on_timer(&mut self, world: &mut World, id: u32) {
        world.clear_timer(id);
        match world.access(id) {
            Access::Granted => {}
            Access::Pending => return,
            Access::Refused => return world.retry(id),
            Access::Served => return Self::finish(world, id),
        }
        let flow = &world.flows[id as usize];
        let slot = if let Some(slot) = flow.current {
            world.connections.end(slot).close();
            slot
        } else {
            let stop = flow.stop;
            let slot = world.connect(id, false);
            world.connections.end(slot).write_unlimited();
            if stop != NEVER {
                world.set_timer(id, stop);
            }
            slot
        };
        if world.flush(slot).is_some() {
            Self::finish(world, id);
        }
    }

    fn on_event(&mut self, world: &mut World, id: u32, event: Event) {
        if let Event::Connection(_, Change::Closed) = event {
            Self::finish(world, id);
        }
    }

    fn restart(&mut self) {}

    fn audit(&self, _world: &World, _id: u32) -> Result<(), Imbalance> {
        Ok(())
    }

    fn report(&self, _world: &World, _id: u32) -> Report {
        Report::default()
    }
}
