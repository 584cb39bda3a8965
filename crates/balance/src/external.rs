//! External balancing policies, whose code is outside this crate.
//!
//! A [`Policy`] decides. [`External`] shows the servers to it, checks its answers, and guarantees
//! that a server that is down is never chosen. If a policy chooses such a server or one that does
//! not exist, or returns a [`Fault`], [`Policy::on_fault`] is called once, and the policy is not
//! called again. From then on the servers are chosen in turn, so that the run can complete.
//!
//! `examples/policies/` contains a complete policy with its own `main`.

use crate::contract::{self, PolicyParams, Request};
use crate::facts::{Backlog, Counters, Flow};
use crate::needs::{Freshness, LONGEST, Needs, Signal};
use crate::pick::{Pick, Reason};
use crate::view::{Everything, Servers};
use sojourn_units::declare::{derived, unset};
use sojourn_units::external::{Code, Fault, Spec};
use sojourn_units::{Nanos, params};
use std::sync::Arc;

/// Information about a server for an external policy. Of `open`, `backlog` and `counters`, only the
/// field that the policy's `look` selects is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerInfo {
    /// Identifier of the server: a hash of its name, which is the same in every run.
    pub id: u64,
    /// Weight of the server, at least 1.
    pub weight: u32,
    /// Whether the server is up and may be chosen.
    pub is_up: bool,
    /// Number of the server's flows that have not finished; `None` if not selected by `look`.
    pub open: Option<u32>,
    /// Queue of the server's port, with the time of the reading; `None` if not selected by `look`,
    /// or not read yet.
    pub backlog: Option<(Nanos, Backlog)>,
    /// Counters of the server's port, with the time of the reading; `None` if not selected by
    /// `look`, or not read yet.
    pub counters: Option<(Nanos, Counters)>,
}

/// An external balancing policy.
///
/// # Contract
/// - `choose` returns a server that is up, or `None` to refuse the flow, which then asks again.
/// - [`Policy::changed`] is called before all other methods, and whenever servers have gone up or
///   down.
/// - The same calls with the same random draws lead to the same choices.
pub trait Policy: Send + Sync {
    /// Called after readings of the servers.
    ///
    /// # Errors
    /// If the policy's code fails.
    fn observe(&mut self, now: Nanos, servers: &[ServerInfo]) -> Result<(), Fault>;

    /// Returns the server for a new flow; `None` to refuse the flow.
    ///
    /// # Errors
    /// If the policy's code fails.
    fn choose(
        &mut self,
        now: Nanos,
        flow: Flow,
        servers: &[ServerInfo],
    ) -> Result<Option<usize>, Fault>;

    /// Called after the end of a flow of `server`. `latency` is the duration of the flow's request
    /// in nanoseconds, if known.
    ///
    /// # Errors
    /// If the policy's code fails.
    fn finished(
        &mut self,
        now: Nanos,
        server: usize,
        latency: Option<Nanos>,
        servers: &[ServerInfo],
    ) -> Result<(), Fault>;

    /// Called after servers have gone up or down.
    ///
    /// # Errors
    /// If the policy's code fails.
    fn changed(&mut self, servers: &[ServerInfo]) -> Result<(), Fault>;

    /// Calls `visit` for each variable of the policy's state, with the server, the name and the
    /// value.
    fn state(&self, visit: &mut dyn FnMut(usize, &str, f64));

    /// Returns a copy of the policy in its current state.
    fn copy(&self) -> Box<dyn Policy>;

    /// Called once, after the first fault. The policy is not called again.
    fn on_fault(&mut self, now: Nanos, fault: &Fault);
}

/// Creates instances of a policy with its parameters, one for each balancer.
pub trait Factory: Send + Sync {
    /// Returns a policy for `servers` servers. `key` is the key of the policy's random stream.
    ///
    /// # Errors
    /// If the policy's code fails.
    fn create(&self, params: &Params, servers: usize, key: u64) -> Result<Box<dyn Policy>, Fault>;

    /// Called after [`Factory::create`] failed. The servers are then chosen in turn.
    fn on_fault(&self, fault: &Fault);
}

