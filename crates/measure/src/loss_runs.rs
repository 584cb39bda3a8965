//! Statistics of consecutive packet losses at a port.
//!
//! A loss event begins with the first dropped packet and ends when an arriving packet is accepted.
//! Its length is the number of packets dropped until then. Packets that a discipline drops from its
//! queue count like packets that it refuses on arrival.

/// Distribution of the lengths of loss events.
#[derive(Clone, Debug, Default)]
pub struct LossRuns {
    current: u64,
    /// Number of events for each length from 1. The last entry counts all events of length
    /// [`LONGEST`] or more.
    counts: Vec<u64>,
    events: u64,
    packets: u64,
    squares: u128,
    greatest: u64,
}

/// Length from which on events are counted together.
pub const LONGEST: usize = 4096;

impl LossRuns {
    /// Records a dropped packet.
    pub fn dropped(&mut self) {
        self.current += 1;
    }

    /// Records that an arriving packet was accepted.
    #[inline]
    pub fn accepted(&mut self) {
        if self.current > 0 {
            self.close();
        }
    }

    #[cold]
    fn close(&mut self) {
        let n = std::mem::take(&mut self.current);
        let bin = (n as usize).min(LONGEST);
        if self.counts.len() < bin {
            self.counts.resize(bin, 0);
        }
        self.counts[bin - 1] += 1;
        self.events += 1;
        self.packets += n;
        self.squares += u128::from(n) * u128::from(n);
        self.greatest = self.greatest.max(n);
    }

    /// Removes all events that have ended; an event in progress continues.
    pub fn clear(&mut self) {
        *self = Self { current: self.current, ..Self::default() };
    }

    /// Adds the ended events of another port.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (to, from) in self.counts.iter_mut().zip(&other.counts) {
            *to += from;
        }
        self.events += other.events;
        self.packets += other.packets;
        self.squares += other.squares;
        self.greatest = self.greatest.max(other.greatest);
    }

    /// Returns the number of ended loss events.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the mean length of an event in packets; NaN if there are no events.
    pub fn mean(&self) -> f64 {
        self.packets as f64 / self.events as f64
    }

    /// Returns the standard deviation of the length in packets; NaN if there are no events.
    pub fn deviation(&self) -> f64 {
        let mean = self.mean();
        (self.squares as f64 / self.events as f64 - mean * mean).max(0.0).sqrt()
    }

    /// Returns the greatest length of an event in packets; 0 if there are no events.
    pub fn greatest(&self) -> u64 {
        self.greatest
    }

    /// Returns each length with its number of events; those above [`LONGEST`] count as [`LONGEST`].
    pub fn lengths(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts.iter().enumerate().filter(|&(_, &n)| n > 0).map(|(i, &n)| (i as u64 + 1, n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_ends_with_the_next_accepted() {
        let mut runs = LossRuns::default();
        for arrival in "..x.xx..xxx.x".chars() {
            if arrival == 'x' { runs.dropped() } else { runs.accepted() }
        }
        // The last event has not ended.
        assert_eq!(runs.events(), 3);
        assert_eq!(runs.lengths().collect::<Vec<_>>(), [(1, 1), (2, 1), (3, 1)]);
        assert!((runs.mean() - 2.0).abs() < 1e-12);
        assert_eq!(runs.greatest(), 3);
        assert!((runs.deviation() - (2.0f64 / 3.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn without_loss_there_is_no_mean() {
        assert!(LossRuns::default().mean().is_nan());
    }
}
