//! The information that a policy needs, and how current it must be.

use serde::Serialize;
use sojourn_units::choices;
use sojourn_units::declare::{Param, time};
use sojourn_units::{Nanos, SECOND};

choices! {
    /// Kind of information that a policy uses.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(rename_all = "kebab-case")]
    pub enum Signal {
        /// No information.
        Nothing = "nothing",
        /// Number of open connections: flows assigned minus flows finished.
        Connections = "connections",
        /// Numbers of open connections, and latencies of requests.
        Latency = "latency",
        /// Counters of the bytes and packets that ports have sent.
        Counters = "counters",
        /// Backlogs of the ports' queues.
        Backlog = "backlog",
    }
}

/// Times at which readings are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "fresh")]
pub enum Freshness {
    /// Readings are never taken.
    Unread,
    /// Readings are taken at each choice.
    Now,
    /// Readings are taken once per period.
    Sampled {
        /// Time between two readings in nanoseconds.
        period: Nanos,
    },
    /// Readings are taken once per period, and averaged.
    Averaged {
        /// Time between two readings in nanoseconds.
        period: Nanos,
    },
}

impl Freshness {
    /// Returns the freshness of periodic readings; with a `period` of 0, of readings at each choice.
    pub fn every(period: Nanos) -> Self {
        if period == 0 { Self::Now } else { Self::Sampled { period } }
    }

    /// Returns the time between two readings in nanoseconds; 0 for readings at each choice, `None`
    /// if readings are never taken.
    pub fn period(self) -> Option<Nanos> {
        match self {
            Self::Unread => None,
            Self::Now => Some(0),
            Self::Sampled { period } | Self::Averaged { period } => Some(period),
        }
    }
}

/// Information that a policy needs from its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Needs {
    /// Kind of information.
    #[serde(rename = "look")]
    pub signal: Signal,
    /// Times at which readings are taken.
    #[serde(flatten)]
    pub freshness: Freshness,
    /// Whether the limits of queues affect choices.
    pub limits: bool,
    /// Whether the rates of ports affect choices.
    pub rates: bool,
    /// Whether the weights of servers affect choices.
    pub weights: bool,
}

impl Needs {
    /// Returns the needs of a policy that uses `signal` without readings, and no limits, rates or
    /// weights.
    pub fn of(signal: Signal) -> Self {
        Self { signal, freshness: Freshness::Unread, limits: false, rates: false, weights: false }
    }

    /// Returns the needs of a policy that uses weights and, without readings, `signal`.
    pub fn weighted(signal: Signal) -> Self {
        Self { weights: true, ..Self::of(signal) }
    }

    /// Returns the needs of a policy that uses readings of `signal` at the times `freshness`.
    pub fn read(signal: Signal, freshness: Freshness) -> Self {
        Self { freshness, ..Self::of(signal) }
    }
}

/// Maximum of periods and spans in nanoseconds. It prevents overflow of sums of times.
pub(crate) const LONGEST: Nanos = 3600 * SECOND;

/// Time between two readings; with 0, readings are taken at each choice.
pub(crate) const fn period() -> Param<Nanos> {
    time("0s").check(|&period| if period <= LONGEST { Ok(()) } else { Err("must be at most 1h") })
}

/// A duration above zero and at most one hour.
pub(crate) const fn span(default: &'static str) -> Param<Nanos> {
    time(default).check(|&span| {
        if 0 < span && span <= LONGEST { Ok(()) } else { Err("must be above 0s and at most 1h") }
    })
}
