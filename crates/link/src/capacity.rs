//! The used share of a transmitter's capacity, for a rate that changes.
//!
//! A second at 10 Mbit/s has a tenth of the capacity of a second at 100 Mbit/s, so the busy share
//! of the time is not the used share of the capacity. A new rate applies from the end of the
//! transmission in progress, which ends at the old rate. So the use never exceeds the capacity.

use sojourn_units::{Nanos, Rate, SECOND};
use std::ops::{Add, Sub};

/// The capacity and the use of a transmitter, in bit/s times nanoseconds, modulo 2^128. Only
/// differences between two times are meaningful.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// Capacity of the transmitter.
    pub offered: u128,
    /// Used capacity, the link's overhead included.
    pub used: u128,
}

impl Capacity {
    /// Returns the used share of the capacity; NaN without capacity.
    pub fn share(self) -> f64 {
        self.used as f64 / self.offered as f64
    }

    /// Returns the capacity of `offered` bytes, of which `used` bytes were used.
    pub(crate) fn of_bytes(offered: u64, used: u64) -> Self {
        let unit = u128::from(8 * SECOND);
        Self { offered: unit * u128::from(offered), used: unit * u128::from(used) }
    }

    fn of(rate: u64, offered: Nanos, used: Nanos) -> Self {
        let rate = u128::from(rate);
        Self { offered: rate * u128::from(offered), used: rate * u128::from(used) }
    }
}

impl Add for Capacity {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            offered: self.offered.wrapping_add(other.offered),
            used: self.used.wrapping_add(other.used),
        }
    }
}

impl Sub for Capacity {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self {
            offered: self.offered.wrapping_sub(other.offered),
            used: self.used.wrapping_sub(other.used),
        }
    }
}

/// Account of the capacity and its use on a link whose rate changes.
#[derive(Clone, Debug)]
pub struct Account {
    /// Capacity and use until `since`.
    total: Capacity,
    /// Time from which the present rate applies; in the future while a transmission at the previous
    /// rate is in progress.
    since: Nanos,
    /// Time that the link has been busy until `since`.
    busy: Nanos,
    rate: u64,
    before: u64,
}

/// Returns a rate in bit/s; 0 without a rate, since time without a rate counts as no capacity.
fn bits(rate: Option<Rate>) -> u64 {
    rate.map_or(0, Rate::bits)
}

impl Account {
    /// Returns the account of a link that has had one rate so far.
    pub fn new(rate: Option<Rate>) -> Self {
        let rate = bits(rate);
        Self { total: Capacity::default(), since: 0, busy: 0, rate, before: rate }
    }

    /// Changes the rate at `end`, which is the end of the transmission in progress or, without one,
    /// the present time. Until `end` the link has been busy for `busy`. In the nanosecond in which
    /// the transmission ends, the new rate offers `more` capacity, modulo 2^128.
    pub fn turn(&mut self, end: Nanos, busy: Nanos, rate: Option<Rate>, more: u128) {
        if end > self.since {
            self.total = self.total + Capacity::of(self.rate, end - self.since, busy - self.busy);
            self.before = self.rate;
            self.since = end;
            self.busy = busy;
        }
        self.total.offered = self.total.offered.wrapping_add(more);
        self.rate = bits(rate);
    }

    /// Adds the capacity and use of a trace's opportunities before `since`.
    pub fn add(&mut self, capacity: Capacity) {
        self.total = self.total + capacity;
    }

    /// Returns capacity and use until `now`; until then the link has been busy for `busy`.
    pub fn until(&self, now: Nanos, busy: Nanos) -> Capacity {
        if now < self.since {
            return self.total - Capacity::of(self.before, self.since - now, self.busy - busy);
        }
        self.total + Capacity::of(self.rate, now - self.since, busy - self.busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBIT: u64 = 1_000_000;

    fn account() -> Account {
        let mut account = Account::new(Rate::new(10 * MBIT));
        // Busy for 300 ns of the first 1000, the last of them in a transmission until 1050.
        account.turn(1050, 350, Rate::new(MBIT), 0);
        account
    }

    #[test]
    fn a_transmission_in_progress_keeps_its_rate() {
        let capacity = account().until(1000, 300);
        assert_eq!(capacity, Capacity::of(10 * MBIT, 1000, 300));
        assert_eq!(account().until(1050, 350), Capacity::of(10 * MBIT, 1050, 350));
        let after = account().until(1250, 400) - account().until(1050, 350);
        assert_eq!(after, Capacity::of(MBIT, 200, 50));
    }

    #[test]
    fn a_rate_that_never_held_counts_nothing() {
        let mut account = account();
        account.turn(1050, 350, Rate::new(500 * MBIT), 0);
        account.turn(1050, 350, Rate::new(3 * MBIT), 0);
        assert_eq!(account.until(1010, 310), Capacity::of(10 * MBIT, 1010, 310));
        let after = account.until(1060, 360) - account.until(1050, 350);
        assert_eq!(after, Capacity::of(3 * MBIT, 10, 10));
    }

    #[test]
    fn the_greatest_rate_for_the_longest_time_fits() {
        let mut account = Account::new(Rate::new(u64::MAX));
        account.turn(Nanos::MAX / 2, 0, Rate::new(1), 0);
        account.turn(Nanos::MAX - 1, 0, Rate::new(u64::MAX), 0);
        assert!(account.until(Nanos::MAX, 1).share() < 1e-15);
    }
}
