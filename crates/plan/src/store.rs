//! A replicated store: where its nodes and clients stand, what it is asked, and what befalls it.

use crate::Plan;
use crate::validate::PlanError;
use serde::{Deserialize, Serialize};
use sojourn_random::{Distribution, Key};
use sojourn_replication::{Level, MOST_TOKENS, Member, Placement, Policy, Ring, ring};
use sojourn_units::{Bytes, Nanos, SECOND};
use std::collections::BTreeSet;

/// A replicated store and its clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Store {
    /// Its name in results.
    pub name: String,
    /// Names of its data centres.
    pub data_centres: Vec<String>,
    /// Its nodes.
    pub nodes: Vec<Host>,
    /// Its clients.
    pub clients: Vec<Host>,
    /// Tokens of each node: one is even, more are drawn.
    pub tokens: u32,
    /// Where replicas are placed.
    pub placement: Placement,
    /// Consistency level of writes.
    pub write_level: Level,
    /// Consistency level of reads.
    pub read_level: Level,
    /// How clients choose whom they ask.
    pub coordinator: Policy,
    /// TCP between all of them.
    pub tcp: sojourn_tcp::Params,
    /// When requests are made.
    pub load: Load,
    /// What they are.
    pub workload: Workload,
    /// Time that nodes take.
    pub service: Service,
    /// How long requests are waited for, and what is done meanwhile.
    pub patience: Patience,
    /// What befalls it.
    pub faults: Vec<Fault>,
}

/// A node or a client of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Index of its node in the plan.
    pub node: usize,
    /// Its data centre.
    pub data_centre: u32,
    /// Its rack, without meaning for a client.
    #[serde(default)]
    pub rack: u32,
}

/// When requests are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// When clients begin.
    pub start: Nanos,
    /// Requests of all clients together, none by the run's end only.
    pub requests: Option<u64>,
    /// So many of them are not measured.
    pub warmup: u64,
    /// Requests of a client that are under way at most; without limit if 0, which a closed loop needs.
    pub outstanding: u32,
    /// How the next one comes.
    pub arrivals: Arrivals,
}

/// How the next request of a client comes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Arrivals {
    /// So long after an answer (a closed loop).
    Closed {
        /// Time to think.
        think: Nanos,
    },
    /// By a schedule of their own (an open loop); latency counts from the time scheduled.
    Open {
        /// Time between two requests of one client, in nanoseconds.
        every: Distribution,
    },
}

/// Which records are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keys {
    /// All alike.
    Uniform,
    /// YCSB's scrambled Zipfian distribution, constant 0.99.
    Zipfian,
    /// The same, counted from the newest record back.
    Latest,
}

/// What requests are: shares that add up to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Reads.
    pub read: f64,
    /// Writes of records that are there.
    pub update: f64,
    /// Writes of new records.
    pub insert: f64,
    /// Reads of several records.
    pub scan: f64,
    /// Reads, each followed by a write of the same record.
    pub modify: f64,
    /// Records that are there at the beginning, on all their replicas.
    pub records: u64,
    /// Which of them are asked for.
    pub keys: Keys,
    /// Bytes of a record.
    pub value: Bytes,
    /// Records of the longest scan; lengths are uniform from 1.
    pub scan_length: u32,
}

/// Time that nodes take, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// A coordinator with a request.
    pub coordinate: Distribution,
    /// A replica with a write.
    pub write: Distribution,
    /// A replica with a read, for each record.
    pub read: Distribution,
    /// Things a node does at a time.
    pub threads: u32,
    /// Things that wait at a node at most; further ones fail.
    pub queue: u32,
}

/// How long requests are waited for, and what is done meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patience {
    /// A coordinator waits so long for the replicas of a write.
    pub write: Nanos,
    /// The same of a read.
    pub read: Nanos,
    /// A client waits so long for the coordinator.
    pub client: Nanos,
    /// After so long a coordinator asks another replica for the data of a read.
    pub speculate: Option<Nanos>,
    /// Replicas that a read finds behind are brought up to date before it is answered.
    pub read_repair: bool,
    /// Writes are kept for replicas that are away.
    pub hints: bool,
    /// All know after so long that a node cannot be reached.
    pub detect: Nanos,
    /// ... and that it can be reached again.
    pub recover: Nanos,
}

