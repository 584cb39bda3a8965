//! The information that a policy needs, and its age.

use serde::{Deserialize, Serialize};
use sojourn_units::choices;
use sojourn_units::declare::{Param, time};
use sojourn_units::{Nanos, SECOND};

choices! {
    /// What a policy looks at.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Look {
        /// Nothing.
        Nothing = "nothing",
        /// Connections: those it has given out, less those that have finished.
        Connections = "connections",
        /// Connections, and how long requests took.
        Latency = "latency",
        /// Counters of bytes and packets that ports have sent.
        Counters = "counters",
        /// Backlogs of ports' queues.
        Backlog = "backlog",
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
    /// Readings once a period; with 0, at each choice.
    pub fn every(period: Nanos) -> Self {
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

impl Needs {
    /// Looks at `look`, without readings; limits, rates and weights make no difference.
    pub fn of(look: Look) -> Self {
        Self { look, fresh: Fresh::Unread, limits: false, rates: false, weights: false }
    }

    /// As [`Needs::of`], for a policy in which weights make a difference.
    pub fn weighted(look: Look) -> Self {
        Self { weights: true, ..Self::of(look) }
    }

    /// Looks at `look` in readings of this age.
    pub fn read(look: Look, fresh: Fresh) -> Self {
        Self { fresh, ..Self::of(look) }
    }
}

/// The longest period, so that sums of times stay far from overflow.
pub(crate) const LONGEST: Nanos = 3600 * SECOND;

/// A period of readings; with 0 they are taken for each choice.
pub(crate) const fn period() -> Param<Nanos> {
    time("0s").check(
        |&period| {
            if period <= LONGEST { Ok(()) } else { Err("must be from 0s up to 1h") }
        },
    )
}

/// A span of time above zero.
pub(crate) const fn span(default: &'static str) -> Param<Nanos> {
    time(default).check(|&span| {
        if 0 < span && span <= LONGEST { Ok(()) } else { Err("must be above 0s up to 1h") }
    })
}
