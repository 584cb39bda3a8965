//! The receiver of a packet source: loss, delay, jitter, and the quality of a call. It counts
//! datagrams if the source sends over UDP, and the application's writes if over TCP.

use crate::app::App;
use crate::playout::JitterBuffer;
use sojourn_measure::{Count, Moments};
use sojourn_units::{Nanos, SECOND};

/// The receiver of one flow of packets.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// Number of packets received since the start, and of their payload bytes.
    pub received: Count,
    /// Delays of packets since the end of the warm-up, in nanoseconds.
    pub delays: Moments,
    /// Delay of the previous packet, and smoothed difference between successive delays (RFC 3550,
    /// section 6.4.1).
    last_delay: Option<Nanos>,
    jitter: f64,
    /// State of a call's receiver; `None` for other applications.
    ear: Option<Box<Ear>>,
}

/// A call after the jitter buffer: lost and late packets are both silence.
#[derive(Clone, Debug)]
struct Ear {
    buffer: JitterBuffer,
    stretch: Stretch,
}

/// Counts of a call's packets since the end of the warm-up.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    /// Number of the next expected packet.
    next: u64,
    /// Number of the first packet after the warm-up.
    first: u64,
    /// Number of packets since the warm-up that are expected, and number of these that were in
    /// time.
    expected: u64,
    heard: u64,
    /// Number of packets, lost or late, since the last packet in time.
    run: u64,
    /// Number of silences that have ended, and number of lost or late packets in them.
    runs: u64,
    silent: u64,
}

impl Receiver {
    /// Returns the receiver for packets of `app`; if `app` is a call, it also measures the call's
    /// quality.
    pub fn new(app: &App) -> Self {
        let ear = match app {
            App::Voip(voip) => {
                let buffer = JitterBuffer::new(voip.playout);
                Some(Box::new(Ear { buffer, stretch: Stretch::default() }))
            }
            _ => None,
        };
        Self { ear, ..Self::default() }
    }

    /// Records a packet that arrives at `now`.
    #[inline]
    pub fn receive(&mut self, now: Nanos, seq: u64, payload: u32, delay: Nanos) {
        self.received.count(payload);
        self.delays.add(delay);
        if let Some(last) = self.last_delay {
            self.jitter += (delay.abs_diff(last) as f64 - self.jitter) / 16.0;
        }
        self.last_delay = Some(delay);
        if let Some(ear) = &mut self.ear {
            let in_time = ear.buffer.receive(now, delay);
            ear.stretch.hear(seq, in_time);
        }
    }

    /// Ends the warm-up: discards delays and the counts of a call.
    pub fn restart(&mut self) {
        self.delays = Moments::default();
        if let Some(ear) = &mut self.ear {
            let Ear { buffer, stretch } = &mut **ear;
            buffer.restart();
            *stretch = Stretch { next: stretch.next, first: stretch.next, ..Stretch::default() };
        }
    }

    /// Returns the interarrival jitter in seconds; NaN before the second packet after the warm-up.
    pub fn jitter(&self) -> f64 {
        if self.delays.count() < 2 { f64::NAN } else { self.jitter / SECOND as f64 }
    }

    /// Returns the mean opinion score of a call; NaN for other applications, or if no packet of the
    /// call is expected yet. `settled` is the number of packets, sent since the start, that have
    /// been received or lost. It reveals losses after the last received packet.
    pub fn mos(&self, app: &App, settled: u64) -> f64 {
        let (App::Voip(voip), Some(ear)) = (app, &self.ear) else { return f64::NAN };
        let Some((loss, burst_ratio)) = ear.stretch.lost(settled) else { return f64::NAN };
        voip.quality(ear.buffer.delay().unwrap_or(0), loss, burst_ratio).mos
    }
}

impl Stretch {
    /// Returns the share of packets that are lost or late, and the burst ratio: the mean length of
    /// a silence, divided by the mean length that it would have under random loss (G.107). Returns
    /// `None` if no packet is expected yet.
    fn lost(&self, settled: u64) -> Option<(f64, f64)> {
        let Self { first, expected, heard, runs, silent, .. } = *self;
        let expected = expected.max(settled.saturating_sub(first));
        if expected == 0 {
            return None;
        }
        let loss = 1.0 - heard as f64 / expected as f64;
        let burst = if runs == 0 { 1.0 } else { silent as f64 / runs as f64 * (1.0 - loss) };
        Some((loss, burst.max(1.0)))
    }

    #[inline]
    fn hear(&mut self, seq: u64, in_time: bool) {
        if seq < self.next {
            // A packet that arrives out of order was counted as lost, but the jitter buffer plays
            // it at its position. A packet of the warm-up must not raise `heard` above `expected`.
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
    use sojourn_units::MILLISECOND;

    fn call(playout: &str) -> (App, Receiver) {
        let app = App::parse(&format!("voip playout {playout}")).unwrap();
        let receiver = Receiver::new(&app);
        (app, receiver)
    }

    fn lost(receiver: &Receiver, settled: u64) -> Option<(f64, f64)> {
        receiver.ear.as_ref().unwrap().stretch.lost(settled)
    }

    #[test]
    fn jitter_follows_rfc_3550() {
        let mut receiver = Receiver::default();
        receiver.receive(0, 0, 100, 10_000_000);
        receiver.receive(0, 1, 100, 26_000_000);
        receiver.receive(0, 2, 100, 10_000_000);
        // 16 ms / 16 = 1 ms; then 1 + (16 - 1) / 16.
        assert!((receiver.jitter() - 0.001_937_5).abs() < 1e-12);
    }

    #[test]
    fn late_packets_are_not_heard() {
        let (app, mut receiver) = call("60ms");
        for (seq, delay) in [(0, 10), (1, 20), (4, 10), (5, 71), (6, 10), (7, 70)] {
            receiver.receive((20 * seq + delay) * MILLISECOND, seq, 160, delay * MILLISECOND);
        }
        let (loss, burst) = lost(&receiver, 8).unwrap();
        assert!((loss - 3.0 / 8.0).abs() < 1e-12, "{loss}");
        // Silences of 2 and 1 packets; random loss of 3/8 has silences of 8/5.
        assert!((burst - 1.0).abs() < 1e-12, "{burst}");
        let App::Voip(voip) = &app else { panic!() };
        let expected = voip.quality(70 * MILLISECOND, loss, burst).mos;
        assert!((receiver.mos(&app, 8) - expected).abs() < 1e-12);
        assert!(receiver.mos(&App::parse("bulk").unwrap(), 8).is_nan());
    }

    #[test]
    fn a_dead_line_is_silent() {
        let (app, mut receiver) = call("0ms");
        assert!(receiver.mos(&app, 0).is_nan());
        assert_eq!(lost(&receiver, 5).unwrap().0.to_bits(), 1f64.to_bits());
        receiver.receive(MILLISECOND, 0, 160, MILLISECOND);
        assert!((lost(&receiver, 10).unwrap().0 - 0.9).abs() < 1e-12);
    }

    #[test]
    fn bursts_are_bursts() {
        let (_, mut receiver) = call("0ms");
        for seq in [0, 1, 2, 3, 10, 11, 12, 13, 14, 15] {
            receiver.receive(20 * seq * MILLISECOND, seq, 160, MILLISECOND);
        }
        let (loss, burst) = lost(&receiver, 16).unwrap();
        assert!((loss - 6.0 / 16.0).abs() < 1e-12);
        assert!((burst - 6.0 * 10.0 / 16.0).abs() < 1e-12);
    }
}
