//! A replicated store: its nodes and clients, its requests, and its faults.

use sojourn_random::{Distribution, Key};
use sojourn_replication::{Level, Member, Placement, Policy, Ring, ring};
use sojourn_units::{Bytes, Nanos, choices, data};

/// A replicated store and its clients.
#[data]
#[derive(Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Store {
    /// Name of the store in results.
    pub name: String,
    /// Names of the data centres.
    pub data_centres: Vec<String>,
    /// Nodes of the store.
    pub nodes: Vec<Host>,
    /// Clients of the store.
    pub clients: Vec<Host>,
    /// Number of tokens of each node. Single tokens divide the ring evenly; several tokens are
    /// drawn at random.
    pub tokens: u32,
    /// Rule for the placement of replicas.
    pub placement: Placement,
    /// Consistency level of writes.
    pub write_level: Level,
    /// Consistency level of reads.
    pub read_level: Level,
    /// Rule by which clients select a coordinator.
    pub coordinator: Policy,
    /// TCP of all connections among nodes and clients.
    pub tcp: sojourn_tcp::Params,
    /// Times of requests.
    pub load: Load,
    /// Kinds and records of requests.
    pub workload: Workload,
    /// Service times of nodes.
    pub service: Service,
    /// Timeouts of requests, and what is done until then.
    pub patience: Patience,
    /// Faults of nodes and of the network.
    pub faults: Vec<Fault>,
}

/// A node or a client of a store.
#[data]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Index of the host among the plan's nodes.
    pub node: usize,
    /// Number of the host's data centre.
    pub data_centre: u32,
    /// Number of the host's rack; unused for clients.
    #[serde(default)]
    pub rack: u32,
}

/// Times of requests.
#[data]
#[derive(Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Time at which the clients start, in nanoseconds after the run's start.
    pub start: Nanos,
    /// Total number of requests of all clients; `None` if only the run's end stops them.
    pub requests: Option<u64>,
    /// Number of first requests that are not measured.
    pub warmup: u64,
    /// Maximum number of concurrent requests of a client; 0 for no limit, which only an open loop
    /// may have.
    pub outstanding: u32,
    /// Rule for the time of each client's next request.
    pub arrivals: Arrivals,
}

/// Rule for the time of a client's next request.
#[data]
#[derive(Clone, Debug, PartialEq)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Arrivals {
    /// Closed loop: the next request follows an answer after a think time.
    Closed {
        /// Think time in nanoseconds.
        think: Nanos,
    },
    /// Open loop: requests follow a schedule, independent of answers. Latency counts from the
    /// scheduled time.
    Open {
        /// Time between two requests of one client, in nanoseconds.
        every: Distribution,
    },
}

choices! {
    /// Distribution of the requested records.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum Keys {
        /// All records are requested with equal probability.
        Uniform = "uniform",
        /// YCSB's scrambled Zipfian distribution with the constant 0.99.
        Zipfian = "zipfian",
        /// Zipfian distribution with the constant 0.99, in which the newest record is the most
        /// frequent.
        Latest = "latest",
    }
}

/// Composition of the requests. The five shares add up to 1.
#[data]
#[derive(Clone, Copy, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Share of reads.
    pub read: f64,
    /// Share of writes of existing records.
    pub update: f64,
    /// Share of writes of new records.
    pub insert: f64,
    /// Share of scans, which read several records.
    pub scan: f64,
    /// Share of requests that read a record and then write the same record.
    pub modify: f64,
    /// Number of records that exist at the beginning, on all of their replicas.
    pub records: u64,
    /// Distribution of the requested records.
    pub keys: Keys,
    /// Length of a record in bytes.
    pub value: Bytes,
    /// Maximum number of records of a scan. The number is uniformly distributed from 1.
    pub scan_length: u32,
}

/// Names of the kinds of requests, in the order of the shares in [`WORKLOADS`].
pub const REQUESTS: [&str; 5] = ["read", "update", "insert", "scan", "modify"];

/// Named workloads: for each the shares of the kinds of requests, and the distribution of records.
/// `ycsb-a` to `ycsb-f` are those of YCSB.
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

