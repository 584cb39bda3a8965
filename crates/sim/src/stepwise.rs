//! A run that its caller advances step by step.

use crate::engine::Engine;
use crate::observers::PacketEvent;
use crate::progress::RunError;
use crate::{options, report};
use sojourn_network::Record;
use sojourn_plan::Plan;
use sojourn_units::{EPOCH, Nanos};

/// A run that its caller advances. Its record is the one of [`crate::run`], wherever it pauses.
pub struct Stepwise<'a>(Engine<'a>);

impl<'a> Stepwise<'a> {
    /// A run at its beginning, without a log.
    ///
    /// # Errors
    /// If the plan cannot be run.
    pub fn new(plan: &'a Plan, seed: u64) -> Result<Self, RunError> {
        Ok(Self(Engine::new(plan, seed, options(plan))?))
    }

    /// Logs the packets of these links from now on, and of no others.
    ///
    /// # Panics
    /// If the plan has no such link.
    pub fn log(&mut self, links: &[usize]) {
        for &link in links {
            self.0.world.net.observe_link(self.0.world.now, link);
        }
        self.0.world.net.observer.log(links);
    }

    /// Runs all events before `until`, a time since the start. A time of the past changes nothing.
    ///
    /// # Errors
    /// If the simulator finds that it is wrong.
    pub fn advance(&mut self, until: Nanos) -> Result<(), RunError> {
        self.0.run_until(until)
    }

    /// Simulated time since the start.
    pub fn now(&self) -> Nanos {
        self.0.world.now - EPOCH
    }

    /// Whether the run has reached its end.
    pub fn is_complete(&self) -> bool {
        self.0.complete
    }

    /// Events processed so far.
    pub fn events(&self) -> u64 {
        self.0.events()
    }

    /// Takes the packet events since the last call, in the order in which they were processed.
    pub fn take_log(&mut self) -> Vec<PacketEvent> {
        self.0.world.net.observer.take_log()
    }

    /// Returns the measurements until now.
    pub fn into_record(self) -> Record {
        report::record(self.0)
    }
}
