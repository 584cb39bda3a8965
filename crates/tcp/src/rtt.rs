//! Round-trip times and the retransmission timeout.
//!
//! Source: RFC 6298 (the caller applies Karn's rule); for the rule `linux`, `tcp_rtt_estimator`.
//! Idea: a smoothed mean and a smoothed deviation, gains 1/8 and 1/4. In Linux the timeout is the
//! mean plus four times the greatest deviation of a round. This term falls slowly, and is never
//! below the minimum RTO.
//! Invariants: the timeout lies between `min_rto` and `max_rto`; the least round-trip time never
//! exceeds the newest.

use crate::params::{Params, RtoRule};
use sojourn_units::{MILLISECOND, Nanos, SECOND, jiffies};

/// How long the least round-trip time is remembered (`net.ipv4.tcp_min_rtt_wlen`).
const MIN_WINDOW: Nanos = 300 * SECOND;
/// The clock's granularity in RFC 6298's formula.
const GRANULARITY: Nanos = MILLISECOND;

/// Estimator of the round-trip time and of the retransmission timeout.
#[derive(Clone, Debug)]
pub struct Rtt {
    rule: RtoRule,
    least: Nanos,
    greatest: Nanos,
    /// Smoothed mean, in eighths of a nanosecond.
    srtt8: u64,
    /// Deviation, in quarters of a nanosecond.
    var4: u64,
    /// Linux: smoothed deviation, in quarters of a nanosecond.
    mdev4: u64,
    /// Linux: greatest `mdev4` of the round.
    mdev_max4: u64,
    round_end: u64,
    min: Nanos,
    min_at: Nanos,
    latest: Nanos,
    initial: Nanos,
    /// Ticks of the clock by which timers run, 0 for none.
    hz: u32,
}

impl Rtt {
    /// Returns an estimator without a sample.
    pub fn new(params: &Params) -> Self {
        Self {
            rule: params.rto_rule,
            least: params.min_rto,
            greatest: params.max_rto,
            srtt8: 0,
            var4: 0,
            mdev4: 0,
            mdev_max4: 0,
            round_end: 0,
            min: 0,
            min_at: 0,
            latest: 0,
            initial: params.initial_rto,
            hz: params.hz,
        }
    }

    /// Returns whether timers run by ticks.
    pub fn ticks(&self) -> bool {
        self.hz > 0
    }

    /// Returns the expiry time of a timer of the duration `delay` that is set at `now`.
    pub fn later(&self, now: Nanos, delay: Nanos) -> Nanos {
        jiffies::later(now, delay, self.hz)
    }

    /// Returns the whole ticks of a duration, as a duration.
    pub fn whole_ticks(&self, span: Nanos) -> Nanos {
        jiffies::between(0, span, self.hz)
    }

    /// Returns whether the timeout follows Linux's rule.
    pub fn is_linux(&self) -> bool {
        self.rule == RtoRule::Linux
    }

    /// Returns whether one timer serves reordering, tail loss probes and retransmission, as in Linux
    /// (`icsk_pending`).
    pub fn has_one_timer(&self) -> bool {
        self.is_linux() && self.ticks()
    }

    /// Takes the results of the handshake, which ended at `now`: its round-trip time `sample` if it
    /// is known, and the number of SYNs sent again.
    pub(crate) fn establish(
        &mut self,
        params: &Params,
        now: Nanos,
        sample: Option<Nanos>,
        lost_syns: u32,
    ) {
        if let Some(rtt) = sample {
            self.note_min(now, rtt);
            self.sample(rtt, 1, 1);
        }
        if lost_syns > 0 && self.srtt8 == 0 {
            // RFC 6298, (5.7).
            self.initial = params.initial_rto.max(3 * SECOND);
        }
    }

    /// Returns the smoothed round-trip time, 0 without a sample.
    pub fn srtt(&self) -> Nanos {
        self.srtt8 >> 3
    }

    /// Returns the least round-trip time of the last five minutes, 0 without a sample.
    pub fn min(&self) -> Nanos {
        self.min
    }

    /// Returns the newest round-trip time, 0 without a sample.
    pub fn latest(&self) -> Nanos {
        self.latest
    }

    /// Notes a sample for the least and the newest round-trip time only; 0 is ignored.
    #[inline]
    pub fn note_min(&mut self, now: Nanos, rtt: Nanos) {
        if rtt == 0 {
            return;
        }
        self.latest = rtt;
        if self.min == 0 || rtt <= self.min || now.saturating_sub(self.min_at) > MIN_WINDOW {
            self.min = rtt;
            self.min_at = now;
        }
    }

