//! Time series of links, of the goodput of groups, and of the congestion windows of the first
//! flows.

use crate::monitor::latest;
use crate::world::World;
use sojourn_measure::Table;
use sojourn_network::LinkSeries;
use sojourn_plan::{Plan, Transport};
use sojourn_units::time::seconds;

/// Maximum number of flows of each group whose congestion windows are sampled.
const SHOWN_FLOWS: u32 = 4;

/// The time series of a run: the samples taken so far.
#[derive(Clone, Debug, Default)]
pub struct Series {
    links: LinkSeries,
    /// Bytes of payload that had arrived at the last sample, by group.
    delivered: Vec<u64>,
    /// Numbers of the flows whose congestion windows are sampled.
    flows: Vec<usize>,
}

impl Series {
    /// Returns the time series of a plan, without samples.
    pub fn new(plan: &Plan) -> Self {
        if plan.observe.series_interval == 0 {
            return Self::default();
        }
        let mut others = Vec::new();
        let mut add = |name: String, unit| others.push((name, unit));
        for group in &plan.groups {
            let tcp = matches!(group.transport, Transport::Tcp(_));
            let goodput = if tcp { "goodput" } else { "udp_goodput" };
            add(format!("{}.{goodput}", group.name), "bit/s");
            add(format!("{}.active", group.name), "1");
        }
        if plan.observe.monitor {
            add("latest.queue".to_owned(), "1");
            add("latest.last_sojourn".to_owned(), "s");
        }
        let (mut first, mut flows) = (0, Vec::new());
        for group in &plan.groups {
            if matches!(group.transport, Transport::Tcp(_)) {
                for number in 0..group.count.min(SHOWN_FLOWS) {
                    add(format!("{}.{number}.cwnd", group.name), "B");
                    add(format!("{}.{number}.srtt", group.name), "s");
                    flows.push(first + number as usize);
                }
            }
            first += group.count as usize;
        }
        let links = LinkSeries::new(plan, others);
        Self { links, delivered: vec![0; plan.groups.len()], flows }
    }

    /// Returns the table of all samples.
    pub fn into_table(self) -> Table {
        self.links.into_table()
    }

    /// Takes a sample at the world's time.
    pub fn sample(&mut self, world: &World) {
        let span = seconds(world.plan.observe.series_interval);
        let mut others = Vec::with_capacity(2 * (world.groups.len() + self.flows.len()) + 2);
        for (group, delivered) in world.groups.iter().zip(&mut self.delivered) {
            let bytes = group.bytes - std::mem::replace(delivered, group.bytes);
            others.push(bytes as f64 * 8.0 / span);
            others.push(group.active.value() as f64);
        }
        if world.plan.observe.monitor {
            let (queue, sojourn) = latest(world);
            others.extend([queue, sojourn]);
        }
        for &flow in &self.flows {
            let slot = world.flows[flow].current;
            let unknown = (f64::NAN, f64::NAN);
            let (cwnd, srtt) = slot.map_or(unknown, |slot| world.connections.window(slot));
            others.extend([cwnd, srtt]);
        }
        self.links.sample(&world.net, world.plan, world.now, others);
    }
}
