//! A balancing policy in Rust, and a balancer that uses it.
//!
//! The policy chooses the server with the lowest ratio of open flows to weight; of equal servers,
//! the first one.

use sojourn_balance::external::{Factory, Params, Policy, ServerInfo};
use sojourn_balance::{Balancer, Flow, Params as AnyParams, Server, Signal};
use sojourn_units::Nanos;
use sojourn_units::external::Fault;
use std::sync::Arc;

/// The policy. Its only state is the number of its choices.
#[derive(Clone, Default)]
struct Fewest {
    choices: u64,
}

impl Policy for Fewest {
    fn observe(&mut self, _now: Nanos, _servers: &[ServerInfo]) -> Result<(), Fault> {
        Ok(())
    }

    fn choose(
        &mut self,
        _now: Nanos,
        _flow: Flow,
        servers: &[ServerInfo],
    ) -> Result<Option<usize>, Fault> {
        self.choices += 1;
        let load = |i: &usize| {
            let open = f64::from(servers[*i].open.unwrap_or(0));
            open / f64::from(servers[*i].weight)
        };
        let up = (0..servers.len()).filter(|&i| servers[i].is_up);
        Ok(up.min_by(|a, b| load(a).total_cmp(&load(b))))
    }

    fn finished(
        &mut self,
        _now: Nanos,
        _server: usize,
        _latency: Option<Nanos>,
        _servers: &[ServerInfo],
    ) -> Result<(), Fault> {
        Ok(())
    }

    fn changed(&mut self, _servers: &[ServerInfo]) -> Result<(), Fault> {
        Ok(())
    }

    fn state(&self, visit: &mut dyn FnMut(usize, &str, f64)) {
        visit(0, "choices", self.choices as f64);
    }

    fn copy(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }

    fn on_fault(&mut self, now: Nanos, fault: &Fault) {
        eprintln!("at {now} ns: {}", fault.0);
    }
}

struct Fewests;

impl Factory for Fewests {
    fn create(&self, _: &Params, _servers: usize, _key: u64) -> Result<Box<dyn Policy>, Fault> {
        Ok(Box::new(Fewest::default()))
    }

    fn on_fault(&self, fault: &Fault) {
        eprintln!("{}", fault.0);
    }
}

pub fn run() {
    let params = Params::bound("fewest", Signal::Connections, Arc::new(Fewests));
    let servers = [("a", 1), ("b", 2), ("c", 5)].map(|(name, weight)| Server::new(name, weight));
    let mut balancer = Balancer::new(&AnyParams::External(params), &servers, 1);
    for hash in 0..800 {
        let chosen = balancer.choose(hash, &Flow { hash }, &mut |_| 0);
        assert!(chosen.is_some());
    }
    let open = [0, 1, 2].map(|server| balancer.open(server));
    println!("balancer: flows of each server: {open:?}");
    assert_eq!(open, [100, 200, 500]);
}