/// Distributions of the service times of nodes, in nanoseconds.
#[data]
#[derive(Clone, Copy, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Time of the coordinator for a request.
    pub coordinate: Distribution,
    /// Time of a replica for a write.
    pub write: Distribution,
    /// Time of a replica for a read, for each record.
    pub read: Distribution,
    /// Number of tasks that a node executes at the same time.
    pub threads: u32,
    /// Maximum number of tasks that wait at a node. Further tasks fail.
    pub queue: u32,
}

/// Timeouts of requests, and reactions to slow or failed nodes. Times are in nanoseconds.
#[data]
#[derive(Clone, Copy, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Patience {
    /// Time for which a coordinator waits for the replicas of a write.
    pub write: Nanos,
    /// Time for which a coordinator waits for the replicas of a read.
    pub read: Nanos,
    /// Time for which a client waits for the coordinator.
    pub client: Nanos,
    /// Time after which a coordinator asks another replica for the data of a read; `None` for
    /// never.
    pub speculate: Option<Nanos>,
    /// Percentile of a coordinator's recent read latencies that takes the place of `speculate`;
    /// `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentile: Option<Percentile>,
    /// Whether a read is answered only after the stale replicas that it found are updated.
    pub read_repair: bool,
    /// Whether coordinators store writes for replicas that are down, and deliver them later.
    pub hints: bool,
    /// Time after which all nodes know that a node is unreachable.
    pub detect: Nanos,
    /// Time after which all nodes know that a node is reachable again.
    pub recover: Nanos,
}

/// A waiting time that follows a percentile of recent latencies. Times are in nanoseconds.
#[data]
#[derive(Clone, Copy, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Percentile {
    /// Share of the latencies that are at most this time, above 0 and at most 1.
    pub share: f64,
    /// Least waiting time.
    pub least: Nanos,
    /// Largest waiting time; `None` for no limit.
    #[serde(default)]
    pub most: Option<Nanos>,
}

/// A fault of a store's nodes or network.
#[data]
#[derive(Clone, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Begin of the fault in nanoseconds after the run's start.
    pub at: Nanos,
    /// End of the fault in nanoseconds after the run's start; `None` for no end.
    pub until: Option<Nanos>,
    /// Kind of the fault.
    pub what: What,
}

/// Kind of a fault.
#[data]
#[derive(Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum What {
    /// A node crashes. After its restart it has all data that it acknowledged before.
    Crash {
        /// Number of the node in the store.
        node: u32,
    },
    /// The network is partitioned: the listed hosts and all other hosts cannot reach each other.
    Partition {
        /// Numbers of the listed nodes in the store.
        nodes: Vec<u32>,
        /// Numbers of the listed clients in the store.
        clients: Vec<u32>,
    },
}

impl Fault {
    /// Returns whether the fault is active at `now` nanoseconds after the run's start.
    pub fn is_on(&self, now: Nanos) -> bool {
        self.at <= now && self.until.is_none_or(|until| now < until)
    }
}

impl What {
    /// Returns whether the fault separates two hosts of a store with `nodes` nodes. Hosts are given
    /// by their numbers in the store; the numbers of clients follow those of the nodes.
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
    /// Returns the tokens of each node in the run with this `seed`.
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

    /// Returns the value that is added to a record's number, modulo 2^64, to obtain its key (a
    /// `bigint`) in the run with this `seed`.
    pub fn first_key(&self, seed: u64) -> u64 {
        Key::new(seed, &self.name).stream("keys").next_u64()
    }

    /// Returns the token ring in the run with this `seed`.
    ///
    /// # Errors
    /// If the number of nodes or tokens is not allowed, or two tokens are equal.
    pub fn ring(&self, seed: u64) -> Result<Ring, String> {
        let members = self.node_tokens(seed).into_iter().zip(&self.nodes).map(|(tokens, host)| {
            Member { tokens, data_centre: host.data_centre, rack: host.rack }
        });
        Ring::new(&members.collect::<Vec<_>>())
    }

    /// Returns the number of replicas that must store a write before it is acknowledged, for a
    /// coordinator in the data centre of the first node.
    pub fn write_need(&self) -> u32 {
        self.write_level.need(&self.placement, self.nodes[0].data_centre).count()
    }
}
