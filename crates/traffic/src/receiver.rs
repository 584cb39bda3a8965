//! What the receiver of a packet source sees: losses, delay, jitter, and what a call would sound
//! like. Over UDP it sees datagrams, over TCP writes.

use sojourn_measure::{Count, Moments};
use sojourn_units::{Nanos, SECOND};

/// The receiving end of one flow of packets.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// Packets received since the start, and their payload.
    pub received: Count,
    /// Their delays since the end of the warm-up.
    pub delays: Moments,
    /// Least delay since the start: what a receiver synchronises its play-out to.
    least: Option<Nanos>,
    /// Delay of the packet before, and smoothed differences (RFC 3550, section 6.4.1).
    last_delay: Option<Nanos>,
    jitter: f64,
    ear: Ear,
}

/// Packets by the ear: lost and late ones are both silence.
#[derive(Clone, Copy, Debug, Default)]
struct Ear {
    /// Number expected next.
    next: u64,
    /// Number from which on packets are accounted for.
    first: u64,
    /// Packets of the stretch that was accounted for, and those of them that were heard.
    expected: u64,
    heard: u64,
    /// Silent packets since the last one heard.
    run: u64,
    /// Stretches of silence that ended, and their packets.
    runs: u64,
    silent: u64,
}

impl Receiver {
    /// A packet arrived. `playout` is how much later than the least delay it may come, for flows
    /// that someone listens to.
    #[inline]
    pub fn receive(&mut self, seq: u64, payload: u32, delay: Nanos, playout: Option<Nanos>) {
        self.received.count(payload);
        self.delays.add(delay);
        if let Some(last) = self.last_delay {
            self.jitter += (delay.abs_diff(last) as f64 - self.jitter) / 16.0;
        }
        self.last_delay = Some(delay);
        let least = self.least.map_or(delay, |least| least.min(delay));
        self.least = Some(least);
        if let Some(playout) = playout {
            self.ear.hear(seq, delay <= least + playout);
        }
    }

    /// The warm-up is over.
    pub fn restart(&mut self) {
        self.delays = Moments::default();
        self.ear = Ear { next: self.ear.next, first: self.ear.next, ..Ear::default() };
    }

    /// Interarrival jitter in seconds; NaN before the second packet.
    pub fn jitter(&self) -> f64 {
        if self.delays.count() < 2 { f64::NAN } else { self.jitter / SECOND as f64 }
    }

    /// Least delay, share of packets not heard in time, burst ratio (G.107: mean length of a
    /// silence over that of random loss); `None` if there was nothing to hear. `settled` is the
    /// number of packets sent since the start that are not in the network any more: those lost after
    /// the last one received count too.
    pub fn call(&self, settled: u64) -> Option<(Nanos, f64, f64)> {
        let Ear { first, expected, heard, runs, silent, .. } = self.ear;
        let expected = expected.max(settled.saturating_sub(first));
        if expected == 0 {
            return None;
        }
        let loss = 1.0 - heard as f64 / expected as f64;
        let burst = if runs == 0 { 1.0 } else { silent as f64 / runs as f64 * (1.0 - loss) };
        Some((self.least.unwrap_or(0), loss, burst.max(1.0)))
    }
}

impl Ear {
    #[inline]
    fn hear(&mut self, seq: u64, in_time: bool) {
        if seq < self.next {
            // Out of order, its number taken for lost already: a play-out buffer puts it in place.
            // (One of before the warm-up's end makes up for none since.)
            self.heard = (self.heard + u64::from(in_time)).min(self.expected);
            return;
        }
        let missing = seq - self.next;
        self.next = seq + 1;
        self.expected += missing + 1;
        self.run += missing;
        if !in_time {
            self.run += 1;
            return;
        }
        self.heard += 1;
        if self.run > 0 {
            self.runs += 1;
            self.silent += self.run;
            self.run = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_follows_rfc_3550() {
        let mut receiver = Receiver::default();
        receiver.receive(0, 100, 10_000_000, None);
        receiver.receive(1, 100, 26_000_000, None);
        receiver.receive(2, 100, 10_000_000, None);
        // 16 ms / 16 = 1 ms; then 1 + (16 - 1) / 16.
        assert!((receiver.jitter() - 0.001_937_5).abs() < 1e-12);
    }

    #[test]
    fn late_packets_are_not_heard() {
        let mut receiver = Receiver::default();
        let playout = Some(60_000_000);
        for (seq, delay) in [(0, 10), (1, 20), (4, 10), (5, 71), (6, 10), (7, 70)] {
            receiver.receive(seq, 160, delay * 1_000_000, playout);
        }
        let (least, loss, burst) = receiver.call(8).unwrap();
        assert_eq!(least, 10_000_000);
        assert!((loss - 3.0 / 8.0).abs() < 1e-12, "{loss}");
        // Silences of 2 and 1 packets; random loss of 3/8 has silences of 8/5.
        assert!((burst - 1.0).abs() < 1e-12, "{burst}");
    }

    #[test]
    fn a_dead_line_is_silent() {
        let mut receiver = Receiver::default();
        receiver.receive(0, 160, 1_000_000, Some(0));
        assert!((receiver.call(10).unwrap().1 - 0.9).abs() < 1e-12);
        assert_eq!(Receiver::default().call(0), None);
        assert_eq!(Receiver::default().call(5).unwrap().1.to_bits(), 1f64.to_bits());
    }

    #[test]
    fn bursts_are_bursts() {
        let mut receiver = Receiver::default();
        for seq in [0, 1, 2, 3, 10, 11, 12, 13, 14, 15] {
            receiver.receive(seq, 160, 1_000_000, Some(0));
        }
        let (_, loss, burst) = receiver.call(16).unwrap();
        assert!((loss - 6.0 / 16.0).abs() < 1e-12);
        assert!((burst - 6.0 * 10.0 / 16.0).abs() < 1e-12);
    }
}
