//! The planned changes of links during a run, and which of them is due next.

use crate::deadlines::Deadlines;
use sojourn_link::Params;
use sojourn_plan::{Plan, Schedule};
use sojourn_units::{EPOCH, Nanos};

/// The schedules of all links whose parameters change during the run.
#[derive(Clone, Debug)]
pub struct Changes {
    schedules: Vec<(u32, Schedule)>,
    due: Deadlines,
}

impl Changes {
    /// Returns the schedules of a plan's links.
    pub fn new(plan: &Plan) -> Self {
        let links = plan.links.iter().enumerate().filter(|(_, link)| !link.changes.is_empty());
        let schedules: Vec<_> = links
            .map(|(id, link)| (id as u32, Schedule::new(&link.params, &link.changes)))
            .collect();
        let due = Deadlines::new(schedules.len() as u32);
        let mut changes = Self { schedules, due };
        (0..changes.schedules.len() as u32).for_each(|i| changes.plan_next(i));
        changes
    }

    fn plan_next(&mut self, i: u32) {
        match self.schedules[i as usize].1.next_at().and_then(|at| EPOCH.checked_add(at)) {
            Some(at) => self.due.set(i, at),
            None => self.due.clear(i),
        }
    }

    /// Returns the time of the next change; `None` after the last one.
    pub fn next_at(&self) -> Option<Nanos> {
        self.due.first().map(|(at, _)| at)
    }

    /// Calls `change` for each change that is due up to `now`, in the order of time, then of the
    /// plan's links. The arguments are the time, the link's number, and the link's new parameters.
    pub fn take_due(&mut self, now: Nanos, mut change: impl FnMut(Nanos, u32, &Params)) {
        while let Some((at, i)) = self.due.first().filter(|(at, _)| *at <= now) {
            let (id, schedule) = &mut self.schedules[i as usize];
            if let Some((_, params)) = schedule.take_next() {
                change(at, *id, params);
            }
            self.plan_next(i);
        }
    }
}
