//! Reports of transfers.

use super::{Making, Transfer};
use crate::log::{Event, Kind};
use sojourn_units::EPOCH;

/// Fills in the report of one flow. `out` contains the events that the sender logged, `back` those
/// of the receiver.
pub fn make(making: &mut Making, out: &[Event], back: &[Event]) {
    let mut transfers: Vec<Transfer> = Vec::new();
    // Numbers of the transfers in the order in which their connections were opened. The receiver
    // numbers accepted connections, so the number of a connection is an index into this list.
    let mut connected: Vec<usize> = Vec::new();
    for event in out {
        let number = transfers.len().saturating_sub(1);
        match event.kind {
            Kind::Due => transfers.push(Transfer {
                start: event.at - EPOCH,
                end: None,
                bytes: event.number,
                error: None,
            }),
            Kind::Connected => connected.push(number),
            _ => {
                making.error(event.length);
                if let Some(transfer) = transfers.get_mut(event.number as usize) {
                    transfer.error = Some(event.length);
                }
            }
        }
    }
    let mut delivered = 0;
    let mut last = (0, 0);
    for event in back {
        let warm = event.at >= making.since;
        if event.kind == Kind::Completed {
            let number = connected.get(event.length as usize);
            let Some(transfer) = number.and_then(|&number| transfers.get_mut(number)) else {
                making.report.strange += 1;
                continue;
            };
            // A transfer with an error is not finished, even if all bytes have arrived.
            if transfer.error.is_none() && transfer.bytes == event.number {
                transfer.end = Some(event.at - EPOCH);
                if warm {
                    making.fct.record(event.at - EPOCH - transfer.start);
                    making.report.finished += 1;
                }
            }
            continue;
        }
        // `event.number` counts the bytes of one connection, from 0.
        let before = if last.0 == event.length { last.1 } else { 0 };
        last = (event.length, event.number);
        delivered += if warm { event.number - before } else { 0 };
    }
    making.report.bytes = delivered;
    let open = |transfer: &&Transfer| transfer.end.is_none() && transfer.error.is_none();
    making.report.unfinished = transfers.iter().filter(open).count() as u64;
    if making.group.app.ends() && making.report.unfinished == 0 {
        making.report.end = transfers.iter().filter_map(|transfer| transfer.end).max();
    }
    making.report.transfers = transfers;
}
