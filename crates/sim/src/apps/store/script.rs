//! The sequence of each client's requests, for simulated and for real stores.

use super::keys::Keys;
use sojourn_plan::Plan;
use sojourn_plan::store::{Arrivals, Workload};
use sojourn_random::{Key, Stream};
use sojourn_units::Nanos;

/// Kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A record is read.
    Read,
    /// A write of an existing record.
    Update,
    /// A new record is written.
    Insert,
    /// Several records are read.
    Scan,
    /// A record is read, and then written.
    Modify,
}

impl Kind {
    /// Returns the name of this kind's share in a workload.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Update => "update",
            Self::Insert => "insert",
            Self::Scan => "scan",
            Self::Modify => "modify",
        }
    }
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its kind.
    pub kind: Kind,
    /// The record, or the first record of a scan.
    pub key: u64,
    /// Number of records of a scan; 1 for other kinds.
    pub records: u32,
}

impl Asked {
    /// Returns the next request of a workload.
    pub(super) fn draw(workload: &Workload, keys: &mut Keys, draws: &mut Stream) -> Self {
        let w = workload;
        let mut u = draws.uniform();
        let mut below = |share: f64| {
            let hit = u < share;
            u -= share;
            hit
        };
        let mut records = 1;
        let kind = if below(w.insert) {
            Kind::Insert
        } else if below(w.update) {
            Kind::Update
        } else if below(w.scan) {
            records = 1 + draws.below(u64::from(w.scan_length)) as u32;
            Kind::Scan
        } else if w.modify > 0.0 && (below(w.modify) || w.read == 0.0) {
            Kind::Modify
        } else if w.read > 0.0 {
            Kind::Read
        } else if w.insert > 0.0 {
            // Because of rounding, the sum of the shares may be below 1.
            Kind::Insert
        } else {
            Kind::Update
        };
        let key = if kind == Kind::Insert { keys.insert() } else { keys.choose(draws) };
        Self { kind, key, records }
    }
}

/// Returns up to `most` requests of a client of the plan's store in the run with this seed. Each
/// has the time since the previous request, which is 0 in a closed loop. In an open loop, requests
/// that are due after the run's end are left out. A single client makes the same requests as in the
/// simulation. With several clients, the numbers of new records are divided among them.
///
/// The result is empty if the plan has no such client.
pub fn script(plan: &Plan, seed: u64, client: u32, most: usize) -> Vec<(Asked, Nanos)> {
    let Some(store) = plan.stores().next() else { return Vec::new() };
    let (own, clients) = (u64::from(client), store.clients.len() as u64);
    if own >= clients {
        return Vec::new();
    }
    let key = Key::new(seed, &store.name).child(store.nodes.len() as u64 + own);
    let (mut work, mut gaps) = (key.stream("work"), key.stream("gaps"));
    let mut keys = Keys::new(&store.workload);
    let records = store.workload.records;
    let mut due: Nanos = store.load.start;
    let mut made = Vec::new();
    while made.len() < most {
        let gap = match store.load.arrivals {
            Arrivals::Closed { .. } => 0,
            Arrivals::Open { every } => every.sample_nanos(&mut gaps),
        };
        due = due.saturating_add(gap);
        if due >= plan.duration {
            break;
        }
        let mut asked = Asked::draw(&store.workload, &mut keys, &mut work);
        if let Some(new) = asked.key.checked_sub(records) {
            asked.key = records + new * clients + own;
        }
        made.push((asked, gap));
    }
    made
}
