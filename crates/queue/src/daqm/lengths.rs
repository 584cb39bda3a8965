//! Samples of the queue length: their times, and their derivatives.

use super::feature::{VALUES, derivatives};
use sojourn_units::{EPOCH, Nanos};
use std::collections::VecDeque;

/// A time that is never reached: the discipline must report a time for its periodic task even if no
/// sample is due.
const NEVER_DUE: Nanos = Nanos::MAX - 1;

/// The schedule of samples of the queue length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// Time between two samples, or the constant in the formula of `doubled`.
    pub period: Nanos,
    /// Whether departures cause the samples: a packet that leaves at time t after the start of the
    /// run causes a sample at 2 t + period.
    pub doubled: bool,
    /// Minimum time between two samples; an earlier sample is omitted. With 0 no sample is omitted.
    pub gap: Nanos,
}

/// The clock that determines the time of each sample.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    schedule: Schedule,
    /// Time of the next sample; unused with `doubled`.
    next: Nanos,
    /// Times of future samples that departures have caused, at least the schedule's gap apart. A
    /// departure at time t causes a sample at about 2 t, so about half of all samples caused so far
    /// are in this list.
    pending: VecDeque<Nanos>,
    /// Start of the gap: the time of the last sample or, with `doubled`, of the sample that was
    /// last added to `pending`.
    last: Nanos,
}

impl Clock {
    /// Returns a clock that starts at `now`.
    pub fn new(schedule: Schedule, now: Nanos) -> Self {
        Self { schedule, next: now + schedule.period, pending: VecDeque::new(), last: now }
    }

    /// Replaces the schedule. A new period applies from the next sample on; a change of `doubled`
    /// restarts the clock at `now`.
    pub fn change(&mut self, schedule: Schedule, now: Nanos) {
        if schedule.doubled == self.schedule.doubled {
            self.schedule = schedule;
        } else {
            *self = Self::new(schedule, now);
        }
    }

    /// Returns the time at which [`Clock::samples`] must be called next.
    #[inline]
    pub fn due(&self) -> Nanos {
        if self.schedule.doubled {
            self.pending.front().copied().unwrap_or(NEVER_DUE)
        } else {
            self.next
        }
    }

    fn is_far_enough(&mut self, at: Nanos) -> bool {
        let far = at.saturating_sub(self.last) >= self.schedule.gap;
        if far {
            self.last = at;
        }
        far
    }

    /// Records a departure at `now`, which with `doubled` causes a sample.
    #[inline]
    pub fn departed(&mut self, now: Nanos) {
        if self.schedule.doubled {
            let since = now.saturating_sub(EPOCH);
            let at = EPOCH + 2 * since + self.schedule.period;
            // Samples are caused in the order of their times, so the minimum gap is checked here.
            if self.is_far_enough(at) {
                self.pending.push_back(at);
            }
        }
    }

    /// Returns the number of samples to take at `now`, which must be the due time.
    pub fn samples(&mut self, now: Nanos) -> usize {
        if self.schedule.doubled {
            let mut samples = 0;
            while self.pending.front().is_some_and(|at| *at <= now) {
                self.pending.pop_front();
                samples += 1;
            }
            samples
        } else {
            self.next = now + self.schedule.period;
            usize::from(self.is_far_enough(now))
        }
    }
}

/// The last five samples of the queue length, and their derivatives.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Lengths {
    values: [f64; VALUES],
    filled: usize,
    /// First, second and third derivative, per sample; zeros until there are five samples.
    pub derivatives: [f64; 3],
}

impl Lengths {
    /// Adds a sample. The derivatives are of the last five samples or, with `tumbling`, of each
    /// group of five new ones.
    pub fn note(&mut self, length: usize, tumbling: bool) {
        if self.filled == VALUES && tumbling {
            self.filled = 0;
        } else if self.filled == VALUES {
            self.values.rotate_left(1);
            self.filled -= 1;
        }
        self.values[self.filled] = length as f64;
        self.filled += 1;
        if self.filled == VALUES {
            self.derivatives = derivatives(self.values, 1.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_units::MILLISECOND;

    const MS: Nanos = MILLISECOND;
    const PLAIN: Schedule = Schedule { period: 15 * MS, doubled: false, gap: 0 };

    /// Returns the times of the samples until `until`, in ms since the start.
    fn sample_times(clock: &mut Clock, until: u64) -> Vec<u64> {
        let mut times = Vec::new();
        while clock.due() <= EPOCH + until * MS {
            let at = clock.due();
            times.extend((0..clock.samples(at)).map(|_| (at - EPOCH) / MS));
            assert!(clock.due() > at, "the next sample is later");
        }
        times
    }

    #[test]
    fn lengths_are_taken_periodically() {
        let mut clock = Clock::new(PLAIN, EPOCH);
        clock.departed(EPOCH + 3 * MS);
        assert_eq!(sample_times(&mut clock, 60), [15, 30, 45, 60]);
        clock.change(Schedule { period: 4 * MS, ..PLAIN }, EPOCH + 61 * MS);
        assert_eq!(sample_times(&mut clock, 84), [75, 79, 83]);
        let mut slow = Clock::new(Schedule { gap: 31 * MS, ..PLAIN }, EPOCH);
        assert_eq!(sample_times(&mut slow, 150), [45, 90, 135]);
    }

    #[test]
    fn lengths_are_asked_for_by_departures_far_ahead() {
        let mut clock = Clock::new(Schedule { doubled: true, ..PLAIN }, EPOCH);
        assert_eq!(clock.due(), NEVER_DUE);
        for at in [0, 10, 10, 11, 40] {
            clock.departed(EPOCH + at * MS);
        }
        assert_eq!(sample_times(&mut clock, 40), [15, 35, 35, 37]);
        clock.departed(EPOCH + 41 * MS);
        assert_eq!(sample_times(&mut clock, 200), [95, 97]);
        assert_eq!(clock.due(), NEVER_DUE);
    }

    /// Omitting samples when they are caused or when they are due gives the same result.
    #[test]
    fn a_gap_leaves_out_what_comes_too_soon() {
        let schedule = Schedule { doubled: true, gap: 10 * MS, ..PLAIN };
        let mut clock = Clock::new(schedule, EPOCH);
        // Causes samples at 15, 17, 25, 27, 35, 65 and 74 ms.
        for at in [0, 1, 5, 6, 10, 25] {
            clock.departed(EPOCH + at * MS);
        }
        clock.departed(EPOCH + 29 * MS + MS / 2);
        assert_eq!(sample_times(&mut clock, 100), [15, 25, 35, 65]);
    }

    #[test]
    fn a_window_slides_or_tumbles() {
        let (mut slides, mut tumbles) = (Lengths::default(), Lengths::default());
        let mut seen = Vec::new();
        for n in 0..10u32 {
            let length = n.pow(2) as usize;
            slides.note(length, false);
            tumbles.note(length, true);
            seen.push((slides.derivatives[0], tumbles.derivatives[0], tumbles.derivatives[1]));
        }
        // For n², the difference of the first two values of a window from m to m + 4 is 2 m + 1.
        let none = (0.0, 0.0, 0.0);
        let first: Vec<_> = (0..5).map(|m| (f64::from(2 * m + 1), 1.0, 2.0)).collect();
        assert_eq!(seen[..4], [none; 4]);
        assert_eq!(seen[4..9], first);
        assert_eq!(seen[9], (11.0, 11.0, 2.0));
    }
}
