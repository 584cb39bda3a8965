//! The clock of a run on a wire: the machine's monotonic clock, counted from the run's start.

use rustix::time::{ClockId, clock_gettime};
use sojourn_units::{EPOCH, Nanos, SECOND};

/// Returns the time of the machine's monotonic clock, in nanoseconds.
pub fn monotonic() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as Nanos * SECOND + now.tv_nsec as Nanos
}

/// A run's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Nanos,
    /// For virtual time, the monotonic clock's value at the last reading; otherwise `None`.
    shown: Option<Nanos>,
}

impl Clock {
    /// Returns a clock that shows [`EPOCH`] when the machine's monotonic clock shows `start`.
    pub fn new(start: Nanos) -> Self {
        Self { start, shown: None }
    }

    /// Returns a clock as [`Clock::new`] does, but for virtual time, which stops while any program
    /// works. After this call it reads the machine's clock only in [`Clock::look`].
    pub fn standing(start: Nanos) -> Self {
        Self { start, shown: Some(monotonic()) }
    }

    /// Reads the machine's clock in virtual time. Called after the wire has slept, since only then
    /// time may have passed.
    #[inline]
    pub fn look(&mut self) {
        if let Some(shown) = &mut self.shown {
            *shown = monotonic();
        }
    }

    fn machine(self) -> Nanos {
        self.shown.unwrap_or_else(monotonic)
    }

    /// Returns the time since the run's start, plus [`EPOCH`]. Before the start it is [`EPOCH`].
    pub fn now(self) -> Nanos {
        EPOCH + self.machine().saturating_sub(self.start)
    }

    /// Returns the time until `at`, in nanoseconds; 0 if `at` has passed.
    pub fn until(self, at: Nanos) -> Nanos {
        (at - EPOCH + self.start).saturating_sub(self.machine())
    }
}
