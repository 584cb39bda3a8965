//! The clock of a wire: the machine's monotonic one, counted from the run's start.

use rustix::time::{ClockId, clock_gettime};
use sojourn_units::{EPOCH, Nanos, SECOND};

/// The machine's monotonic clock, in nanoseconds.
pub fn monotonic() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as Nanos * SECOND + now.tv_nsec as Nanos
}

/// A run's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Nanos,
}

impl Clock {
    /// A clock whose zero is when the machine's monotonic clock shows `start`.
    pub fn new(start: Nanos) -> Self {
        Self { start }
    }

    /// The time, where [`EPOCH`] is the run's start; it does not pass before.
    #[inline]
    pub fn now(self) -> Nanos {
        EPOCH + monotonic().saturating_sub(self.start)
    }

    /// How long it is until `at`.
    #[inline]
    pub fn until(self, at: Nanos) -> Nanos {
        (at - EPOCH + self.start).saturating_sub(monotonic())
    }
}
