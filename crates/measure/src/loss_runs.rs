//! How many packets a port loses in a row.
//!
//! A loss event begins with the first packet dropped and ends when the next arriving packet is
//! accepted; its length is the number of packets dropped in between. Packets that a discipline takes
//! out of its queue count like refused ones.

/// The distribution of loss events by length.
#[derive(Clone, Debug, Default)]
pub struct LossRuns {
    current: u64,
    /// Number of events of length 1, 2, ...; the last holds all longer ones.
    counts: Vec<u64>,
    events: u64,
    packets: u64,
    squares: u128,
    greatest: u64,
}

/// Events longer than this are counted together.
pub const LONGEST: usize = 4096;

impl LossRuns {
    /// A packet was dropped.
    #[inline]
    pub fn dropped(&mut self) {
        self.current += 1;
    }

    /// An arriving packet was accepted.
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

    /// Forgets the events that have ended; the one going on is kept.
    pub fn clear(&mut self) {
        *self = Self { current: self.current, ..Self::default() };
    }

    /// Adds the events of another port that have ended.
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

    /// Number of loss events that have ended.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Mean length; NaN if there was none.
    pub fn mean(&self) -> f64 {
        self.packets as f64 / self.events as f64
    }

    /// Standard deviation of the length; NaN if there was none.
    pub fn deviation(&self) -> f64 {
        let mean = self.mean();
        (self.squares as f64 / self.events as f64 - mean * mean).max(0.0).sqrt()
    }

    /// Length of the longest.
    pub fn greatest(&self) -> u64 {
        self.greatest
    }

    /// Lengths that occurred, with their number.
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
        // The last one has not ended.
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
