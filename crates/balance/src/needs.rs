//! The information that a policy needs, and its age.

use serde::{Deserialize, Serialize};
use sojourn_units::choices;
use sojourn_units::declare::{Param, time};
use sojourn_units::{Nanos, SECOND};

choices! {
    /// Information that a policy uses.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Signal {
        /// No information.
        Nothing = "nothing",
        /// Open connections: flows assigned minus flows finished.
        Connections = "connections",
        /// Open connections, and latencies of requests.
        Latency = "latency",
        /// Counters of bytes and packets sent by ports.
        Counters = "counters",
        /// Backlogs of ports' queues.
        Backlog = "backlog",
    }
}

/// Times of readings, which determine the age of the information at a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "fresh")]
pub enum Freshness {
    /// No readings.
    Unread,
    /// A reading for each choice.
    Now,
    /// A reading once per period.
    Sampled {
        /// Time between readings, in nanoseconds.
        period: Nanos,
    },
    /// A reading once per period, averaged.
    Averaged {
        /// Time between readings, in nanoseconds.
        period: Nanos,
    },
}

impl Freshness {
    /// Returns readings once per period; for each choice with period 0.
    pub fn every(period: Nanos) -> Self {
        if period == 0 { Self::Now } else { Self::Sampled { period } }
    }

    /// Returns the period of readings in nanoseconds; 0 for readings at each choice, `None` without
    /// readings.
    pub fn period(self) -> Option<Nanos> {
        match self {
            Self::Unread => None,
            Self::Now => Some(0),
            Self::Sampled { period } | Self::Averaged { period } => Some(period),
        }
    }
}

/// Information that a policy needs from the program that drives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Needs {
    /// Content of readings.
    #[serde(rename = "look")]
    pub signal: Signal,
    /// Times of readings.
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
    /// Returns a need for `signal` without readings; limits, rates and weights have no effect.
    pub fn of(signal: Signal) -> Self {
        Self { signal, freshness: Freshness::Unread, limits: false, rates: false, weights: false }
    }

    /// As [`Needs::of`], for a policy that uses weights.
    pub fn weighted(signal: Signal) -> Self {
        Self { weights: true, ..Self::of(signal) }
    }

    /// Returns a need for readings of `signal` at these times.
    pub fn read(signal: Signal, freshness: Freshness) -> Self {
        Self { freshness, ..Self::of(signal) }
    }
}

/// Longest period, which keeps sums of times far from overflow.
pub(crate) const LONGEST: Nanos = 3600 * SECOND;

/// Period of readings; with 0 they are taken for each choice.
pub(crate) const fn period() -> Param<Nanos> {
    time("0s").check(
        |&period| {
            if period <= LONGEST { Ok(()) } else { Err("must be from 0s up to 1h") }
        },
    )
}

/// Duration above zero.
pub(crate) const fn span(default: &'static str) -> Param<Nanos> {
    time(default).check(|&span| {
        if 0 < span && span <= LONGEST { Ok(()) } else { Err("must be above 0s up to 1h") }
    })
}
