//! Times in which the peer's window or the send buffer kept the sender from sending new data.
//!
//! Source: Linux's `tcp_chrono_start` with `TCP_CHRONO_RWND_LIMITED` and `TCP_CHRONO_SNDBUF_LIMITED`,
//! which `tcp_info` reports as `tcpi_rwnd_limited` and `tcpi_sndbuf_limited`.
//! Invariant: at most one of the two limits acts at a time.

use crate::rare::Initial;
use sojourn_units::Nanos;

/// Limit, other than the congestion window, that keeps a sender with data from sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The window that the peer announced.
    Window,
    /// The send buffer: all its data is sent, and the writer waits for space.
    Buffer,
}

/// Total times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limited {
    /// Time in which data waited for the peer's window.
    pub window: Nanos,
    /// Time in which the writer waited for space in the send buffer, with all data sent.
    pub buffer: Nanos,
}

/// The times so far, and the limit that acts now.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    total: Limited,
    acting: Option<(Limit, Nanos)>,
}

impl Initial for Limits {
    const INITIAL: &'static Self = &Self { total: Limited { window: 0, buffer: 0 }, acting: None };
}

impl Limits {
    /// Notes that `limit` acts from `now` on.
    pub(crate) fn begin(&mut self, now: Nanos, limit: Limit) {
        if self.acting.is_some_and(|(acting, _)| acting == limit) {
            return;
        }
        self.end(now);
        self.acting = Some((limit, now));
    }

    /// Notes that no limit acts from `now` on.
    pub(crate) fn end(&mut self, now: Nanos) {
        self.total = self.until(now);
        self.acting = None;
    }

    /// Returns the times until `now`.
    pub(crate) fn until(&self, now: Nanos) -> Limited {
        let mut total = self.total;
        match self.acting {
            Some((Limit::Window, since)) => total.window += now.saturating_sub(since),
            Some((Limit::Buffer, since)) => total.buffer += now.saturating_sub(since),
            None => {}
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_counts_for_the_limit_that_acts() {
        let mut limits = Limits::INITIAL.clone();
        limits.begin(10, Limit::Window);
        limits.begin(15, Limit::Window);
        limits.begin(30, Limit::Buffer);
        assert_eq!(limits.until(35), Limited { window: 20, buffer: 5 });
        limits.end(40);
        assert_eq!(limits.until(100), Limited { window: 20, buffer: 10 });
    }
}
