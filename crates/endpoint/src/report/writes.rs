//! Reports of packet sources over TCP.

use super::{Making, Stats, Transfer};
use crate::log::{Event, Kind};
use sojourn_measure::Histogram;
use sojourn_traffic::Receiver;
use sojourn_units::{EPOCH, Nanos};

/// A write that entered the send buffer.
struct Write {
    due: Nanos,
    seq: u64,
    payload: u32,
    /// Total number of bytes that the application had written at the end of this write.
    end: u64,
}

/// Fills in the report of one flow. `out` contains the events that the sender logged, `back` those
/// of the receiver.
pub fn make(making: &mut Making, out: &[Event], back: &[Event]) {
    let (writes, closed) = written(making, out);
    let mut receiver = Receiver::new(&making.group.app);
    let mut waiting = writes.iter().peekable();
    let (mut warm, mut before, mut delivered) = (false, 0, 0);
    let mut last = None;
    for event in back {
        if !warm && event.at >= making.since {
            warm = true;
            receiver.restart();
            before = delivered;
        }
        delivered = event.number;
        while let Some(write) = waiting.next_if(|write| write.end <= delivered) {
            let delay = event.at.saturating_sub(write.due);
            receiver.receive(event.at, write.seq, write.payload, delay);
            last = Some(event.at);
            if warm {
                making.report.received += 1;
                making.delay.record(delay);
            }
        }
    }
    if !warm {
        receiver.restart();
        before = delivered;
    }
    making.report.bytes = delivered - before;
    let pending = waiting.count() as u64;
    making.report.pending = pending;
    making.report.jitter = receiver.jitter();
    let seqs = writes.last().map_or(0, |write| write.seq + 1);
    making.report.mos = receiver.mos(&making.group.app, seqs - pending);
    let Some(start) = making.flow.start.filter(|_| !out.is_empty()) else { return };
    let end = last.filter(|_| closed && pending == 0);
    let bytes = writes.last().map_or(0, |write| write.end);
    let error = making.report.errors.first().map(|(number, _)| *number);
    if let Some(end) = end.filter(|&end| end >= making.since) {
        making.fct.record(end - start);
        making.report.finished = 1;
    }
    let ends = making.flow.stop.is_some() || making.group.app.ends();
    making.report.unfinished = u64::from(ends && end.is_none() && error.is_none());
    let since = |at: Nanos| at - EPOCH;
    making.report.end = end.map(since);
    if ends {
        let transfer = Transfer { start: since(start), end: end.map(since), bytes, error };
        making.report.transfers.push(transfer);
    }
}

/// Returns the writes that entered the send buffer, in order, and whether the application closed
/// the stream. Fills in the sender's results in the report.
fn written(making: &mut Making, out: &[Event]) -> (Vec<Write>, bool) {
    let begins = making.flow.begins(making.duration);
    let mut source = making.group.app.packet_source(making.flow.key, begins);
    let mut lateness = Histogram::new();
    let mut writes: Vec<Write> = Vec::with_capacity(out.len());
    let mut closed = false;
    for event in out {
        let warm = event.at >= making.since;
        match event.kind {
            Kind::Written | Kind::Refused => {
                let due = source.as_mut().map_or(event.at, |source| source.next_packet().at);
                if event.kind == Kind::Refused {
                    making.report.refused += u64::from(warm);
                    continue;
                }
                making.report.sent += u64::from(warm);
                if warm {
                    lateness.record(event.at.saturating_sub(due));
                }
                let end = writes.last().map_or(0, |write| write.end) + u64::from(event.length);
                writes.push(Write { due, seq: event.number, payload: event.length, end });
            }
            Kind::Closed => closed = true,
            _ => making.error(event.length),
        }
    }
    making.report.lateness = Stats::of(&lateness);
    (writes, closed)
}