params! {
    "external": "";

    /// An external policy and its parameters.
    #[derive(Clone, Debug, PartialEq)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Name of the policy and values of its parameters.
        spec: Spec = unset(),
        /// Information that the policy uses.
        look: Signal = derived(|()| Signal::Nothing),
        /// Time between two readings in nanoseconds; 0 for a reading at each choice.
        period: Nanos = unset(),
        /// Code of the policy, to which the plan must be bound before a run.
        #[serde(skip)]
        code: Code<dyn Factory> = unset(),
    }
}

impl Params {
    /// Returns the parameters of a policy that a user wrote in Rust.
    pub fn bound(name: &str, look: Signal, factory: Arc<dyn Factory>) -> Self {
        Self { spec: Spec::named(name), look, code: Code::new(factory), ..Self::default() }
    }
}

impl PolicyParams for Params {
    type Policy = External;

    fn needs(&self) -> Needs {
        let freshness = match self.look {
            Signal::Counters | Signal::Backlog => Freshness::every(self.period),
            Signal::Nothing | Signal::Connections | Signal::Latency => Freshness::Unread,
        };
        Needs { freshness, ..Needs::weighted(self.look) }
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
            (Signal::Counters, 0) => {
                Err("`period` must be above 0s for a policy that uses counters".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// An external policy with the state that is needed to call it.
pub struct External {
    look: Signal,
    /// The policy; `None` after a fault.
    policy: Option<Box<dyn Policy>>,
    /// Buffer for the information that is passed to the policy.
    servers: Vec<ServerInfo>,
    /// Time of the latest call.
    now: Nanos,
    /// After a fault, index from which the next server in turn is searched.
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
    /// Calls the policy by `ask`, and returns its answer; `None` after a fault.
    fn ask<T>(
        &mut self,
        now: Nanos,
        servers: &Servers<'_, Everything>,
        ask: impl FnOnce(&mut dyn Policy, &[ServerInfo]) -> Result<T, Fault>,
    ) -> Option<T> {
        let policy = self.policy.as_deref_mut()?;
        self.now = now;
        let (look, shown) = (self.look, 0..servers.len());
        self.servers.clear();
        self.servers.extend(shown.map(|i| {
            let seen = servers.get(i);
            let counts = matches!(look, Signal::Connections | Signal::Latency);
            ServerInfo {
                id: servers.id(i),
                weight: servers.weight(i),
                is_up: servers.is_up(i),
                open: seen.filter(|_| counts).map(|seen| seen.open),
                backlog: seen.filter(|_| look == Signal::Backlog).and_then(|seen| seen.backlog),
                counters: seen.filter(|_| look == Signal::Counters).and_then(|seen| seen.counters),
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

    fn observe(&mut self, now: Nanos, servers: &Servers<'_, Everything>) {
        self.ask(now, servers, |policy, servers| policy.observe(now, servers));
    }

    fn choose(
        &mut self,
        Request { now, flow, servers, .. }: Request<'_, Everything>,
    ) -> Option<Pick> {
        let chosen = self.ask(now, &servers, |policy, servers| {
            let chosen = policy.choose(now, flow, servers)?;
            match chosen.map(|server| (server, servers.get(server))) {
                Some((server, None)) => {
                    let all = servers.len();
                    Err(Fault(format!(
                        "chose server {server}; there are only {all}, numbered from 0"
                    )))
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
        let server = servers.up().find(|&i| i >= self.turn).or_else(|| servers.up().next())?;
        self.turn = server + 1;
        Some((server, Reason::Turn))
    }

    fn finished(
        &mut self,
        now: Nanos,
        server: usize,
        latency: Option<Nanos>,
        servers: &Servers<'_, Everything>,
    ) {
        self.ask(now, servers, |policy, servers| policy.finished(now, server, latency, servers));
    }

    fn changed(&mut self, servers: &Servers<'_, Everything>) {
        self.ask(self.now, servers, |policy, servers| policy.changed(servers));
    }

    fn state(&self, visit: &mut dyn FnMut(usize, &str, f64)) {
        if let Some(policy) = &self.policy {
            policy.state(visit);
        }
    }
}
