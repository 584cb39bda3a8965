//! External balancing policies: policies from outside this crate.
//!
//! A [`Policy`] decides. [`External`] shows it the servers, checks each answer and guarantees the
//! contract regardless of the policy: a server that is down is never chosen. A policy that violates
//! its contract, or returns a [`Fault`], is informed once ([`Policy::on_fault`]) and not called
//! again; from then on flows go to the servers in turn, so that the run can complete.
//!
//! `examples/policies/` has a complete policy with its own `main`.

use crate::contract::{self, PolicyParams, Request};
use crate::facts::{Backlog, Counters, Flow};
use crate::needs::{Freshness, LONGEST, Needs, Signal};
use crate::pick::{Pick, Reason};
use crate::view::{Everything, Servers};
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{derived, unset};
use sojourn_units::external::{Code, Fault, Spec};
use sojourn_units::words::Table;
use sojourn_units::{Nanos, params};
use std::sync::Arc;

/// Information about a server for an external policy: only the fields that the policy's `look`
/// includes are set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerInfo {
    /// Identifier: a hash of the server's name, the same in every run.
    pub id: u64,
    /// Share of the flows; at least 1.
    pub weight: u32,
    /// Whether the server is up and may be chosen.
    pub is_up: bool,
    /// Number of flows assigned to the server that have not finished.
    pub open: Option<u32>,
    /// Queue of its port, with the time of the reading; `None` before the first reading.
    pub backlog: Option<(Nanos, Backlog)>,
    /// Counters of its port, with the time of the reading; `None` before the first reading.
    pub counters: Option<(Nanos, Counters)>,
}

/// Decisions of an external balancing policy.
///
/// # Contract
/// - `choose` returns a server that is up. It may return `None`: then the flow is refused, and asks
///   again.
/// - [`Policy::changed`] is called before any other method, and whenever a server has come up or
///   gone down.
/// - The same calls with the same draws give the same decisions.
pub trait Policy: Send + Sync {
    /// Called after readings have been taken.
    ///
    /// # Errors
    /// A fault in the policy's code.
    fn observe(&mut self, now: Nanos, servers: &[ServerInfo]) -> Result<(), Fault>;

    /// Returns the server for a new flow; `None` to refuse the flow.
    ///
    /// # Errors
    /// A fault in the policy's code.
    fn choose(
        &mut self,
        now: Nanos,
        flow: Flow,
        servers: &[ServerInfo],
    ) -> Result<Option<usize>, Fault>;

    /// Called after a flow of `server` has ended; `latency` is its duration in nanoseconds, if
    /// known.
    ///
    /// # Errors
    /// A fault in the policy's code.
    fn finished(
        &mut self,
        now: Nanos,
        server: usize,
        latency: Option<Nanos>,
        servers: &[ServerInfo],
    ) -> Result<(), Fault>;

    /// Called after servers have come up or gone down.
    ///
    /// # Errors
    /// A fault in the policy's code.
    fn changed(&mut self, servers: &[ServerInfo]) -> Result<(), Fault>;

    /// Visits the state that the policy exposes: server, name and value.
    fn state(&self, visit: &mut dyn FnMut(usize, &str, f64));

    /// Returns a copy of the policy in its present state.
    fn copy(&self) -> Box<dyn Policy>;

    /// Called once, after the first fault.
    fn on_fault(&mut self, now: Nanos, fault: &Fault);
}

/// Creates policies of one class with its parameters, one for each balancer.
pub trait Factory: Send + Sync {
    /// Returns a policy for `servers` servers; `key` is the key of its random stream.
    ///
    /// # Errors
    /// A fault in the policy's code.
    fn create(&self, params: &Params, servers: usize, key: u64) -> Result<Box<dyn Policy>, Fault>;

    /// Called after [`Factory::create`] failed; flows then go to the servers in turn.
    fn on_fault(&self, fault: &Fault);
}

params! {
    /// An external policy and its parameters.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// The policy and its values.
        spec: Spec = unset(),
        /// Information that the policy uses.
        look: Signal = derived(|()| Signal::Nothing),
        /// Time from one reading to the next; with 0 readings are taken for each choice.
        period: Nanos = unset(),
        /// Code of the policy.
        #[serde(skip)]
        code: Code<dyn Factory> = unset(),
    }
}

impl Params {
    /// Returns the parameters of a user's policy in Rust.
    pub fn bound(name: &str, look: Signal, factory: Arc<dyn Factory>) -> Self {
        Self { spec: Spec::named(name), look, code: Code::new(factory), ..Self::default() }
    }
}

impl PolicyParams for Params {
    const TABLE: Table = Table::external("external");

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
                Err("`period` must be above 0s where counters are looked at".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// An external policy with the state that it needs for its calls.
pub struct External {
    look: Signal,
    /// `None` after a fault.
    policy: Option<Box<dyn Policy>>,
    /// Buffer for the information that the policy is shown.
    servers: Vec<ServerInfo>,
    /// Time of the latest call.
    now: Nanos,
    /// Next server in turn after a fault.
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
    /// Returns the policy's answer to `ask`; `None` after a fault.
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
