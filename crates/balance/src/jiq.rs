//! Join an idle queue: a server that has reported itself idle, or a random server if none is idle.
//!
//! A server whose last flow has ended goes to the end of a list. A new flow takes the first server
//! of the list; if the list is empty, a server is drawn. No information is requested when a flow
//! begins.

use crate::contract::{Ask, Policy, PolicyParams};
use crate::needs::{Look, Needs};
use crate::pick::{Pick, Reason};
use crate::sight::{Connections, Sight};
use serde::{Deserialize, Serialize};
use sojourn_units::declare::Parameters;
use sojourn_units::words::Table;
use sojourn_units::{Nanos, params};
use std::collections::VecDeque;

params! {
    /// No parameters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Params {}
}

impl PolicyParams for Params {
    const TABLE: Table = Table {
        name: "jiq",
        summary: "a server without open connections, else one at random",
        source: "Lu et al., Join-Idle-Queue, Performance Evaluation 68 (2011)",
        words: Self::WORDS,
    };

    type Policy = Jiq;

    fn needs(&self) -> Needs {
        Needs::of(Look::Connections)
    }

    fn build(&self, servers: usize, _key: u64) -> Jiq {
        Jiq { idle: VecDeque::with_capacity(servers) }
    }
}

/// The policy of one balancer.
#[derive(Clone, Debug)]
pub struct Jiq {
    /// Idle servers, each at most once.
    idle: VecDeque<usize>,
}

impl Jiq {
    fn report(&mut self, server: usize, sight: &Sight<'_, Connections>) {
        let idle = sight.get(server).is_some_and(|seen| seen.open == 0);
        if idle && sight.is_up(server) && !self.idle.contains(&server) {
            self.idle.push_back(server);
        }
    }
}

impl Policy for Jiq {
    type View = Connections;

    fn choose(&mut self, Ask { sight, draws, .. }: Ask<'_, Connections>) -> Option<Pick> {
        while let Some(server) = self.idle.pop_front() {
            // A server that was drawn in the meantime is no longer idle.
            if sight.get(server).is_some_and(|seen| seen.open == 0) {
                return Some((server, Reason::Idle));
            }
        }
        sight.draw(|_| true, draws).map(|i| (i, Reason::Drawn))
    }

    fn finished(
        &mut self,
        _now: Nanos,
        server: usize,
        _latency: Option<Nanos>,
        sight: &Sight<'_, Connections>,
    ) {
        self.report(server, sight);
    }

    fn changed(&mut self, sight: &Sight<'_, Connections>) {
        self.idle.retain(|&server| sight.is_up(server));
        for server in sight.up() {
            self.report(server, sight);
        }
    }

    fn state(&self, visit: &mut dyn FnMut(usize, &str, f64)) {
        for (place, &server) in self.idle.iter().enumerate() {
            visit(server, "idle", place as f64);
        }
    }
}