/// What befalls a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// When it begins.
    pub at: Nanos,
    /// When it is over; never if `None`.
    pub until: Option<Nanos>,
    /// What happens.
    pub what: What,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum What {
    /// A node stops dead, and comes back with all that it had acknowledged.
    Crash {
        /// Its number in the store.
        node: u32,
    },
    /// These and all others do not hear from each other any more.
    Partition {
        /// Numbers of nodes.
        nodes: Vec<u32>,
        /// Numbers of clients on their side.
        clients: Vec<u32>,
    },
}

impl Fault {
    /// Whether it is going on at a time of the run.
    pub fn is_on(&self, now: Nanos) -> bool {
        self.at <= now && self.until.is_none_or(|until| now < until)
    }
}

impl What {
    /// Whether it stands between two hosts of a store of `nodes` nodes: these by their numbers, clients
    /// counted on behind them.
    pub fn parts(&self, nodes: u32, a: u32, b: u32) -> bool {
        match self {
            Self::Crash { node } => a == *node || b == *node,
            Self::Partition { nodes: inside, clients } => {
                let apart = |host: u32| match host.checked_sub(nodes) {
                    None => inside.contains(&host),
                    Some(client) => clients.contains(&client),
                };
                apart(a) != apart(b)
            }
        }
    }
}

/// Greatest numbers of what grows with a store.
pub mod limits {
    /// Clients.
    pub const CLIENTS: usize = 100_000;
    /// Requests of a client under way.
    pub const OUTSTANDING: u32 = 1 << 20;
    /// Records at the beginning.
    pub const RECORDS: u64 = 1_000_000_000;
    /// Bytes of a record, and records of a scan.
    pub const VALUE: u64 = 1 << 24;
    /// Records of a scan.
    pub const SCAN: u32 = 100_000;
    /// Faults.
    pub const FAULTS: usize = 1000;
    /// Things waiting at a node.
    pub const QUEUE: u32 = 1 << 24;
}

fn fail<T>(at: impl Into<String>, message: impl Into<String>) -> Result<T, PlanError> {
    Err(PlanError { at: at.into(), message: message.into() })
}

impl Store {
    /// Tokens of each node in the run with this `seed`.
    pub fn node_tokens(&self, seed: u64) -> Vec<Vec<i64>> {
        let key = Key::new(seed, &self.name);
        let nodes = self.nodes.len() as u32;
        let tokens = |i: u32| {
            if self.tokens == 1 {
                return vec![ring::even(i, nodes)];
            }
            let mut draws = key.child(u64::from(i)).stream("tokens");
            (0..self.tokens).map(|_| draws.next_u64() as i64).collect()
        };
        (0..nodes).map(tokens).collect()
    }

    /// What is added to a record's number to make its key, which is a `bigint`, in the run with this `seed`.
    pub fn first_key(&self, seed: u64) -> u64 {
        Key::new(seed, &self.name).stream("keys").next_u64()
    }

    /// The ring of its nodes in the run with this `seed`.
    ///
    /// # Errors
    /// If there is none.
    pub fn ring(&self, seed: u64) -> Result<Ring, String> {
        let members = self.node_tokens(seed).into_iter().zip(&self.nodes).map(|(tokens, host)| {
            Member { tokens, data_centre: host.data_centre, rack: host.rack }
        });
        Ring::new(&members.collect::<Vec<_>>())
    }

    /// Replicas that have a write before it is acknowledged, seen from the first node.
    pub fn write_need(&self) -> u32 {
        self.write_level.need(&self.placement, self.nodes[0].data_centre).count()
    }

