//! A run that its caller advances step by step.

use crate::engine::Engine;
use crate::observers::PacketEvent;
use crate::progress::RunError;
use crate::{options, report};
use sojourn_network::Record;
use sojourn_plan::Plan;
use sojourn_units::{EPOCH, Nanos};

/// A run that its caller advances in steps. The steps do not affect the results: after the last
/// step its record equals that of [`crate::run`].
pub struct Stepwise<'a>(Engine<'a>);

impl<'a> Stepwise<'a> {
    /// Returns a run at its beginning, without a log of packets.
    ///
    /// # Errors
    /// If the plan cannot be run.
    pub fn new(plan: &'a Plan, seed: u64) -> Result<Self, RunError> {
        Ok(Self(Engine::new(plan, seed, options(plan))?))
    }

    /// Logs the packet events of these links from now on, and of no other links.
    ///
    /// # Panics
    /// If the plan has no such link.
    pub fn log(&mut self, links: &[usize]) {
        for &link in links {
            self.0.world.net.observe_link(self.0.world.now, link);
        }
        self.0.world.net.observer.log(links);
    }

    /// Processes all events before `until`, counted from the run's start. A time in the past has no
    /// effect.
    ///
    /// # Errors
    /// If an internal check of the simulator fails.
    pub fn advance(&mut self, until: Nanos) -> Result<(), RunError> {
        self.0.run_until(until)
    }

    /// Returns the simulated time since the run's start.
    pub fn now(&self) -> Nanos {
        self.0.world.now - EPOCH
    }

    /// Returns whether the run has reached its end.
    pub fn is_complete(&self) -> bool {
        self.0.complete
    }

    /// Returns the number of events so far.
    pub fn events(&self) -> u64 {
        self.0.events()
    }

    /// Returns the packet events logged since the last call, in the order of processing.
    pub fn take_log(&mut self) -> Vec<PacketEvent> {
        self.0.world.net.observer.take_log()
    }

    /// Returns the record of the run until now.
    pub fn into_record(self) -> Record {
        report::record(self.0)
    }
}
