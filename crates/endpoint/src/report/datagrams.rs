//! Reports of packet sources over UDP.

use super::{Making, Stats};
use crate::log::{Event, Kind};
use sojourn_measure::Histogram;
use sojourn_traffic::Receiver;
use sojourn_units::{EPOCH, MILLISECOND, Nanos};

/// Length in bytes of the datagram's number, at the start of the payload.
const NUMBER: u32 = 8;
/// Margin in nanoseconds that is added to twice the greatest delay: a missing datagram counts as
/// lost if it was sent earlier than this sum before the end.
const MARGIN: Nanos = 10 * MILLISECOND;

/// A datagram that was due at the sender.
#[derive(Clone, Copy)]
struct Datagram {
    /// Time when the datagram was sent; `None` if it could not be sent.
    sent: Option<Nanos>,
    came: bool,
}

/// Fills in the report of one flow. `out` contains the events that the sender logged, `back` those
/// of the receiver.
pub fn make(making: &mut Making, out: &[Event], back: &[Event]) {
    let mut datagrams = sent(making, out);
    let mut receiver = Receiver::new(&making.group.app);
    let mut expected = 0;
    let mut greatest = 0;
    let mut warm = false;
    for event in back {
        if !warm && event.at >= making.since {
            warm = true;
            receiver.restart();
        }
        if event.kind == Kind::Overflowed {
            making.report.overflowed = event.number;
            continue;
        }
        let number = nearest(event.number, event.length, expected);
        let known = usize::try_from(number).ok().and_then(|number| datagrams.get_mut(number));
        let Some(Datagram { sent: Some(sent), came }) = known else {
            making.report.strange += 1;
            continue;
        };
        if std::mem::replace(came, true) {
            making.report.duplicates += u64::from(warm);
            continue;
        }
        let delay = event.at.saturating_sub(*sent);
        greatest = greatest.max(delay);
        receiver.receive(event.at, number, event.length, delay);
        if warm {
            making.report.received += 1;
            making.report.bytes += u64::from(event.length);
            making.report.reordered += u64::from(number < expected);
            making.delay.record(delay);
        }
        expected = expected.max(number + 1);
    }
    if !warm {
        receiver.restart();
    }
    let late = making.end.saturating_sub(2 * greatest + MARGIN);
    let missing = datagrams.iter().filter(|datagram| !datagram.came);
    let (mut lost, mut pending) = (0, 0);
    for sent in missing.filter_map(|datagram| datagram.sent) {
        if sent > late {
            pending += 1;
        } else if sent >= making.since {
            lost += 1;
        }
    }
    making.report.lost = lost;
    making.report.pending = pending;
    making.report.jitter = receiver.jitter();
    let settled = datagrams.len() as u64 - pending;
    making.report.mos = receiver.mos(&making.group.app, settled);
}

/// Returns the datagrams that were due, in order, and fills in the sender's results in the report.
fn sent(making: &mut Making, out: &[Event]) -> Vec<Datagram> {
    let begins = making.flow.begins(making.duration);
    let mut source = making.group.app.packet_source(making.flow.key, begins);
    let mut lateness = Histogram::new();
    let mut datagrams = Vec::with_capacity(out.len());
    for event in out {
        let due = source.as_mut().map_or(event.at, |source| source.next_packet().at);
        let warm = event.at >= making.since;
        if event.kind == Kind::Sent {
            making.report.sent += u64::from(warm);
            if warm {
                lateness.record(event.at.saturating_sub(due));
            }
            datagrams.push(Datagram { sent: Some(event.at), came: false });
            making.report.end = Some(event.at - EPOCH);
        } else {
            making.report.not_sent += u64::from(warm);
            making.error(event.length);
            datagrams.push(Datagram { sent: None, came: false });
        }
    }
    making.report.lateness = Stats::of(&lateness);
    datagrams
}

/// Returns the number of a datagram with `length` bytes that carries the low bytes `carried`. Of
/// the numbers with these low bytes, it is the one nearest to `expected`.
fn nearest(carried: u64, length: u32, expected: u64) -> u64 {
    if length >= NUMBER {
        return carried;
    }
    let modulus = 1u64 << (8 * length);
    let ahead = carried.wrapping_sub(expected) & (modulus - 1);
    if ahead < modulus / 2 || expected < modulus - ahead {
        expected + ahead
    } else {
        expected - (modulus - ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_datagrams_carry_the_end_of_their_number() {
        assert_eq!(nearest(7, 8, 1000), 7);
        assert_eq!(nearest(0x02, 1, 0x0201), 0x0202);
        assert_eq!(nearest(0x00, 1, 0x01FF), 0x0200);
        assert_eq!(nearest(0xFE, 1, 0x0201), 0x01FE);
        assert_eq!(nearest(0x34, 2, 0x01_FFFF), 0x02_0034);
        // The first datagram has number 0, so a candidate below 0 is not considered.
        assert_eq!(nearest(0xFE, 1, 0x01), 0xFE);
    }
}
