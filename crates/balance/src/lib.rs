//! Policies that choose a server for a new flow.
//!
//! A balancer stands before servers that do the same work: a switch with a port to each of them, or a
//! proxy. At a flow's first packet a policy says which server gets it, and all its packets go there.
//! A policy has no clock, no I/O and no randomness of its own: time and draws are arguments.
//!
//! What a policy may look at is its type ([`Policy::View`]): nothing, the connections that it has
//! given out itself, counters of ports, or backlogs of their queues. A [`Balancer`] keeps what it was
//! told last ([`Balancer::observe`]) and shows each policy its own part of that, so that information is
//! as old as its driver makes it: [`Needs::fresh`] says whether readings are taken at each choice or
//! once a period.
//!
//! # Invariants (one contract test for all)
//! A server that is down is never chosen, and with all down none is. The same calls with the same draws
//! give the same choices. A draw is asked for only where one is needed. What is kept does not grow with
//! the number of flows. A server whose reading was never taken is chosen only if no other was read.

mod dispatch;
pub mod hash;
pub mod iqlb;
pub mod jiq;
pub mod jsq;
pub mod least_bandwidth;
pub mod least_connections;
pub mod least_packets;
pub mod maglev;
pub mod peak_ewma;
pub mod power_of_d;
pub mod qtm;
pub mod queue_delay;
pub mod random;
mod rates;
pub mod round_robin;
mod sight;
pub mod weighted_round_robin;

pub use dispatch::{Params, tables};
pub use sight::{Connections, Pick, Sight, View};

use dispatch::Any;
use serde::{Deserialize, Serialize};
use sojourn_units::words::{Given, Kind, Word, WordError};
use sojourn_units::{Bytes, Nanos, Rate};

/// A source of draws: gives a whole number below its argument, all equally likely.
pub type Draws<'a> = dyn FnMut(u64) -> u64 + 'a;

/// A server, as it is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// What it is known by: a hash of its name or address, the same in every run.
    pub id: u64,
    /// Its share of the flows, for policies that know weights. At least 1.
    pub weight: u32,
}

impl Server {
    /// The server called `name`.
    pub fn new(name: &str, weight: u32) -> Self {
        Self { id: hash_of(name.as_bytes()), weight: weight.max(1) }
    }
}

/// A hash of bytes such as a flow's addresses, protocol and ports: the same on every machine.
pub fn hash_of(bytes: &[u8]) -> u64 {
    let fnv = bytes.iter().fold(0xCBF2_9CE4_8422_2325u64, |h, &b| {
        (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    mix(fnv)
}

/// Spreads a number over all bits (the finalizer of `SplitMix64`; a bijection).
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// What a queue holds at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// So many packets.
    Packets(u64),
    /// So many bytes.
    Bytes(Bytes),
}

/// The queue of the port that leads to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets in it.
    pub packets: u64,
    /// Bytes in it.
    pub bytes: Bytes,
    /// What it holds at most, if that is known.
    pub limit: Option<Limit>,
    /// The rate that it is emptied at, if that is known.
    pub rate: Option<Rate>,
}

impl Backlog {
    /// The share of the limit that is taken, 0 where there is none.
    pub fn occupancy(&self) -> f64 {
        let share =
            |used: u64, limit: u64| if limit == 0 { 1.0 } else { used as f64 / limit as f64 };
        match self.limit {
            None => 0.0,
            Some(Limit::Packets(limit)) => share(self.packets, limit),
            Some(Limit::Bytes(limit)) => share(self.bytes, limit),
        }
    }
}

/// What the port that leads to a server has sent since some beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes.
    pub bytes: Bytes,
    /// Packets.
    pub packets: u64,
}

/// What was read of a server's port at one time. What could not be read is `None`: then the reading
/// before stays in force, and ages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Its queue.
    pub backlog: Option<Backlog>,
    /// Its counters.
    pub counters: Option<Counters>,
}

/// A new flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// A hash of what is equal in all its packets ([`hash_of`] addresses, protocol and ports).
    pub hash: u64,
}