    /// Checks everything that a run relies on.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, plan: &Plan) -> Result<(), PlanError> {
        self.check_hosts(plan)?;
        let tokens = self.nodes.len().saturating_mul(self.tokens as usize);
        if self.tokens == 0 || tokens > MOST_TOKENS {
            return fail("store.tokens", format!("{tokens} tokens: 1 to {MOST_TOKENS} in all"));
        }
        let ring = self.ring(0).or_else(|why| fail("store.nodes", why))?;
        self.placement.check(&ring).or_else(|why| fail("store.placement", why))?;
        for (at, level) in [("write_level", self.write_level), ("read_level", self.read_level)] {
            let local = self.nodes[0].data_centre;
            let (need, all) = (level.need(&self.placement, local).count(), self.placement.factor());
            if need > all {
                return fail(
                    format!("store.{at}"),
                    format!("needs {need} replicas, and there are {all}"),
                );
            }
        }
        self.check_load()?;
        self.check_service()?;
        self.check_faults()
    }

    fn check_hosts(&self, plan: &Plan) -> Result<(), PlanError> {
        if self.clients.is_empty() || self.clients.len() > limits::CLIENTS {
            return fail("store.clients", format!("there are 1 to {} clients", limits::CLIENTS));
        }
        let mut seen = BTreeSet::new();
        for (what, hosts) in [("nodes", &self.nodes), ("clients", &self.clients)] {
            for (i, host) in hosts.iter().enumerate() {
                let at = format!("store.{what}[{i}]");
                if host.node >= plan.nodes.len() {
                    return fail(at, format!("there is no node {}", host.node));
                }
                if !seen.insert(host.node) {
                    let name = &plan.nodes[host.node].name;
                    return fail(at, format!("`{name}` is named twice"));
                }
                if host.data_centre as usize >= self.data_centres.len() {
                    return fail(at, format!("there is no data centre {}", host.data_centre));
                }
            }
        }
        Ok(())
    }

    fn check_load(&self) -> Result<(), PlanError> {
        let load = &self.load;
        if load.outstanding > limits::OUTSTANDING {
            return fail("store.outstanding", format!("at most {}", limits::OUTSTANDING));
        }
        match &load.arrivals {
            Arrivals::Closed { .. } if load.outstanding == 0 => {
                return fail("store.outstanding", "a closed loop needs at least one");
            }
            Arrivals::Open { every } => {
                if let Err(why) = every.check() {
                    return fail("store.load", why);
                }
                if every.mean().is_nan() || every.mean() < 1.0 {
                    return fail("store.load", "needs some time between requests");
                }
            }
            Arrivals::Closed { .. } => {}
        }
        if load.requests.is_some_and(|requests| requests <= load.warmup) {
            return fail("store.warmup", "leaves no request to be measured");
        }
        let w = &self.workload;
        let shares = [w.read, w.update, w.insert, w.scan, w.modify];
        let sum: f64 = shares.iter().sum();
        if shares.iter().any(|share| !(0.0..=1.0).contains(share)) || (sum - 1.0).abs() > 1e-9 {
            return fail("store.workload", "shares lie in 0 to 1, and add up to 1");
        }
        if w.records == 0 && w.insert < 1.0 {
            return fail("store.records", "there are none to be read or updated");
        }
        if w.records > limits::RECORDS || w.value > limits::VALUE || w.scan_length > limits::SCAN {
            return fail("store.workload", "too many records, or too long ones");
        }
        if w.scan > 0.0 && w.scan_length == 0 {
            return fail("store.workload", "a scan has at least one record");
        }
        Ok(())
    }

    fn check_service(&self) -> Result<(), PlanError> {
        let s = &self.service;
        for (at, time) in [("coordinate", s.coordinate), ("write", s.write), ("read", s.read)] {
            if let Err(why) = time.check() {
                return fail(format!("store.service.{at}"), why);
            }
        }
        if s.threads == 0 || s.queue > limits::QUEUE {
            return fail("store.service", "a node does at least one thing at a time");
        }
        let p = &self.patience;
        let day = 24 * 3600 * SECOND;
        let spans = [p.write, p.read, p.client, p.detect, p.recover, p.speculate.unwrap_or(1)];
        if [p.write, p.read, p.client].contains(&0) || spans.iter().any(|&span| span > day) {
            return fail("store.timeouts", "lie above zero, up to a day");
        }
        Ok(())
    }

    fn check_faults(&self) -> Result<(), PlanError> {
        if self.faults.len() > limits::FAULTS {
            return fail("store.faults", format!("at most {}", limits::FAULTS));
        }
        for (i, fault) in self.faults.iter().enumerate() {
            let at = format!("store.faults[{i}]");
            if fault.until.is_some_and(|until| until <= fault.at) {
                return fail(at, "is over before it begins");
            }
            let (nodes, clients): (&[u32], &[u32]) = match &fault.what {
                What::Crash { node } => (std::slice::from_ref(node), &[]),
                What::Partition { nodes, clients } => (nodes, clients),
            };
            if nodes.iter().any(|&node| node as usize >= self.nodes.len())
                || clients.iter().any(|&client| client as usize >= self.clients.len())
            {
                return fail(at, "there is no such host");
            }
            let during = |other: &Fault| {
                fault.at < other.until.unwrap_or(Nanos::MAX)
                    && other.at < fault.until.unwrap_or(Nanos::MAX)
            };
            if let What::Crash { .. } = fault.what
                && self.faults[..i].iter().any(|other| other.what == fault.what && during(other))
            {
                return fail(at, "crashes a node that is down");
            }
        }
        Ok(())
    }
}
