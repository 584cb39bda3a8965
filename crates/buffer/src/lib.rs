//! Policies for the size of a receive buffer.
//!
//! A buffer stands between a sender that does not ask and a handler that pauses: packets that do not
//! fit are discarded. A policy is told what the buffer sees ([`Observation`]) and says how large it
//! is to be ([`Decision`]). Inside a program it is asked before every packet that is put in; from
//! outside (the socket of another program) every 10 ms or so. It has no clock: time is an argument.
//!
//! All sizes are bytes as the buffer itself counts them (Linux charges a socket its packets' memory,
//! not their length). Counters only grow; policies take differences. What arrived less what was
//! processed in a span of time is the change of what is occupied plus what was discarded, so nobody
//! has to count arrivals.
//!
//! # Invariants (one contract test for all)
//! A decision is never below what is occupied, never below the policy's least size, and above its
//! greatest only if that much is occupied. The first observation is the baseline: a policy may take
//! over a buffer in use.

pub mod elastic;
pub mod on_demand;
pub mod rrda;
pub mod r#static;
pub mod store;

pub use store::Store;

use serde::{Deserialize, Serialize};
use sojourn_units::words::{self, Given, Kind, Table, Word, WordError};
use sojourn_units::{Bytes, Nanos, quantity::format_size};

/// The largest size a buffer may be given, 1 TiB: sums of sizes stay far from overflow.
pub const GREATEST: Bytes = 1 << 40;

/// Memory of the machine, or of the control group that the buffer is charged to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// All of it.
    pub total: Bytes,
    /// What could be given out without swapping (`MemAvailable`, or the group's limit less its use).
    pub available: Bytes,
}

impl Memory {
    /// The share in use, 0 to 1: RRDA's alpha. Memory without a size counts as used up.
    pub fn utilisation(self) -> f64 {
        if self.total == 0 {
            return 1.0;
        }
        1.0 - self.available.min(self.total) as f64 / self.total as f64
    }
}

/// What a buffer sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// Now, by any clock that does not go back.
    pub now: Nanos,
    /// Size in force. A kernel may have granted more or less than the last decision asked for.
    pub size: Bytes,
    /// Bytes in the buffer.
    pub occupied: Bytes,
    /// Bytes of the packet that is about to be put in; 0 if there is none.
    pub needed: Bytes,
    /// Bytes discarded for lack of room since the buffer was made.
    pub discarded: Bytes,
    /// Bytes the handler has taken since the buffer was made, if known.
    pub processed: Option<Bytes>,
    /// Memory that the buffer is part of, if known.
    pub memory: Option<Memory>,
}

/// Why a size is as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Nothing calls for a change.
    Hold,
    /// What is to be put in does not fit, or soon would not.
    Demand,
    /// Packets were discarded since the last observation.
    Discards,
    /// More arrived than was processed, or less.
    Rate,
    /// The recent peak needs less.
    Idle,
    /// The handler does not catch up: more room would only be more waiting.
    Standing,
    /// A bound of the policy.
    Bound,
    /// Memory is short.
    Pressure,
}

impl Reason {
    /// The reason as one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Demand => "demand",
            Self::Discards => "discards",
            Self::Rate => "rate",
            Self::Idle => "idle",
            Self::Standing => "standing",
            Self::Bound => "bound",
            Self::Pressure => "pressure",
        }
    }
}

/// How large the buffer is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Size from now on, in bytes.
    pub size: Bytes,
    /// Why.
    pub reason: Reason,
}

/// Which policy, and its settings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "name")]
pub enum Params {
    /// One size for ever.
    Static(r#static::Params),
    /// Growth when a packet does not fit, within a budget.
    OnDemand(on_demand::Params),
    /// Rate and resource detection.
    Rrda(rrda::Params),
    /// Growth on demand that gives back, and does not feed a standing queue.
    Elastic(elastic::Params),
}

/// The words of every policy.
pub fn tables() -> [&'static Table; 4] {
    [&r#static::TABLE, &on_demand::TABLE, &rrda::TABLE, &elastic::TABLE]
}

impl Params {
    /// Reads a description such as `elastic ceiling 64mb target 50ms`.
    ///
    /// # Errors
    /// Where and why it cannot be read.
    pub fn parse(text: &str) -> Result<Self, WordError> {
        let (table, given) = words::describe("buffer policy", &tables(), text)?;
        match table.name {
            "static" => r#static::Params::read(&given).map(Self::Static),
            "on-demand" => on_demand::Params::read(&given).map(Self::OnDemand),
            "rrda" => rrda::Params::read(&given).map(Self::Rrda),
            _ => elastic::Params::read(&given).map(Self::Elastic),
        }
    }

    /// The policy's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Static(_) => r#static::TABLE.name,
            Self::OnDemand(_) => on_demand::TABLE.name,
            Self::Rrda(_) => rrda::TABLE.name,
            Self::Elastic(_) => elastic::TABLE.name,
        }
    }

