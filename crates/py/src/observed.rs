//! Measurement of queues and flows from journals of observed packets.

use crate::simulate::{columns, read};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyList;
use sojourn_network::observed::{Observed, Sighting, UNOBSERVED, tables};
use sojourn_wire::Facts;
use sojourn_wire::ends::{Seen, flows_seen};

/// `N` tables for Python, each a list of columns.
type Tables<'py, const N: usize> = [Bound<'py, PyList>; N];

/// Length in bytes of an entry of a queue journal: time, key, length, and the queue's number. The
/// bits above the number are the flags `LEAVES`, `CONGESTED` and `UDP`.
const SIGHTING: usize = 24;
const LEAVES: u32 = 1 << 16;
const CONGESTED: u32 = 1 << 17;
const UDP: u32 = 1 << 18;

/// Returns the names of queue metrics that cannot be measured by observing packets.
#[pyfunction]
pub(crate) fn unobserved() -> Vec<&'static str> {
    UNOBSERVED.to_vec()
}

/// Computes the tables `queues`, `distributions` and `series` from a journal of packets at queues.
///
/// `journal` is written by a guest's init process (`crates/guest/src/packets.rs`); its entries may
/// be in any order. `links` are the indices of the links of its queues, and `queued` the numbers of
/// packets in each queue at `end`, which is in nanoseconds since the run's start. Raises
/// `ValueError` if the journal is damaged.
#[pyfunction(signature = (plan_json, journal, links, queued, end, /))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 passes arguments by value")]
pub(crate) fn observe_queues<'py>(
    py: Python<'py>,
    plan_json: &str,
    journal: PyBackedBytes,
    links: Vec<usize>,
    queued: Vec<u32>,
    end: u64,
) -> PyResult<Tables<'py, 3>> {
    let plan = read(plan_json)?;
    let mut queues = Vec::new();
    for &link in &links {
        let link = plan
            .links
            .get(link)
            .ok_or_else(|| PyValueError::new_err("the plan has no such link"))?;
        let interval = plan.observe.series_interval;
        let framing = link.params.framing();
        queues.push(Observed::new(link.params.rate, framing, plan.warmup, interval));
    }
    let (records, rest) = journal.as_chunks::<SIGHTING>();
    if !rest.is_empty() {
        return Err(PyValueError::new_err("the journal ends within a record"));
    }
    let made = py.detach(|| {
        let mut seen: Vec<(usize, Sighting)> = records.iter().map(decode).collect();
        // Sort by time; at equal times, arrivals precede departures.
        seen.sort_by_key(|(_, sighting)| (sighting.at, sighting.leaves));
        for (queue, sighting) in seen {
            if sighting.at < end {
                queues
                    .get_mut(queue)
                    .ok_or("the journal names a queue that the run does not have")?
                    .see(sighting);
            }
        }
        let ended = links.iter().zip(queues).zip(queued);
        let ended = ended.map(|((&link, observed), queued)| (link, observed, queued)).collect();
        Ok(tables(&plan, ended, end))
    });
    let (rows, distributions, series) =
        made.map_err(|why: &str| PyValueError::new_err(why.to_owned()))?;
    Ok([columns(py, &rows)?, columns(py, &distributions)?, columns(py, &series)?])
}

fn decode(record: &[u8; SIGHTING]) -> (usize, Sighting) {
    let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| record[at + i]));
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let bits = word(20);
    let sighting = Sighting {
        at: long(0),
        key: long(8),
        length: word(16),
        congested: bits & CONGESTED != 0,
        udp: bits & UDP != 0,
        leaves: bits & LEAVES != 0,
    };
    ((bits & 0xFFFF) as usize, sighting)
}

/// Length in bytes of an entry of a host journal: an entry of a queue journal, and the beginning of
/// the IPv4 packet.
const SEEN: usize = SIGHTING + 40;
/// IPv4 address of node 0, 10.0.0.1 (see `sojourn_plan::address`).
const FIRST_ADDRESS: u32 = 0x0A00_0001;
const TCP: u8 = 6;
const DATAGRAM: u8 = 17;

/// Computes five tables from a journal of packets at hosts: flows, groups, all flows together,
/// distributions, and time series. Rows are in the plan's order.
///
/// `journal` is written by a guest's init process (`crates/guest/src/packets.rs`); its entries may
/// be in any order. `end` is in nanoseconds since the run's start. If the packets of a flow's hosts
/// were not observed, its counts are 0. Raises `ValueError` if the journal is damaged.
#[pyfunction(signature = (plan_json, journal, end, /))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 passes arguments by value")]
pub(crate) fn observe_flows<'py>(
    py: Python<'py>,
    plan_json: &str,
    journal: PyBackedBytes,
    end: u64,
) -> PyResult<Tables<'py, 5>> {
    let plan = read(plan_json)?;
    let (records, rest) = journal.as_chunks::<SEEN>();
    if !rest.is_empty() {
        return Err(PyValueError::new_err("the journal ends within a record"));
    }
    let ends = py.detach(|| {
        let count = plan.nodes.len() as u32;
        let seen = records.iter().filter_map(|record| seen(record, count)).collect();
        flows_seen(&plan, seen, end)
    });
    Ok([
        columns(py, &ends.flows)?,
        columns(py, &ends.groups)?,
        columns(py, &ends.total)?,
        columns(py, &ends.distributions)?,
        columns(py, &ends.series)?,
    ])
}

/// Returns the observation of a packet between two nodes at its sender or receiver; `None` for
/// other packets.
fn seen(record: &[u8; SEEN], nodes: u32) -> Option<Seen> {
    let (head, ip) = record.split_first_chunk::<SIGHTING>()?;
    let (host, sighting) = decode(head);
    let short = |at: usize| u16::from_be_bytes([ip[at], ip[at + 1]]);
    let word = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|i| ip[at + i]));
    let node = |address: u32| address.checked_sub(FIRST_ADDRESS).filter(|&node| node < nodes);
    let ends = (node(word(12))?, node(word(16))?);
    // Packets that a host only forwards are ignored.
    let own = if sighting.leaves { ends.0 } else { ends.1 };
    if own as usize != host {
        return None;
    }
    // The three bits above the fragment offset are flags.
    let (total, first) = (u32::from(short(2)), short(6) << 3 == 0);
    let facts = match ip[9] {
        TCP if first => Facts {
            tcp: true,
            ports: (short(20), short(22)),
            seq: word(24),
            ack: word(28),
            flags: ip[33],
            payload: total.saturating_sub(20 + 4 * u32::from(ip[32] >> 4)),
        },
        DATAGRAM if first => Facts {
            ports: (short(20), short(22)),
            payload: total.saturating_sub(28),
            ..Facts::default()
        },
        _ => Facts::default(),
    };
    Some(Seen {
        at: sighting.at,
        key: sighting.key,
        sent: sighting.leaves,
        nodes: ends,
        length: sighting.length,
        facts,
    })
}