/// What a policy looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Look {
    /// Nothing.
    Nothing,
    /// Connections: those it has given out, less those that have [finished](Balancer::finished).
    Connections,
    /// Connections, and how long requests took.
    Latency,
    /// Counters of bytes and packets that ports have sent.
    Counters,
    /// Backlogs of ports' queues.
    Backlog,
}

impl Look {
    /// As one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Connections => "connections",
            Self::Latency => "latency",
            Self::Counters => "counters",
            Self::Backlog => "backlog",
        }
    }
}

/// How old readings are by the time a policy uses them, where they are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "fresh")]
pub enum Fresh {
    /// It needs no readings.
    Unread,
    /// Taken for each choice.
    Now,
    /// Taken once a period.
    Sampled {
        /// The period.
        period: Nanos,
    },
    /// Taken once a period and averaged.
    Averaged {
        /// The period.
        period: Nanos,
    },
}

impl Fresh {
    fn every(period: Nanos) -> Self {
        if period == 0 { Self::Now } else { Self::Sampled { period } }
    }

    /// The period of readings; 0 if they are taken at each choice, none if there are none.
    pub fn period(self) -> Option<Nanos> {
        match self {
            Self::Unread => None,
            Self::Now => Some(0),
            Self::Sampled { period } | Self::Averaged { period } => Some(period),
        }
    }
}

/// What a policy needs of the one who drives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Needs {
    /// What readings must hold.
    pub look: Look,
    /// When they are taken.
    #[serde(flatten)]
    pub fresh: Fresh,
    /// Whether queues' limits make a difference.
    pub limits: bool,
    /// Whether ports' rates make a difference.
    pub rates: bool,
    /// Whether servers' weights make a difference.
    pub weights: bool,
}

/// Why a server was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It was its turn.
    Turn,
    /// By the draw.
    Drawn,
    /// By the flow's hash.
    Hashed,
    /// It had the least of what counts.
    Least,
    /// Drawn from several with the same least.
    Tie,
    /// All queues were above the threshold.
    Full,
    /// It was idle.
    Idle,
    /// Nothing has been read yet: drawn from all.
    Unread,
}

impl Reason {
    /// As one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Drawn => "drawn",
            Self::Hashed => "hashed",
            Self::Least => "least",
            Self::Tie => "tie",
            Self::Full => "full",
            Self::Idle => "idle",
            Self::Unread => "unread",
        }
    }
}

/// A server chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its index.
    pub server: usize,
    /// Why.
    pub reason: Reason,
    /// Age of what was known of it; none if nothing was looked at.
    pub age: Option<Nanos>,
}

/// A policy, and what it may look at.
pub trait Policy {
    /// The part of what is known of servers that it sees.
    type View: View;

