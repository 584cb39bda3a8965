//! Peak EWMA: the server with the lowest expected latency among some random ones, by default two.
//!
//! A server's cost is its average latency times the number of its open requests, including the new
//! one, divided by its weight. The average of latencies decays with time. A latency above the
//! average replaces it immediately, so increases take effect at once and decreases only gradually.
//! The average of a server without requests decays too, so that the server is tried again. Finagle
//! and Linkerd have this policy; the definition is that of tower.

use crate::contract::{Policy, PolicyParams, Request};
use crate::needs::{Needs, Signal, span};
use crate::pick::Pick;
use crate::urn::{Urn, drawn};
use crate::view::{Connections, Servers};
use sojourn_units::{Nanos, params};

params! {
    "peak-ewma": "among d random servers, the one with the least average latency times (open requests + 1) / weight",
    from "tower::load::PeakEwma; Finagle";

    /// Average of latencies, and number of random servers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Time constant of the average: after this time, the weight of an old latency has fallen
        /// to 1/e.
        decay: Nanos = span("10s"),
        /// Latency that is assumed for a server before its first measurement.
        default: Nanos = span("1s"),
        /// Number of random servers among which each flow chooses.
        d: u64 = drawn(),
    }
}

impl PolicyParams for Params {
    type Policy = PeakEwma;

    fn needs(&self) -> Needs {
        Needs::weighted(Signal::Latency)
    }

    fn build(&self, servers: usize, _key: u64) -> PeakEwma {
        let unknown = Latency { at: None, value: self.default as f64 };
        PeakEwma { params: *self, latency: vec![unknown; servers], urn: Urn::new(servers) }
    }
}

/// The average latency of a server: its value in nanoseconds, and the time of its last update.
#[derive(Clone, Copy, Debug)]
struct Latency {
    at: Option<Nanos>,
    value: f64,
}

impl Latency {
    /// Returns the weight at `now` of an average that was updated at `at`.
    fn weight(at: Nanos, now: Nanos, decay: Nanos) -> f64 {
        libm::exp(-(now.saturating_sub(at) as f64 / decay as f64))
    }

    /// Returns the average at `now`, in nanoseconds.
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