    /// Size of a buffer that begins.
    pub fn initial(&self) -> Bytes {
        match self {
            Self::Static(p) => p.size,
            Self::OnDemand(p) => p.floor,
            Self::Rrda(p) => p.initial,
            Self::Elastic(p) => p.floor,
        }
    }

    /// Least and greatest size.
    pub fn bounds(&self) -> (Bytes, Bytes) {
        match self {
            Self::Static(p) => (p.size, p.size),
            Self::OnDemand(p) => (p.floor, p.budget),
            Self::Rrda(p) => (p.floor, p.ceiling),
            Self::Elastic(p) => (p.floor, p.ceiling),
        }
    }
}

impl std::fmt::Display for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Static(p) => p.fmt(f),
            Self::OnDemand(p) => p.fmt(f),
            Self::Rrda(p) => p.fmt(f),
            Self::Elastic(p) => p.fmt(f),
        }
    }
}

/// A policy by static dispatch.
#[derive(Clone, Debug)]
pub enum Policy {
    /// See [`mod@static`](r#static).
    Static(r#static::Static),
    /// See [`on_demand`].
    OnDemand(on_demand::OnDemand),
    /// See [`rrda`].
    Rrda(rrda::Rrda),
    /// See [`elastic`].
    Elastic(elastic::Elastic),
}

impl Policy {
    /// The policy that `params` describes.
    pub fn new(params: &Params) -> Self {
        match *params {
            Params::Static(p) => Self::Static(r#static::Static::new(p)),
            Params::OnDemand(p) => Self::OnDemand(on_demand::OnDemand::new(p)),
            Params::Rrda(p) => Self::Rrda(rrda::Rrda::new(p)),
            Params::Elastic(p) => Self::Elastic(elastic::Elastic::new(p)),
        }
    }

    /// How large the buffer is to be. Time or counters that go back count as standing still.
    #[inline]
    pub fn observe(&mut self, seen: &Observation) -> Decision {
        match self {
            Self::Static(p) => p.observe(seen),
            Self::OnDemand(p) => p.observe(seen),
            Self::Rrda(p) => p.observe(seen),
            Self::Elastic(p) => p.observe(seen),
        }
    }

    /// What the policy remembers, for traces and views: name and value, sizes in bytes.
    pub fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        match self {
            Self::Static(_) => {}
            Self::OnDemand(p) => p.state(visit),
            Self::Rrda(p) => p.state(visit),
            Self::Elastic(p) => p.state(visit),
        }
    }
}

/// `size` within `floor` and `ceiling`, and not below what is occupied.
#[inline]
fn within(size: Bytes, floor: Bytes, ceiling: Bytes, occupied: Bytes) -> Bytes {
    size.min(ceiling).max(floor).max(occupied)
}

const fn floor_word(default: &'static str) -> Word {
    Word { name: "floor", kind: Kind::Size, default, doc: "Least size." }
}

/// A size within 1 byte and [`GREATEST`].
fn size(given: &Given, word: &'static str, default: Bytes) -> Result<Bytes, WordError> {
    let value = given.integer(word).unwrap_or(default);
    if value == 0 || value > GREATEST {
        let most = format_size(GREATEST);
        return Err(given.error(word, format!("`{word}` must be above 0, up to {most}")));
    }
    Ok(value)
}

/// A span of time above 0, up to an hour.
fn span(given: &Given, word: &'static str, default: Nanos) -> Result<Nanos, WordError> {
    const LONGEST: Nanos = 3600 * sojourn_units::SECOND;
    let value = given.time(word).unwrap_or(default);
    if value == 0 || value > LONGEST {
        return Err(given.error(word, format!("`{word}` must be above 0, up to 1h")));
    }
    Ok(value)
}

/// Refuses a least size above the greatest.
fn ordered(
    given: &Given,
    (low, least): (&'static str, Bytes),
    (high, greatest): (&'static str, Bytes),
) -> Result<(), WordError> {
    if least <= greatest {
        return Ok(());
    }
    let word = if given.has(low) { low } else { high };
    let (least, greatest) = (format_size(least), format_size(greatest));
    Err(given.error(word, format!("`{low}` ({least}) is above `{high}` ({greatest})")))
}

#[cfg(test)]
mod tests;
