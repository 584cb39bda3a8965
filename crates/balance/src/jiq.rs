//! Join-idle-queue: a server that has reported that it is idle, or a random server if no server is
//! idle.
//!
//! A server without flows is appended to a list when its last flow ends and when it comes up. A new
//! flow goes to the first server of the list, or to a random server if the list is empty. No
//! information is requested when a flow begins.

use crate::contract::{Policy, PolicyParams, Request};
use crate::needs::{Needs, Signal};
use crate::pick::{Pick, Reason};
use crate::view::{Connections, Servers};
use sojourn_units::{Nanos, params};
use std::collections::VecDeque;

params! {
    "jiq": "a server without open connections, else one at random",
    from "Lu et al., Join-Idle-Queue, Performance Evaluation 68 (2011)";

    /// The policy has no parameters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(deny_unknown_fields)]
    pub struct Params {}
}

impl PolicyParams for Params {
    type Policy = Jiq;

    fn needs(&self) -> Needs {
        Needs::of(Signal::Connections)
    }

    fn build(&self, servers: usize, _key: u64) -> Jiq {
        Jiq { idle: VecDeque::with_capacity(servers) }
    }
}

/// The policy of one balancer.
#[derive(Clone, Debug)]
pub struct Jiq {
    /// Idle servers in the order of their reports, each at most once.
    idle: VecDeque<usize>,
}

impl Jiq {
    fn report(&mut self, server: usize, servers: &Servers<'_, Connections>) {
        let idle = servers.get(server).is_some_and(|seen| seen.open == 0);
        if idle && servers.is_up(server) && !self.idle.contains(&server) {
            self.idle.push_back(server);
        }
    }
}

impl Policy for Jiq {
    type View = Connections;

    fn choose(&mut self, Request { servers, draws, .. }: Request<'_, Connections>) -> Option<Pick> {
        while let Some(server) = self.idle.pop_front() {
            // The server may have received a flow since its report.
            if servers.get(server).is_some_and(|seen| seen.open == 0) {
                return Some((server, Reason::Idle));
            }
        }
        servers.draw(|_| true, draws).map(|i| (i, Reason::Drawn))
    }

    fn finished(
        &mut self,
        _now: Nanos,
        server: usize,
        _latency: Option<Nanos>,
        servers: &Servers<'_, Connections>,
    ) {
        self.report(server, servers);
    }

    fn changed(&mut self, servers: &Servers<'_, Connections>) {
        self.idle.retain(|&server| servers.is_up(server));
        for server in servers.up() {
            self.report(server, servers);
        }
    }

    fn state(&self, visit: &mut dyn FnMut(usize, &str, f64)) {
        for (place, &server) in self.idle.iter().enumerate() {
            visit(server, "idle", place as f64);
        }
    }
}
