//! The shaper: a clock that each packet advances by its transmission time.
//!
//! The shaper has no token bucket. A packet may leave if the clock is not after the present time;
//! an idle shaper sets its clock to the present time. A second clock, the failsafe, advances by 1.5
//! transmission times per sent packet, and not for dropped packets. It lets packets leave if
//! charged drops (`ingress`) would use the whole rate.

use sojourn_units::{Nanos, SECOND};

/// A rate as time per byte, `nanos / 2^shift`. All fields are 0 for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Rate in bytes per second; 0 for no limit.
    pub bytes: u64,
    /// Nanoseconds per byte, times 2^`shift`; 0 for no limit.
    pub nanos: u64,
    /// Exponent of the factor in `nanos`.
    pub shift: u8,
}

impl Pace {
    /// Minimum rate in bytes per second; slower rates are paced at this rate.
    const LEAST: u64 = 64;

    /// Returns the pace of `bytes` per second, with 34 significant bits; 0 means no limit.
    pub fn new(bytes: u64) -> Self {
        if bytes == 0 {
            return Self::default();
        }
        let exact = (SECOND << 34) / bytes.max(Self::LEAST);
        let excess = (64 - exact.leading_zeros()).saturating_sub(34);
        Self { bytes, nanos: exact >> excess, shift: 34 - excess as u8 }
    }

    /// Returns whether there is no limit on the rate.
    pub fn is_unlimited(&self) -> bool {
        self.nanos == 0
    }

    /// Returns the transmission time of `bytes`, in nanoseconds.
    pub fn time(&self, bytes: u32) -> Nanos {
        (u64::from(bytes) * self.nanos) >> self.shift
    }
}

/// The clocks of CAKE's shaper.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shaper {
    /// Rate of the shaper.
    pub pace: Pace,
    /// Time at which the next packet may leave.
    pub time_next: Nanos,
    /// Time at which a packet may leave even if charged drops have advanced `time_next` further.
    pub failsafe: Nanos,
}

impl Shaper {
    /// Returns the time until which no packet may leave; `None` if one may leave now.
    #[inline]
    pub fn wait(&self, now: Nanos) -> Option<Nanos> {
        let next = self.time_next.min(self.failsafe);
        (next > now).then_some(next)
    }

    /// Sets both clocks to `now` if `time_next` is behind, so that an idle period gives no credit.
    #[inline]
    pub fn restart(&mut self, now: Nanos) {
        if self.time_next < now {
            self.time_next = now;
            self.failsafe = now;
        }
    }

    /// Charges the shaper for a packet that was sent or, in `ingress` mode, dropped. `bytes` is
    /// the packet's length on the line.
    #[inline]
    pub fn charge(&mut self, bytes: u32, dropped: bool) {
        if self.pace.is_unlimited() {
            return;
        }
        let time = self.pace.time(bytes);
        self.time_next += time;
        if !dropped {
            self.failsafe += time + (time >> 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_units::EPOCH;

    #[test]
    fn a_pace_has_34_bits() {
        for (bytes, nanos, shift) in [
            (625_000, 13_421_772_800, 23),
            (375_000, 11_184_810_666, 22),
            (37_500, 13_981_013_333, 19),
            (478_515, 8_765_250_828, 22),
        ] {
            assert_eq!(Pace::new(bytes), Pace { bytes, nanos, shift });
        }
        for bytes in [1, 64, 1000, 1_250_000_000, u64::MAX / 8] {
            let pace = Pace::new(bytes);
            let exact = 1e9 / bytes.max(64) as f64;
            let actual = pace.nanos as f64 / (1u64 << pace.shift) as f64;
            assert!(bytes > 1 << 34 || (actual / exact - 1.0).abs() < 1e-8, "{bytes}: {actual}");
        }
        assert!(Pace::new(0).is_unlimited());
    }

    #[test]
    fn drops_alone_do_not_stop_it() {
        let mut shaper = Shaper { pace: Pace::new(1_000_000), ..Shaper::default() };
        shaper.restart(EPOCH);
        assert_eq!(shaper.wait(EPOCH), None);
        (0..9).for_each(|_| shaper.charge(1000, true));
        assert_eq!(shaper.wait(EPOCH), None);
        shaper.charge(1000, false);
        // Ten packets of 1 ms were charged; the failsafe clock waits 1.5 ms.
        assert_eq!(shaper.wait(EPOCH).map(|at| (at - EPOCH) / 1000), Some(1500));
    }
}
