//! The timers of a run: one for each application and one for each end of a connection.

use sojourn_network::Deadlines;
use sojourn_units::Nanos;

pub use sojourn_units::NEVER;

/// The owner of a timer. If several timers are due at the same time, the timers of applications
/// fire first, by number, and then the timers of connections' ends, by slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// An application, by its number.
    App(u32),
    /// One end of a connection, by its slot.
    End(u32),
}

/// All timers of a run. Each owner has at most one.
#[derive(Clone, Debug)]
pub struct Timers {
    due: Deadlines,
    apps: u32,
}

impl Timers {
    /// Returns the timers of `apps` applications, without connections.
    pub fn new(apps: u32) -> Self {
        Self { due: Deadlines::new(apps), apps }
    }

    /// Extends the timers to `slots` slots of connections' ends.
    pub fn grow(&mut self, slots: u32) {
        self.due.grow(self.apps + slots);
    }

    /// Returns the timer that is due first, with its time; `None` if no timer is set.
    #[inline]
    pub fn first(&self) -> Option<(Nanos, Timer)> {
        let (at, number) = self.due.first()?;
        let timer = match number.checked_sub(self.apps) {
            Some(slot) => Timer::End(slot),
            None => Timer::App(number),
        };
        Some((at, timer))
    }

    /// Sets a timer, or moves it.
    pub fn set(&mut self, timer: Timer, at: Nanos) {
        self.due.set(self.number(timer), at);
    }

    /// Removes a timer if it is set.
    pub fn clear(&mut self, timer: Timer) {
        self.due.clear(self.number(timer));
    }

    #[inline]
    fn number(&self, timer: Timer) -> u32 {
        match timer {
            Timer::App(app) => app,
            Timer::End(slot) => self.apps + slot,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Timer, Timers};

    #[test]
    fn applications_come_before_connections() {
        let mut timers = Timers::new(2);
        timers.grow(2);
        for timer in [Timer::End(1), Timer::End(0), Timer::App(1), Timer::App(0)] {
            timers.set(timer, 7);
        }
        let mut order = Vec::new();
        while let Some((7, timer)) = timers.first() {
            order.push(timer);
            timers.clear(timer);
        }
        assert_eq!(order, [Timer::App(0), Timer::App(1), Timer::End(0), Timer::End(1)]);
    }
}
