//! The ports of a plan's links, and the work of their transmitters.

use crate::probe::Work;
use crate::slab::Packet;
use sojourn_link::{Link, Port, Station};
use sojourn_plan::Plan;
use sojourn_random::Key;
use sojourn_units::{EPOCH, Nanos};

/// Returns the port of a plan's link.
pub fn port(link: &sojourn_plan::Link, seed: u64) -> Port<Packet> {
    let key = Key::new(seed, &link.name);
    if link.has_own_transmitter() {
        return Port::Link(Link::new(&link.params, key, EPOCH));
    }
    let mut station = Station::new(&link.params, link.ring, key, EPOCH);
    if let Some(host) = link.host.as_ref().filter(|host| !host.is_punctual()) {
        station = station.with_host(host);
    }
    Port::Station(Box::new(station), link.medium.map(|medium| medium as u32))
}

/// Returns the work of a port's transmitter until `now`, including the capacity used if its rate
/// `varies`.
pub fn work(port: &Port<Packet>, now: Nanos, varies: bool) -> Work {
    let (busy, begun, transmitted) = match port {
        Port::Link(link) => (link.busy(now), link.stats().departed, link.transmitted(now)),
        Port::Station(station, _) => (station.busy(now), station.begun(), station.transmitted(now)),
    };
    // Frames occupy a medium for whole nanoseconds.
    let rounding = match port {
        Port::Station(_, Some(_)) => 0.0,
        port => port.link().rounding(now),
    };
    let busy = busy as f64 - rounding;
    let capacity = varies.then(|| port.link().capacity(now));
    Work { busy, begun, transmitted, capacity }
}

/// Returns the number of transmitters of `links`; links on the same medium share one.
pub fn transmitters(plan: &Plan, links: &[usize]) -> u64 {
    let mut media: Vec<_> = links.iter().filter_map(|&link| plan.links[link].medium).collect();
    let own = links.len() - media.len();
    media.sort_unstable();
    media.dedup();
    (own + media.len()) as u64
}
