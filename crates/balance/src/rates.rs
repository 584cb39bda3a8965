//! What ports have sent in the last period: the growth of a counter, for policies that compare rates.

use super::{Counters, Draws, Pick, Sight};
use sojourn_units::Nanos;

/// The rates of counters between their last two readings.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    ports: Vec<Port>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Port {
    last: Option<(Nanos, u64)>,
    /// Growth a second.
    rate: Option<f64>,
}

impl Rates {
    pub fn new(servers: usize) -> Self {
        Self { ports: vec![Port::default(); servers] }
    }

    pub fn observe(
        &mut self,
        now: Nanos,
        sight: &Sight<'_, Counters>,
        count: impl Fn(&Counters) -> u64,
    ) {
        for (i, port) in self.ports.iter_mut().enumerate() {
            let Some(value) = sight.get(i).map(|counters| count(&counters)) else {
                *port = Port::default();
                continue;
            };
            if let Some((at, before)) = port.last {
                if now <= at {
                    continue;
                }
                // A counter that went back has begun anew, and says nothing of this period.
                if let Some(growth) = value.checked_sub(before) {
                    port.rate = Some(growth as f64 / sojourn_units::time::seconds(now - at));
                }
            }
            port.last = Some((now, value));
        }
    }

    pub fn choose(&self, sight: &Sight<'_, Counters>, draws: &mut Draws<'_>) -> Option<Pick> {
        sight.least(|i| self.ports[i].rate, draws)
    }

    pub fn state(&self, name: &'static str, visit: &mut dyn FnMut(usize, &'static str, f64)) {
        for (i, port) in self.ports.iter().enumerate() {
            visit(i, name, port.rate.unwrap_or(f64::NAN));
        }
    }
}
