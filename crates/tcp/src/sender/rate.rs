//! Delivery-rate samples.
//!
//! Source: draft-cheng-iccrg-delivery-rate-estimation-00 (Linux's `tcp_rate.c`).
//! Idea: each segment carries the connection's delivery state at its departure. The sample at its
//! acknowledgement is the bytes delivered since the departure, over the longer of the interval in
//! which they were sent and the interval in which they were acknowledged.
//! Invariants: no sample exceeds the true send rate; a sample over less than the least round-trip
//! time has no interval.

use crate::scoreboard::{Loss, Snapshot};
use sojourn_congestion::{Lost, RateSample};
use sojourn_units::Nanos;

/// The delivery state of a connection, if its control asks for samples.
#[derive(Clone, Debug)]
pub(crate) struct DeliveryRate(Option<Box<State>>);

/// The connection's delivery state (section 3.1.1's `C`).
#[derive(Clone, Debug, Default)]
struct State {
    /// `C.delivered`, in bytes.
    delivered: u64,
    /// Bytes taken for lost so far.
    lost: u64,
    /// `C.delivered_time`.
    delivered_at: Nanos,
    /// `C.first_sent_time`.
    first_sent: Nanos,
    /// `C.app_limited`: the application-limited phase lasts until more bytes than this are
    /// delivered; 0 outside of such a phase.
    app_limited: u64,
}

impl DeliveryRate {
    pub(crate) fn new(enabled: bool) -> Self {
        Self(enabled.then(Box::default))
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Returns whether the sender ran out of data, and the bytes then in flight are not all
    /// delivered.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.0.as_ref().is_some_and(|state| state.app_limited > 0)
    }

    /// Returns the snapshot of a segment that leaves (section 3.2). `idle`: nothing is outstanding.
    /// `in_flight`: bytes in flight, the segment included.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Nanos, idle: bool, in_flight: u64) -> Snapshot {
        let Some(state) = &mut self.0 else { return Snapshot::default() };
        if idle {
            state.first_sent = now;
            state.delivered_at = now;
        }
        Snapshot {
            delivered: state.delivered,
            delivered_at: state.delivered_at,
            first_sent: state.first_sent,
            app_limited: state.app_limited > 0,
            in_flight,
            lost: state.lost,
        }
    }

    /// Counts a segment taken for lost. Returns the report to the control, which is empty without
    /// samples.
    pub(crate) fn on_lost(&mut self, now: Nanos, loss: &Loss, selective: bool) -> Lost {
        let Some(state) = &mut self.0 else { return Lost::default() };
        state.lost += loss.len;
        Lost {
            now,
            seq: loss.seq,
            len: loss.len,
            in_flight: loss.snapshot.in_flight,
            lost: state.lost - loss.snapshot.lost,
            delivered: state.delivered,
            app_limited: loss.snapshot.app_limited,
            selective,
        }
    }

    /// Returns the bytes taken for lost since `snapshot`.
    pub(crate) fn lost_since(&self, snapshot: &Snapshot) -> u64 {
        self.0.as_ref().map_or(0, |state| state.lost - snapshot.lost)
    }

    /// The sender has no data to send although cwnd allows more, with `flight` bytes in flight
    /// (section 3.4).
    pub(crate) fn on_app_limited(&mut self, flight: u64) {
        if let Some(state) = &mut self.0 {
            state.app_limited = (state.delivered + flight).max(1);
        }
    }

    /// Returns the sample of an acknowledgement that delivered `bytes` bytes (section 3.3).
    /// `newest`: snapshot and departure of the newest delivered segment.
    #[inline]
    pub(crate) fn on_ack(
        &mut self,
        now: Nanos,
        bytes: u64,
        newest: Option<(Snapshot, Nanos)>,
        min_rtt: Nanos,
    ) -> RateSample {
        match &mut self.0 {
            None => RateSample::default(),
            Some(state) => state.on_ack(now, bytes, newest, min_rtt),
        }
    }
}

