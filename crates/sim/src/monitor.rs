//! The flow monitor: cumulative counts of every flow in both directions at each sample, and the
//! length of the queue that changed last among all links.
//!
//! The samples are for single flows, and for the estimators of published studies, which count
//! differently from a record's other tables. The counts begin at the run's start, not at the end of
//! the warm-up.

use crate::world::World;
use sojourn_measure::{Table, Values};
use sojourn_network::LinkProbe;
use sojourn_units::{EPOCH, Nanos, SECOND, time::seconds};

/// The samples so far. Each sample has a row for each direction of a flow that has sent a packet.
#[derive(Clone, Debug, Default)]
pub struct Monitor {
    time: Vec<f64>,
    group: Vec<String>,
    flow: Vec<i64>,
    back: Vec<bool>,
    sent: Vec<i64>,
    received: Vec<i64>,
    received_bytes: Vec<i64>,
    dropped: Vec<i64>,
    measured: Vec<i64>,
    lost: Vec<i64>,
    delay_sum: Vec<f64>,
    first_sent: Vec<f64>,
    last_received: Vec<f64>,
}

impl Monitor {
    /// Returns the table of all samples. It has all columns even if no packet was sent.
    pub fn into_table(self) -> Table {
        let mut table = Table::default();
        table.push("time".to_owned(), "s", Values::Real(self.time));
        table.push("group".to_owned(), "", Values::Text(self.group));
        table.push("flow".to_owned(), "1", Values::Integer(self.flow));
        table.push("back".to_owned(), "", Values::Bool(self.back));
        for (name, unit, values) in [
            ("sent", "1", self.sent),
            ("received", "1", self.received),
            ("received_bytes", "B", self.received_bytes),
            ("dropped", "1", self.dropped),
            ("measurement_drops", "1", self.measured),
            ("lost", "1", self.lost),
        ] {
            table.push(name.to_owned(), unit, Values::Integer(values));
        }
        for (name, values) in [
            ("delay_sum", self.delay_sum),
            ("first_sent", self.first_sent),
            ("last_received", self.last_received),
        ] {
            table.push(name.to_owned(), "s", Values::Real(values));
        }
        table
    }

    /// Takes a sample of every flow at the world's time.
    pub fn sample(&mut self, world: &World) {
        let at = |time: Option<Nanos>| time.map_or(f64::NAN, |time| seconds(time - EPOCH));
        let now = seconds(world.now - EPOCH);
        for flow in &world.flows {
            for back in [false, true] {
                let id = flow.account as usize + usize::from(back);
                let (books, watched) = (&world.net.accounts[id], &world.net.watched[id]);
                if watched.first_sent.is_none() {
                    continue;
                }
                self.time.push(now);
                self.group.push(world.plan.groups[flow.group as usize].name.clone());
                self.flow.push(i64::from(flow.number));
                self.back.push(back);
                self.sent.push(books.sent.packets as i64);
                self.received.push(books.received.packets as i64);
                self.received_bytes.push(books.received.bytes as i64);
                self.dropped.push(books.dropped.packets as i64);
                self.measured.push(watched.measured as i64);
                self.lost.push(books.lost.packets as i64);
                self.delay_sum.push(watched.delays as f64 / SECOND as f64);
                self.first_sent.push(at(watched.first_sent));
                self.last_received.push(at(watched.last_received));
            }
        }
    }
}

/// Returns the length in packets of the queue that changed last among all links, and the sojourn
/// time in seconds of the packet that left a queue last. If several links changed at the same time,
/// the last one in the plan's order counts.
pub(crate) fn latest(world: &World) -> (f64, f64) {
    let ids = 0..world.plan.links.len();
    let latest = |when: fn(&LinkProbe) -> Nanos| {
        ids.clone().max_by_key(|&id| when(world.net.probe(id))).unwrap_or(0)
    };
    let changed = latest(LinkProbe::changed);
    let departed = latest(|probe| probe.last_departed);
    let packets = world.net.link(changed).backlog().packets;
    (f64::from(packets), world.net.probe(departed).last_sojourn as f64 / SECOND as f64)
}
