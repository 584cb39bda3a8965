//! Balancing policies from outside this crate.
//!
//! A [`Policy`] decides; [`External`] shows it the servers, checks each answer and keeps the contract
//! whatever the policy does: no server that is down is chosen. A policy that breaks its own contract, or
//! returns a [`Fault`], is told so once ([`Policy::on_fault`]) and is not asked again; flows go to the
//! servers in turn from then on, so that the run can end in order.
//!
//! `examples/policies/` has a whole policy with its own `main`.

use crate::contract::{self, Ask, PolicyParams};
use crate::facts::{Backlog, Counters, Flow};
use crate::needs::{Fresh, LONGEST, Look, Needs};
use crate::pick::{Pick, Reason};
use crate::sight::{Everything, Sight};
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{derived, unset};
use sojourn_units::external::{Code, Fault, Spec};
use sojourn_units::words::Table;
use sojourn_units::{Nanos, params};
use std::sync::Arc;

/// What a policy may read of a server: of its state, the part that the policy looks at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerInfo {
    /// A hash of its name: the same in every run.
    pub id: u64,
    /// Its share of the flows, at least 1.
    pub weight: u32,
    /// Whether it may be chosen.
    pub is_up: bool,
    /// Flows that it was given and that have not finished.
    pub open: Option<u32>,
    /// The queue of its port, and the time of the reading; none if it was never read.
    pub backlog: Option<(Nanos, Backlog)>,
    /// The counters of its port, and the time of the reading; none if they were never read.
    pub counters: Option<(Nanos, Counters)>,
}

/// A balancing policy's decisions.
///
/// # Contract
/// - `choose` returns a server that is up. It may return none: the flow is refused, and asks again.
/// - [`Policy::changed`] comes before anything else, and whenever a server has come up or gone down.
/// - Same calls and same draws give same decisions.
pub trait Policy: Send + Sync {
    /// Invoked when readings have been taken.
    ///
    /// # Errors
    /// A fault of the policy's own code.
    fn observe(&mut self, now: Nanos, servers: &[ServerInfo]) -> Result<(), Fault>;

    /// Returns the server for a new flow; none to refuse the flow.
    ///
    /// # Errors
    /// A fault of the policy's own code.
    fn choose(
        &mut self,
        now: Nanos,
        flow: Flow,
        servers: &[ServerInfo],
    ) -> Result<Option<usize>, Fault>;

    /// Invoked when a flow of `server` has ended; `latency` is the time that it took, if known.
    ///
    /// # Errors
    /// A fault of the policy's own code.
    fn finished(
        &mut self,
        now: Nanos,
        server: usize,
        latency: Option<Nanos>,
        servers: &[ServerInfo],
    ) -> Result<(), Fault>;

    /// Invoked when servers have come or gone.
    ///
    /// # Errors
    /// A fault of the policy's own code.
    fn changed(&mut self, servers: &[ServerInfo]) -> Result<(), Fault>;

    /// Visits the state, as far as the policy tells it: server, name and value.
    fn state(&self, visit: &mut dyn FnMut(usize, &str, f64));

    /// Returns a copy of the policy in its present state.
    fn copy(&self) -> Box<dyn Policy>;

    /// Invoked once, at the first fault: the policy is not asked again.
    fn on_fault(&mut self, now: Nanos, fault: &Fault);
}

/// Makes the policies of one class and its parameters, one for each balancer.
pub trait Factory: Send + Sync {
    /// Returns a policy for so many servers; `key` is that of the stream that it draws from.
    ///
    /// # Errors
    /// A fault of the policy's own code.
    fn create(&self, params: &Params, servers: usize, key: u64) -> Result<Box<dyn Policy>, Fault>;

    /// Invoked when [`Factory::create`] failed: flows go to the servers in turn.
    fn on_fault(&self, fault: &Fault);
}

params! {
    /// A policy from outside and its parameters.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Which policy, with which values.
        spec: Spec = unset(),
        /// What it looks at.
        look: Look = derived(|()| Look::Nothing),
        /// Time from one reading to the next; with 0 they are taken for each choice.
        period: Nanos = unset(),
        /// The code.
        #[serde(skip)]
        code: Code<dyn Factory> = unset(),
    }
}

impl Params {
    /// A policy of one's own in Rust.
    pub fn bound(name: &str, look: Look, factory: Arc<dyn Factory>) -> Self {
        Self { spec: Spec::named(name), look, code: Code::new(factory), ..Self::default() }
    }
}

impl PolicyParams for Params {
    const TABLE: Table = Table::external("external");

    type Policy = External;