    /// Takes a sample for the timeout. `una` and `nxt` delimit the rounds of Linux's rule.
    #[inline]
    pub fn sample(&mut self, rtt: Nanos, una: u64, nxt: u64) {
        let rtt = rtt.clamp(1, 1 << 56);
        match self.rule {
            RtoRule::Rfc6298 => {
                if self.srtt8 == 0 {
                    self.srtt8 = rtt << 3;
                    self.var4 = rtt << 1;
                } else {
                    let deviation = rtt.abs_diff(self.srtt8 >> 3);
                    self.var4 = self.var4 - (self.var4 >> 2) + deviation;
                    self.srtt8 = (self.srtt8 - (self.srtt8 >> 3) + rtt).max(1);
                }
            }
            RtoRule::Linux => self.sample_linux(rtt, una, nxt),
        }
    }

    fn sample_linux(&mut self, rtt: Nanos, una: u64, nxt: u64) {
        if self.srtt8 == 0 {
            self.srtt8 = rtt << 3;
            self.mdev4 = rtt << 1;
            // First deviation: half the RTT; `mdev4` is four times it, as in the kernel, and
            // `least` is compared unscaled.
            self.var4 = self.mdev4.max(self.least);
            self.mdev_max4 = self.var4;
            self.round_end = nxt;
            return;
        }
        let error = rtt as i64 - (self.srtt8 >> 3) as i64;
        self.srtt8 = self.srtt8.saturating_add_signed(error).max(1);
        let mut change = error.abs() - (self.mdev4 >> 2) as i64;
        if error < 0 && change > 0 {
            // A shorter round-trip time should lengthen the timeout only a little, so the gain is
            // an eighth of the usual one.
            change >>= 3;
        }
        self.mdev4 = self.mdev4.saturating_add_signed(change);
        if self.mdev4 > self.mdev_max4 {
            self.mdev_max4 = self.mdev4;
            self.var4 = self.var4.max(self.mdev_max4);
        }
        if una > self.round_end {
            if self.mdev_max4 < self.var4 {
                self.var4 -= (self.var4 - self.mdev_max4) >> 2;
            }
            self.round_end = nxt;
            self.mdev_max4 = self.least;
        }
    }

    /// Returns the retransmission timeout without backoff.
    #[inline]
    pub fn rto(&self) -> Nanos {
        if self.srtt8 == 0 {
            return self.initial.clamp(self.least, self.greatest);
        }
        let base = self.srtt8 >> 3;
        let rto = match self.rule {
            RtoRule::Rfc6298 => base + self.var4.max(GRANULARITY),
            RtoRule::Linux => base + self.var4,
        };
        rto.clamp(self.least, self.greatest)
    }

    /// Returns the retransmission timeout after `backoff` expiries.
    pub fn backed_off(&self, backoff: u32) -> Nanos {
        self.rto().saturating_mul(1 << backoff.min(32)).min(self.greatest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rtt(text: &str) -> Rtt {
        Rtt::new(&Params::parse(text).unwrap())
    }

    #[test]
    fn first_sample_gives_three_times_itself() {
        let mut r = rtt("reno profile rfc min_rto 1ms");
        assert_eq!(r.rto(), SECOND);
        r.sample(100 * MILLISECOND, 1, 2);
        assert_eq!(r.srtt(), 100 * MILLISECOND);
        assert_eq!(r.rto(), 300 * MILLISECOND);
        assert_eq!(r.backed_off(2), 1200 * MILLISECOND);
        assert_eq!(r.backed_off(31), 60 * SECOND);
        // RTTVAR = 3/4 50 + 1/4 100, SRTT = 7/8 100 + 1/8 200.
        r.sample(200 * MILLISECOND, 1, 2);
        assert_eq!(r.srtt(), 112_500_000);
        assert_eq!(r.rto(), 112_500_000 + 250 * MILLISECOND);
    }

    #[test]
    fn rfc_has_a_floor_of_one_second() {
        let mut r = rtt("reno profile rfc");
        for _ in 0..100 {
            r.sample(10 * MILLISECOND, 1, 2);
        }
        assert_eq!(r.rto(), SECOND);
    }

    #[test]
    fn linux_adds_200_ms_to_the_mean() {
        let mut r = rtt("reno");
        for i in 0..1000 {
            r.sample(50 * MILLISECOND, i * 100, i * 100 + 10);
        }
        assert_eq!(r.rto(), 250 * MILLISECOND);
    }

    #[test]
    fn the_least_is_forgotten_after_five_minutes() {
        let mut r = rtt("reno");
        r.note_min(SECOND, 10);
        r.note_min(2 * SECOND, 20);
        assert_eq!(r.min(), 10);
        r.note_min(302 * SECOND, 20);
        assert_eq!(r.min(), 20);
    }
}
