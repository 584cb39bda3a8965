//! The contract between a balancer and its policy, and what a policy declares.

use crate::facts::Flow;
use crate::needs::Needs;
use crate::pick::{Draws, Pick};
use crate::sight::{Sight, View};
use sojourn_units::Nanos;
use sojourn_units::declare::Parameters;
use sojourn_units::words::{self, Table, Text};

/// A question for a server.
#[expect(missing_debug_implementations, reason = "draws have none")]
pub struct Ask<'a, V> {
    /// Now.
    pub now: Nanos,
    /// The flow that begins.
    pub flow: Flow,
    /// The servers.
    pub sight: Sight<'a, V>,
    /// Random draws.
    pub draws: &'a mut Draws<'a>,
}

/// A policy, and what it may look at.
pub trait Policy {
    /// The part of what is known of servers that it sees.
    type View: View;

    /// Readings have been taken.
    fn observe(&mut self, _now: Nanos, _sight: &Sight<'_, Self::View>) {}

    /// The server for a new flow; none if there is none to be had.
    fn choose(&mut self, ask: Ask<'_, Self::View>) -> Option<Pick>;

    /// A flow of `server` has ended; `latency` is how long it took, if that is known.
    fn finished(
        &mut self,
        _now: Nanos,
        _server: usize,
        _latency: Option<Nanos>,
        _sight: &Sight<'_, Self::View>,
    ) {
    }

    /// Servers have come or gone. Asked once before anything else.
    fn changed(&mut self, _sight: &Sight<'_, Self::View>) {}

    /// What it remembers of each server: server, name and value.
    fn state(&self, _visit: &mut dyn FnMut(usize, &str, f64)) {}
}

/// The parameters of a policy, and what the family needs to know of it.
pub trait PolicyParams: Parameters<On = ()> + Default {
    /// Its name and words.
    const TABLE: Table;

    /// The policy.
    type Policy: Policy;

    /// What the policy needs of the program that drives it.
    fn needs(&self) -> Needs;

    /// A new policy for so many servers. `key` is that of a stream, for a policy that draws at other
    /// times than at choices.
    fn build(&self, servers: usize, key: u64) -> Self::Policy;

    /// The description that reads back as these parameters.
    fn text(&self) -> String {
        self.write(Text::new(Self::TABLE.name)).done()
    }

    /// Checks parameters that do not come from a text.
    ///
    /// # Errors
    /// A value outside its bounds.
    fn check(&self) -> Result<(), String> {
        let read = words::describe("balancing policy", &[&Self::TABLE], &self.text());
        read.and_then(|(_, given)| Self::default().set(&given)).map_err(|error| error.message)
    }
}
