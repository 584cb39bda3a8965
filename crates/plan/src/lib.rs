//! The plan of a run: a scenario resolved to nanoseconds, bytes, bits per second and indices.
//!
//! A plan contains everything that determines the result of a run, except the seed. Names serve for
//! results and as keys of random streams, and for nothing else. Each component defines the type of
//! its parameters; this crate combines the parameters and checks that they fit together.

pub mod address;
mod apps;
mod balancers;
mod changes;
pub mod dscp;
mod edits;
mod externals;
pub mod features;
mod flows;
mod labels;
pub mod limits;
mod moments;
mod problems;
pub mod store;
mod validate;

pub use apps::App;
pub use balancers::{Balancer, Fault, Probes, Server};
pub use changes::{Change, Schedule, Wire};
pub use edits::{Edits, GroupEdit, LinkEdit, PathEdit, scaled_warmup, shared_delays};
pub use externals::External;
pub use flows::{Flow, PlannedFlow};
pub use labels::Labels;
pub use moments::{Moments, Starts};
pub use problems::{Path, PlanError, PlanErrors, Segment};
use sojourn_units::{Nanos, data};
use std::collections::BTreeMap;
pub use store::Store;

/// The description of one run.
#[data]
#[derive(Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Length of the run in nanoseconds.
    pub duration: Nanos,
    /// End of the warm-up in nanoseconds after the run's start. Earlier events are not measured.
    pub warmup: Nanos,
    /// Hosts and routers.
    pub nodes: Vec<Node>,
    /// Media that are shared by several links.
    #[serde(default)]
    pub media: Vec<Medium>,
    /// Links; each is one direction of a connection between nodes.
    pub links: Vec<Link>,
    /// Balancers, which select servers for flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub balancers: Vec<Balancer>,
    /// Groups of flows.
    pub groups: Vec<Group>,
    /// Applications that are not flows of a group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apps: Vec<App>,
    /// Measurements and records of the run.
    pub observe: Observe,
    /// Source files of external policies, from which the code is loaded. The key is a digest of the
    /// files; the value contains their names and contents.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, BTreeMap<String, String>>,
}

impl Plan {
    /// Returns the stores of the plan.
    pub fn stores(&self) -> impl Iterator<Item = &Store> {
        self.apps.iter().map(|App::Store(store)| &**store)
    }
}

/// A host or router. Routes are shortest paths by number of links; among equal paths, the lower
/// link index decides.
#[data]
#[derive(Clone, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Name of the node.
    pub name: String,
}

/// A medium that several links share, of which only one transmits at a time.
#[data]
#[derive(Clone, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Medium {
    /// Name of the medium.
    pub name: String,
    /// Rules of access to the medium. Its *stations* are the nodes that send on it through a link
    /// without a fixed receiver. Each station reaches all others.
    pub access: sojourn_link::csma::Params,
}

/// One direction of a connection between nodes.
#[data]
#[derive(Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Name of the link, such as `uplink` or `uplink.reverse`.
    pub name: String,
    /// Index of the sending node.
    pub from: usize,
    /// Index of the receiving node; `None` on a shared medium, where each packet's path determines
    /// the receiving station.
    pub to: Option<usize>,
    /// Index of the shared medium on which the link transmits; `None` if the link has its own
    /// medium.
    #[serde(default)]
    pub medium: Option<usize>,
    /// Number of packets that the sending device may remove from the queue before their
    /// transmission. The queue discipline does not see these packets.
    #[serde(default)]
    pub ring: u32,
    /// Delays of the sending host in serving the queue; `None` for no delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<sojourn_link::host::Params>,
    /// Whether the queue is that of the sending host. Then TCP small queues limit the data that
    /// each connection may have in the queue. Each connection and each flow of datagrams counts as
    /// a socket. If the queue paces, TCP passes each segment to the queue with its departure time
    /// and needs no pacing timer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host_queue: bool,
    /// How the sending host hands data to its own queue; `None`: frame by frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offload: Option<Offload>,
    /// Initial rate, delay, impairments and queue.
    pub params: sojourn_link::Params,
    /// Changes of rate, delay and impairments during the run.
    #[serde(default)]
    pub changes: Vec<Change>,
}