    /// Readings have been taken.
    fn observe(&mut self, _now: Nanos, _sight: &Sight<'_, Self::View>) {}

    /// The server for a new flow; none if there is none to be had.
    fn choose(
        &mut self,
        now: Nanos,
        flow: &Flow,
        sight: &Sight<'_, Self::View>,
        draws: &mut Draws<'_>,
    ) -> Option<Pick>;

    /// A flow of `server` has ended; `latency` is how long it took, if that is known.
    fn finished(
        &mut self,
        _now: Nanos,
        _server: usize,
        _latency: Option<Nanos>,
        _sight: &Sight<'_, Self::View>,
    ) {
    }

    /// Servers have come or gone. Asked once before anything else.
    fn changed(&mut self, _sight: &Sight<'_, Self::View>) {}

    /// What it remembers of each server: server, name and value.
    fn state(&self, _visit: &mut dyn FnMut(usize, &'static str, f64)) {}
}

/// What is known of a server.
#[derive(Clone, Copy, Debug)]
struct Known {
    server: Server,
    up: bool,
    open: u32,
    backlog: Option<(Nanos, Backlog)>,
    counters: Option<(Nanos, Counters)>,
}

/// A policy with its servers.
#[derive(Clone, Debug)]
pub struct Balancer {
    servers: Vec<Known>,
    policy: Any,
    needs: Needs,
}

/// The greatest number of servers.
pub const MOST_SERVERS: usize = 4096;

impl Balancer {
    /// The policy that `params` describes before `servers`, all of them up.
    ///
    /// # Panics
    /// With more than [`MOST_SERVERS`] servers.
    pub fn new(params: &Params, servers: &[Server]) -> Self {
        assert!(servers.len() <= MOST_SERVERS, "at most {MOST_SERVERS} servers");
        let known = |&server| Known { server, up: true, open: 0, backlog: None, counters: None };
        let mut balancer = Self {
            servers: servers.iter().map(known).collect(),
            policy: Any::new(params, servers.len()),
            needs: params.needs(),
        };
        balancer.policy.changed(&balancer.servers);
        balancer
    }

    /// What its policy needs.
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// Number of servers.
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Whether it has no servers.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Tells what has been read of the servers at `now`, in their order.
    ///
    /// # Panics
    /// If there are not as many readings as servers.
    pub fn observe(&mut self, now: Nanos, readings: &[Reading]) {
        assert_eq!(readings.len(), self.servers.len(), "a reading for each server");
        for (known, reading) in self.servers.iter_mut().zip(readings) {
            if let Some(backlog) = reading.backlog {
                known.backlog = Some((now, backlog));
            }
            if let Some(counters) = reading.counters {
                known.counters = Some((now, counters));
            }
        }
        self.policy.observe(now, &self.servers);
    }

    /// The server for a new flow, which counts as open from now on; none if all are down, or if the
    /// policy refuses.
    pub fn choose(&mut self, now: Nanos, flow: &Flow, draws: &mut Draws<'_>) -> Option<Choice> {
        let (server, reason) = self.policy.choose(now, flow, &self.servers, draws)?;
        let known = &mut self.servers[server];
        debug_assert!(known.up, "a server that is down was chosen");
        known.open = known.open.saturating_add(1);
        let age = |at: Nanos| now.saturating_sub(at);
        let age = match self.needs.look {
            Look::Nothing => None,
            Look::Connections | Look::Latency => Some(0),
            Look::Counters => known.counters.map(|(at, _)| age(at)),
            Look::Backlog => known.backlog.map(|(at, _)| age(at)),
        };
        Some(Choice { server, reason, age })
    }

    /// A flow that nobody asked about is at `server`, and counts as open from now on: one that began
    /// before this balancer, or that goes where its client's other flows go.
    pub fn adopt(&mut self, server: usize) {
        let known = &mut self.servers[server];
        known.open = known.open.saturating_add(1);
    }

    /// A flow that was given to `server` has ended. `latency` is how long its request took, if known.
    pub fn finished(&mut self, now: Nanos, server: usize, latency: Option<Nanos>) {
        self.servers[server].open = self.servers[server].open.saturating_sub(1);
        self.policy.finished(now, server, latency, &self.servers);
    }

    /// A server has come up or gone down. Its readings are forgotten; its open flows are not.
    pub fn set_up(&mut self, server: usize, up: bool) {
        let known = &mut self.servers[server];
        if known.up != up {
            (known.up, known.backlog, known.counters) = (up, None, None);
            self.policy.changed(&self.servers);
        }
    }

    /// Whether a server is up.
    pub fn is_up(&self, server: usize) -> bool {
        self.servers[server].up
    }

    /// Flows that a server has been given and that have not finished.
    pub fn open(&self, server: usize) -> u32 {
        self.servers[server].open
    }

    /// What the policy remembers, for traces and views: server, name and value.
    pub fn state(&self, visit: &mut dyn FnMut(usize, &'static str, f64)) {
        self.policy.state(visit);
    }
}

const PERIOD: Nanos = sojourn_units::SECOND;

/// The longest period, so that sums of times stay far from overflow.
const LONGEST: Nanos = 3600 * sojourn_units::SECOND;

const fn period_word(default: &'static str) -> Word {
    Word {
        name: "period",
        kind: Kind::Time,
        default,
        doc: "Time from one reading to the next; with 0s readings are taken for each choice.",
    }
}

fn period(given: &Given, default: Nanos, least: Nanos) -> Result<Nanos, WordError> {
    let value = given.time("period").unwrap_or(default);
    if value < least || value > LONGEST {
        let from = if least == 0 { "from 0s" } else { "above 0s" };
        return Err(given.error("period", format!("`period` must be {from} up to 1h")));
    }
    Ok(value)
}

#[cfg(test)]
mod tests;
