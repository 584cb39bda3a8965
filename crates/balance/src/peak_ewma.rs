//! Peak EWMA: the least expected latency of two servers drawn.
//!
//! A server's cost is its latency times the requests it would then have open. Latencies are averaged
//! with a decay in time, except that one above the average replaces it at once: bad news counts
//! immediately, good news has to last. While a server is silent its average decays, so that it is tried
//! again. Finagle's and Linkerd's default; the definition is tower's.

use super::power_of_d::draw_front;
use super::{Connections, Draws, Flow, Pick, Policy, Sight};
use serde::{Deserialize, Serialize};
use sojourn_units::quantity::format_time;
use sojourn_units::words::{Given, Kind, Table, Word, WordError};
use sojourn_units::{Nanos, SECOND};

/// The words of `peak-ewma`.
pub const TABLE: Table = Table {
    name: "peak-ewma",
    summary: "of servers drawn, the one with the least latency times open requests",
    source: "tower::load::PeakEwma; Finagle",
    words: &[
        Word {
            name: "decay",
            kind: Kind::Time,
            default: "10s",
            doc: "Time in which an old latency loses all but 1/e of its weight.",
        },
        Word {
            name: "default",
            kind: Kind::Time,
            default: "1s",
            doc: "Latency of a server that none is known of.",
        },
        Word {
            name: "d",
            kind: Kind::Integer { min: 1, max: 16 },
            default: "2",
            doc: "Servers drawn for each flow.",
        },
    ],
};

/// How latencies are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Time constant of the average.
    pub decay: Nanos,
    /// Latency of a server that none is known of.
    pub default: Nanos,
    /// Servers drawn for each flow.
    pub d: u64,
}

impl Default for Params {
    fn default() -> Self {
        Self { decay: 10 * SECOND, default: SECOND, d: 2 }
    }
}

impl Params {
    pub(super) fn read(given: &Given) -> Result<Self, WordError> {
        let default = Self::default();
        let span = |word: &'static str, default: Nanos| {
            let value = given.time(word).unwrap_or(default);
            if value == 0 || value > super::LONGEST {
                return Err(given.error(word, format!("`{word}` must be above 0s, up to 1h")));
            }
            Ok(value)
        };
        Ok(Self {
            decay: span("decay", default.decay)?,
            default: span("default", default.default)?,
            d: given.integer("d").unwrap_or(default.d),
        })
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.decay == 0 || !(1..=16).contains(&self.d) {
            return Err("`decay` must be above 0s, `d` from 1 to 16".to_owned());
        }
        Ok(())
    }
}

impl std::fmt::Display for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (decay, default) = (format_time(self.decay), format_time(self.default));
        write!(f, "peak-ewma decay {decay} default {default} d {}", self.d)
    }
}

/// A server's latency.
#[derive(Clone, Copy, Debug)]
struct Latency {
    at: Option<Nanos>,
    value: f64,
}

/// The policy.
#[derive(Clone, Debug)]
pub struct PeakEwma {
    params: Params,
    latency: Vec<Latency>,
    urn: Vec<usize>,
}

impl PeakEwma {
    /// A new one for so many servers.
    pub fn new(params: Params, servers: usize) -> Self {
        let unknown = Latency { at: None, value: params.default as f64 };
        Self { params, latency: vec![unknown; servers], urn: Vec::with_capacity(servers) }
    }

    /// What is left of a server's latency by `now`.
    fn decayed(&self, server: usize, now: Nanos) -> f64 {
        let Latency { at, value } = self.latency[server];
        value * at.map_or(1.0, |at| self.weight(at, now))
    }

    fn weight(&self, at: Nanos, now: Nanos) -> f64 {
        libm::exp(-(now.saturating_sub(at) as f64 / self.params.decay as f64))
    }
}

impl Policy for PeakEwma {
    type View = Connections;

    fn choose(
        &mut self,
        now: Nanos,
        _flow: &Flow,
        sight: &Sight<'_, Connections>,
        draws: &mut Draws<'_>,
    ) -> Option<Pick> {
        self.urn.clear();
        self.urn.extend(sight.up());
        let d = (self.params.d as usize).min(self.urn.len());
        draw_front(&mut self.urn, d, draws);
        let cost = |i| {
            let open = sight.get(i)?.open;
            Some(self.decayed(i, now) * (f64::from(open) + 1.0) / f64::from(sight.weight(i)))
        };
        sight.least_of(self.urn[..d].iter().copied(), cost, draws)
    }

    fn finished(
        &mut self,
        now: Nanos,
        server: usize,
        latency: Option<Nanos>,
        _sight: &Sight<'_, Connections>,
    ) {
        let Some(sample) = latency.map(|latency| latency as f64) else { return };
        let Latency { at, value } = self.latency[server];
        let value = match at {
            Some(at) if sample <= value => {
                let w = self.weight(at, now);
                value * w + sample * (1.0 - w)
            }
            _ => sample,
        };
        self.latency[server] = Latency { at: Some(at.map_or(now, |at| at.max(now))), value };
    }

    fn state(&self, visit: &mut dyn FnMut(usize, &'static str, f64)) {
        for (i, latency) in self.latency.iter().enumerate() {
            visit(i, "latency", latency.value);
        }
    }
}