/// How a host hands the data of a TCP connection to its own queue.
#[data]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Offload {
    /// In super-packets, as Linux does: the queue holds, counts, marks and drops each as one packet,
    /// and the device sends the frames (TSO, GSO).
    Linux,
}

/// The greatest value of a number of a link: its key, the number, and the value.
pub type Most = (&'static str, fn(&Link) -> u64, u64);

impl Link {
    /// Greatest values of the numbers of a link.
    pub const MOST: &[Most] = &[("ring", |link| link.ring.into(), 1_000_000)];

    /// Returns whether the link's rate changes during the run.
    pub fn varies(&self) -> bool {
        self.params.trace.is_some() || self.changes.iter().any(|change| change.rate.is_some())
    }
}

/// A group of flows with the same application and transport.
#[data]
#[derive(Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Name of the group.
    pub name: String,
    /// Pairs of sending and receiving node. Flow `i` uses the pair `i` modulo the number of pairs.
    /// In Web traffic the sending node is the server.
    pub pairs: Vec<(usize, usize)>,
    /// Index of the balancer that selects a server for each connection, or for each flow of
    /// datagrams; `None` without a balancer. With a balancer, the pairs contain its first server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balancer: Option<usize>,
    /// Number of flows; in Web traffic, number of concurrent sessions.
    pub count: u32,
    /// Earliest start of a flow, in nanoseconds after the run's start.
    pub start: Nanos,
    /// Range of the random delay that is added to each flow's start, in nanoseconds.
    pub start_spread: Nanos,
    /// Interval in nanoseconds: `i` times this interval is added to the start of flow `i`. Flows
    /// that would not start before `stop` and the run's end never start.
    #[serde(default)]
    pub start_every: Nanos,
    /// Time at which the application stops offering data, in nanoseconds after the run's start;
    /// `None` for the run's end.
    pub stop: Option<Nanos>,
    /// Differentiated services code point of the flows' packets.
    pub dscp: u8,
    /// Port at the sender of the data, in both directions; `None` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_port: Option<u16>,
    /// Port at the receiver of the data, in both directions; `None` if not given. If neither port
    /// is given, the server uses the port of [`address::port`], and the client's port is selected
    /// for each connection. If one port is given, only the other one is selected for each
    /// connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_port: Option<u16>,
    /// Firewall mark of the flows' packets in both directions; 0 for no mark.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub mark: u32,
    /// Transport of the flows.
    pub transport: Transport,
    /// Application of the flows.
    pub app: sojourn_traffic::App,
}

/// The transport of an application's data.
#[data]
#[derive(Clone, Debug, PartialEq)]
#[serde(rename_all = "snake_case", tag = "protocol")]
#[allow(clippy::large_enum_variant, reason = "there is only one transport for each group of flows")]
pub enum Transport {
    /// TCP.
    Tcp(sojourn_tcp::Params),
    /// UDP.
    Udp,
}

/// Measurements and records of a run.
#[data]
#[derive(Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Observe {
    /// The bottleneck, whose metrics are the run's own.
    pub bottleneck: Bottleneck,
    /// Interval of the time series in nanoseconds; 0 for no time series. The series contain queues,
    /// rates, and the congestion windows of the first flows.
    pub series_interval: Nanos,
    /// Whether histograms are recorded for each flow in addition to each group.
    pub per_flow_histograms: bool,
    /// Whether each sample of the series also records the cumulative counts of every flow in both
    /// directions, and the queue that changed last.
    #[serde(default)]
    pub monitor: bool,
    /// Indices of the links whose packets are captured in pcap format, at the start of their
    /// transmission.
    pub capture: Vec<usize>,
    /// Maximum number of bytes captured of each frame.
    #[serde(default = "default_snaplen")]
    pub snaplen: u32,
    /// Indices of the groups of TCP flows whose connections are traced as qlog, at the end that
    /// sends the flow's data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub qlog: Vec<usize>,
    /// Whether the trace hash of all packet events is computed.
    pub trace_hash: bool,
}

/// The bottleneck of a run: one link's queue, or several links' queues together.
#[data]
#[derive(Clone, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Bottleneck {
    /// Name of the bottleneck in results. For a single link it is the link's name.
    pub name: String,
    /// Indices of the links.
    pub links: Vec<usize>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires a reference")]
fn is_zero(mark: &u32) -> bool {
    *mark == 0
}

fn default_snaplen() -> u32 {
    128
}
