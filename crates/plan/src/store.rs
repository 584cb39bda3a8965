//! A replicated store: where its nodes and clients stand, what it is asked, and what befalls it.

use serde::{Deserialize, Serialize};
use sojourn_random::{Distribution, Key};
use sojourn_replication::{Level, Member, Placement, Policy, Ring, ring};
use sojourn_units::{Bytes, Nanos};

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

impl Keys {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Uniform, Self::Zipfian, Self::Latest];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipfian => "zipfian",
            Self::Latest => "latest",
        }
    }
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

/// The kinds of requests, in the order of shares.
pub const REQUESTS: [&str; 5] = ["read", "update", "insert", "scan", "modify"];

/// The shares of the requests of each workload that has a name, and which records it asks for; A to F
/// are those of YCSB.
pub const WORKLOADS: [(&str, [f64; 5], Keys); 9] = [
    ("insert", [0.0, 0.0, 1.0, 0.0, 0.0], Keys::Uniform),
    ("update", [0.0, 1.0, 0.0, 0.0, 0.0], Keys::Uniform),
    ("read", [1.0, 0.0, 0.0, 0.0, 0.0], Keys::Uniform),
    ("ycsb-a", [0.5, 0.5, 0.0, 0.0, 0.0], Keys::Zipfian),
    ("ycsb-b", [0.95, 0.05, 0.0, 0.0, 0.0], Keys::Zipfian),
    ("ycsb-c", [1.0, 0.0, 0.0, 0.0, 0.0], Keys::Zipfian),
    ("ycsb-d", [0.95, 0.0, 0.05, 0.0, 0.0], Keys::Latest),
    ("ycsb-e", [0.0, 0.0, 0.05, 0.95, 0.0], Keys::Zipfian),
    ("ycsb-f", [0.5, 0.0, 0.0, 0.0, 0.5], Keys::Zipfian),
];

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
}
