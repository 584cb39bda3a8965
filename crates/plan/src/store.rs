//! A replicated store: the places of its nodes and clients, its requests, and its faults.

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
    /// Tokens of each node: a single token is even, several are drawn.
    pub tokens: u32,
    /// Where replicas are placed.
    pub placement: Placement,
    /// Consistency level of writes.
    pub write_level: Level,
    /// Consistency level of reads.
    pub read_level: Level,
    /// How clients choose a coordinator.
    pub coordinator: Policy,
    /// TCP between all of them.
    pub tcp: sojourn_tcp::Params,
    /// Times of requests.
    pub load: Load,
    /// Kinds and records of requests.
    pub workload: Workload,
    /// Service times of nodes.
    pub service: Service,
    /// Timeouts of requests, and the measures until then.
    pub patience: Patience,
    /// Its faults.
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
    /// Its rack; no meaning for a client.
    #[serde(default)]
    pub rack: u32,
}

/// Times of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Start of the clients.
    pub start: Nanos,
    /// Requests of all clients together; `None` if only the run's end stops them.
    pub requests: Option<u64>,
    /// Number of first requests that are not measured.
    pub warmup: u64,
    /// Most concurrent requests of a client; no limit if 0, as a closed loop needs.
    pub outstanding: u32,
    /// Arrival of the next request.
    pub arrivals: Arrivals,
}

/// Arrival of a client's next request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Arrivals {
    /// After an answer and the time to think (a closed loop).
    Closed {
        /// Time to think.
        think: Nanos,
    },
    /// By a schedule of its own (an open loop); latency counts from the scheduled time.
    Open {
        /// Time between two requests of one client, in nanoseconds.
        every: Distribution,
    },
}

/// Distribution of the requested records.
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

/// Kinds of requests: shares that add up to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Reads.
    pub read: f64,
    /// Writes of existing records.
    pub update: f64,
    /// Writes of new records.
    pub insert: f64,
    /// Reads of several records.
    pub scan: f64,
    /// Reads, each followed by a write of the same record.
    pub modify: f64,
    /// Records that exist at the beginning, on all their replicas.
    pub records: u64,
    /// Distribution of the requested records.
    pub keys: Keys,
    /// Bytes of a record.
    pub value: Bytes,
    /// Records of the longest scan; lengths are uniform from 1.
    pub scan_length: u32,
}

/// The kinds of requests, in the order of shares.
pub const REQUESTS: [&str; 5] = ["read", "update", "insert", "scan", "modify"];

/// The shares of requests of each named workload, and its distribution of records; A to F are those
/// of YCSB.
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

/// Service times of nodes, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Time of a coordinator for a request.
    pub coordinate: Distribution,
    /// Time of a replica for a write.
    pub write: Distribution,
    /// Time of a replica for a read, for each record.
    pub read: Distribution,
    /// Tasks that a node executes at the same time.
    pub threads: u32,
    /// Most tasks that wait at a node; further ones fail.
    pub queue: u32,
}

/// Timeouts of requests, and the measures until then.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patience {
    /// Time that a coordinator waits for the replicas of a write.
    pub write: Nanos,
    /// Time that a coordinator waits for the replicas of a read.
    pub read: Nanos,
    /// Time that a client waits for the coordinator.
    pub client: Nanos,
    /// Time after which a coordinator asks another replica for the data of a read.
    pub speculate: Option<Nanos>,
    /// Whether stale replicas found by a read are updated before it is answered.
    pub read_repair: bool,
    /// Whether writes are kept for replicas that are down.
    pub hints: bool,
    /// Time after which all nodes know that a node cannot be reached.
    pub detect: Nanos,
    /// Time after which all nodes know that it can be reached again.
    pub recover: Nanos,
}

/// A fault of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Begin.
    pub at: Nanos,
    /// End; never if `None`.
    pub until: Option<Nanos>,
    /// What happens.
    pub what: What,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum What {
    /// A node crashes, and restarts with all data that it acknowledged.
    Crash {
        /// Its number in the store.
        node: u32,
    },
    /// These hosts and all others cannot reach each other.
    Partition {
        /// Numbers of nodes.
        nodes: Vec<u32>,
        /// Numbers of clients on their side.
        clients: Vec<u32>,
    },
}

impl Fault {
    /// Returns whether it is active at a time of the run.
    pub fn is_on(&self, now: Nanos) -> bool {
        self.at <= now && self.until.is_none_or(|until| now < until)
    }
}

impl What {
    /// Returns whether it separates two hosts of a store of `nodes` nodes: these by their numbers,
    /// clients numbered after them.
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

    /// Returns the value that is added to a record's number to make its key, which is a `bigint`,
    /// in the run with this `seed`.
    pub fn first_key(&self, seed: u64) -> u64 {
        Key::new(seed, &self.name).stream("keys").next_u64()
    }

    /// Returns the ring of its nodes in the run with this `seed`.
    ///
    /// # Errors
    /// The tokens or the replication do not fit the nodes.
    pub fn ring(&self, seed: u64) -> Result<Ring, String> {
        let members = self.node_tokens(seed).into_iter().zip(&self.nodes).map(|(tokens, host)| {
            Member { tokens, data_centre: host.data_centre, rack: host.rack }
        });
        Ring::new(&members.collect::<Vec<_>>())
    }

    /// Returns the replicas that must have a write before it is acknowledged, seen from the first
    /// node.
    pub fn write_need(&self) -> u32 {
        self.write_level.need(&self.placement, self.nodes[0].data_centre).count()
    }
}
