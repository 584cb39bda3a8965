//! Random draws of servers without replacement.

use crate::pick::Draws;
use crate::view::{Servers, View};
use sojourn_units::declare::{Param, integer};

/// Maximum number of servers that may be drawn for a flow, or remembered.
pub(crate) const MOST: u64 = 16;

/// Number of random servers among which each flow chooses.
pub(crate) const fn drawn() -> Param<u64> {
    integer(1, MOST, "2")
}

/// Buffer for the indices of servers that are up.
#[derive(Clone, Debug)]
pub(crate) struct Urn(Vec<usize>);

impl Urn {
    /// Returns a buffer for `servers` servers.
    pub(crate) fn new(servers: usize) -> Self {
        Self(Vec::with_capacity(servers))
    }

    /// Draws `d` different servers that are up. If at most `d` servers are up, returns all of them
    /// without a random draw.
    pub(crate) fn draw<V: View>(
        &mut self,
        servers: &Servers<'_, V>,
        d: u64,
        draws: &mut Draws<'_>,
    ) -> &[usize] {
        self.0.clear();
        self.0.extend(servers.up());
        let (n, d) = (self.0.len(), d as usize);
        if d >= n {
            return &self.0;
        }
        for k in 0..d {
            self.0.swap(k, k + draws((n - k) as u64) as usize);
        }
        &self.0[..d]
    }
}
