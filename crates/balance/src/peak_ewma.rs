//! Peak EWMA: the least expected latency of the servers drawn, by default two.
//!
//! A server's cost is its latency times the number of open requests including the new one. The
//! average of latencies decays with time, but a latency above the average replaces it at once:
//! increases count immediately, decreases only gradually. While a server is silent its average
//! decays, so that it is tried again. Default of Finagle and Linkerd; the definition is tower's.

use crate::contract::{Policy, PolicyParams, Request};
use crate::needs::{Needs, Signal, span};
use crate::pick::Pick;
use crate::urn::{Urn, drawn};
use crate::view::{Connections, Servers};
use serde::{Deserialize, Serialize};
use sojourn_units::declare::Parameters;
use sojourn_units::words::Table;
use sojourn_units::{Nanos, params};

params! {
    /// Averaging of latencies.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Time constant of the average: after this time, an old latency has 1/e of its weight.
        decay: Nanos = span("10s"),
        /// Assumed latency of a server before its first measurement.
        default: Nanos = span("1s"),
        /// Servers drawn for each flow.
        d: u64 = drawn(),
    }
}

impl PolicyParams for Params {
    const TABLE: Table = Table {
        name: "peak-ewma",
        summary: "of servers drawn, the one with the least latency times open requests",
        source: "tower::load::PeakEwma; Finagle",
        words: Self::WORDS,
    };

    type Policy = PeakEwma;

    fn needs(&self) -> Needs {
        Needs::weighted(Signal::Latency)
    }

    fn build(&self, servers: usize, _key: u64) -> PeakEwma {
        let unknown = Latency { at: None, value: self.default as f64 };
        PeakEwma { params: *self, latency: vec![unknown; servers], urn: Urn::new(servers) }
    }
}

/// A server's latency.
#[derive(Clone, Copy, Debug)]
struct Latency {
    at: Option<Nanos>,
    value: f64,
}

impl Latency {
    /// Returns the weight at `now` of an average from time `at`.
    fn weight(at: Nanos, now: Nanos, decay: Nanos) -> f64 {
        libm::exp(-(now.saturating_sub(at) as f64 / decay as f64))
    }

    /// Returns the decayed latency at `now`, in nanoseconds.
    fn decayed(self, now: Nanos, decay: Nanos) -> f64 {
        self.value * self.at.map_or(1.0, |at| Self::weight(at, now, decay))
    }
}

/// The policy of one balancer.
#[derive(Clone, Debug)]
pub struct PeakEwma {
    params: Params,
    latency: Vec<Latency>,
    urn: Urn,
}

impl Policy for PeakEwma {
    type View = Connections;

    fn choose(
        &mut self,
        Request { now, servers, draws, .. }: Request<'_, Connections>,
    ) -> Option<Pick> {
        let Self { params, latency, urn } = self;
        let cost = |i| {
            let open = f64::from(servers.get(i)?.open) + 1.0;
            Some(latency[i].decayed(now, params.decay) * open / f64::from(servers.weight(i)))
        };
        let drawn = urn.draw(&servers, params.d, draws);
        servers.least_of(drawn.iter().copied(), cost, draws)
    }

    fn finished(
        &mut self,
        now: Nanos,
        server: usize,
        latency: Option<Nanos>,
        _servers: &Servers<'_, Connections>,
    ) {
        let Some(sample) = latency.map(|latency| latency as f64) else { return };
        let Latency { at, value } = self.latency[server];
        let value = match at {
            Some(at) if sample <= value => {
                let w = Latency::weight(at, now, self.params.decay);
                value * w + sample * (1.0 - w)
            }
            _ => sample,
        };
        self.latency[server] = Latency { at: Some(at.map_or(now, |at| at.max(now))), value };
    }

    fn state(&self, visit: &mut dyn FnMut(usize, &str, f64)) {
        for (i, latency) in self.latency.iter().enumerate() {
            visit(i, "latency", latency.value);
        }
    }
}
