//! The description of a run, resolved to nanoseconds, bytes, bits per second and indices.
//!
//! A plan contains everything that decides a run's result except the seed. Names are for results
//! and keys of random streams; no decision depends on them otherwise. Each component owns the type
//! of its parameters; this crate only combines them and checks that they fit.

pub mod address;
mod apps;
mod balancers;
mod changes;
pub mod dscp;
mod edits;
mod externals;
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
pub use flows::Flow;
pub use labels::Labels;
pub use moments::{Moments, Starts};
pub use problems::{Path, PlanError, PlanErrors, Segment};
use serde::{Deserialize, Serialize};
use sojourn_units::Nanos;
use std::collections::BTreeMap;
pub use store::Store;

/// One run's description.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Length of the run, from time 0.
    pub duration: Nanos,
    /// End of the warm-up. Earlier events are not measured.
    pub warmup: Nanos,
    /// Hosts and routers.
    pub nodes: Vec<Node>,
    /// Media that several links share.
    #[serde(default)]
    pub media: Vec<Medium>,
    /// Links, one direction each.
    pub links: Vec<Link>,
    /// Balancers, which choose servers for flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub balancers: Vec<Balancer>,
    /// Groups of flows.
    pub groups: Vec<Group>,
    /// Applications of the plan itself, in addition to the flows of groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apps: Vec<App>,
    /// Records in addition to the defaults.
    pub observe: Observe,
    /// Sources of external policies by their digests: the files of each by name. The code is loaded
    /// from here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, BTreeMap<String, String>>,
}

impl Plan {
    /// Returns its stores.
    pub fn stores(&self) -> impl Iterator<Item = &Store> {
        self.apps.iter().map(|App::Store(store)| &**store)
    }
}

/// A host or a router; routes are shortest paths by number of links, ties to the lower link index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its name.
    pub name: String,
}

/// A medium that its links share: one of them transmits at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Medium {
    /// Its name.
    pub name: String,
    /// How its links share it. Its *stations* are the nodes that send on it without a fixed
    /// receiver: each reaches all the others.
    pub access: sojourn_link::csma::Params,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Its name, such as `uplink` or `uplink.reverse`.
    pub name: String,
    /// Index of the node that sends.
    pub from: usize,
    /// Index of the node that receives; `None` on a shared medium, where the packet's path
    /// determines the receiving station.
    pub to: Option<usize>,
    /// Index of the medium that it transmits on; one of its own if `None`.
    #[serde(default)]
    pub medium: Option<usize>,
    /// Number of packets that the sending device takes from the queue before their transmission,
    /// without the discipline's knowledge.
    #[serde(default)]
    pub ring: u32,
    /// Lateness of the sending host in serving the queue; never late if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<sojourn_link::host::Params>,
    /// Whether the queue is the sending host's own: small queues bound the data of each of that host's
    /// connections in it, and each of its connections and flows of datagrams is a socket. If the queue
    /// paces, TCP passes each segment to it with its departure time and needs no pacing timer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host_queue: bool,
    /// Rate, delay, impairments and queue.
    pub params: sojourn_link::Params,
    /// Changes of rate, delay and impairments during the run.
    #[serde(default)]
    pub changes: Vec<Change>,
}

impl Link {
    /// Returns whether its rate changes during the run.
    pub fn varies(&self) -> bool {
        self.params.trace.is_some() || self.changes.iter().any(|change| change.rate.is_some())
    }
}

/// Flows of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Pairs of sending and receiving node; flow `i` uses pair `i` modulo their number. For Web
    /// traffic the sender is the server: objects flow from `from` to `to`.
    pub pairs: Vec<(usize, usize)>,
    /// Index of the balancer that chooses a server for each of its connections, or for each flow of
    /// packets; the pairs then name its first server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balancer: Option<usize>,
    /// Number of flows; for Web traffic, of sessions at once.
    pub count: u32,
    /// Earliest start.
    pub start: Nanos,
    /// Starts are uniform over this span after `start`.
    pub start_spread: Nanos,
    /// Flow `i` starts `i` times this interval later. Flows due after the run's end never start.
    #[serde(default)]
    pub start_every: Nanos,
    /// Time at which the application stops offering data; the run's end if `None`.
    pub stop: Option<Nanos>,
    /// Differentiated services code point of its packets.
    pub dscp: u8,
    /// Port at the sender of its data, and the destination port of packets in the other direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_port: Option<u16>,
    /// Port at the receiver of its data. Without either port, the server's is that of
    /// [`address::port`], and the client's is chosen for each connection; if one is given, only the
    /// other is chosen for each connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_port: Option<u16>,
    /// The firewall's mark on its packets, in both directions; 0 without a mark.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub mark: u32,
    /// Its transport.
    pub transport: Transport,
    /// Its application.
    pub app: sojourn_traffic::App,
}

/// The transport of an application's data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "protocol")]
#[allow(clippy::large_enum_variant, reason = "one per group of flows")]
pub enum Transport {
    /// TCP.
    Tcp(sojourn_tcp::Params),
    /// UDP.
    Udp,
}

/// The records of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observe {
    /// The bottleneck: its metrics are the run's own.
    pub bottleneck: Bottleneck,
    /// Interval of time series (queue, rates, cwnd of the first flows); none if 0.
    pub series_interval: Nanos,
    /// Histograms per flow as well as per group.
    pub per_flow_histograms: bool,
    /// Cumulative counts of every flow in both directions, and the queue that changed last, at each
    /// sample of the series.
    #[serde(default)]
    pub monitor: bool,
    /// Links whose packets are written as pcap, as their transmission begins.
    pub capture: Vec<usize>,
    /// Bytes kept of each captured frame.
    #[serde(default = "default_snaplen")]
    pub snaplen: u32,
    /// Trace hash over every packet event.
    pub trace_hash: bool,
}

/// The bottleneck of a run: a link's queue, or those of several links together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bottleneck {
    /// Its name in results: the link's name for a single link.
    pub name: String,
    /// Indices of the links.
    pub links: Vec<usize>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands in a reference")]
fn is_zero(mark: &u32) -> bool {
    *mark == 0
}

fn default_snaplen() -> u32 {
    128
}
