//! Contract between a balancer and its policy, and declarations of policies.

use crate::facts::Flow;
use crate::needs::Needs;
use crate::pick::{Draws, Pick};
use crate::view::{Servers, View};
use sojourn_units::Nanos;
use sojourn_units::declare::Parameters;
use sojourn_units::words::{self, Table, Text};

/// A request for a server.
#[expect(missing_debug_implementations, reason = "draws have none")]
pub struct Request<'a, V> {
    /// Present time.
    pub now: Nanos,
    /// The new flow.
    pub flow: Flow,
    /// The policy's view of the servers.
    pub servers: Servers<'a, V>,
    /// Random draws.
    pub draws: &'a mut Draws<'a>,
}

/// A policy and its view.
pub trait Policy {
    /// Information about servers that the policy may use.
    type View: View;

    /// Called after readings have been taken.
    fn observe(&mut self, _now: Nanos, _servers: &Servers<'_, Self::View>) {}

    /// Returns the server for a new flow; `None` if no server is available.
    fn choose(&mut self, request: Request<'_, Self::View>) -> Option<Pick>;

    /// Called after a flow of `server` has ended; `latency` is its duration in nanoseconds, if
    /// known.
    fn finished(
        &mut self,
        _now: Nanos,
        _server: usize,
        _latency: Option<Nanos>,
        _servers: &Servers<'_, Self::View>,
    ) {
    }

    /// Called after servers have come up or gone down, and once before any other method.
    fn changed(&mut self, _servers: &Servers<'_, Self::View>) {}

    /// Visits the policy's state: server, name and value.
    fn state(&self, _visit: &mut dyn FnMut(usize, &str, f64)) {}
}

/// Parameters of a policy, and what the family needs from them.
pub trait PolicyParams: Parameters<On = ()> + Default {
    /// Name and words of the policy.
    const TABLE: Table;

    /// Type of the policy.
    type Policy: Policy;

    /// Returns the information that the policy needs from the program that drives it.
    fn needs(&self) -> Needs;

    /// Returns a new policy for `servers` servers. `key` is the key of a random stream, for a
    /// policy that draws at other times than at choices.
    fn build(&self, servers: usize, key: u64) -> Self::Policy;

    /// Returns a description that parses to these parameters.
    fn text(&self) -> String {
        self.write(Text::new(Self::TABLE.name)).done()
    }

    /// Checks parameters that were not parsed from a text.
    ///
    /// # Errors
    /// A value outside its bounds.
    fn check(&self) -> Result<(), String> {
        let read = words::describe("balancing policy", &[&Self::TABLE], &self.text());
        read.and_then(|(_, given)| Self::default().set(&given)).map_err(|error| error.message)
    }
}
