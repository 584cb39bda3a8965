//! Choice of the server whose port sent the fewest packets or bytes per second between its last two
//! readings, divided by the server's weight, for the policies `least_packets` and
//! `least_bandwidth`.

use crate::contract::{Policy, Request};
use crate::facts::Counters;
use crate::pick::Pick;
use crate::view::Servers;
use sojourn_units::Nanos;

/// Growth rate of a counter at each port, between the last two readings of the counter.
#[derive(Clone, Debug)]
pub struct Rates {
    ports: Vec<Port>,
    count: fn(&Counters) -> u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Port {
    last: Option<(Nanos, u64)>,
    /// Growth rate per second; `None` before the second reading.
    rate: Option<f64>,
}

impl Rates {
    /// Returns the rates of `servers` ports for the counter that `count` selects.
    pub fn new(servers: usize, count: fn(&Counters) -> u64) -> Self {
        Self { ports: vec![Port::default(); servers], count }
    }
}

impl Policy for Rates {
    type View = Counters;

    fn observe(&mut self, now: Nanos, servers: &Servers<'_, Counters>) {
        for (i, port) in self.ports.iter_mut().enumerate() {
            let Some(value) = servers.get(i).map(|counters| (self.count)(&counters)) else {
                *port = Port::default();
                continue;
            };
            if let Some((at, before)) = port.last {
                if now <= at {
                    continue;
                }
                // If a counter has decreased, it was reset, so its growth in this period is
                // unknown.
                if let Some(growth) = value.checked_sub(before) {
                    port.rate = Some(growth as f64 / sojourn_units::time::seconds(now - at));
                }
            }
            port.last = Some((now, value));
        }
    }

    fn choose(&mut self, Request { servers, draws, .. }: Request<'_, Counters>) -> Option<Pick> {
        servers.least(|i| Some(self.ports[i].rate? / f64::from(servers.weight(i))), draws)
    }

    fn state(&self, visit: &mut dyn FnMut(usize, &str, f64)) {
        for (i, port) in self.ports.iter().enumerate() {
            visit(i, "load", port.rate.unwrap_or(f64::NAN));
        }
    }
}