    fn needs(&self) -> Needs {
        let fresh = match self.look {
            Look::Counters | Look::Backlog => Fresh::every(self.period),
            Look::Nothing | Look::Connections | Look::Latency => Fresh::Unread,
        };
        Needs { fresh, ..Needs::weighted(self.look) }
    }

    fn build(&self, servers: usize, key: u64) -> External {
        let factory = self.code.of(&self.spec);
        let policy =
            factory.create(self, servers, key).inspect_err(|fault| factory.on_fault(fault));
        External {
            look: self.look,
            policy: policy.ok(),
            servers: Vec::with_capacity(servers),
            now: 0,
            turn: 0,
        }
    }

    fn text(&self) -> String {
        self.spec.policy.clone()
    }

    fn check(&self) -> Result<(), String> {
        match (self.look, self.period) {
            (_, period) if period > LONGEST => Err("`period` must be at most 1h".to_owned()),
            (Look::Counters, 0) => {
                Err("`period` must be above 0s where counters are looked at".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// A policy from outside before its servers.
pub struct External {
    look: Look,
    /// None once it has failed.
    policy: Option<Box<dyn Policy>>,
    /// Room for what is shown.
    servers: Vec<ServerInfo>,
    /// The last time that was told.
    now: Nanos,
    /// Whose turn it is after a fault.
    turn: usize,
}

impl Clone for External {
    fn clone(&self) -> Self {
        let policy = self.policy.as_ref().map(|policy| policy.copy());
        Self { policy, servers: self.servers.clone(), ..*self }
    }
}

impl std::fmt::Debug for External {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("External").field("failed", &self.policy.is_none()).finish_non_exhaustive()
    }
}

impl External {
    /// The policy's answer to `ask`; none once it has failed.
    fn ask<T>(
        &mut self,
        now: Nanos,
        sight: &Sight<'_, Everything>,
        ask: impl FnOnce(&mut dyn Policy, &[ServerInfo]) -> Result<T, Fault>,
    ) -> Option<T> {
        let policy = self.policy.as_deref_mut()?;
        self.now = now;
        let (look, shown) = (self.look, 0..sight.len());
        self.servers.clear();
        self.servers.extend(shown.map(|i| {
            let seen = sight.get(i);
            let counts = matches!(look, Look::Connections | Look::Latency);
            ServerInfo {
                id: sight.id(i),
                weight: sight.weight(i),
                is_up: sight.is_up(i),
                open: seen.filter(|_| counts).map(|seen| seen.open),
                backlog: seen.filter(|_| look == Look::Backlog).and_then(|seen| seen.backlog),
                counters: seen.filter(|_| look == Look::Counters).and_then(|seen| seen.counters),
            }
        }));
        match ask(policy, &self.servers) {
            Ok(answer) => Some(answer),
            Err(fault) => {
                policy.on_fault(now, &fault);
                self.policy = None;
                None
            }
        }
    }
}

impl contract::Policy for External {
    type View = Everything;

    fn observe(&mut self, now: Nanos, sight: &Sight<'_, Everything>) {
        self.ask(now, sight, |policy, servers| policy.observe(now, servers));
    }

    fn choose(&mut self, Ask { now, flow, sight, .. }: Ask<'_, Everything>) -> Option<Pick> {
        let chosen = self.ask(now, &sight, |policy, servers| {
            let chosen = policy.choose(now, flow, servers)?;
            match chosen.map(|server| (server, servers.get(server))) {
                Some((server, None)) => {
                    let all = servers.len();
                    Err(Fault(format!("chose server {server}: there are {all}, from 0 on")))
                }
                Some((server, Some(info))) if !info.is_up => {
                    Err(Fault(format!("chose server {server}, which is down")))
                }
                _ => Ok(chosen),
            }
        });
        if let Some(chosen) = chosen {
            return chosen.map(|server| (server, Reason::Policy));
        }
        let server = sight.up().find(|&i| i >= self.turn).or_else(|| sight.up().next())?;
        self.turn = server + 1;
        Some((server, Reason::Turn))
    }

    fn finished(
        &mut self,
        now: Nanos,
        server: usize,
        latency: Option<Nanos>,
        sight: &Sight<'_, Everything>,
    ) {
        self.ask(now, sight, |policy, servers| policy.finished(now, server, latency, servers));
    }

    fn changed(&mut self, sight: &Sight<'_, Everything>) {
        self.ask(self.now, sight, |policy, servers| policy.changed(servers));
    }

    fn state(&self, visit: &mut dyn FnMut(usize, &str, f64)) {
        if let Some(policy) = &self.policy {
            policy.state(visit);
        }
    }
}