impl State {
    fn on_ack(
        &mut self,
        now: Nanos,
        bytes: u64,
        newest: Option<(Snapshot, Nanos)>,
        min_rtt: Nanos,
    ) -> RateSample {
        self.delivered += bytes;
        if bytes > 0 {
            self.delivered_at = now;
        }
        if self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let mut rate = RateSample { total: self.delivered, ..RateSample::default() };
        let Some((snapshot, sent_at)) = newest else {
            return rate;
        };
        self.first_sent = sent_at;
        let sending = sent_at.saturating_sub(snapshot.first_sent);
        let arriving = self.delivered_at.saturating_sub(snapshot.delivered_at);
        rate.prior_delivered = snapshot.delivered;
        rate.app_limited = snapshot.app_limited;
        rate.in_flight = snapshot.in_flight;
        rate.delivered = self.delivered - snapshot.delivered;
        rate.interval = sending.max(arriving);
        if rate.interval < min_rtt {
            // Section 3.3: compressed acknowledgements do not show the rate.
            rate.interval = 0;
        }
        rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sojourn_units::{EPOCH, MILLISECOND, SECOND};
    use std::collections::VecDeque;

    const RTT: Nanos = 10 * MILLISECOND;

    #[test]
    fn a_sample_is_what_was_delivered_since_the_segment_left() {
        let mut rate = DeliveryRate::new(true);
        let first = rate.on_sent(EPOCH, true, 0);
        let second = rate.on_sent(EPOCH + MILLISECOND, false, 0);
        let sample = rate.on_ack(EPOCH + RTT, 1000, Some((first, EPOCH)), RTT);
        assert_eq!((sample.delivered, sample.interval), (1000, RTT));
        let late = EPOCH + 12 * MILLISECOND;
        let sample = rate.on_ack(late, 1000, Some((second, EPOCH + MILLISECOND)), RTT);
        assert_eq!((sample.delivered, sample.interval), (2000, 12 * MILLISECOND));
        assert_eq!((sample.prior_delivered, sample.total), (0, 2000));
    }

    #[test]
    fn the_send_interval_counts_if_it_is_longer() {
        let mut rate = DeliveryRate::new(true);
        rate.on_sent(EPOCH, true, 0);
        let snapshot = rate.on_sent(EPOCH + 30 * MILLISECOND, false, 0);
        // The acknowledgements came together, so the sample's interval is that of sending.
        let sent = EPOCH + 30 * MILLISECOND;
        let sample = rate.on_ack(EPOCH + 25 * MILLISECOND, 2000, Some((snapshot, sent)), RTT);
        assert_eq!(sample.interval, 30 * MILLISECOND);
    }

    #[test]
    fn a_sample_shorter_than_the_least_round_trip_has_no_interval() {
        let mut rate = DeliveryRate::new(true);
        let snapshot = rate.on_sent(EPOCH, true, 0);
        let sample = rate.on_ack(EPOCH + RTT - 1, 1000, Some((snapshot, EPOCH)), RTT);
        assert_eq!((sample.delivered, sample.interval), (1000, 0));
    }

    #[test]
    fn an_application_limited_phase_ends_when_its_flight_is_delivered() {
        let mut rate = DeliveryRate::new(true);
        rate.on_sent(EPOCH, true, 0);
        rate.on_app_limited(1000);
        assert!(rate.on_sent(EPOCH, false, 0).app_limited);
        rate.on_ack(EPOCH + RTT, 1000, None, RTT);
        assert!(rate.is_app_limited());
        rate.on_ack(EPOCH + RTT, 1, None, RTT);
        assert!(!rate.is_app_limited());
    }

    #[test]
    fn silence_begins_a_new_interval() {
        let mut rate = DeliveryRate::new(true);
        let first = rate.on_sent(EPOCH, true, 0);
        rate.on_ack(EPOCH + RTT, 1000, Some((first, EPOCH)), RTT);
        let later = EPOCH + SECOND;
        let second = rate.on_sent(later, true, 0);
        let sample = rate.on_ack(later + RTT, 1000, Some((second, later)), RTT);
        assert_eq!((sample.delivered, sample.interval), (1000, RTT));
    }

    #[test]
    fn without_samples_nothing_is_kept() {
        let mut rate = DeliveryRate::new(false);
        let snapshot = rate.on_sent(EPOCH, true, 0);
        assert_eq!(
            rate.on_ack(EPOCH + RTT, 1000, Some((snapshot, EPOCH)), 0),
            RateSample::default()
        );
        assert!(!rate.is_app_limited());
    }

    proptest! {
        /// However acknowledgements are compressed, no sample exceeds the rate at which the
        /// bottleneck delivers (by more than the first segment of the interval).
        #[test]
        fn no_sample_exceeds_the_bottleneck(
            gaps in prop::collection::vec(0u64..5 * MILLISECOND, 1..100),
            compress in 1usize..8,
        ) {
            const SERVICE: Nanos = MILLISECOND;
            let mut rate = DeliveryRate::new(true);
            let (mut now, mut free) = (EPOCH, EPOCH);
            let mut flight: VecDeque<(Nanos, Nanos, Snapshot)> = VecDeque::new();
            for gap in gaps {
                now += gap;
                while flight.len() >= compress && flight[compress - 1].0 <= now {
                    let (arrival, sent, snapshot) = flight[compress - 1];
                    flight.drain(..compress);
                    let bytes = 1000 * compress as u64;
                    let sample = rate.on_ack(arrival, bytes, Some((snapshot, sent)), 0);
                    prop_assert!(sample.delivered / 1000 <= sample.interval / SERVICE + 1);
                }
                let snapshot = rate.on_sent(now, flight.is_empty(), 0);
                free = free.max(now) + SERVICE;
                flight.push_back((free + RTT, now, snapshot));
            }
        }
    }
}
