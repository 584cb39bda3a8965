//! Access to all external policies in a plan.

use crate::{App, Plan, Transport};
use sojourn_units::external::Spec;

/// An external policy in a plan, to be bound to its code. Each family has a variant.
#[derive(Debug)]
pub enum External<'a> {
    /// A queue discipline.
    Queue(&'a mut sojourn_queue::external::Params),
    /// A policy of a balancer.
    Balancer(&'a mut sojourn_balance::external::Params),
    /// A traffic source.
    Source(&'a mut sojourn_traffic::external::Params),
    /// A congestion control.
    Congestion(&'a mut sojourn_congestion::external::Params),
}

impl External<'_> {
    /// Returns the policy's name and parameters.
    pub fn spec(&self) -> &Spec {
        match self {
            Self::Queue(params) => &params.spec,
            Self::Balancer(params) => &params.spec,
            Self::Source(params) => &params.spec,
            Self::Congestion(params) => &params.spec,
        }
    }
}

impl Plan {
    /// Returns all external policies: queues, balancers, sources, then congestion controls.
    pub fn externals(&mut self) -> Vec<External<'_>> {
        let mut found = Vec::new();
        for link in &mut self.links {
            if let sojourn_queue::Params::External(params) = &mut link.params.queue {
                found.push(External::Queue(params));
            }
        }
        for balancer in &mut self.balancers {
            if let sojourn_balance::Params::External(params) = &mut balancer.policy {
                found.push(External::Balancer(params));
            }
        }
        let mut carriers = Vec::new();
        for group in &mut self.groups {
            if let sojourn_traffic::App::External(params) = &mut group.app {
                found.push(External::Source(params));
            }
            if let Transport::Tcp(tcp) = &mut group.transport {
                carriers.push(tcp);
            }
        }
        carriers.extend(self.apps.iter_mut().map(|App::Store(store)| &mut store.tcp));
        for tcp in carriers {
            if let sojourn_congestion::Params::External(params) = &mut tcp.congestion {
                found.push(External::Congestion(params));
            }
        }
        found
    }
}
