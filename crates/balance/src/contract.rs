//! The traits of balancing policies and of their parameters.

use crate::facts::Flow;
use crate::needs::Needs;
use crate::pick::{Draws, Pick};
use crate::view::{Servers, View};
use sojourn_units::Nanos;
use sojourn_units::declare::Parameters;
use sojourn_units::words::{self, Text};

/// Arguments of the choice of a server.
#[expect(missing_debug_implementations, reason = "the source of draws has no `Debug`")]
pub struct Request<'a, V> {
    /// Current time in nanoseconds.
    pub now: Nanos,
    /// The new flow.
    pub flow: Flow,
    /// The policy's view of all servers.
    pub servers: Servers<'a, V>,
    /// Source of random draws.
    pub draws: &'a mut Draws<'a>,
}

/// A balancing policy.
pub trait Policy {
    /// The part of the information about servers that the policy may use.
    type View: View;

    /// Called after readings of the servers.
    fn observe(&mut self, _now: Nanos, _servers: &Servers<'_, Self::View>) {}

    /// Returns the server for a new flow; `None` if none is up, or to refuse the flow.
    fn choose(&mut self, request: Request<'_, Self::View>) -> Option<Pick>;

    /// Called after the end of a flow of `server`. `latency` is the duration of the flow's request
    /// in nanoseconds, if known.
    fn finished(
        &mut self,
        _now: Nanos,
        _server: usize,
        _latency: Option<Nanos>,
        _servers: &Servers<'_, Self::View>,
    ) {
    }

    /// Called after servers have gone up or down, and once before all other methods.
    fn changed(&mut self, _servers: &Servers<'_, Self::View>) {}

    /// Calls `visit` for each variable of the policy's state, with the server, the name and the
    /// value.
    fn state(&self, _visit: &mut dyn FnMut(usize, &str, f64)) {}
}

/// Parameters of a policy, with everything that the family of policies needs.
pub trait PolicyParams: Parameters<On = ()> + Default {
    /// Type of the policy.
    type Policy: Policy;

    /// Returns the information that the policy needs from its caller.
    fn needs(&self) -> Needs;

    /// Returns a new policy for `servers` servers. `key` is the key of a random stream, for a
    /// policy that also draws outside [`Policy::choose`].
    fn build(&self, servers: usize, key: u64) -> Self::Policy;

    /// Returns the description of these parameters, which [`crate::Params::parse`] can parse.
    fn text(&self) -> String {
        self.write(Text::new(Self::TABLE.name)).done()
    }

    /// Checks parameters that did not come from a text.
    ///
    /// # Errors
    /// If a value is outside its bounds.
    fn check(&self) -> Result<(), String> {
        let read = words::describe("balancing policy", &[&Self::TABLE], &self.text());
        read.and_then(|(_, given)| Self::default().set(&given)).map_err(|error| error.message)
    }
}
